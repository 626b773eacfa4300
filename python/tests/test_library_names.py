"""`torch._library`: what libraries ask of the signatures of ops."""

from __future__ import annotations

import subprocess
import sys
import typing
from typing import Any

import pytest

import pullback as torch
from pullback._library import custom_ops, infer_schema, utils

aten = torch.ops.aten


def test_the_modules_lead_to_the_public_functions() -> None:
    assert custom_ops.custom_op is torch.library.custom_op
    assert custom_ops.CustomOpDef is torch.library.CustomOpDef
    assert infer_schema.infer_schema is torch.library.infer_schema


def test_nothing_imports_them_unasked() -> None:
    program = (
        "import sys, pullback, pullback.library\n"
        "assert not any(name.startswith('pullback._library') for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_types_of_signatures_have_a_table() -> None:
    params, returns = infer_schema.SUPPORTED_PARAM_TYPES, infer_schema.SUPPORTED_RETURN_TYPES
    assert params[torch.Tensor] == "Tensor"
    assert params[typing.Optional[int]] == "SymInt?"  # noqa: UP045
    assert params[typing.Optional[list[torch.Tensor]]] == "Tensor[]?"  # noqa: UP045
    assert params[typing.Sequence[typing.Optional[torch.Tensor]]] == "Tensor?[]"  # noqa: UP045
    assert params[typing.Optional[torch.dtype]] == "ScalarType?"  # noqa: UP045
    assert params[int | float | bool] == "Scalar"
    assert str not in returns
    assert returns[list[torch.Tensor]] == "Tensor[]"
    for kind in params:

        def function(x: Any) -> None:
            pass

        function.__annotations__["x"] = kind
        function.__annotations__["return"] = None
        schema = torch.library.infer_schema(function, mutates_args=())
        assert schema == f"({params[kind]} x) -> ()"


def test_ops_are_found_by_name() -> None:
    assert utils.parse_namespace("aten::sin") == ("aten", "sin")
    assert utils.lookup_op("aten::sin") is aten.sin.default
    assert utils.lookup_op("aten::add.Tensor") is aten.add.Tensor
    with pytest.raises(ValueError, match='"namespace::name", but got sin'):
        utils.parse_namespace("sin")
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        utils.lookup_op("aten::nope")


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("of(Tensor x) -> Tensor", True),
        ("of(Tensor(a) x) -> Tensor", True),
        ("of(Tensor(a!) x) -> Tensor", False),
        ("of(Tensor(a) x) -> Tensor(a)", False),
        ("of(Tensor x) -> ()", False),
    ],
)
def test_functional_signatures_have_new_results(schema: str, expected: bool) -> None:
    assert utils.is_functional_schema(schema) is expected
    assert utils.is_functional_schema(torch._C.parse_schema(schema)) is expected


def test_views_may_count_as_functional() -> None:
    schema = "of(Tensor(a) x) -> Tensor(a)"
    assert utils.is_functional_schema(schema, allow_valid_view=True)
    assert not utils.is_functional_schema("of(Tensor x) -> Tensor(a)", allow_valid_view=True)
    assert not utils.is_functional_schema("of(Tensor(a!) x) -> Tensor(a!)", allow_valid_view=True)


def test_forms_of_ops_say_what_they_write() -> None:
    forms = [aten.add.Tensor, aten.add_.Tensor, aten.add.out]
    assert [utils.mutates_and_returns_first_arg(op) for op in forms] == [False, True, False]
    assert [utils.is_inplace(op) for op in forms] == [False, True, False]
    assert [utils.is_out(op) for op in forms] == [False, False, True]
    assert [utils.mutated_args_kwargs(op._schema) for op in forms] == [
        ([], []),
        ([0], []),
        ([], ["out"]),
    ]
    assert utils.is_builtin(aten.add.Tensor)
    with pytest.raises(AssertionError, match="must be OpOverload"):
        utils.is_builtin("aten::add")  # type: ignore[arg-type]


def test_arguments_of_calls_are_paired_with_the_signature() -> None:
    schema, x, y = aten.add.Tensor._schema, torch.ones(1), torch.zeros(1)
    pairs = utils.zip_schema(schema, (x,), {"other": y, "alpha": 2})
    assert [(argument.name, value) for argument, value in pairs] == [
        ("self", x),
        ("other", y),
        ("alpha", 2),
    ]
    assert [argument.name for argument, _ in utils.zip_schema(schema, (x, y), {})] == [
        "self",
        "other",
    ]
    args, kwargs = utils.fill_defaults(schema, (x, y), {})
    assert args[0] is x
    assert args[1] is y
    assert kwargs == {"alpha": 1}
    assert utils.fill_defaults(schema, (x,), {"other": y, "alpha": 3})[1] == {"alpha": 3}
    assert utils.has_kwarg_only_args(schema)
    assert not utils.has_kwarg_only_tensors(schema)
    assert utils.has_kwarg_only_tensors(aten.add.out._schema)
    assert utils.has_tensor_arg(schema)
    assert utils.has_tensor_arg(aten.cat.default._schema)
    assert not utils.has_tensor_arg(torch._C.parse_schema("of(int n) -> Tensor"))


def test_types_are_tensors_or_lists_of_them() -> None:
    schema = torch._C.parse_schema(
        "of(Tensor a, Tensor? b, Tensor[] c, Tensor?[] d, Tensor[]? e, int[] f, int g) -> ()"
    )
    kinds = [argument.type for argument in schema.arguments]
    assert [utils.is_tensor_like_type(kind) for kind in kinds] == [True] * 2 + [False] * 5
    assert [utils.is_tensorlist_like_type(kind) for kind in kinds] == (
        [False] * 2 + [True] * 3 + [False] * 2
    )


def test_tensors_of_calls_are_found_in_lists() -> None:
    x, y, z = torch.ones(1), torch.ones(2), torch.ones(3)
    found = list(utils.iter_tensors((x, [y, [z]], 1), {"last": z}))
    assert [tensor.numel() for tensor in found] == [1, 2, 3]
    deeper = list(utils.iter_tensors((x, [y, [z]]), {}, allowed_nesting=2))
    assert [tensor.numel() for tensor in deeper] == [1, 2, 3]
    assert list(utils.iter_tensors(([x],), {}, allowed_nesting=0)) == []


def test_a_place_in_a_program_is_a_file_and_a_line() -> None:
    file, _, line = utils.get_source(1).rpartition(":")
    assert file == __file__
    assert int(line) > 100
