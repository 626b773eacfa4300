"""Scans with a function of the program."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
from pullback._higher_order_ops.associative_scan import associative_scan


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_a_scan_of_addition_is_cumsum(dim: int) -> None:
    x = torch.arange(24.0).view(2, 3, 4)
    torch.testing.assert_close(associative_scan(torch.add, x, dim), x.cumsum(dim))
    back = associative_scan(torch.add, x, dim, reverse=True, combine_mode="generic")
    torch.testing.assert_close(back, x.flip(dim).cumsum(dim).flip(dim))


def test_a_linear_recurrence_is_a_scan_of_pairs_with_gradients() -> None:
    torch.manual_seed(0)
    a, b = (torch.rand(5, 2, dtype=torch.float64, requires_grad=True) for _ in range(2))

    def step(before: Any, after: Any) -> Any:
        return before[0] * after[0], before[1] * after[0] + after[1]

    def recurrence(a: Any, b: Any) -> Any:
        return associative_scan(step, (a, b), 0)[1]

    state, states = torch.zeros(2, dtype=torch.float64), []
    for factor, added in zip(a, b, strict=True):
        state = state * factor + added
        states.append(state)
    torch.testing.assert_close(recurrence(a, b), torch.stack(states))
    assert torch.autograd.gradcheck(recurrence, [a, b])


def test_arguments_are_checked() -> None:
    x = torch.ones(3)
    add: Any = torch.add
    for call, message in (
        (lambda: associative_scan(1, x, 0), "must be a callable"),  # type: ignore[arg-type]
        (lambda: associative_scan(add, x, 0, combine_mode="no"), "either 'pointwise' or"),
        (lambda: associative_scan(add, [], 0), "xs leaves must be tensors"),
        (lambda: associative_scan(add, (x, torch.ones(2)), 0), r"got \[2, 3\]"),
        (lambda: associative_scan(lambda a, b: (a, b), x, 0), "must give the form of xs"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
