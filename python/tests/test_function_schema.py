"""Signatures of ops as objects."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import pullback as torch

aten = torch.ops.aten


def facts(argument: Any) -> tuple[Any, ...]:
    return (argument.name, str(argument.type), argument.has_default_value(), argument.default_value)


def test_a_schema_has_a_name_arguments_and_results() -> None:
    schema = aten.add.Tensor._schema
    assert isinstance(schema, torch._C.FunctionSchema)
    assert str(schema) == repr(schema)
    assert str(schema) == (
        "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    )
    assert (schema.name, schema.overload_name, schema.is_mutable) == ("aten::add", "Tensor", False)
    assert [facts(argument) for argument in schema.arguments] == [
        ("self", "Tensor", False, None),
        ("other", "Tensor", False, None),
        ("alpha", "number", True, 1),
    ]
    assert [argument.kwarg_only for argument in schema.arguments] == [False, False, True]
    assert all(isinstance(argument, torch._C.Argument) for argument in schema.arguments)
    assert [(r.name, str(r.type), r.alias_info) for r in schema.returns] == [("", "Tensor", None)]


@pytest.mark.parametrize(
    ("op", "text"),
    [
        (aten.relu.default, "aten::relu(Tensor self) -> Tensor"),
        (aten.relu_.default, "aten::relu_(Tensor(a!) self) -> Tensor(a!)"),
        (
            aten.add_.Tensor,
            "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
        ),
        (
            aten.add.out,
            "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> "
            "Tensor(a!)",
        ),
        (aten.relu.out, "aten::relu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"),
        (
            aten.max.dim,
            "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor "
            "indices)",
        ),
        (aten.t_.default, "aten::t_(Tensor(a!) self) -> Tensor(a!)"),
    ],
)
def test_each_form_has_a_schema_of_its_own(op: Any, text: str) -> None:
    assert str(op._schema) == text
    written = [argument.name for argument in op._schema.arguments if argument.is_write]
    assert op._schema.is_mutable == bool(written) == ("!" in text)


def test_what_is_written_to_and_shown_is_said() -> None:
    (target, *others) = aten.add_.Tensor._schema.arguments
    assert target.alias_info.is_write
    assert target.alias_info.before_set == target.alias_info.after_set == {"a"}
    assert [other.alias_info for other in others] == [None, None]
    shown = aten.view.default._schema
    assert shown.arguments[0].alias_info.before_set == shown.returns[0].alias_info.before_set
    assert not shown.is_mutable
    out = aten.add.out._schema.arguments[-1]
    assert (out.name, out.is_out, out.kwarg_only, out.is_write) == ("out", True, True, True)


def test_types_are_those_of_torchscript() -> None:
    total = {argument.name: argument for argument in aten.sum.dim_IntList._schema.arguments}
    assert str(total["dim"].type) == "Optional[List[int]]"
    assert total["dim"].N == 1
    assert (str(total["dtype"].type), str(total["dtype"].real_type)) == (
        "Optional[int]",
        "Optional[ScalarType]",
    )
    kind = total["dim"].type
    assert isinstance(kind, torch.OptionalType)
    assert isinstance(kind.getElementType(), torch.ListType)
    assert (kind.kind(), kind.getElementType().getElementType().kind()) == (
        "OptionalType",
        "IntType",
    )
    tensors = aten.cat.default._schema.arguments[0].type
    assert isinstance(tensors.getElementType(), torch._C.TensorType)
    assert tensors.getElementType() == total["self"].type
    assert total["self"].type.isSubtypeOf(aten.bernoulli.default._schema.arguments[0].type)
    assert facts(aten.gelu.default._schema.arguments[1]) == ("approximate", "str", True, "none")
    with pytest.raises(RuntimeError, match="type Tensor is made of no other types"):
        total["self"].type.getElementType()


def test_every_op_has_a_schema_that_can_be_read() -> None:
    seen = 0
    for name in dir(torch._C._VariableFunctions):
        packet = None if name.startswith("__") else getattr(aten, name, None)
        for overload in packet.overloads() if packet is not None else ():
            op = getattr(packet, overload)
            schema = op._schema
            assert schema.name == f"aten::{name}"
            assert schema.overload_name == ("" if overload == "default" else overload)
            assert torch._C.parse_schema(str(schema)) == schema
            seen += 1
    assert seen > 1200


def test_schemas_are_read_compared_and_pickled() -> None:
    schema = torch._C.parse_schema("foo::bar(Tensor(a!) x, int[2]? n=None, *, int k=1) -> Tensor[]")
    assert (schema.name, len(schema.arguments), str(schema.returns[0].type)) == (
        "foo::bar",
        3,
        "List[Tensor]",
    )
    assert pickle.loads(pickle.dumps(schema)) == copy.deepcopy(schema) == schema
    assert len({schema, torch._C.parse_schema(str(schema))}) == 1
    assert schema != aten.add.Tensor._schema
    for text in ("bar(", "bar", "", "bar(Tensor) - Tensor", "bar(!) -> Tensor"):
        with pytest.raises(RuntimeError, match="expected"):
            torch._C.parse_schema(text)


def test_numbers_have_overloads_of_their_own() -> None:
    names = aten.add.overloads()
    assert {"Tensor", "Scalar", "out", "int", "float", "complex", "int_float", "default"} <= {
        *names
    }
    assert len(names) == len(set(names))
    assert str(aten.add.default._schema) == "aten::add(Scalar a, Scalar b) -> Scalar"
    assert (aten.add.default(1, 2), aten.mul.int_float(2, 1.5), aten.lt.default(1, 2)) == (
        3,
        3,
        True,
    )
    assert str(aten.sub.float_int._schema) == "aten::sub.float_int(float a, int b) -> float"
    assert aten.relu.overloads()[0] == "default"


def test_schemas_are_found_by_name() -> None:
    found = torch._C._jit_get_schemas_for_operator("aten::add")
    assert aten.add.Tensor._schema in found
    assert torch._C._get_schema("aten::add", "Tensor") == aten.add.Tensor._schema
    assert torch._C._get_schema("aten::relu", "") == aten.relu.default._schema
    assert torch._C._jit_get_schemas_for_operator("aten::no_such_op") == []
    with pytest.raises(RuntimeError, match="no overload 'x' of the op aten::add"):
        torch._C._get_schema("aten::add", "x")
