"""Numbers beside tensors: the nodes they give, how they are rounded, what bools refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch


def leaf(*values: float) -> torch.Tensor:
    return torch.tensor(values, requires_grad=True)


NODES_OF_NUMBERS: list[tuple[str, Callable[[Any], Any], list[str]]] = [
    ("1 + x", lambda x: 1 + x, ["AddBackward0"]),
    ("1 - x", lambda x: 1 - x, ["RsubBackward1"]),
    ("rsub", lambda x: torch.rsub(x, 1, alpha=2), ["RsubBackward1"]),
    ("rsub of tensors", lambda x: torch.rsub(x, torch.ones(3)), ["RsubBackward0"]),
    ("2 * x", lambda x: 2 * x, ["MulBackward0"]),
    ("2 / x", lambda x: 2 / x, ["MulBackward0", "ReciprocalBackward0"]),
    ("x % 2", lambda x: x % 2, ["RemainderBackward0"]),
    ("2 % x", lambda x: 2 % x, ["RemainderBackward2"]),
    ("remainder_", lambda x: x.clone().remainder_(2), ["RemainderBackward0", "CloneBackward0"]),
    ("x % x", lambda x: x % torch.ones(3), ["RemainderBackward1"]),
    ("fmod", lambda x: torch.fmod(x, 2), ["FmodBackward0"]),
    ("fmod_", lambda x: x.clone().fmod_(2), ["FmodBackward0", "CloneBackward0"]),
    ("fmod of tensors", lambda x: x.fmod(torch.ones(3)), ["FmodBackward1"]),
    ("copysign", lambda x: torch.copysign(x, -1), ["CopysignBackward1"]),
    ("copysign of tensors", lambda x: x.copysign(-torch.ones(3)), ["CopysignBackward0"]),
    ("xlogy", lambda x: torch.xlogy(x, 2), ["XlogyBackward2"]),
    ("xlogy of a number", lambda x: torch.xlogy(2, x), ["XlogyBackward1"]),
    ("xlogy of tensors", lambda x: torch.xlogy(x, x), ["XlogyBackward0"]),
    ("eq_", lambda x: x.clone().eq_(2), ["EqBackward0", "CloneBackward0"]),
]


@pytest.mark.parametrize(
    ("compute", "names"),
    [case[1:] for case in NODES_OF_NUMBERS],
    ids=[c[0] for c in NODES_OF_NUMBERS],
)
def test_nodes_say_where_a_number_stood(compute: Callable[[Any], Any], names: list[str]) -> None:
    node = compute(leaf(0.3, 1.7, 3.1)).grad_fn
    for name in [*names, "torch::autograd::AccumulateGrad"]:
        assert node.name() == name
        node = node.next_functions[0][0] if node.next_functions else None


def test_a_number_by_a_tensor_is_rounded_as_its_reciprocal_times_the_number() -> None:
    x = torch.tensor([3.0, 7.0, 49.0, 0.1])
    assert (5 / x).tolist() == (x.reciprocal() * 5).tolist()
    # 5 times the rounded 1/49 is not the rounded 5/49.
    assert (5 / x)[2] != torch.div(5, x)[2]
    assert (3 / torch.tensor([2, 4])).tolist() == [1.5, 0.75]
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = "a" / x


@pytest.mark.parametrize("write", ["eq_", "lt_", "logical_and_"])
def test_what_a_comparison_in_place_overwrites_has_gradient_zero(write: str) -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * x
    getattr(y, write)(torch.tensor([1.0, 0.0, 10.0]))
    (y * 5).sum().backward()
    assert x.grad.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("compute", "text"),
    [
        (lambda b: True - b, "two bool tensors"),
        (lambda b: 1 - b, "with a bool tensor"),
        (lambda b: b % False, "not implemented for 'Bool'"),
        (lambda b: b // b, "not implemented for 'Bool'"),
    ],
)
def test_bools_are_not_subtracted_or_divided(compute: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(NotImplementedError, match=text):
        compute(torch.tensor([True, False]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    "call",
    [
        lambda x, n: x * n,
        lambda x, n: n * x,
        lambda x, n: x / n,
        lambda x, n: torch.div(x, n, rounding_mode="trunc"),
        lambda x, n: x // n,
        lambda x, n: x.clone().mul_(n),
        lambda x, n: x.clone().div_(n),
        lambda x, n: torch.mul(x, n, out=torch.empty_like(x)),
    ],
)
@pytest.mark.parametrize(
    "number", [0.1, 257, lambda: torch.tensor(0.3)], ids=["float", "int", "0d"]
)
def test_numbers_beside_halves_keep_their_digits(dtype: Any, call: Any, number: Any) -> None:
    n = number() if callable(number) else number
    x = (torch.arange(-60, 67).float() / 7).to(dtype)
    result = call(x, n)
    assert result.dtype is dtype
    wide = n if isinstance(n, torch.Tensor) else torch.tensor(float(n))
    assert torch.equal(result, call(x.float(), wide).to(dtype))
    rows = x[1:].view(2, 63)
    assert torch.equal(call(rows.t(), n), call(rows, n).t())
