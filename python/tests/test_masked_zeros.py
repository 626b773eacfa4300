"""Gradients of branches that were not taken: zero, where the chain rule says ``0 * inf``."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch
from pullback.autograd import masked_zeros

F = torch.nn.functional
NAN = float("nan")


def leaf(*values: float) -> Any:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def gradient(function: Callable[[Any], Any], *values: float) -> list[float]:
    x = leaf(*values)
    function(x).sum().backward()
    return x.grad.tolist()  # type: ignore[no-any-return]


# What a program computes, where, and its gradient there.
PROGRAMS: dict[str, tuple[Callable[[Any], Any], list[float], list[float]]] = {
    "a root": (lambda x: torch.where(x > 0, x.sqrt(), 0.0), [0.0, 4.0], [0.0, 0.25]),
    "a logarithm": (lambda x: torch.where(x > 0, x.log(), -1.0), [0.0, 2.0], [0.0, 0.5]),
    "a quotient": (lambda x: torch.where(x != 0, 1 / x, 0.0), [0.0, 2.0], [0.0, -0.25]),
    "sin(x) / x": (lambda x: torch.where(x == 0, 1.0, x.sin() / x), [0.0], [0.0]),
    "a fractional power": (lambda x: torch.where(x > 0, x**0.5, x), [0.0, 4.0], [1.0, 0.25]),
    "an arc cosine": (lambda x: torch.where(x.abs() < 1, x.acos(), 0.0), [1.0, 0.0], [0.0, -1.0]),
    "a logarithm that is masked": (
        lambda x: x.log().masked_fill(x <= 0, 0.0),
        [0.0, 2.0],
        [0.0, 0.5],
    ),
    "an exponential that runs over": (
        lambda x: torch.where(x > 50, x, (x.exp() * 1e300).log1p()),
        [800.0],
        [1.0],
    ),
    "a clamped logarithm": (lambda x: x.log().clamp(min=-1.0), [0.0, 2.0], [0.0, 0.5]),
    "the larger of two": (
        lambda x: torch.maximum(x.log(), torch.full_like(x, -1.0)),
        [0.0, 2.0],
        [0.0, 0.5],
    ),
    "a chain of two": (
        lambda x: torch.where(x > 0, (x * 2).sqrt().sqrt(), 0.0),
        [0.0, 8.0],
        [0.0, 0.0625],
    ),
    "a norm": (lambda x: torch.where(x.sum() > 0, x.pow(2).sum().sqrt(), 0.0), [0.0, 0.0], [0, 0]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_famous_programs_have_their_right_gradient(name: str) -> None:
    function, at, expected = PROGRAMS[name]
    assert any(g != g for g in gradient(function, *at)), "the chain rule alone gives NaN"
    with masked_zeros():
        assert gradient(function, *at) == pytest.approx(expected, rel=1e-12)


def test_everything_that_is_finite_keeps_its_bits() -> None:
    def network(x: Any) -> Any:
        hidden = F.relu(x.reshape(2, 3) @ torch.linspace(-1, 1, 6, dtype=torch.float64).view(3, 2))
        return F.log_softmax(hidden.tanh() * hidden.clamp(0.1, 0.5), 1).where(hidden > 0.2, -hidden)

    values = [0.3, -0.1, 0.7, 1.1, -0.9, 0.2]
    plain = torch.tensor(gradient(network, *values))
    with masked_zeros():
        found = torch.tensor(gradient(network, *values))
    assert plain.view(torch.int32).tolist() == found.view(torch.int32).tolist()


def test_signs_of_zeros_stay() -> None:
    with masked_zeros():
        x = leaf(1.0)
        (x * -1.0).backward(torch.tensor([0.0], dtype=torch.float64))
        assert str(x.grad.item()) == "-0.0"


def test_nan_that_comes_from_elsewhere_stays() -> None:
    with masked_zeros():
        assert gradient(lambda x: x.sqrt() * 0 + x.log() * NAN, 2.0)[0] != 0
        x = leaf(2.0)
        (x * 3).backward(torch.tensor([NAN], dtype=torch.float64))
        assert x.grad.isnan().all()
        # The gradient is not zero where the derivative is infinite.
        assert gradient(lambda x: x.sqrt(), 0.0) == [float("inf")]


def test_second_derivatives() -> None:
    x = leaf(0.0, 4.0)
    with masked_zeros():
        root = torch.where(x > 0, x.sqrt(), 0.0).sum()
        (slope,) = torch.autograd.grad(root, x, create_graph=True)
        assert slope.tolist() == [0.0, 0.25]
        (curve,) = torch.autograd.grad(slope.sum(), x)
    assert curve.tolist() == [0.0, -1 / 32]


def test_custom_functions_whose_whole_gradient_is_zero() -> None:
    class Root(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.sqrt()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad / (2 * ctx.saved_tensors[0].sqrt())

    with masked_zeros():
        assert gradient(lambda x: torch.where(x > 0, Root.apply(x), x), 0.0) == [1.0]


def test_it_belongs_to_its_thread_and_ends_with_its_context() -> None:
    function, at, expected = PROGRAMS["a root"]
    seen: list[list[float]] = []
    with masked_zeros():
        thread = threading.Thread(target=lambda: seen.append(gradient(function, *at)))
        thread.start()
        thread.join()
        with masked_zeros():
            pass
        assert gradient(function, *at) == expected
    assert seen[0][0] != seen[0][0]
    assert gradient(function, *at)[0] != 0.0

    @masked_zeros()
    def decorated() -> list[float]:
        return gradient(function, *at)

    assert decorated() == decorated() == expected
    with pytest.raises(ValueError, match="stop"), masked_zeros():
        raise ValueError("stop")
    assert gradient(function, *at)[0] != 0.0


def test_within_transforms() -> None:
    function, at, expected = PROGRAMS["a root"]
    points = torch.tensor(at, dtype=torch.float64)
    with masked_zeros():
        found = torch.vmap(torch.func.grad(lambda x: function(x)))(points)
    assert found.tolist() == expected
