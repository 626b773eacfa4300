"""Gradients of reduced segments where elements are NaN."""

from __future__ import annotations

import math

import pytest

import pullback as torch

NAN = math.nan
LENGTHS = torch.tensor([1, 3, 2, 0])
DATA = [1.0, 3.0, NAN, 0.0, 5.0, 5.0]


@pytest.mark.parametrize(
    ("reduce", "initial", "value", "gradient"),
    [
        ("sum", None, [1, NAN, 10, 0], [1, 1, 1, 1, 1, 1]),
        ("mean", 0.0, [1, NAN, 5, 0], [1, 1 / 3, 1 / 3, 1 / 3, 0.5, 0.5]),
        ("max", None, [1, NAN, 5, -math.inf], [1, 0, 1, 0, 0.5, 0.5]),
        ("max", 2.0, [2, NAN, 5, 2], [0, 0, 1, 0, 0.5, 0.5]),
        ("min", None, [1, NAN, 5, math.inf], [1, 0, 1, 0, 0.5, 0.5]),
        ("prod", None, [1, NAN, 25, 1], [1, NAN, 0, NAN, 5, 5]),
        ("prod", 2.0, [2, NAN, 50, 2], [2, NAN, 0, NAN, 10, 10]),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_one_nan_has_the_gradient_of_its_place(
    reduce: str,
    initial: float | None,
    value: list[float],
    gradient: list[float],
    dtype: torch.dtype,
) -> None:
    data = torch.tensor(DATA, dtype=dtype, requires_grad=True)
    got = torch.segment_reduce(data, reduce, lengths=LENGTHS, initial=initial)
    got.sum().backward()
    expected = torch.tensor(value, dtype=dtype)
    torch.testing.assert_close(got, expected, equal_nan=True)
    torch.testing.assert_close(data.grad, torch.tensor(gradient, dtype=dtype), equal_nan=True)


@pytest.mark.parametrize("reduce", ["max", "min"])
def test_several_nan_share_the_gradient(reduce: str) -> None:
    data = torch.tensor([[NAN, 1.0], [2.0, NAN], [NAN, 4.0]], requires_grad=True)
    got = torch.segment_reduce(data, reduce, lengths=torch.tensor([3]))
    got.backward(torch.tensor([[2.0, 6.0]]))
    assert got.isnan().all()
    assert data.grad is not None
    assert data.grad.tolist() == [[1, 0], [0, 6], [1, 0]]


def test_several_nan_make_each_factor_s_gradient_nan() -> None:
    data = torch.tensor([NAN, 2.0, NAN], requires_grad=True)
    torch.segment_reduce(data, "prod", lengths=torch.tensor([3])).sum().backward()
    assert data.grad is not None
    assert data.grad.isnan().all()
