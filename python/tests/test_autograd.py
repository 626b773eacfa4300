"""Backward and its arguments, hooks, modes, versions, in-place and views, threads, depth."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.autograd import backward, grad
from pullback.autograd.graph import (
    GradientEdge,
    Node,
    get_gradient_edge,
    increment_version,
    register_multi_grad_hook,
)


def leaf(*values: float) -> Any:
    return torch.tensor(values, requires_grad=True)


# --- backward and grad ---------------------------------------------------------------------------


def test_accumulates() -> None:
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    first = x.grad
    (x * x).sum().backward()
    assert x.grad is first
    assert x.grad.tolist() == [4.0, 8.0]


def test_gradient_argument() -> None:
    x = leaf(1.0, 2.0)
    y = x * 3
    y.backward(torch.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [3.0, 30.0]
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar"):
        (x * 3).backward()
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        (x * 3).backward(torch.ones(3))
    with pytest.raises(TypeError, match="gradients can be either Tensors or None"):
        backward([x * 3], [3.0])


def test_several_outputs() -> None:
    x = leaf(1.0)
    backward([x * 2, x * 3], [torch.tensor([1.0]), None])
    assert x.grad.tolist() == [5.0]
    with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
        backward([x * 2, x * 3], [torch.ones(1)])


def test_without_graph() -> None:
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
        torch.ones(1).backward()
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
        grad(torch.ones(1), leaf(1.0))


def test_freed_graph() -> None:
    x = leaf(2.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [8.0]
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_create_graph() -> None:
    x = leaf(2.0)
    (first,) = grad(x**3, x, create_graph=True)
    (second,) = grad(first, x, create_graph=True)
    (third,) = grad(second, x)
    assert [first.item(), second.item(), third.item()] == [12.0, 12.0, 6.0]
    assert not third.requires_grad


@pytest.mark.filterwarnings("ignore:Using backward")
def test_create_graph_in_backward() -> None:
    x = leaf(2.0)
    (x**3).backward(create_graph=True)
    assert x.grad.requires_grad
    held = x.grad
    (x**3).backward(create_graph=True)
    assert x.grad is not held
    x.grad = None


def test_inputs_limit_where_gradients_go() -> None:
    x, y = leaf(1.0), leaf(2.0)
    z = x * y
    z.backward(inputs=[x], retain_graph=True)
    assert x.grad.tolist() == [2.0]
    assert y.grad is None
    z.backward(inputs=y)
    assert y.grad.tolist() == [1.0]
    with pytest.raises(RuntimeError, match="cannot be empty"):
        (x * y).backward(inputs=[])
    with pytest.raises(RuntimeError):
        (x * y).backward(inputs=[torch.ones(1)])


def test_inputs_in_the_middle() -> None:
    x = leaf(3.0)
    middle = x * 2
    (middle * middle).backward(inputs=[middle])
    assert middle.grad.tolist() == [12.0]
    assert x.grad is None


def test_unused_inputs() -> None:
    x, y = leaf(1.0), leaf(1.0)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        grad(x * 2, [x, y])
    assert grad(x * 2, [y], allow_unused=True) == (None,)
    (made,) = grad(x * 2, [y], materialize_grads=True)
    assert made.tolist() == [0.0]
    with pytest.raises(ValueError, match="Expected allow_unused to be True"):
        grad(x * 2, [y], allow_unused=False, materialize_grads=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        grad(x * 2, [torch.ones(1)])


def test_grad_leaves_the_leaves_alone() -> None:
    x = leaf(1.0)
    y = x * 2
    a, b = grad(y * y, [x, y])
    assert (a.item(), b.item()) == (8.0, 4.0)
    assert x.grad is None


def test_batched_gradients() -> None:
    x = leaf(1.0, 2.0, 3.0)
    (rows,) = grad(x * x, x, torch.eye(3), is_grads_batched=True)
    assert rows.tolist() == [[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 6.0]]


def test_gradient_edges() -> None:
    x = leaf(2.0)
    y = x * x
    edge = get_gradient_edge(y)
    assert isinstance(edge, GradientEdge)
    assert edge.node is y.grad_fn
    assert edge.output_nr == 0
    assert isinstance(edge.node, Node)
    z = y * 3
    assert grad(z, [edge], retain_graph=True)[0].tolist() == [3.0]
    assert grad(z, [get_gradient_edge(x)], retain_graph=True)[0].tolist() == [12.0]
    backward(edge, torch.ones(1), inputs=[x])
    assert x.grad.tolist() == [4.0]
    with pytest.raises(RuntimeError):
        get_gradient_edge(torch.ones(1))


def test_retain_grad() -> None:
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    assert y.retains_grad
    (y * 3).backward()
    assert y.grad.tolist() == [3.0]
    x.retain_grad()
    assert not x.retains_grad
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor"):
        torch.ones(1).retain_grad()


def test_reading_grad_of_a_middle_tensor_warns() -> None:
    y = leaf(1.0) * 2
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert y.grad is None


def test_assigned_gradients_are_checked() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError):
        x.grad = torch.ones(3)
    with pytest.raises(RuntimeError):
        x.grad = torch.ones(2, dtype=torch.float64)
    with pytest.raises(TypeError):
        x.grad = 3
    with pytest.raises(RuntimeError):
        x.grad = x
    x.grad = torch.ones(2)
    del x.grad
    assert x.grad is None


def test_only_floats_require_grad() -> None:
    for dtype in (torch.int64, torch.bool, torch.uint8):
        with pytest.raises(RuntimeError, match="dtype can require gradients"):
            torch.zeros(2, dtype=dtype, requires_grad=True)
        with pytest.raises(RuntimeError, match="floating point"):
            torch.zeros(2, dtype=dtype).requires_grad_()
    y = leaf(1.0) * 2
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf"):
        y.requires_grad = False


def test_broadcast_and_casts_come_back() -> None:
    x = torch.ones(3, 1, requires_grad=True)
    y = torch.ones(4, dtype=torch.float64, requires_grad=True)
    (x * y).sum().backward()
    assert x.grad.shape == (3, 1)
    assert x.grad.dtype == torch.float32
    assert x.grad.flatten().tolist() == [4.0] * 3
    assert y.grad.dtype == torch.float64
    assert y.grad.tolist() == [3.0] * 4


def test_zero_dims_and_empties() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    (x * x).backward()
    assert x.grad.shape == ()
    e = torch.empty(0, 3, requires_grad=True)
    (e * 2).sum().backward()
    assert e.grad.shape == (0, 3)


# --- hooks ---------------------------------------------------------------------------------------


def test_order_of_hooks() -> None:
    order: list[str] = []

    def note(name: str) -> Callable[..., None]:
        return lambda *_: order.append(name)

    x = leaf(1.0)
    y = x * 2
    z = y * 3
    x.register_hook(note("leaf 1"))
    x.register_hook(note("leaf 2"))
    x.register_post_accumulate_grad_hook(note("after"))
    y.register_hook(note("middle"))
    y.grad_fn.register_prehook(note("pre"))
    y.grad_fn.register_hook(note("post"))
    z.register_hook(note("root"))
    z.backward()
    assert order == ["root", "middle", "pre", "post", "leaf 1", "leaf 2", "after"]


def test_hooks_replace() -> None:
    x = leaf(1.0)
    x.register_hook(lambda g: g * 10)
    handle = x.register_hook(lambda g: g + 1)
    (x * 2).backward()
    assert x.grad.tolist() == [21.0]
    handle.remove()
    x.grad = None
    (x * 2).backward()
    assert x.grad.tolist() == [20.0]


def test_wrong_hooks() -> None:
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't"):
        torch.ones(1).register_hook(lambda g: g)
    with pytest.raises(RuntimeError, match="cannot be registered on non-leaf"):
        (x * 2).register_post_accumulate_grad_hook(lambda t: None)
    x.register_hook(lambda g: "no")
    with pytest.raises(TypeError):
        (x * 2).backward()
    y = leaf(1.0)
    y.register_hook(lambda g: torch.ones(4))
    with pytest.raises(RuntimeError, match="has changed the size of value"):
        (y * 2).backward()


def test_errors_in_hooks_leave_the_engine_usable() -> None:
    x = leaf(1.0)
    error = KeyError("from a hook")

    def fail(g: Any) -> None:
        raise error

    handle = x.register_hook(fail)
    y = x * x
    with pytest.raises(KeyError) as caught:
        y.backward(retain_graph=True)
    assert caught.value is error
    assert x.grad is None
    handle.remove()
    y.backward()
    assert x.grad.tolist() == [2.0]
    assert torch.is_grad_enabled()


def test_hooks_over_several_tensors() -> None:
    x, y = leaf(1.0), leaf(2.0)
    seen: list[Any] = []
    handle = register_multi_grad_hook([x, y], seen.append)
    (x * y).backward()
    assert [g.item() for g in seen[0]] == [2.0, 1.0]
    (x * 2).backward()
    assert seen[1][1] is None
    handle.remove()
    (x * y).backward()
    assert len(seen) == 2
    first: list[Any] = []
    with register_multi_grad_hook([x, y], first.append, mode="any"):
        (x * y).backward()
    assert len(first) == 1
    with pytest.raises(ValueError, match="Expects mode to be one of"):
        register_multi_grad_hook([x], seen.append, mode="some")


def test_backward_inside_a_hook() -> None:
    x = leaf(2.0)
    inner = leaf(3.0)

    def hook(g: Any) -> Any:
        with torch.enable_grad():
            (inner * inner).backward()
        return g * inner.grad

    x.register_hook(hook)
    (x * 1).backward()
    assert x.grad.tolist() == [6.0]


# --- modes ---------------------------------------------------------------------------------------


def test_no_grad_forms() -> None:
    x = leaf(1.0)

    @torch.no_grad
    def bare() -> Any:
        return x * 2

    @torch.no_grad()
    def called() -> Any:
        return x * 2

    assert not bare().requires_grad
    assert not called().requires_grad
    with torch.no_grad():
        assert not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    assert bare.__name__ == "bare"


def test_modes_end_with_errors() -> None:
    with pytest.raises(KeyError), torch.no_grad():
        raise KeyError
    assert torch.is_grad_enabled()


def test_set_grad_enabled_acts_at_once() -> None:
    torch.set_grad_enabled(False)
    try:
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)
    with torch.set_grad_enabled(False):
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()

    @torch.set_grad_enabled(False)
    def inside() -> bool:
        return torch.is_grad_enabled()

    assert torch.is_grad_enabled()
    assert not inside()


def test_generators_keep_the_mode_to_themselves() -> None:
    inside: list[bool] = []

    @torch.no_grad()
    def numbers() -> Iterator[int]:
        try:
            inside.append(torch.is_grad_enabled())
            got = yield 1
            inside.append(torch.is_grad_enabled())
            try:
                yield got
            except KeyError:
                inside.append(torch.is_grad_enabled())
            yield 3
        finally:
            inside.append(torch.is_grad_enabled())

    generator = numbers()
    assert next(generator) == 1
    assert torch.is_grad_enabled()
    assert generator.send(5) == 5
    assert torch.is_grad_enabled()
    assert generator.throw(KeyError()) == 3
    assert torch.is_grad_enabled()
    generator.close()
    assert inside == [False] * 4
    assert torch.is_grad_enabled()


def test_modes_belong_to_their_thread() -> None:
    seen = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_inference_mode() -> None:
    x = leaf(1.0)
    with torch.inference_mode():
        y = x * 2
        assert torch.is_inference_mode_enabled()
        y.add_(1)
        with torch.inference_mode(False):
            assert not torch.is_inference_mode_enabled()
    assert y.is_inference()
    assert not y.requires_grad
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * y
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        y.add_(1)
    with pytest.raises(RuntimeError, match="do not track version counter"):
        _ = y._version
    with pytest.raises(RuntimeError, match="inference tensor"):
        y.requires_grad_()
    assert not y.clone().is_inference()

    @torch.inference_mode
    def bare() -> bool:
        return torch.is_inference_mode_enabled()

    assert bare()


# --- versions, in-place, views -------------------------------------------------------------------


def test_versions() -> None:
    x = torch.ones(3)
    start = x._version
    x.add_(1)
    assert x._version == start + 1
    view = x[:2]
    view.mul_(2)
    assert x._version == view._version == start + 2
    assert x.detach()._version == x._version
    data = x.data
    data.add_(1)
    assert x._version == start + 2
    increment_version(x)
    assert x._version == start + 3


def test_changed_saved_values_are_found() -> None:
    x = leaf(1.0, 2.0)
    y = x.clone()
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
        z.sum().backward()
    assert "is at version 1; expected version 0 instead" in str(caught.value)
    out = x.exp()
    out.add_(1)
    with pytest.raises(RuntimeError, match="output 0 of Exp"):
        out.sum().backward()
    # What no formula reads may change.
    s = x + 1
    s.mul_(2)
    s.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_in_place_on_leaves() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x[:1].add_(1)
    with torch.no_grad():
        x.add_(1)
    assert x.tolist() == [2.0, 3.0]
    assert x.is_leaf


@pytest.mark.parametrize(
    ("write", "first", "second"),
    [
        (lambda y: y.pow_(3), [12, 27], [12, 18]),
        (lambda y: y.square_(), [4, 6], [2, 2]),
        (lambda y: y[:1].pow_(3), [12, 1], [12, 0]),
    ],
)
def test_in_place_forms_have_higher_derivatives(
    write: Callable[[torch.Tensor], object], first: list[int], second: list[int]
) -> None:
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y = x * 1
    write(y)
    (grad,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert grad.tolist() == first
    assert torch.autograd.grad(grad.sum(), x)[0].tolist() == second


def test_in_place_product_depends_on_the_old_value() -> None:
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    z = torch.tensor([5.0, 7.0], requires_grad=True)
    y = x * 1
    y.mul_(z)
    (grad,) = torch.autograd.grad(y.sum(), z, create_graph=True)
    assert torch.autograd.grad(grad.sum(), x)[0].tolist() == [1, 1]


def test_in_place_on_views_rewrites_the_base() -> None:
    x = leaf(1.0, 2.0, 3.0)
    base = x.clone()
    view = base[1:]
    view.mul_(5)
    assert base.grad_fn.name() == "torch::autograd::CopySlices"
    base.sum().backward()
    assert x.grad.tolist() == [1.0, 5.0, 5.0]
    other = torch.zeros(3)
    other[0] = x[1]
    assert other.requires_grad
    x.grad = None
    other.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 0.0]


def test_in_place_on_the_base_reaches_views() -> None:
    x = leaf(1.0, 2.0)
    base = x.clone()
    view = base[:1]
    base.mul_(3)
    view.sum().backward()
    assert x.grad.tolist() == [3.0, 0.0]


def test_views_that_are_read_only() -> None:
    base = leaf(1.0, 2.0).clone()
    first, _ = base.unbind(0)
    with pytest.raises(RuntimeError, match="function that returns multiple views"):
        first.mul_(2)
    with torch.no_grad():
        quiet = base[:1]
    with pytest.raises(RuntimeError, match="inside the no_grad block"):
        quiet.mul_(2)
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        base[:1].detach_()


def test_detach() -> None:
    x = leaf(1.0)
    y = x * 2
    assert not y.detach().requires_grad
    assert y.detach().data_ptr() == y.data_ptr()
    y.detach_()
    assert y.grad_fn is None
    assert y.is_leaf


def test_out_does_not_differentiate() -> None:
    with pytest.raises(RuntimeError, match=r"out=... arguments don't support automatic"):
        torch.add(leaf(1.0), 1, out=torch.empty(1))


# --- threads and depth ---------------------------------------------------------------------------


def test_threads_run_backward_at_once() -> None:
    shared = torch.ones(64, requires_grad=True)
    results: list[Any] = [None] * 8
    barrier = threading.Barrier(8)

    def work(index: int) -> None:
        own = torch.full((64,), float(index), requires_grad=True)
        barrier.wait()
        for _ in range(20):
            (own * shared).sin().sum().backward(inputs=[own])
        results[index] = own.grad

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index, got in enumerate(results):
        expected = 20 * torch.cos(torch.tensor(float(index)))
        assert torch.allclose(got, expected.expand(64), atol=1e-4)


def test_threads_share_a_graph() -> None:
    x = torch.ones(16, requires_grad=True)
    y = (x * x).exp().sum()
    threads = [threading.Thread(target=lambda: y.backward(retain_graph=True)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (once,) = grad(y, x)
    assert torch.allclose(x.grad, 8 * once)


def test_a_hundred_thousand_nodes() -> None:
    x = leaf(0.0)
    y = x
    for _ in range(100_000):
        y = y + 1
    y.backward()
    assert x.grad.tolist() == [1.0]
    # Without a run, the chain is only dropped.
    y = x
    for _ in range(100_000):
        y = y * 1
    del y


@pytest.mark.parametrize("sequence", [tuple, list, lambda pair: iter(list(pair))])
def test_grad_takes_any_sequence_of_outputs_gradients_and_inputs(sequence: Any) -> None:
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    outputs, ones = (a * 2, b * 3), (torch.ones(2), torch.ones(2))
    left, right = torch.autograd.grad(sequence(outputs), sequence((a, b)), sequence(ones))
    assert left.tolist() == [2, 2]
    assert right.tolist() == [3, 3]


def test_one_mode_object_can_be_entered_again_inside_itself() -> None:
    off, on = torch.no_grad(), torch.enable_grad()
    with off, on:
        assert torch.is_grad_enabled()
        with off:
            assert not torch.is_grad_enabled()
        assert torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    with pytest.raises(ZeroDivisionError), off:
        raise ZeroDivisionError
    assert torch.is_grad_enabled()


def test_modes_decorate_with_and_without_brackets() -> None:
    def function() -> bool:
        return torch.is_grad_enabled()

    assert not torch.no_grad(function)()
    assert not torch.no_grad()(function)()
    with torch.no_grad():
        assert torch.enable_grad(function)()
        assert torch.enable_grad()(function)()
    assert torch.no_grad(function).__name__ == "function"
    assert type(torch.no_grad().clone()) is torch.no_grad
    with torch.no_grad(None):
        assert not torch.is_grad_enabled()
    with pytest.raises(TypeError, match="positional arguments"):
        torch.no_grad(function, function)

    class Quiet(torch.no_grad):
        pass

    with Quiet():
        assert not torch.is_grad_enabled()


def test_the_gradient_of_an_angle_is_zero_at_the_origin() -> None:
    y, x = torch.zeros(2, requires_grad=True), torch.tensor([0.0, 2.0], requires_grad=True)
    grads = torch.autograd.grad(torch.atan2(y, x).sum(), (y, x), create_graph=True)
    assert [g.tolist() for g in grads] == [[0, 0.5], [0, 0]]
    (second,) = torch.autograd.grad(grads[0].sum(), x)
    assert second.tolist() == [0, -0.25]


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        (lambda x: torch.clamp(x, 1.0, 3.0), (1.0,), (0.0,)),
        (lambda x: torch.clamp(x, 1.0, 3.0), (3.0,), (0.0,)),
        (lambda x: torch.clamp_min(x, 1.0), (1.0,), (0.0,)),
        (lambda x: torch.clamp_max(x, 1.0), (1.0,), (0.0,)),
        (lambda x, low: torch.clamp(x, min=low), (1.0, 1.0), (0.5, 0.5)),
        (torch.clamp_min, (1.0, 1.0), (0.5, 0.5)),
        (torch.clamp_max, (1.0, 1.0), (0.5, 0.5)),
        (torch.clamp, (1.0, 1.0, 3.0), (0.5, 0.5, 0.0)),
        (torch.clamp, (3.0, 1.0, 3.0), (0.5, 0.0, 0.5)),
        (torch.clamp, (1.0, 1.0, 1.0), (1.0, 0.0, 0.0)),
        (torch.clamp, (2.0, 3.0, 1.0), (0.0, 0.0, 1.0)),
        (torch.clamp, (3.0, 3.0, 1.0), (0.0, 0.0, 1.0)),
        (torch.clamp, (0.0, 2.0, 2.0), (0.0, 1.0, 0.0)),
        (torch.clamp, (5.0, 2.0, 2.0), (0.0, 0.0, 1.0)),
        (torch.maximum, (1.0, 1.0), (0.5, 0.5)),
        (torch.fmax, (1.0, 1.0), (0.5, 0.5)),
        (torch.fmin, (1.0, 1.0), (0.5, 0.5)),
        (torch.fmax, (float("nan"), 1.0), (0.0, 1.0)),
        (torch.fmin, (1.0, float("nan")), (1.0, 0.0)),
        (torch.fmax, (float("nan"), float("nan")), (1.0, 0.0)),
        (torch.nn.functional.softshrink, (0.5,), (0.0,)),
        (torch.nn.functional.hardtanh, (1.0,), (0.0,)),
    ],
)
def test_what_meets_its_limit_shares_the_gradient_with_it(
    function: Any, values: tuple[float, ...], expected: tuple[float, ...]
) -> None:
    inputs = [torch.tensor(value, requires_grad=True) for value in values]
    grads = torch.autograd.grad(function(*inputs), inputs)
    assert tuple(grad.item() for grad in grads) == expected


# --- names of nodes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: F.hardshrink(x), "HardshrinkBackward0"),
        (lambda x: F.softshrink(x), "SoftshrinkBackward0"),
        (lambda x: F.soft_margin_loss(x, x.detach().sign()), "SoftMarginLossBackward0"),
        (lambda x: F.multi_margin_loss(x[0], torch.tensor([0, 1])), "MultiMarginLossBackward0"),
        (lambda x: F.pad(x[0], (1, 1), mode="reflect"), "ReflectionPad1DBackward0"),
        (lambda x: F.pad(x, (1, 1, 0, 0), mode="replicate"), "ReplicationPad2DBackward0"),
        (lambda x: F.pixel_shuffle(x.transpose(0, 2), 1), "PixelShuffleBackward0"),
        (lambda x: F.pixel_unshuffle(x, 2), "PixelUnshuffleBackward0"),
        (lambda x: F.adaptive_avg_pool2d(x, 1), "MeanBackward1"),
        (lambda x: F.adaptive_avg_pool2d(x, 2), "AdaptiveAvgPool2DBackward0"),
        (lambda x: torch.rot90(x[0]), "Rot90Backward0"),
        (lambda x: torch.einsum("ij->", x[0]), "SumBackward1"),
        (lambda x: x.sort().values, "SortBackward0"),
        (lambda x: x.sort(stable=True).values, "SortBackward1"),
        (lambda x: x.median(), "MedianBackward0"),
        (lambda x: x.median(0).values, "MedianBackward1"),
        (lambda x: x.scatter(2, torch.zeros(1, 1, 1).long(), 1.0), "ScatterBackward1"),
        (lambda x: x.index_fill(0, torch.tensor([0]), 1.0), "IndexFillBackward0"),
        (lambda x: x.index_fill(0, torch.tensor([0]), torch.ones(())), "IndexFillBackward1"),
        (lambda x: (x * 1).fill_(2), "FillBackward2"),
        (lambda x: (x * 1).fill_(torch.ones(())), "FillBackward3"),
    ],
)
def test_nodes_have_the_names_of_their_ops(call: Callable[[Any], Any], name: str) -> None:
    x = torch.arange(1.0, 5.0).reshape(1, 2, 2).requires_grad_()
    result = call(x)
    assert type(result.grad_fn).__name__ == name
    result.sum().backward()
    assert x.grad.shape == x.shape
