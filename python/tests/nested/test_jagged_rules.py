"""Each rule of jagged tensors gives what a loop over the components gives, gradients too."""

from __future__ import annotations

from typing import Any

import cases
import pytest

import pullback as torch
from pullback.nested import _pointwise, _rules

WHOLE_NUMBERS = ("bitwise", "__and__", "__or__", "__xor__", "__r", "__lshift__")


def components(requires_grad: bool = True) -> list[Any]:
    torch.manual_seed(3)
    made = [torch.randn(n, 5, dtype=torch.float64) for n in (2, 4, 1)]
    return [one.requires_grad_(requires_grad) for one in made]


def unary_cases() -> list[cases.Case]:
    names = sorted(_pointwise.UNARY - cases.APART)
    return [
        cases.named(name, *cases.ARGUMENTS.get(name, ()), prepare=cases.PREPARED.get(name))
        for name in names
    ]


def binary_cases() -> list[cases.Case]:
    covered = {name for case in cases.OTHERS for name in case.names if name != "add"}
    covered |= {"threshold_backward"}
    made = []
    for name in sorted(_pointwise.BROADCAST - covered):
        function = getattr(torch.Tensor, name, None) or getattr(torch, name)
        integers = any(word in name for word in ("bitwise", "__and", "__or", "__xor"))
        integers = integers or name in ("__rand__", "__ror__", "__rxor__")
        low = "pow" in name or name in ("xlogy", "__rpow__")

        def call(x: Any, function: Any = function, integers: bool = integers) -> Any:
            return function(x, x.clamp(0, 3) if integers else x.cos() + 1.5)

        prepare = cases.whole if integers else (cases.positive if low else None)
        if "floor" in name:
            # It has no gradient, nor has it in PyTorch.
            prepare = torch.Tensor.detach
        made.append(cases.Case((name,), call, call, prepare=prepare))
    return made


CASES = [*unary_cases(), *binary_cases(), *cases.OTHERS]
IDS = [f"{at}-{case.names[0]}" for at, case in enumerate(CASES)]


def tensors_of(result: Any, kind: str, count: int) -> list[Any]:
    """The components of a result of the whole."""
    if kind == "nested":
        assert result.is_nested, type(result)
        return list(result.unbind())
    assert type(result) is torch.Tensor
    return list(result.unbind()) if kind == "stacked" else [result]


def expected_of(case: cases.Case, parts: list[Any]) -> list[Any]:
    if case.result == "total":
        return [case.single(torch.cat(parts))]
    return [case.single(one) for one in parts]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_rule_gives_what_a_loop_gives(case: cases.Case) -> None:
    prepare = case.prepare or (lambda x: x)
    parts, twins = components(), components()
    nested = torch.nested.as_nested_tensor(parts, layout=torch.jagged)
    results = tensors_of(case.nested(prepare(nested)), case.result, len(parts))
    expected = expected_of(case, [prepare(one) for one in twins])
    assert len(results) == len(expected)
    for one, other in zip(results, expected, strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, equal_nan=True)
        assert one.requires_grad == other.requires_grad
    if expected[0].requires_grad:
        check_gradients(parts, twins, results, expected)


def check_gradients(parts: Any, twins: Any, results: Any, expected: Any) -> None:
    def first(leaves: Any, outputs: Any) -> Any:
        loss = sum((one * one.detach().cos()).sum() for one in outputs)
        return torch.autograd.grad(loss, leaves, create_graph=True)

    one, other = first(parts, results), first(twins, expected)
    torch.testing.assert_close(one, other, equal_nan=True)
    if not other[0].requires_grad:
        return
    pairs = (one, parts), (other, twins)
    seconds = [
        torch.autograd.grad(sum((g * g).sum() for g in grads), leaves, allow_unused=True)
        for grads, leaves in pairs
    ]
    # Where a second derivative is zero, a part of the graph may say that it is none.
    for a, b, leaf in zip(*seconds, parts, strict=True):
        zero = torch.zeros_like(leaf)
        torch.testing.assert_close(
            zero if a is None else a, zero if b is None else b, equal_nan=True
        )


APART = {
    # Tested below, or in the other modules.
    *("_to_copy", "alias", "bernoulli", "empty_like", "rand_like", "randn_like"),
    *("equal", "allclose", "unbind", "to_padded_tensor", "item"),
    *("__bool__", "__float__", "__int__"),
    *("dim", "numel", "size", "stride", "storage_offset", "is_same_size", "apply_"),
    # (Tested in `test_inner_names`; only gradients call the second.)
    *("_unsafe_view", "threshold_backward"),
    *_pointwise.IN_PLACE,
}


def test_every_rule_has_a_case() -> None:
    covered = {name for case in CASES for name in case.names}
    assert set(_rules.TABLE) - covered - APART == set()


@pytest.mark.parametrize("name", ["empty_like", "rand_like", "randn_like", "bernoulli"])
def test_new_elements_keep_the_structure(name: str) -> None:
    nested = torch.nested.nested_tensor(components(False), layout=torch.jagged).sigmoid()
    made = getattr(torch, name)(nested)
    assert made.shape == nested.shape
    assert made.dtype == nested.dtype


IN_PLACE_ARGUMENTS = {
    **dict.fromkeys(("add_", "sub_", "mul_", "div_", "__iadd__", "__isub__", "__imul__"), (2.0,)),
    "__itruediv__": (2.0,),
    "pow_": (2.0,),
    "fill_": (2.0,),
    "clamp_": (-0.5, 0.5),
}


def in_place(name: str) -> Any:
    """The method, or of those that tensors do not have, the function of ``functional``."""
    if name in ("gelu_", "silu_"):
        return getattr(torch._C._nn, name)
    return getattr(torch.Tensor, name)


RANDOM = {"normal_", "uniform_", "bernoulli_"}


@pytest.mark.parametrize("name", sorted(_pointwise.IN_PLACE - RANDOM))
def test_in_place(name: str) -> None:
    parts = [one.abs() for one in components(False)]
    nested = torch.nested.nested_tensor(parts, layout=torch.jagged)
    arguments = IN_PLACE_ARGUMENTS.get(name, ())
    for at, one in enumerate(parts):
        extra = arguments
        if name == "copy_":
            extra = (one * 3,)
        if name == "masked_fill_":
            extra = (one > 0.5, 7.0)
        parts[at] = in_place(name)(one.clone(), *extra)
    extra = arguments
    if name == "copy_":
        extra = (nested * 3,)
    if name == "masked_fill_":
        extra = (nested > 0.5, 7.0)
    assert in_place(name)(nested, *extra) is nested
    torch.testing.assert_close(list(nested.unbind()), parts)


@pytest.mark.parametrize("name", sorted(RANDOM))
def test_in_place_draws(name: str) -> None:
    nested = torch.nested.nested_tensor(components(False), layout=torch.jagged)
    before = nested.values().clone()
    assert getattr(nested, name)() is nested
    assert not torch.equal(before, nested.values())


def test_in_place_with_history_is_refused() -> None:
    nested = torch.nested.as_nested_tensor(components(), layout=torch.jagged)
    with pytest.raises(
        RuntimeError, match="add_\\(\\): in-place operations on a NestedTensor are not"
    ):
        nested.add_(1)


@pytest.mark.parametrize("name", ["sort", "roll", "flip", "cummax", "index_select", "det"])
def test_what_has_no_rule_is_refused_by_name(name: str) -> None:
    nested = torch.nested.nested_tensor(components(False), layout=torch.jagged)
    with pytest.raises(NotImplementedError, match=rf"{name}\(\): not supported for NestedTensor"):
        getattr(nested, name)()
