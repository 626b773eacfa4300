"""What engines most often get wrong: what runs, how deep, on which thread, in which modes.

The rows of the second list of `docs/behaviour.md` that are about the engine and its threads. The
other rows are in the table of `test_pitfalls.py`.
Rows, or halves of them, that have their tests elsewhere:

    row  what                                   test
    14   an input that was never used           test_autograd.py::test_unused_inputs
    15   a long graph is dropped                test_autograd.py::test_a_hundred_thousand_nodes
    15   a long graph of packed values          test_saved_tensors.py::
                             test_packed_tensors_of_a_long_chain_are_freed_without_recursion
    28   grad mode belongs to its thread        test_autograd.py::test_modes_belong_to_their_thread
    28   hooks belong to thread and backward    test_saved_tensors.py::
                                      test_hooks_belong_to_their_thread_and_to_its_backward
"""

from __future__ import annotations

import threading
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch
from pullback.autograd import Function, backward, grad
from pullback.autograd.graph import saved_tensors_hooks


def leaf(*values: float) -> Any:
    """A leaf that requires grad."""
    return torch.tensor(values, requires_grad=True)


def nested(depth: int, last: Callable[[], object]) -> set[int]:
    """Runs a backward in a hook of a backward and so on, and `last` in the innermost hook.

    Returns: the threads in which the hooks ran.
    """
    threads: set[int] = set()

    def level(left: int) -> None:
        x = leaf(1.0)

        def hook(g: Any) -> None:
            threads.add(threading.get_ident())
            with torch.enable_grad():
                level(left - 1) if left else last()

        x.register_hook(hook)
        (x * 1).backward()
        assert x.grad.item() == 1

    level(depth)
    return threads


# --- row 14: only what leads to the targets runs -------------------------------------------------


def test_two_targets_on_one_path_come_in_the_order_asked_for() -> None:
    x = leaf(3.0)
    middle = x * 2
    y = middle * middle
    assert [g.item() for g in grad(y, [x, middle], retain_graph=True)] == [24, 12]
    assert [g.item() for g in grad(y, [middle, x], retain_graph=True)] == [12, 24]
    assert [g.item() for g in grad(y, [x, x, middle], retain_graph=True)] == [24, 24, 12]
    y.backward(inputs=[middle, x])
    assert (middle.grad.item(), x.grad.item()) == (12, 24)


def test_an_unreachable_target_makes_nothing_else_run() -> None:
    x, other, unused = leaf(3.0), leaf(2.0), leaf(1.0)
    used_elsewhere = leaf(1.0)
    _ = used_elsewhere * 2
    fired: list[Any] = []
    other.register_hook(fired.append)
    y = (x * other).sum()
    got = grad(y, [unused, x, used_elsewhere], allow_unused=True, retain_graph=True)
    assert [g and g.item() for g in got] == [None, 2, None]
    (nothing,) = grad(y, [unused], allow_unused=True, retain_graph=True)
    assert nothing is None
    y.backward(inputs=[unused])
    assert fired == []
    assert (x.grad, other.grad, unused.grad) == (None, None, None)


# --- row 15: depth -------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["grad", "inputs"])
def test_a_long_graph_is_searched_for_targets(how: str) -> None:
    x, beside = leaf(1.0), leaf(1.0)
    y = x
    for _ in range(100_000):
        y = y + beside
    if how == "grad":
        assert grad(y, x)[0].item() == 1
    else:
        y.backward(inputs=[x])
        assert x.grad.item() == 1
    assert beside.grad is None


def test_backward_inside_backward_is_deeper_than_any_stack() -> None:
    reached: list[bool] = []
    nested(10_000, lambda: reached.append(True))
    assert reached == [True]


# --- row 16: errors and warnings from deep inside ------------------------------------------------


def test_an_error_on_another_thread_comes_with_its_type_and_its_traceback() -> None:
    class Special(Exception):
        pass

    error = Special("here")
    where: list[int] = []

    def fail_at_the_bottom() -> None:
        where.append(threading.get_ident())
        raise error

    with pytest.raises(Special) as caught:
        nested(150, fail_at_the_bottom)
    assert caught.value is error
    frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert frames[-1] == "fail_at_the_bottom"
    assert frames[0].startswith("test_an_error_on_another_thread")
    # Sixty levels use one stack; what is deeper has another (where PyTorch 2.15 loses the error).
    assert where != [threading.get_ident()]
    # The engine works as before.
    x = leaf(2.0)
    (x * x).backward()
    assert x.grad.item() == 4
    assert torch.is_grad_enabled()


def test_a_warning_on_another_thread_reaches_the_caller() -> None:
    def warn() -> None:
        assert (leaf(1.0) * 2).grad is None

    text = "not a leaf Tensor is being accessed"
    with pytest.warns(UserWarning, match=text) as noted:
        threads = nested(100, warn)
    assert len(noted) == 1
    assert len(threads) > 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match=text):
            nested(100, warn)


# --- row 28: whose modes a backward has ----------------------------------------------------------


def test_a_flag_for_threads_belongs_to_its_thread() -> None:
    seen: list[bool] = []
    with torch.autograd.set_multithreading_enabled(False):
        thread = threading.Thread(
            target=lambda: seen.append(torch.autograd.is_multithreading_enabled())
        )
        thread.start()
        thread.join()
        seen.append(torch.autograd.is_multithreading_enabled())
    seen.append(torch.autograd.is_multithreading_enabled())
    assert seen == [True, False, True]


@pytest.mark.parametrize("depth", [0, 100])
def test_backward_has_the_hooks_of_its_caller_on_every_thread(depth: int) -> None:
    packed: list[int] = []

    def pack(tensor: Any) -> Any:
        packed.append(threading.get_ident())
        return tensor

    def record() -> None:
        packed.clear()
        leaf(1.0).exp()

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        nested(depth, record)
    assert len(packed) == 1
    assert (packed[0] == threading.get_ident()) == (depth == 0)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("outside", [False, True])
def test_backward_records_only_if_it_creates_a_graph(outside: bool, create_graph: bool) -> None:
    seen: list[bool] = []

    class Note(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            seen.append(torch.is_grad_enabled())
            return grad

    x = leaf(1.0)
    y = Note.apply(x)
    y.register_hook(lambda g: seen.append(torch.is_grad_enabled()))
    with torch.set_grad_enabled(outside):
        grad(y, x, create_graph=create_graph)
        assert torch.is_grad_enabled() == outside
    assert seen == [create_graph] * 2


def test_backward_in_another_thread_has_the_modes_of_that_thread() -> None:
    x = leaf(1.0, 2.0)
    packed: list[Any] = []
    y = x.pow(3).sum()

    def run() -> None:
        (first,) = grad(y, x, create_graph=True)
        backward(first.sum(), inputs=[x])

    def pack(tensor: Any) -> Any:
        packed.append(tensor)
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor), torch.no_grad():
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert packed == []
    # The second derivative of x^3: recorded, though the thread that made the graph records nothing.
    assert x.grad.tolist() == [6, 12]


# --- row 30: numbers of nodes --------------------------------------------------------------------


def test_each_thread_counts_its_nodes_from_the_start() -> None:
    counted: list[list[int]] = []

    def run() -> None:
        x = leaf(1.0)
        first = x * 2
        second = first + 1
        counted.append([y.grad_fn._sequence_nr() for y in (first, second)])

    for _ in range(2):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert counted == [[0, 1], [0, 1]]
    run()
    run()
    here = counted[2] + counted[3]
    assert here == list(range(here[0], here[0] + 4))


def test_the_node_of_a_leaf_has_the_largest_number() -> None:
    y = leaf(1.0) * 2
    accumulator = y.grad_fn.next_functions[0][0]
    assert accumulator._sequence_nr() == 2**64 - 1
