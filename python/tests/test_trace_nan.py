"""`trace_nan` names the op and the line where the first value that is not finite arose."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
from pullback import nn


def line_of(text: str) -> int:
    """The line of this file that ends in a mark."""
    with open(__file__, encoding="utf-8") as file:
        return next(n for n, line in enumerate(file, 1) if line.rstrip().endswith(f"# {text}"))


def found(loss: Any) -> Any:
    answer = torch.trace_nan(loss)
    assert answer is not None
    assert str(answer) == answer.text
    return answer


def test_finite_values_and_gradients_are_nothing_to_report() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    assert torch.trace_nan((x.sin() @ x.T).sum()) is None
    assert torch.trace_nan(torch.ones(2)) is None
    assert x.grad is None


def test_the_op_that_made_the_first_nan_of_finite_values_is_named() -> None:
    x = torch.tensor([1.0, 0.0, -1.0], requires_grad=True)

    def compute(x: Any) -> Any:
        y = x * 2
        z = y.log()  # log
        return (z.exp() + z).sum()

    answer = found(compute(x))
    assert (answer.kind, answer.op, answer.is_certain) == ("value", "LogBackward0", True)
    assert (answer.file, answer.line) == (__file__, line_of("log"))
    assert "1 nan and 1 inf of 3" in answer.text
    assert "z = y.log()  # log" in answer.text


def test_a_division_is_computed_again_from_what_it_saved() -> None:
    x = torch.zeros(2, requires_grad=True)
    y = torch.zeros(2, requires_grad=True)
    answer = found((x / y).sum())
    assert (answer.op, answer.is_certain) == ("DivBackward0", True)
    assert "2 nan of 2" in answer.text


def test_an_overflow_to_infinity_is_found_before_the_nan_that_it_leads_to() -> None:
    x = torch.full((2,), 200.0, requires_grad=True)

    def compute(x: Any) -> Any:
        e = x.exp()  # overflow
        return (e / e.sum()).sum()

    answer = found(compute(x))
    assert (answer.op, answer.line) == ("ExpBackward0", line_of("overflow"))


def test_a_mask_of_infinities_is_meant() -> None:
    x = torch.randn(2, 3, requires_grad=True)
    mask = torch.tensor([[False, False, True], [False, True, True]])
    assert torch.trace_nan(x.masked_fill(mask, -torch.inf).softmax(-1).log1p().sum()) is None
    added = torch.zeros(2, 3).masked_fill(mask, -torch.inf)
    assert torch.trace_nan(((x + added).softmax(-1) * x).sum()) is None


def test_a_row_that_is_masked_as_a_whole_is_found_at_its_softmax() -> None:
    x = torch.randn(2, 3, requires_grad=True)
    mask = torch.tensor([[True, True, True], [False, False, True]])
    answer = found(x.masked_fill(mask, -torch.inf).softmax(-1).sum())
    assert (answer.kind, answer.op) == ("value", "SoftmaxBackward0")


def test_a_leaf_and_an_input_that_are_not_finite_are_named() -> None:
    layer = nn.Linear(2, 2)
    batch = torch.tensor([[1.0, torch.nan]])
    answer = found(layer(batch).sum())
    assert (answer.op, answer.is_certain) == ("input", True)
    assert "1 nan of 2" in answer.text
    with torch.no_grad():
        layer.weight[0, 0] = torch.inf
    answer = found(layer(torch.ones(1, 2)).sum())
    assert answer.op == "leaf"
    assert "Linear.weight" in answer.text


def test_a_value_that_nobody_kept_makes_the_answer_uncertain_and_names_its_line() -> None:
    x = torch.tensor([3e38, 1.0], requires_grad=True)
    y = x.detach().clone().requires_grad_()
    s = (x + y).sin().sum()  # both
    answer = found(s)
    assert answer.kind == "value"
    assert answer.line == line_of("both")


def test_a_gradient_is_traced_when_all_values_are_finite() -> None:
    x = torch.zeros(3, requires_grad=True)

    def compute(x: Any) -> Any:
        y = x * x
        return y.sqrt().sum()  # root

    loss = compute(x)
    answer = found(loss)
    assert (answer.kind, answer.op, answer.line) == ("gradient", "SqrtBackward0", line_of("root"))
    assert x.grad is None
    loss.backward()
    assert torch.isnan(x.grad).all()


def test_after_a_backward_that_freed_the_graph_leaves_are_named() -> None:
    layer = nn.Linear(2, 1)
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.zero_()
    loss = layer(torch.ones(1, 2)).sqrt().sum()
    loss.backward()
    answer = found(loss)
    assert (answer.kind, answer.op, answer.is_certain) == ("gradient", "leaf", False)
    assert "Linear.weight" in answer.text


def test_a_freed_graph_without_a_trace_is_an_error() -> None:
    x = torch.ones(2, requires_grad=True)
    loss = x.sin().sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="a backward has freed the graph"):
        torch.trace_nan(loss)
    with pytest.raises(TypeError, match="a tensor is needed"):
        torch.trace_nan(3.0)  # type: ignore[arg-type]


def test_the_backward_of_a_custom_function_is_named() -> None:
    class Root(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.sqrt()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad / x.sqrt() / 2

    x = torch.zeros(2, requires_grad=True)
    loss = Root.apply(x).sum()  # custom
    answer = found(loss)
    assert (answer.kind, answer.op, answer.line) == ("gradient", "RootBackward", line_of("custom"))
