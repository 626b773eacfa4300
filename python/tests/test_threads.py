"""Several threads on shared tensors, graphs, hooks and functions; and the same bits however many.

What is asked of one thread beside another is in `test_autograd.py` (modes, one shared graph), of
native threads in `crates/pullback/tests/threads.rs`. Where threads add in an order that is not
fixed, the numbers are small integers or such that sums of them are exact. The interpreter switches
threads as often as it can here.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pullback as torch
from pullback import memory, nn
from pullback.autograd import Function, grad
from pullback.autograd.graph import register_multi_grad_hook, saved_tensors_hooks
from pullback.utils.checkpoint import checkpoint

THREADS = 6
PATIENCE = 60.0
"""Seconds after which a thread counts as hanging."""


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def kernel_threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def in_parallel(work: Callable[[int], Any], count: int = THREADS) -> list[Any]:
    """What ``work`` returned or raised for each number, all started at one moment."""
    results: list[Any] = [None] * count
    start = threading.Barrier(count)

    def run(number: int) -> None:
        start.wait(PATIENCE)
        try:
            results[number] = work(number)
        except Exception as error:
            results[number] = error.with_traceback(None)

    # Daemons: a hanging thread fails its test and does not keep the process.
    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "a thread hangs"
    return results


def succeed(results: list[Any]) -> list[Any]:
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def eventually(holds: Callable[[], bool]) -> bool:
    """Whether it holds soon: what belongs to a thread goes a moment after it may be joined."""
    end = time.monotonic() + 10
    while not holds() and time.monotonic() < end:
        time.sleep(0.001)
    return holds()


def settled_bytes() -> int:
    """The live bytes when threads that ended have reported theirs."""
    gc.collect()
    before, now = -1, memory.live_bytes()
    while before != now:
        time.sleep(0.02)
        before, now = now, memory.live_bytes()
    return now


def leaf(*shape: int, value: float = 0.5) -> Any:
    return torch.full(shape or (3,), value, requires_grad=True)


class Double(Function):
    """Twice the argument, in Python, with a saved tensor and an attribute."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.factor = 2.0
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * ctx.factor + 0 * x


# --- shared graphs --------------------------------------------------------------------------------


def mixed(x: Any) -> Any:
    """A graph of native and Python nodes, views and writes; the gradient is 12 where x is 0.5."""
    y = Double.apply(x * 3).clone()
    y[:1].mul_(1)
    halves = checkpoint(lambda t: t * t, y, use_reentrant=False)
    return (halves / 3).sum()


def test_a_retained_graph_of_every_kind_of_node_is_run_by_many() -> None:
    x = leaf(8)
    y = mixed(x)

    def run(_: int) -> None:
        for _ in range(20):
            y.backward(retain_graph=True)

    succeed(in_parallel(run))
    assert x.grad.tolist() == [12.0 * 20 * THREADS] * 8


def test_gradients_of_one_graph_are_the_same_bits_for_every_thread() -> None:
    torch.manual_seed(0)
    x, w = torch.randn(16, 16, requires_grad=True), torch.randn(16, 16, requires_grad=True)
    y = (x @ w).tanh().softmax(1).log().mul(x.sin()).sum()
    alone = grad(y, (x, w), retain_graph=True)

    def run(_: int) -> list[Any]:
        return [grad(y, (x, w), retain_graph=True) for _ in range(10)]

    for runs in succeed(in_parallel(run)):
        for found in runs:
            assert all(torch.equal(a, b) for a, b in zip(found, alone, strict=True))
    assert x.grad is None


def test_threads_record_the_backward_of_one_graph_at_once() -> None:
    x = leaf(4)
    y = (x**3).sum()

    def run(_: int) -> Any:
        (first,) = grad(y, x, create_graph=True)
        (second,) = grad(first.sum(), x)
        return second.tolist()

    assert succeed(in_parallel(run)) == [[3.0] * 4] * THREADS


def test_of_those_who_run_a_graph_that_is_not_retained_the_losers_are_told() -> None:
    for _ in range(30):
        x = leaf(4)
        y = Double.apply(x.exp()).sum()
        results = in_parallel(lambda _, y=y: y.backward())
        errors = [error for error in results if error is not None]
        assert len(errors) < THREADS
        for error in errors:
            assert isinstance(error, RuntimeError)
            assert "a second time" in str(error)
        with pytest.raises(RuntimeError, match="a second time"):
            y.backward()


def test_graphs_that_meet_in_a_shared_part_run_at_once() -> None:
    x = leaf(4)
    trunk = (x * 2).exp()
    ends = [(trunk * (i + 1)).sum() for i in range(THREADS)]
    succeed(in_parallel(lambda i: ends[i].backward(retain_graph=True)))
    (one,) = grad(trunk.sum(), x)
    assert torch.allclose(x.grad, one * sum(range(1, THREADS + 1)), rtol=1e-5)


def test_the_last_reference_to_a_shared_graph_may_go_anywhere() -> None:
    gone = []
    for _ in range(20):
        boxes = [[(leaf() * 2).exp()] for _ in range(THREADS)]
        shared = leaf().sin()
        for box in boxes:
            box.append(shared * box[0])
        gone.append(weakref.ref(shared))
        del shared
        succeed(in_parallel(lambda i, boxes=boxes: boxes[i].clear()))
    assert all(watch() is None for watch in gone)


def test_a_deep_graph_is_run_and_freed_on_a_small_stack() -> None:
    x = leaf(1)
    y = x
    for _ in range(50_000):
        y = y + 0
    box = [y.sum()]
    del y
    before = threading.stack_size(256 * 1024)
    try:
        succeed(in_parallel(lambda _: (box[0].backward(), box.clear()), 1))
    finally:
        threading.stack_size(before)
    assert x.grad.tolist() == [1]


# --- shared leaves --------------------------------------------------------------------------------


def test_every_backward_on_a_shared_leaf_counts_once() -> None:
    x = leaf(64)
    after: list[int] = []
    x.register_post_accumulate_grad_hook(lambda leaf: after.append(threading.get_ident()))

    def run(number: int) -> None:
        for _ in range(100):
            (x * (number + 1)).sum().backward()

    succeed(in_parallel(run))
    assert x.grad.tolist() == [100.0 * sum(range(1, THREADS + 1))] * 64
    assert len(after) == 100 * THREADS


def test_hooks_run_on_the_thread_that_called_backward() -> None:
    shared = leaf()

    def run(_: int) -> set[int]:
        seen: set[int] = set()
        for _ in range(20):
            y = shared * 2
            y.register_hook(lambda grad: seen.add(threading.get_ident()))
            y.grad_fn.register_prehook(lambda got: seen.add(threading.get_ident()))
            Double.apply(y).sum().backward()
        return seen == {threading.get_ident()}

    assert all(succeed(in_parallel(run)))


def test_the_first_graphs_on_a_leaf_share_one_accumulator() -> None:
    for _ in range(50):
        x = leaf()
        graphs = succeed(in_parallel(lambda _, x=x: x * 2))
        assert len({y.grad_fn.next_functions[0][0] for y in graphs}) == 1


def test_every_thread_sees_the_same_objects() -> None:
    for _ in range(50):
        x = leaf(4)
        y = x * 2
        view = y[1:]
        y.mul_(2)  # The node of the view is made by whoever asks first.
        y.sum().backward(retain_graph=True)

        def look(_: int, x: Any = x, y: Any = y, view: Any = view) -> tuple[Any, ...]:
            return y.grad_fn, view.grad_fn, view._base, x.grad, y.grad_fn.next_functions[0][0]

        looks = succeed(in_parallel(look))
        for found in looks[1:]:
            assert all(a is b for a, b in zip(found, looks[0], strict=True))


def test_leaves_change_while_others_use_them() -> None:
    x = leaf(8)

    def run(number: int) -> None:
        for _ in range(100):
            if number == 0:
                x.grad = None
            elif number == 1:
                x.data = torch.full((8,), 0.5)
            elif number == 2:
                x.note = [number]
            else:
                (found,) = grad((x * 2).sum(), x)
                assert found.tolist() == [2] * 8

    succeed(in_parallel(run))
    assert x.tolist() == [0.5] * 8


# --- hooks ----------------------------------------------------------------------------------------


def test_hooks_come_and_go_on_a_leaf_that_others_differentiate() -> None:
    x = leaf()

    def run(_: int) -> int:
        calls: list[int] = []
        for _ in range(50):
            handle = x.register_hook(lambda grad: calls.append(1))
            (x * 2).sum().backward()
            handle.remove()
        return len(calls)

    assert all(calls >= 50 for calls in succeed(in_parallel(run)))
    assert x.grad.tolist() == [100.0 * THREADS] * 3
    assert not x._backward_hooks


def test_hooks_come_and_go_on_nodes_that_others_run() -> None:
    x = leaf()
    y = x * 2
    z = y.sum()

    def run(number: int) -> None:
        for _ in range(50):
            if number % 2:
                z.backward(retain_graph=True)
            else:
                handles = [
                    y.register_hook(lambda grad: grad * 1),
                    y.grad_fn.register_prehook(lambda got: (got[0] * 1,)),
                    y.grad_fn.register_hook(lambda given, got: (given[0] * 1, *given[1:])),
                ]
                for handle in handles:
                    handle.remove()

    succeed(in_parallel(run))
    assert x.grad.tolist() == [2 * 50.0 * (THREADS // 2)] * 3


@pytest.mark.parametrize("mode", ["all", "any"])
def test_a_hook_over_several_tensors_is_called_once_for_each_run(mode: str) -> None:
    x = leaf()
    a, b = x * 2, x.exp()
    y = (a * b).sum()
    calls: list[Any] = []
    register_multi_grad_hook((a, b), calls.append, mode=mode)

    def run(_: int) -> None:
        for _ in range(25):
            y.backward(retain_graph=True)

    succeed(in_parallel(run))
    assert len(calls) == 25 * THREADS
    if mode == "all":
        for first, second in calls:
            assert torch.equal(first, b.detach())
            assert torch.equal(second, a.detach())


def test_hooks_of_saved_tensors_stay_with_their_thread() -> None:
    x = leaf()

    def run(number: int) -> tuple[int, int]:
        packed: list[int] = []
        unpacked: list[int] = []

        def pack(tensor: Any) -> Any:
            packed.append(number)
            return number, tensor.detach()

        def unpack(box: Any) -> Any:
            unpacked.append(box[0])
            return box[1]

        for _ in range(20):
            if number % 2:
                with saved_tensors_hooks(pack, unpack):
                    y = x.sin().exp()
            else:
                y = x.sin().exp()
            y.sum().backward()
        assert set(packed + unpacked) <= {number}
        return len(packed), len(unpacked)

    for number, counts in enumerate(succeed(in_parallel(run))):
        assert counts == ((40, 40) if number % 2 else (0, 0))


def test_a_hook_may_wait_for_another_thread() -> None:
    x = leaf()
    trunk = x.exp()

    def wait(grad: Any) -> None:
        succeed(in_parallel(lambda _: trunk.sum().backward(retain_graph=True), 2))

    y = trunk * 1
    y.register_hook(wait)
    in_time = in_parallel(lambda _: y.sum().backward(retain_graph=True), 2)
    succeed(in_time)
    assert torch.allclose(x.grad, 6 * trunk.detach())


def test_backward_inside_backward_in_every_thread() -> None:
    x = leaf()

    def nest(depth: int) -> None:
        y = x * 2
        if depth:

            def deeper(grad: Any) -> None:
                with torch.enable_grad():
                    nest(depth - 1)

            y.register_hook(deeper)
        y.sum().backward()

    succeed(in_parallel(lambda _: nest(70)))
    assert x.grad.tolist() == [2.0 * 71 * THREADS] * 3


def test_final_callbacks_belong_to_the_run_that_queued_them() -> None:
    x = leaf()

    def run(number: int) -> list[Any]:
        called: list[Any] = []
        for _ in range(20):
            y = x * 2
            y.register_hook(
                lambda grad: torch.autograd.Variable._execution_engine.queue_callback(
                    lambda: called.append((number, threading.get_ident()))
                )
            )
            y.sum().backward()
        assert set(called) == {(number, threading.get_ident())}
        return called

    assert [len(called) for called in succeed(in_parallel(run))] == [20] * THREADS


# --- errors ---------------------------------------------------------------------------------------


def test_an_error_reaches_the_thread_whose_run_failed_and_no_other() -> None:
    x = leaf()
    trunk = x.exp()

    class Mine(Exception):
        """An error that knows its thread."""

    def run(number: int) -> Any:
        outcomes = []
        for _ in range(30):
            y = trunk * 2
            if number % 2:

                def fail(grad: Any) -> None:
                    raise Mine(number)

                y.register_hook(fail)
            try:
                y.sum().backward(retain_graph=True)
                outcomes.append(None)
            except Mine as error:
                outcomes.append(error.args[0])
        return set(outcomes)

    expected = [{number} if number % 2 else {None} for number in range(THREADS)]
    assert succeed(in_parallel(run)) == expected
    assert torch.allclose(x.grad, 60 * (THREADS // 2) * trunk.detach(), rtol=1e-4)


# --- views and writes -----------------------------------------------------------------------------


def test_rows_of_one_tensor_are_written_by_their_threads() -> None:
    shared = torch.zeros(THREADS, 32)
    before = shared._version

    def run(number: int) -> None:
        row = shared[number]
        for _ in range(200):
            row.add_(number)

    succeed(in_parallel(run))
    assert shared.tolist() == [[200.0 * number] * 32 for number in range(THREADS)]
    assert shared._version - before == 200 * THREADS


def test_writes_into_copies_of_a_shared_leaf_are_differentiated() -> None:
    x = leaf(4)

    def run(number: int) -> None:
        for _ in range(30):
            y = x.clone()
            y[1:3].mul_(number)
            y.view(2, 2)[0].mul_(2)
            y.sum().backward()

    succeed(in_parallel(run))
    total = sum(range(THREADS))
    expected = [2.0 * THREADS, 2.0 * total, 1.0 * total, 1.0 * THREADS]
    assert x.grad.tolist() == [30 * value for value in expected]


def test_a_write_is_noticed_by_a_graph_of_another_thread() -> None:
    x, w = leaf(), torch.ones(3)
    y = (x * w).sum()
    succeed(in_parallel(lambda _: w.add_(1), 1))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


# --- modules, memory ------------------------------------------------------------------------------


def network() -> Any:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))


def test_one_module_serves_many_threads_with_the_same_bits() -> None:
    model = network()
    data = [torch.linspace(-1, 1 + i, 40).view(5, 8) for i in range(THREADS)]
    parameters = list(model.parameters())

    def run(number: int) -> Any:
        return grad(model(data[number]).square().mean(), parameters)

    alone = [run(number) for number in range(THREADS)]
    for _ in range(10):
        for found, wanted in zip(succeed(in_parallel(run)), alone, strict=True):
            assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_of_many_threads_are_computed_again_by_their_own(reentrant: bool) -> None:
    x = leaf()

    def run(_: int) -> bool:
        threads: list[int] = []

        def region(x: Any) -> Any:
            threads.append(threading.get_ident())
            return x * x

        for _ in range(10):
            checkpoint(region, x, use_reentrant=reentrant).sum().backward()
        return threads == [threading.get_ident()] * 20

    assert all(succeed(in_parallel(run)))
    assert x.grad.tolist() == [10.0 * THREADS] * 3


def test_memory_freed_by_another_thread_comes_back() -> None:
    before = settled_bytes()
    for _ in range(10):
        boxes = [[torch.ones(50), torch.ones(5000), (leaf() * 2).exp()] for _ in range(THREADS)]
        succeed(in_parallel(lambda i, boxes=boxes: boxes[i].clear()))
        made = in_parallel(lambda _: [torch.ones(50), torch.ones(5000), (leaf() * 2).exp()])
        succeed(made)
        del made, boxes
    assert eventually(lambda: memory.live_bytes() <= before)


def test_the_collector_may_run_while_others_work() -> None:
    shared = leaf()
    shared.me = shared

    def run(number: int) -> None:
        for _ in range(30):
            if number == 0:
                gc.collect(1)
            else:
                x = leaf()
                x.me = [x, shared]
                x.register_hook(lambda grad, x=x: None)
                Double.apply(x * shared).sum().backward()

    succeed(in_parallel(run))
    assert shared.grad.tolist() == [30.0 * (THREADS - 1)] * 3


# --- threads that end -----------------------------------------------------------------------------


def test_a_thread_that_ends_keeps_nothing() -> None:
    seen: list[weakref.ref[Any]] = []

    def work() -> None:
        x = leaf()
        hooks = saved_tensors_hooks(lambda t, kept=x: (t.detach(), kept), lambda packed: packed[0])
        hooks.__enter__()  # Never left: the thread ends with hooks in force.
        y = (x * 2).exp()
        y.sum().backward()
        seen.extend(weakref.ref(t) for t in (x, y, x.grad))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(seen) == 3
    assert eventually(lambda: all(watch() is None for watch in seen))


def test_a_graph_outlives_the_thread_that_made_it() -> None:
    x = leaf()
    made: list[Any] = []
    thread = threading.Thread(target=lambda: made.append((x * 2).exp().sum()))
    thread.start()
    thread.join()
    gone = weakref.ref(made[0])
    made.pop().backward()
    assert gone() is None
    assert torch.allclose(x.grad, 2 * (2 * x.detach()).exp())


# --- weak references ------------------------------------------------------------------------------

REVIVING = """
import sys, threading, time, weakref
import pullback as torch

sys.setswitchinterval(1e-6)
w = torch.ones(3, requires_grad=True)
ref = lambda: None
end = time.monotonic() + 1.5
wrong = 0


def make():
    global ref
    while time.monotonic() < end:
        a = w.clone()
        ref = weakref.ref(a)
        y = a.sin().sum()
        del a
        y.backward()  # Lets the saved tensor go, which the weak reference sees.


def use():
    global wrong
    while time.monotonic() < end:
        z = ref()
        if z is not None and (z * 2).tolist() != [2, 2, 2]:
            wrong += 1


threads = [threading.Thread(target=f) for f in (make, use, use, use)]
[t.start() for t in threads]
[t.join() for t in threads]
print("wrong:", wrong)
"""


def test_weak_references_are_followed_while_the_graph_lets_tensors_go() -> None:
    # In processes of their own: where this goes wrong, memory is corrupt. One may be lucky.
    for _ in range(4):
        ended = subprocess.run(
            [sys.executable, "-c", REVIVING], capture_output=True, text=True, timeout=PATIENCE
        )
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "wrong: 0\n", "")


# --- the same bits for any number of kernel threads -----------------------------------------------


def numbers(*shape: int) -> Any:
    torch.manual_seed(5)
    return torch.randn(*shape, requires_grad=True)


LARGE: dict[str, Callable[[], tuple[Any, list[Any]]]] = {}


def large(function: Callable[[], tuple[Any, list[Any]]]) -> Callable[[], tuple[Any, list[Any]]]:
    """Adds a computation that is large enough for kernels to split: a loss and its inputs."""
    LARGE[function.__name__] = function
    return function


@large
def elementwise() -> tuple[Any, list[Any]]:
    x = numbers(400_000)
    return (x.exp() * x.sin() + x.tanh()).sum(), [x]


@large
def reductions() -> tuple[Any, list[Any]]:
    x = numbers(700, 600)
    parts = [x.sum(0).square(), x.mean(1).exp(), x.var(0), x.logsumexp(1), x.norm().view(1)]
    return sum(part.sum() for part in parts), [x]


@large
def broadcasting() -> tuple[Any, list[Any]]:
    x, row, column = numbers(600, 700), numbers(700), numbers(600, 1)
    return (x * row + column / (1 + row * row)).square().sum(), [x, row, column]


@large
def products() -> tuple[Any, list[Any]]:
    a, b = numbers(300, 500), numbers(500, 200)
    batches = numbers(12, 60, 70)
    return (a @ b).tanh().sum() + (batches @ batches.mT).sum() * 0.01, [a, b, batches]


@large
def convolutions() -> tuple[Any, list[Any]]:
    x, w = numbers(4, 8, 40, 40), numbers(16, 8, 3, 3)
    y = nn.functional.conv2d(x, w, padding=1)
    return nn.functional.max_pool2d(y.relu(), 2).square().mean(), [x, w]


@large
def rows() -> tuple[Any, list[Any]]:
    x = numbers(900, 500)
    y = nn.functional.layer_norm(x.softmax(1), (500,)).log_softmax(0)
    return (y.cumsum(1) * x.sort(1).values).sum(), [x]


@large
def indices() -> tuple[Any, list[Any]]:
    x = numbers(1000, 300)
    places = (torch.arange(60_000) * 7919) % 1000
    taken = x[places[:5000]].sum(1)
    added = torch.zeros(1000).index_add(0, places, numbers(60_000))
    return (taken.square().sum() + (added * x[:, 0]).sum() + x.take(places * 3).sum()), [x]


@large
def accumulated() -> tuple[Any, list[Any]]:
    x = numbers(200_000)
    return sum(((x * (i + 1)).sin().sum() for i in range(7)), torch.zeros(())), [x]


def bits(name: str) -> list[bytes]:
    loss, inputs = LARGE[name]()
    grads = grad(loss, inputs, create_graph=True)
    second = grad(sum(g.square().sum() for g in grads), inputs, allow_unused=True)
    found = [loss, *grads, *(g for g in second if g is not None)]
    return [t.detach().numpy().tobytes() for t in found]


@pytest.mark.parametrize("name", LARGE)
def test_one_and_two_kernel_threads_give_the_same_bits(
    name: str, kernel_threads: Callable[[int], None]
) -> None:
    kernel_threads(1)
    alone = bits(name)
    for count in (2, 3):
        kernel_threads(count)
        same = [a == b for a, b in zip(alone, bits(name), strict=True)]
        assert all(same), f"{count} threads; loss, gradients, second gradients: {same}"


def test_threads_that_share_the_kernels_threads_get_the_same_bits(
    kernel_threads: Callable[[int], None],
) -> None:
    def run(number: int) -> Any:
        x = torch.linspace(-2, 2, 150_000 + number).requires_grad_()
        y = (x.exp() * x.sin()).sum() + x.view(-1)[:90_000].view(300, 300).softmax(0).norm()
        return [t.detach().numpy().tobytes() for t in (y, *grad(y, x))]

    kernel_threads(1)
    alone = [run(number) for number in range(THREADS)]
    kernel_threads(2)
    for _ in range(3):
        found = succeed(in_parallel(run, THREADS))
        assert [a == b for a, b in zip(found, alone, strict=True)] == [True] * THREADS


def test_training_ends_with_the_same_bits(kernel_threads: Callable[[int], None]) -> None:
    def train() -> list[bytes]:
        torch.manual_seed(11)
        model = nn.Sequential(nn.Linear(300, 400), nn.ReLU(), nn.Dropout(0.3), nn.Linear(400, 10))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        x, target = torch.randn(256, 300), torch.arange(256) % 10
        for _ in range(5):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), target).backward()
            optimizer.step()
        return [p.detach().numpy().tobytes() for p in model.parameters()]

    kernel_threads(1)
    alone = train()
    kernel_threads(2)
    assert [a == b for a, b in zip(train(), alone, strict=True)] == [True] * len(alone)
