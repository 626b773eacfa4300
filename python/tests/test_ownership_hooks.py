"""Who keeps hooks alive and whom they keep, with the collector off but where a test calls it.

As in `test_ownership.py`: whether a built-in node lives is seen by a :class:`Marker` of a hook.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from shared_ownership import Marker, leaf, watch_node, without_collector

import pullback as torch
from pullback.autograd import Function
from pullback.autograd.graph import register_multi_grad_hook

__all__ = ["without_collector"]


def register(kind: str, x: Any, y: Any, hook: Callable[..., None]) -> Any:
    """Hangs a hook of one of the kinds onto the leaf, its accumulator, the result or its node."""
    target = {
        "leaf": x,
        "post_accumulate": x,
        "tensor": y,
        "node_pre": y.grad_fn,
        "node_post": y.grad_fn,
        "accumulator_pre": y.grad_fn.next_functions[0][0],
        "accumulator_post": y.grad_fn.next_functions[0][0],
        "several": None,
        "any": None,
    }[kind]
    if kind in ("several", "any"):
        mode = "all" if kind == "several" else "any"
        return register_multi_grad_hook((x, y), lambda grads: hook(), mode=mode)
    if kind == "post_accumulate":
        return target.register_post_accumulate_grad_hook(lambda leaf: hook())
    if kind.endswith("_pre"):
        return target.register_prehook(lambda got: hook())
    return target.register_hook(lambda *grads: hook())


ALONE = ("leaf", "post_accumulate")
OF_GRAPH = ("tensor", "node_pre", "node_post", "accumulator_pre", "accumulator_post")
SEVERAL = ("several", "any")


@pytest.mark.parametrize("ran", [False, True])
@pytest.mark.parametrize("kind", ALONE + OF_GRAPH)
def test_a_hook_lives_as_long_as_what_it_hangs_on(kind: str, ran: bool) -> None:
    x = leaf()
    y = x * 2
    marker = Marker()
    calls: list[int] = []
    handle = register(kind, x, y, lambda kept=marker: calls.append(1))
    hook = weakref.ref(marker)
    del marker
    if ran:
        y.sum().backward()
    assert len(calls) == ran
    assert hook() is not None
    del y
    # The handle keeps no hook.
    assert (hook() is not None) == (kind in ALONE)
    del x
    assert hook() is None
    handle.remove()


@pytest.mark.parametrize("kind", ALONE + OF_GRAPH + SEVERAL)
def test_removing_a_hook_lets_it_go(kind: str) -> None:
    x = leaf()
    y = x * 2
    marker = Marker()
    handle = register(kind, x, y, lambda kept=marker: None)
    hook = weakref.ref(marker)
    del marker
    y.sum().backward(retain_graph=True)
    assert hook() is not None
    handle.remove()
    assert hook() is None
    y.sum().backward()


@pytest.mark.parametrize("kind", ALONE)
def test_a_hook_that_holds_its_leaf_needs_the_collector(kind: str) -> None:
    x = leaf()
    y = x * 2
    register(kind, x, y, lambda kept=x: None)
    gone = weakref.ref(x)
    y.sum().backward()
    del x, y
    assert gone() is not None
    gc.collect()
    assert gone() is None


# Where the hook holds the tensor, PyTorch never frees it; here the cycle collector does.
@pytest.mark.parametrize("kind", ["tensor", "node_pre", "node_post"])
@pytest.mark.parametrize("holds", ["tensor", "node", "both"])
def test_a_hook_that_holds_its_result_or_node_needs_the_collector(kind: str, holds: str) -> None:
    x = leaf()
    y = x * 2
    marker = Marker()
    kept = {"tensor": (y, marker), "node": (y.grad_fn, marker), "both": (y, y.grad_fn, marker)}
    register(kind, x, y, lambda kept=kept[holds]: None)
    gone = weakref.ref(marker)
    del x, y, marker, kept
    assert gone() is not None
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("kind", ALONE + OF_GRAPH + SEVERAL)
def test_removing_the_hook_breaks_its_cycle_without_the_collector(kind: str) -> None:
    x = leaf()
    y = x * 2
    handle = register(kind, x, y, lambda kept=(x, y, y.grad_fn): None)
    seen = [weakref.ref(x), weakref.ref(y), watch_node(y.grad_fn)]
    y.sum().backward()
    del x, y
    assert all(watch() is not None for watch in seen)
    handle.remove()
    assert [watch() for watch in seen] == [None] * 3


def test_the_collector_leaves_a_cycle_alone_that_the_graph_still_needs() -> None:
    x = leaf()
    y = x * 2
    calls: list[int] = []
    handle = y.register_hook(lambda grad, kept=y: calls.append(kept.numel()))
    gone = weakref.ref(y)
    z = y.sum()
    del y
    gc.collect()
    assert gone() is not None
    z.backward()
    assert calls == [3]
    del z
    handle.remove()
    assert gone() is None


@pytest.mark.parametrize("kind", OF_GRAPH)
def test_the_collector_leaves_hooks_alone_whose_tensor_is_garbage_but_not_their_node(
    kind: str,
) -> None:
    x = leaf()
    y = x * 2
    calls: list[int] = []
    register(kind, x, y, lambda: calls.append(1))
    y.itself = y
    gone = weakref.ref(y)
    z = y.data_ptr() and y.sum()
    y = y.grad_fn
    gc.collect()
    assert gone() is None
    z.backward()
    assert calls == [1]


@pytest.mark.parametrize("holds", ["tensor", "node", "both"])
@pytest.mark.parametrize("kept", ["tensor", "node", "later"])
@pytest.mark.parametrize("kind", ["tensor", "node_pre", "node_post"])
def test_the_collector_leaves_a_hook_alone_that_can_still_run(
    kind: str, kept: str, holds: str
) -> None:
    x = leaf()
    y = x * 2
    calls: list[int] = []
    cycle = {"tensor": (y,), "node": (y.grad_fn,), "both": (y, y.grad_fn)}[holds]
    register(kind, x, y, lambda held=cycle: calls.append(len(held)))
    left: Any = {"tensor": y, "node": y.grad_fn, "later": y.sum()}[kept]
    del y, cycle
    gc.collect()
    if kept == "node":
        torch.autograd.backward(torch.autograd.graph.GradientEdge(left, 0), torch.ones(3))
    else:
        left.sum().backward()
    assert calls == [2 if holds == "both" else 1]


@pytest.mark.parametrize("kept", [0, 1, None])
@pytest.mark.parametrize("over", [0, 1])
def test_results_of_one_node_share_their_hooks(over: int, kept: int | None) -> None:
    x = leaf(2, 3)
    results = list(x.unbind())
    calls: list[int] = []
    marker = Marker()
    for index, result in enumerate(results):
        result.register_hook(
            lambda grad, held=(results[over], marker), index=index: calls.append(index)
        )
    gone = weakref.ref(marker)
    left = None if kept is None else results[kept]
    del results, result, marker
    gc.collect()
    if left is None:
        assert gone() is None
    else:
        left.sum().backward()
        assert kept in calls


def test_a_hook_on_a_custom_functions_node_that_holds_its_result_needs_the_collector() -> None:
    class Double(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    for kind in ("tensor", "node_pre", "node_post"):
        x = leaf()
        y = Double.apply(x)
        marker = Marker()
        register(kind, x, y, lambda kept=(y, y.grad_fn, marker): None)
        gone = weakref.ref(marker)
        y.sum().backward()
        del x, y, marker
        assert gone() is not None
        gc.collect()
        assert gone() is None


def test_a_hook_kept_by_detach_needs_the_collector() -> None:
    y = leaf() * 2
    y.register_hook(lambda grad, kept=y: None)
    y.detach_()
    gone = weakref.ref(y)
    del y
    gc.collect()
    assert gone() is None


def test_a_retained_gradient_does_not_keep_its_tensor() -> None:
    x = leaf()
    y = x * 2
    y.retain_grad()
    gone = weakref.ref(y)
    z = y.sum()
    del y
    assert gone() is None
    z.backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_hooks_of_a_value_that_was_overwritten_stay_with_the_old_node() -> None:
    x = leaf()
    y = x * 2
    marker = Marker()
    y.register_hook(lambda grad, kept=marker: None)
    hook = weakref.ref(marker)
    del marker
    y.mul_(3)
    assert hook() is not None
    (y * 1).sum().backward()
    y.detach_()
    assert hook() is None


def test_detaching_in_place_keeps_the_hooks_of_the_tensor() -> None:
    y = leaf() * 2
    calls: list[Any] = []
    y.register_hook(calls.append)
    y.detach_().requires_grad_()
    (y * 5).sum().backward()
    assert [grad.tolist() for grad in calls] == [[5, 5, 5]]
