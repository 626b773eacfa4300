"""Hooks: kinds and order, in-place changes, retained gradients, what they may replace."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
from pullback.autograd.graph import register_multi_grad_hook, saved_tensors_hooks


def leaf(*values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0), requires_grad=True)


def test_order_for_one_node() -> None:
    x = leaf(1.0)
    y = x * 1
    order: list[str] = []

    def note(what: str, result: Any = None) -> Any:
        order.append(what)
        return result

    y.retain_grad()
    y.grad_fn.register_hook(lambda given, got: note("post"))
    y.grad_fn.register_prehook(lambda got: note("pre", (got[0] * 2,)))
    y.register_hook(lambda grad: note("tensor", grad * 3))
    x.register_post_accumulate_grad_hook(lambda leaf: note("accumulated"))
    y.backward()
    assert order == ["tensor", "pre", "post", "accumulated"]
    assert y.grad.item() == 3
    assert x.grad.item() == 6


def test_hooks_of_a_leaf_and_its_accumulator() -> None:
    x = leaf(1.0, 1.0)
    node = x.view_as(x).grad_fn.next_functions[0][0]
    x.register_hook(lambda grad: grad - 2)
    node.register_prehook(lambda got: (got[0] / 5,))

    def add(leaf: Any) -> None:
        leaf.grad.add_(0.5)

    def last(given: Any, got: Any) -> None:
        x.grad = got[0] * 10

    x.register_post_accumulate_grad_hook(add)
    node.register_hook(last)
    x.sum().backward()
    assert torch.allclose(x.grad, torch.tensor([3.0, 3.0]))


def test_a_hook_sees_none_where_nothing_arrived() -> None:
    x = leaf(1.0, 2.0, 3.0)
    parts = x.unbind()
    seen: list[Any] = []
    parts[0].register_hook(seen.append)
    parts[1].backward()
    assert seen == [None]
    parts[0].backward()
    assert seen[1].item() == 1
    other = x.unbind()
    other[0].register_hook(lambda grad: torch.ones(()))
    with pytest.raises(RuntimeError, match="can't replace a None gradient with a non-None value"):
        other[1].backward()


@pytest.mark.parametrize("writes", [1, 2, 3])
def test_a_retained_gradient_is_that_of_the_latest_value(writes: int) -> None:
    x = leaf(1.0).clone()
    x.retain_grad()
    for _ in range(writes):
        x.mul_(2)
    (x * 5).sum().backward()
    assert x.grad.item() == 5


def test_retained_gradients_follow_writes_through_views() -> None:
    base = leaf(1.0).clone()
    view, other = base[:], base[:]
    for tensor in (base, view, other):
        tensor.retain_grad()
    view.mul_(2)
    (view + other).sum().backward()
    assert view.grad.item() == other.grad.item() == 1
    assert base.grad.item() == 2
    base = leaf(1.0).clone()
    base.retain_grad()
    base[:].mul_(2)
    base *= 2
    base.sum().backward()
    assert base.grad.item() == 1


def test_retained_gradients_of_several_outputs_written_by_a_function() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.mark_dirty(a, b)
            return a.mul_(2), b.mul_(3)

        @staticmethod
        def backward(ctx: Any, grad_a: Any, grad_b: Any) -> Any:
            return grad_a * 2, grad_b * 3

    x, y = leaf(1.0), leaf(1.0)
    a, b = x.clone(), y.clone()
    b.retain_grad()
    _, b = Twice.apply(a, b)
    (b * 7).sum().backward()
    assert b.grad.item() == 7
    assert y.grad.item() == 21


def test_a_saved_input_that_was_detached_in_place() -> None:
    x = leaf(1.0).clone()
    y = x.sin()
    x.detach_()
    with pytest.raises(RuntimeError, match="Trying to use a saved tensor that has been detached"):
        y.backward()
    x = leaf(1.0).clone()
    y = x.exp()
    x.detach_()
    y.backward()


def test_views_that_functions_return_cannot_be_written_to() -> None:
    class View(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.view_as(x)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

    view = View.apply(torch.rand(1, 2))
    with pytest.raises(RuntimeError, match="This view was created inside a custom Function"):
        view += leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="This view was created inside a custom Function"):
        View.apply(torch.rand(1, 2)).copy_(leaf(1.0, 2.0))


def test_a_context_outlives_its_graph_without_what_it_saved() -> None:
    contexts: list[Any] = []

    class Keep(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            contexts.append(ctx)
            return grad * 2

    x = leaf(1.0)
    y = Keep.apply(x)
    y.backward(retain_graph=True)
    assert contexts[0].saved_tensors[0] is x
    del y
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        _ = contexts[0].saved_tensors


def test_hooks_entered_in_backward_end_with_it() -> None:
    def unpack(tensor: Any) -> Any:
        saved_tensors_hooks(lambda t: t, lambda t: t).__enter__()
        return tensor

    x = leaf()
    with saved_tensors_hooks(lambda t: t, unpack):
        x.sin().sum().backward()
    assert (x * x).grad_fn._saved_self is x


@pytest.mark.parametrize("name", ["min", "max", "amin", "amax", "median", "nanmedian"])
def test_nan_as_the_extreme_shares_the_gradient(name: str) -> None:
    x = torch.full((3,), torch.nan, requires_grad=True)
    getattr(torch, name)(x).backward()
    assert torch.allclose(x.grad, torch.full((3,), 1 / 3))


@pytest.mark.parametrize("mode", ["all", "any"])
def test_hooks_over_tensors_count_what_will_run(mode: str) -> None:
    a, b, c = leaf(1.0), leaf(2.0), leaf(3.0)
    seen: list[Any] = []
    register_multi_grad_hook((a, b, c), seen.append, mode=mode)  # type: ignore[arg-type]
    (a * b).sum().backward()
    if mode == "any":
        assert len(seen) == 1
        assert seen[0].item() in (1.0, 2.0)
        return
    assert [None if g is None else g.item() for g in seen[0]] == [2.0, 1.0, None]
    y = (a * b * c).sum()
    torch.autograd.grad(y, [b], retain_graph=True)
    assert [None if g is None else g.item() for g in seen[1]] == [None, 3.0, None]
    y.backward(inputs=[a, c])
    assert [None if g is None else g.item() for g in seen[2]] == [6.0, None, 2.0]


def test_the_engine_tells_what_it_runs() -> None:
    a, b = leaf(1.0), leaf(2.0)
    product = a * b
    total = product.exp() + a
    answers: list[Any] = []

    def ask(grad: Any) -> None:
        answers.append([torch._C._will_engine_execute_node(n) for n in nodes])
        answers.append([n.name() for n in torch._C._current_graph_task_execution_order()])

    nodes = [product.grad_fn, b.mul(1).grad_fn]
    total.register_hook(ask)
    with torch.autograd.set_multithreading_enabled(False):
        total.sum().backward()
    assert answers[0] == [True, False]
    order = [name.rpartition("::")[2] for name in answers[1]]
    assert order[:2] == ["SumBackward0", "AddBackward0"]
    assert order.index("ExpBackward0") < order.index("MulBackward0")
    assert order.count("AccumulateGrad") == 2
    with pytest.raises(RuntimeError, match="should only be called during the backward pass"):
        torch._C._will_engine_execute_node(product.grad_fn)
    with pytest.raises(RuntimeError, match="should only be called during the backward pass"):
        torch._C._current_graph_task_execution_order()
    with pytest.raises(RuntimeError, match="expects an grad_fn"):
        torch._C._will_engine_execute_node(a)
