"""Who keeps whom alive: the ownership rules of the graph, with the cycle collector switched off.

Every test runs without the collector, so what dies here dies by reference counts alone, at once.
Only the tests of cycles call ``gc.collect`` themselves, and say so in their names. Objects of
built-in nodes take no weak references: whether such a node lives is seen by a :class:`Marker` that
one of its hooks keeps.
Of threads, the same is asked in `test_threads.py`; of long loops, in `test_leaks.py`.
"""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy
import pytest
from shared_ownership import Marker, leaf, watch_node, without_collector

import pullback as torch
from pullback.autograd import Function
from pullback.autograd.graph import saved_tensors_hooks
from pullback.utils.checkpoint import checkpoint

__all__ = ["without_collector"]


# --- tensor -> node -> edges -> accumulator -> leaf -----------------------------------------------


def test_a_tensor_keeps_its_node_and_the_node_keeps_those_before_it() -> None:
    x = leaf()
    y = (x * 2).sin()
    node = watch_node(y.grad_fn)
    before = watch_node(y.grad_fn.next_functions[0][0])
    assert node() is not None
    assert before() is not None
    del y
    assert node() is None
    assert before() is None


def test_a_node_keeps_its_leaf_but_not_its_output() -> None:
    x = leaf()
    y = x + 1
    node = y.grad_fn
    gone, kept = weakref.ref(y), weakref.ref(x)
    del x, y
    assert gone() is None
    assert node.next_functions[0][0].variable is kept()
    del node
    assert kept() is None


def test_an_accumulator_keeps_its_leaf_and_the_leaf_does_not_keep_it() -> None:
    x = leaf()
    accumulator = (x + 1).grad_fn.next_functions[0][0]
    seen = watch_node(accumulator)
    kept = weakref.ref(x)
    assert (x * 2).grad_fn.next_functions[0][0] is accumulator
    del x
    x = accumulator.variable
    assert x is kept()
    del accumulator
    assert seen() is None
    # The next graph has a fresh one, without the hook.
    (x + 1).sum().backward()
    assert x.grad.tolist() == [1, 1, 1]


def test_the_object_of_a_node_owns_the_node() -> None:
    x = leaf()
    middle = x * 2
    y = middle.sin()
    node = y.grad_fn
    seen = watch_node(node)
    del y
    assert seen() is not None
    assert node.next_functions[0][0] is middle.grad_fn
    del node
    assert seen() is None


def test_a_gradient_edge_keeps_the_graph_without_the_tensor() -> None:
    x = leaf()
    y = x.exp()
    edge = torch.autograd.graph.get_gradient_edge(y)
    gone, seen = weakref.ref(y), watch_node(y.grad_fn)
    del y
    assert gone() is None
    (grad,) = torch.autograd.grad(edge, x, torch.ones(3))
    assert torch.equal(grad, x.detach().exp())
    del edge
    assert seen() is None


def test_a_detached_alias_shares_memory_and_keeps_neither_tensor_nor_graph() -> None:
    x = leaf() * 2
    gone, seen = weakref.ref(x), watch_node(x.grad_fn)
    aliases = [x.detach(), x.data, x.untyped_storage()]
    address = x.data_ptr()
    del x
    assert gone() is None
    assert seen() is None
    assert [alias.data_ptr() for alias in aliases] == [address] * 3
    assert aliases[0].tolist() == [1, 1, 1]


def test_detaching_in_place_lets_the_graph_go() -> None:
    x = leaf() * 2
    seen = watch_node(x.grad_fn)
    x.detach_()
    assert seen() is None


def test_a_tensor_revived_by_a_weak_reference_outlives_the_graph_that_kept_it() -> None:
    x = leaf()
    node = (x + 1).grad_fn
    kept = weakref.ref(x)
    del x
    again = kept()
    del node
    assert again.tolist() == [0.5] * 3
    assert again.requires_grad


# --- saved values ---------------------------------------------------------------------------------


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "add": lambda x: x + 1,
    "mul_itself": lambda x: x * x,
    "div": lambda x: 1 / x,
    "pow": lambda x: 2**x,
    "exp": lambda x: x.exp(),
    "tanh": lambda x: x.tanh(),
    "sigmoid": lambda x: x.sigmoid(),
    "reciprocal": lambda x: x.reciprocal(),
    "selu": lambda x: torch.nn.functional.selu(x),
    "softmax": lambda x: x.softmax(0),
    "logsumexp": lambda x: x.logsumexp(0),
    "norm": lambda x: torch.linalg.vector_norm(x),
    "cumprod": lambda x: x.cumprod(0),
    "sort": lambda x: x.sort(),
    "max": lambda x: x.max(0),
    "matmul": lambda x: x @ x,
    "inv": lambda x: (x + torch.eye(3)).inverse(),
    "svd": lambda x: torch.linalg.svd(x + torch.eye(3)),
    "cholesky": lambda x: torch.linalg.cholesky(x.mm(x.T) + 3 * torch.eye(3)),
    "gather": lambda x: x.gather(0, torch.zeros(1, 3, dtype=torch.int64)),
    "index": lambda x: x[torch.tensor([0, 2])],
    "index_put": lambda x: x.index_put((torch.tensor([1]),), torch.zeros(3)),
    "clamp": lambda x: x.clamp(0, 1),
    "cat": lambda x: torch.cat([x, x]),
    "view": lambda x: x.view(9),
    "unbind": lambda x: x.unbind(),
    "split": lambda x: x.split(2),
    "expand": lambda x: x.expand(2, 3, 3),
    "clone": lambda x: x.clone(),
    "write": lambda x: x.clone().mul_(x),
    "write_of_result": lambda x: x.clone().mul_(2).sigmoid_(),
    "write_through_view": lambda x: written(x.clone()),
    "layer_norm": lambda x: torch.nn.functional.layer_norm(x, (3,), x[0], x[1]),
    "batch_norm": lambda x: torch.nn.functional.batch_norm(x, None, None, training=True),
    "conv": lambda x: torch.nn.functional.conv2d(x.view(1, 1, 3, 3), x[:2, :2].view(1, 1, 2, 2)),
    "max_pool": lambda x: torch.nn.functional.max_pool2d(x.view(1, 1, 3, 3), 2),
    "cross_entropy": lambda x: torch.nn.functional.cross_entropy(x, torch.tensor([0, 1, 2])),
    "embedding": lambda x: torch.nn.functional.embedding(torch.tensor([0, 2]), x),
    "lstm_cell": lambda x: torch.nn.LSTMCell(3, 2)(x),
}


def written(x: Any) -> Any:
    x[0].mul_(3)
    x[1:][:, 0].exp_()
    return x


def flat(value: Any) -> list[Any]:
    return [value] if isinstance(value, torch.Tensor) else [t for part in value for t in flat(part)]


@pytest.mark.parametrize("history", ["dropped", "run", "run_and_kept", "differentiated"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_nodes_and_inputs_die_as_soon_as_they_are_dropped(name: str, history: str) -> None:
    x = leaf(3, 3)
    middle = x * torch.tensor([[0.5, 1.0, 2.0], [3.0, 1.5, 1.0], [0.25, 2.5, 0.75]])
    outputs = flat(FUNCTIONS[name](middle))
    seen = [watch_node(middle.grad_fn), *(weakref.ref(t) for t in (x, middle, *outputs))]
    ends = [t for t in outputs if t.requires_grad]
    starts = [torch.ones_like(t) for t in ends]
    if history in ("run", "run_and_kept"):
        torch.autograd.backward(ends, starts, retain_graph=history == "run_and_kept")
    elif history == "differentiated":
        grads = torch.autograd.grad(ends, x, starts, create_graph=True)
        seen.extend(weakref.ref(t) for t in grads)
        del grads
    del outputs, ends, starts, middle, x
    assert [watch() for watch in seen] == [None] * len(seen)


def test_saved_inputs_live_with_the_node() -> None:
    x = leaf()
    a = x.clone()
    kept = weakref.ref(a)
    y = a.sin()
    del a
    assert y.grad_fn._saved_self is kept()
    del y
    assert kept() is None


@pytest.mark.parametrize("retain", [False, True])
def test_a_backward_that_does_not_retain_lets_saved_values_go(retain: bool) -> None:
    x = leaf()
    a = x.clone()
    a.note = Marker()
    kept, note = weakref.ref(a), weakref.ref(a.note)
    y = a.sin().sum()
    del a
    y.backward(retain_graph=retain)
    assert (kept() is not None) == retain
    assert (note() is not None) == retain
    del y
    assert kept() is None
    assert note() is None


def test_what_a_gradient_does_not_need_is_not_kept() -> None:
    w = torch.ones(3)
    a, b = leaf() + 0, leaf() + 0
    product, total, scaled = a * w, a + b, a * 2
    gone = [weakref.ref(a), weakref.ref(b)]
    held = weakref.ref(w)
    del a, b, w
    assert [watch() for watch in gone] == [None, None]
    assert held() is not None
    assert product.requires_grad
    assert total.requires_grad
    assert scaled.requires_grad
    del product
    assert held() is None


def test_nothing_is_kept_without_grad_mode() -> None:
    x = leaf()
    gone = weakref.ref(x)
    with torch.no_grad():
        y = x.sin()
    with torch.inference_mode():
        z = x * x
    del x
    assert gone() is None
    assert y.grad_fn is z.grad_fn is None


def test_packed_objects_and_hooks_die_with_what_was_saved() -> None:
    packed: list[weakref.ref[Marker]] = []

    def pack(tensor: Any) -> Any:
        box = Marker()
        box.tensor = tensor.detach()  # type: ignore[attr-defined]
        packed.append(weakref.ref(box))
        return box

    hooks = Marker()
    live = weakref.ref(hooks)
    x = leaf()
    with saved_tensors_hooks(pack, lambda box, kept=hooks: box.tensor):
        y = (x * 2).sin().sum()
        z = (x * 2).sin().sum()
    del hooks
    assert live() is not None
    kept_by_z = packed[len(packed) // 2 :]
    y.backward()
    assert [watch() for watch in packed[: len(packed) // 2]] == [None] * (len(packed) // 2)
    assert all(watch() is not None for watch in kept_by_z)
    del z
    assert [watch() for watch in kept_by_z] == [None] * len(kept_by_z)
    # The graph of y ran: nothing needs the hooks any more.
    assert live() is None
    assert x.grad.tolist() == pytest.approx([2 * numpy.cos(1.0)] * 3)


# --- views ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_view_keeps_the_root_and_not_the_view_between(requires_grad: bool) -> None:
    root = leaf(4) * 1 if requires_grad else torch.ones(4)
    middle = root[1:]
    view = middle[1:]
    base, between = weakref.ref(root), weakref.ref(middle)
    del root, middle
    assert between() is None
    assert view._base is base()
    del view
    assert base() is None


def test_a_base_does_not_keep_its_views() -> None:
    base = leaf(4) * 1
    view = base[1:]
    gone = weakref.ref(view)
    view.mul_(2)
    seen = watch_node(view.grad_fn)
    del view
    assert gone() is None
    # The write is part of the base now; the node by which the view was read is not.
    assert seen() is None


def test_a_write_through_a_view_keeps_the_write_and_not_the_base() -> None:
    x, v = leaf(4), leaf(1)
    base = x.clone()
    base[:1] = v * 2
    total = base.sum()
    kept, gone = watch_node(total.grad_fn.next_functions[0][0]), weakref.ref(base)
    del base
    assert gone() is None
    assert kept() is not None
    total.backward()
    assert x.grad.tolist() == [0, 1, 1, 1]
    assert v.grad.tolist() == [2]
    del total
    assert kept() is None


@pytest.mark.parametrize("write", ["exp_", "sigmoid_", "sqrt_", "tanh_"])
def test_a_write_that_saves_its_own_result_makes_no_cycle(write: str) -> None:
    base = leaf(4) * 1
    view = base[1:][1:]
    getattr(view, write)()
    getattr(base, write)()
    seen = [weakref.ref(base), weakref.ref(view), watch_node(base.grad_fn)]
    del base, view
    assert [watch() for watch in seen] == [None] * 3


def test_what_was_overwritten_is_let_go_when_nothing_needs_it() -> None:
    a, b = leaf(4) * 1, leaf(4) * 3
    before = watch_node(a.grad_fn)
    a.copy_(b)
    assert before() is not None  # The copy's edge to the past, along which zeros flow.
    a.detach_()
    assert before() is None


# --- contexts of custom functions -----------------------------------------------------------------


class Scale(Function):
    """Three times the argument; the context keeps what the test wants."""

    @staticmethod
    def forward(ctx: Any, x: Any, stash: str = "") -> Any:
        y = x * 3
        if stash == "input":
            ctx.kept = x
        elif stash == "output":
            ctx.kept = y
        elif stash == "itself":
            ctx.kept = ctx
        elif stash == "saved_output":
            ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 3, None


def test_a_context_lives_as_long_as_its_node() -> None:
    x = leaf()
    y = Scale.apply(x)
    ctx = weakref.ref(y.grad_fn)
    z = y.sum()
    del y
    assert ctx() is z.grad_fn.next_functions[0][0]
    del z
    assert ctx() is None


def test_a_context_keeps_neither_output_nor_graph() -> None:
    x = leaf()
    middle = x * 2
    before = watch_node(middle.grad_fn)
    y = Scale.apply(middle)
    ctx = y.grad_fn
    gone = weakref.ref(y)
    del y, middle
    assert gone() is None
    if before() is None:  # The context alone has no node, and says so.
        with pytest.raises(RuntimeError, match="is invalid for this instance"):
            _ = ctx.next_functions
    del ctx
    assert before() is None


@pytest.mark.parametrize("stash", ["", "input", "saved_output"])
def test_what_a_context_keeps_dies_with_it(stash: str) -> None:
    x = leaf()
    middle = x + 0
    y = Scale.apply(middle, stash)
    seen = [weakref.ref(t) for t in (y.grad_fn, y, middle)]
    del middle
    assert (seen[2]() is not None) == bool(stash)
    y.sum().backward()
    assert (seen[2]() is not None) == (stash == "input")
    del y
    assert [watch() for watch in seen] == [None] * 3


@pytest.mark.parametrize("stash", ["output", "itself"])
def test_a_context_that_holds_itself_or_its_output_needs_the_collector(stash: str) -> None:
    x = leaf()
    y = Scale.apply(x, stash)
    ctx = weakref.ref(y.grad_fn)
    y.sum().backward()
    del y
    assert ctx() is not None
    gc.collect()
    assert ctx() is None


# --- a run of backward ----------------------------------------------------------------------------


def test_gradients_on_their_way_are_dropped_when_they_arrived() -> None:
    x = leaf()
    seen: list[weakref.ref[Any]] = []
    y = x.clone()
    for _ in range(3):
        y = y * 2
        y.register_hook(lambda grad: seen.append(weakref.ref(grad)))
    y.sum().backward(retain_graph=True)
    assert [watch() for watch in seen] == [None] * 3


def failing(x: Any) -> Any:
    """A graph whose backward fails in the middle, after other branches ran."""
    y = (x * 2).exp()

    def fail(grad: Any) -> None:
        raise KeyError("in a hook")

    y.register_hook(fail)
    return (y * x.sin()).sum()


def test_a_run_that_failed_keeps_nothing() -> None:
    x = leaf()
    watched: list[weakref.ref[Any]] = []
    z = failing(x)
    z.grad_fn.next_functions[0][0].register_prehook(lambda got: watched.append(weakref.ref(got[0])))
    node = watch_node(z.grad_fn)
    with pytest.raises(KeyError) as failure:
        z.backward()
    del failure
    assert [watch() for watch in watched] == [None]
    del z
    assert node() is None


@pytest.mark.parametrize("fails", [False, True])
def test_final_callbacks_die_with_the_run(fails: bool) -> None:
    x = leaf()
    y = x * 2
    marker = Marker()
    called: list[Marker] = []
    gone = weakref.ref(marker)

    def queue(grad: Any) -> None:
        kept = holder.pop()

        def callback() -> None:
            called.append(kept)

        torch.autograd.Variable._execution_engine.queue_callback(callback)
        if fails:
            raise KeyError("after queueing")

    holder = [marker]
    del marker
    y.register_hook(queue)
    if fails:
        with pytest.raises(KeyError):
            y.sum().backward()
    else:
        y.sum().backward()
    assert len(called) == (not fails)
    called.clear()
    assert gone() is None


def test_a_gradient_that_nobody_holds_is_taken_over_without_a_copy() -> None:
    x = leaf()
    addresses: list[int] = []
    x.register_hook(lambda grad: addresses.append(grad.data_ptr()))
    (x * 2).sum().backward()
    assert addresses == [x.grad.data_ptr()]
    kept: list[Any] = []
    other = leaf()
    other.register_hook(kept.append)
    (other * 2).sum().backward()
    other.grad.zero_()
    assert kept[0].tolist() == [2, 2, 2]


@pytest.mark.parametrize("how", ["drop", "detach"])
def test_the_cycle_of_create_graph_lives_until_somebody_breaks_it(how: str) -> None:
    x = leaf()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Given once per process: about this very cycle.
        (x**3).sum().backward(create_graph=True)
    gone, node = weakref.ref(x), watch_node(x.grad.grad_fn)
    grad = x.grad
    del x
    gc.collect()
    assert gone() is not None
    assert node() is not None
    if how == "drop":
        gone().grad = None  # type: ignore[union-attr]
    else:
        grad.detach_()
    del grad
    assert node() is None
    assert gone() is None


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_keeps_nothing_after_it_ran(reentrant: bool) -> None:
    x = leaf()
    inside: list[weakref.ref[Any]] = []

    def region(x: Any, kept: Marker) -> Any:
        y = x.sin()
        inside.append(weakref.ref(y))
        return y.exp()

    marker = Marker()
    start = x * 2
    y = checkpoint(region, start, marker, use_reentrant=reentrant)
    seen = [weakref.ref(marker), weakref.ref(start), weakref.ref(y)]
    del marker, start
    assert inside[0]() is None
    y.sum().backward()
    del y
    assert len(inside) == 2
    assert [watch() for watch in inside + seen] == [None] * 5


# --- memory shared with others --------------------------------------------------------------------


def test_an_array_keeps_the_memory_alive() -> None:
    x = torch.ones(5000)
    array = x.numpy()
    alive = weakref.ref(x.untyped_storage())
    del x
    torch.zeros(5000)
    assert (array == 1).all()
    del array
    assert alive() is None


def test_a_tensor_keeps_the_array_alive() -> None:
    array = numpy.ones(5000)
    gone = weakref.ref(array)
    x = torch.from_numpy(array)
    view = x[10:]
    del array, x
    assert gone() is not None
    assert view[0].item() == 1
    del view
    assert gone() is None


def test_an_exchange_by_dlpack_keeps_what_it_shares_until_it_ends() -> None:
    array = numpy.ones(5000)
    gone = weakref.ref(array)
    x = torch.from_dlpack(array)
    back = numpy.from_dlpack(x)
    del array, x
    assert gone() is not None
    assert back[0] == 1
    del back
    assert gone() is None


def test_a_capsule_that_nobody_took_gives_its_memory_back() -> None:
    array = numpy.ones(5000)
    gone = weakref.ref(array)
    capsule = torch.from_numpy(array).__dlpack__()
    del array
    assert gone() is not None
    del capsule
    assert gone() is None
