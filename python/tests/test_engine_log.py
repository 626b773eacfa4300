"""Where the logger ``torch.autograd.graph`` shows DEBUG, nodes say when they run."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest

import pullback as torch


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[Any]:
    def shown() -> list[str]:
        found = [re.sub(r" at 0x[0-9a-f]+", "", each) for each in caplog.messages]
        caplog.clear()
        return found

    with caplog.at_level(logging.DEBUG, logger="torch.autograd.graph"):
        yield shown


def said(node: str, grads: str) -> str:
    return f"Executing: <{node} object> with grad_outputs: [{grads}]"


def test_nodes_and_gradients_of_backward(lines: Any) -> None:
    x = torch.ones(3, 2, requires_grad=True)
    (x * 2).sum().backward()
    # As PyTorch 2.15 writes it.
    assert lines() == [
        said("SumBackward0", "f32[]"),
        said("MulBackward0", "f32[3, 2]"),
        said("AccumulateGrad", "f32[3, 2]"),
    ]
    torch.autograd.backward([(x * x).sum()])
    assert len(lines()) == 3
    torch.autograd.grad(iter([x.exp().sum()]), x)
    assert len(lines()) == 2


def test_gradients_that_are_missing_and_other_dtypes(lines: Any) -> None:
    first, _ = torch.ones(4, requires_grad=True, dtype=torch.bfloat16).split(2)
    first.sum().backward()
    assert lines() == [
        said("SumBackward0", "bf16[]"),
        said("SplitBackward0", "bf16[2],None"),
        said("AccumulateGrad", "bf16[4]"),
    ]
    z = torch.ones(2, dtype=torch.complex128, requires_grad=True)
    torch.autograd.grad(z.abs().sum(), z)
    assert lines() == [said("SumBackward0", "f64[]"), said("AbsBackward0", "f64[2]")]


def test_custom_functions_and_gradient_edges(lines: Any) -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    x = torch.ones(2, requires_grad=True)
    y = Twice.apply(x)
    edge = torch.autograd.graph.get_gradient_edge(y)
    torch.autograd.grad(edge, x, torch.ones(2))
    found = lines()
    assert len(found) == 1
    assert "TwiceBackward" in found[0]
    assert found[0].endswith("with grad_outputs: [f32[2]]")


def test_hooks_go_away_and_a_silent_logger_costs_nothing(
    lines: Any, caplog: pytest.LogCaptureFixture
) -> None:
    x = torch.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    assert lines()
    with caplog.at_level(logging.INFO, logger="torch.autograd.graph"):
        y.backward()
        assert lines() == []
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
