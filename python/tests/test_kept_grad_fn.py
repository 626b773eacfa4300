"""A `grad_fn` of a custom function that outlives its output: it keeps its node."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import pullback as torch
from pullback.autograd import Function


class Doubled(Function):
    """Twice its input, which it saves."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.note = "kept"
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * 2 * (x == x)


def test_a_grad_fn_can_be_used_after_its_output_died() -> None:
    x = torch.ones(3, requires_grad=True)
    node: Any = Doubled.apply(x * 1).grad_fn
    gc.collect()
    assert node.name() == "DoubledBackward"
    assert node.note == "kept"
    (before, _), *_ = node.next_functions
    assert before.name() == "MulBackward0"
    assert node.saved_tensors[0].tolist() == [1, 1, 1]
    assert len(node._raw_saved_tensors) == 1
    assert node.metadata == {}
    assert len(node._input_metadata) == 1
    assert node.needs_input_grad == (True,)
    seen: list[Any] = []
    node.register_hook(lambda *grads: seen.append(grads))
    edge = torch.autograd.graph.GradientEdge(node, 0)
    torch.autograd.backward((edge,), (torch.ones(3),))
    assert x.grad.tolist() == [2, 2, 2]
    assert len(seen) == 1
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        _ = node.saved_tensors
    ref = weakref.ref(node)
    del node, edge
    assert ref() is None


def test_a_grad_fn_in_the_middle_of_a_graph_outlives_what_led_to_it() -> None:
    x = torch.ones(2, requires_grad=True)
    last: Any = Doubled.apply(Doubled.apply(x)).grad_fn
    ((first, _),) = last.next_functions
    del last
    gc.collect()
    assert first.name() == "DoubledBackward"
    assert first.next_functions[0][0].name() == "torch::autograd::AccumulateGrad"


def test_a_graph_that_is_made_of_a_kept_grad_fn_keeps_it() -> None:
    x = torch.ones(2, requires_grad=True)
    node: Any = Doubled.apply(x).grad_fn
    gc.collect()
    # A graph through an edge to the node: the node is held by it, and holds its context again.
    edges = [torch.autograd.graph.GradientEdge(node, 0)]
    ref = weakref.ref(node)
    del node
    gc.collect()
    assert ref() is not None
    torch.autograd.backward(edges, [torch.ones(2)])
    assert x.grad.tolist() == [2, 2]
    del edges
    gc.collect()
    assert ref() is None


def test_a_kept_grad_fn_is_collected_with_a_hook_that_refers_to_it() -> None:
    x = torch.ones(2, requires_grad=True)
    node: Any = Doubled.apply(x).grad_fn
    node.register_hook(lambda *grads, own=node: None)
    node.me = node
    ref = weakref.ref(node)
    del node
    gc.collect()
    assert ref() is None


def test_a_context_that_was_never_shown_does_not_keep_its_graph() -> None:
    kept: list[Any] = []

    class Keeping(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            kept.append(ctx)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    x = Doubled.apply(torch.ones(2, requires_grad=True))
    ref = weakref.ref(x.grad_fn)
    Keeping.apply(x)
    del x
    gc.collect()
    assert ref() is None
    assert len(kept) == 1
