"""Gradients between real and complex tensors."""

from __future__ import annotations

import cmath
from typing import Any

import pytest

import pullback as torch


def test_a_real_input_beside_complex_ones_gets_the_real_part_of_its_gradient() -> None:
    for join in (torch.cat, torch.stack):
        real = torch.tensor([2.0], requires_grad=True)
        other = torch.tensor([1j], requires_grad=True)
        joined = join([real, other])
        weight = torch.tensor([3 + 4j, 1j]).reshape(joined.shape)
        by_real, by_other = torch.autograd.grad(joined, (real, other), weight)
        assert by_real.dtype == torch.float32
        assert by_real.tolist() == [3.0]
        assert by_other.tolist() == [1j]
    base = torch.zeros(2, dtype=torch.complex64, requires_grad=True) * 1
    source = torch.tensor([5.0], requires_grad=True)
    base[:1].copy_(source)
    assert torch.autograd.grad(base, source, torch.tensor([3 + 4j, 0]))[0].tolist() == [3.0]


def test_a_custom_function_may_not_give_a_complex_gradient_for_a_real_input() -> None:
    class Complex(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return grad * 1j

    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="expected a real gradient for a real tensor"):
        Complex.apply(x).sum().backward()


def test_a_negative_number_to_a_complex_power_has_a_gradient_by_the_power() -> None:
    # d/dz b^z = b^z log(b), of which gradients are the conjugate.
    exponent = torch.tensor([1.5 + 0.7j], dtype=torch.complex128, requires_grad=True)
    expected = ((-2 + 0j) ** (1.5 + 0.7j) * cmath.log(-2 + 0j)).conjugate()
    for base in (torch.tensor([-2.0], dtype=torch.float64), -2.0):
        power = torch.pow(base, exponent)
        (slope,) = torch.autograd.grad(power, exponent, torch.ones_like(power))
        assert abs(slope.item() - expected) < 1e-12
