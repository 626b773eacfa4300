"""What schemas say of memory, and what dispatch modes say of themselves."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
from pullback.utils._python_dispatch import (
    AliasInfo,
    SchemaInfo,
    TorchDispatchMode,
    any_torch_dispatch_mode_on_stack,
    autograd_would_have_decomposed,
    get_alias_info,
    is_in_any_mode_without_ignore_compile_internals,
)

aten = torch.ops.aten


def written(name: str | None, letter: str = "a") -> AliasInfo:
    return AliasInfo({letter}, True, name)


def plain(name: str | None) -> AliasInfo:
    return AliasInfo(set(), False, name)


def shown(name: str | None) -> AliasInfo:
    return AliasInfo({"a"}, False, name)


# What PyTorch 2.15 gives for the same overloads.
CASES = [
    (
        aten.add_.Tensor,
        SchemaInfo(
            [written("self"), plain("other"), plain("alpha")], [written(None)], False, ["a"], []
        ),
    ),
    (
        aten.add.out,
        SchemaInfo(
            [plain("self"), plain("other"), plain("alpha"), written("out")],
            [written(None)],
            False,
            ["a"],
            [],
        ),
    ),
    (
        aten.split.Tensor,
        SchemaInfo(
            [shown("self"), plain("split_size"), plain("dim")], [shown(None)], False, None, [(0, 0)]
        ),
    ),
    (aten.t_.default, SchemaInfo([written("self")], [written(None)], True, ["a"], [])),
    (
        aten.view.default,
        SchemaInfo([shown("self"), plain("size")], [shown(None)], False, None, [(0, 0)]),
    ),
    (
        aten.unbind.int,
        SchemaInfo([shown("self"), plain("dim")], [shown(None)], False, None, [(0, 0)]),
    ),
    (
        aten.matmul.default,
        SchemaInfo([plain("self"), plain("other")], [plain(None)], False, None, []),
    ),
    (
        aten.var_mean.correction,
        SchemaInfo(
            [plain(name) for name in ("self", "dim", "correction", "keepdim")],
            [plain(None), plain(None)],
            False,
            None,
            [],
        ),
    ),
]


@pytest.mark.parametrize(("overload", "expected"), CASES, ids=lambda case: str(case)[:30])
def test_schemas_of_ops(overload: Any, expected: SchemaInfo) -> None:
    assert get_alias_info(overload) == expected
    assert get_alias_info(overload) is get_alias_info(overload)


def test_schemas_of_a_programs_ops() -> None:
    library = torch.library.Library("alias_info", "DEF")
    library.define("fill(Tensor(a!) x, Tensor[] xs, int[] sizes=[1, 2], str text='a') -> ()")
    library.define("two(Tensor x) -> (Tensor, Tensor)")
    info = get_alias_info(torch.ops.alias_info.fill.default)
    assert info.args == [written("x"), plain("xs"), plain("sizes"), plain("text")]
    assert (info.outs, info.outs_write_aliases) == ([], None)
    assert get_alias_info(torch.ops.alias_info.two.default).outs == [plain(None), plain(None)]


def test_ops_without_kernels_are_decomposed() -> None:
    x = torch.ones(2)
    for overload in (aten.matmul.default, aten.linear.default, aten.reshape.default):
        assert autograd_would_have_decomposed(overload, [x])
    for overload in (aten.add.Tensor, aten.relu.default):
        assert not autograd_would_have_decomposed(overload, [3, x])
        assert not autograd_would_have_decomposed(overload, [x.to("meta")])
    assert autograd_would_have_decomposed(aten.add.Tensor, [1, 2])


class _Mode(TorchDispatchMode):
    ignores = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return cls.ignores


class _IgnoringMode(_Mode):
    ignores = True


def test_modes_that_ignore_compiled_code_do_not_count() -> None:
    def answers() -> tuple[bool, bool]:
        return (
            any_torch_dispatch_mode_on_stack(),
            is_in_any_mode_without_ignore_compile_internals(),
        )

    assert answers() == (False, False)
    with _IgnoringMode():
        assert answers() == (False, False)
        with _Mode():
            assert answers() == (True, True)
    assert answers() == (False, False)
