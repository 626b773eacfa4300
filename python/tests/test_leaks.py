"""A thousand rounds of what programs do leave no memory behind.

Each pattern is one round, a function without arguments. It runs in a process of its own, forked
from one that has imported everything and computed nothing: so no free memory of other patterns can
hide what this one keeps, and a crash is one failed test. After a warm-up, a thousand rounds may
leave the live bytes of tensors as they were, the blocks of Python objects within `BLOCKS` and the
resident memory within `RESIDENT` bytes: half of what one node or small tensor per round would take.
A window of rounds that exceeds this is followed by others, as allocators may grow once or twice: a
leak shows in all of them.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import pullback as torch
from pullback import memory, nn
from pullback.autograd import Function, graph
from pullback.autograd.function import once_differentiable
from pullback.utils.checkpoint import checkpoint

ROUNDS = 1000
WARM_UP = 300
WINDOWS = 8
RESIDENT = 100_000
BLOCKS = 300
PATIENCE = 60

Round = Callable[[], object]
PATTERNS: dict[str, Round] = {}


def pattern(function: Round) -> Round:
    """Adds a round under its name."""
    PATTERNS[function.__name__] = function
    return function


# --- measuring ------------------------------------------------------------------------------------


def resident() -> int:
    """Bytes of resident memory; exact, where `/proc/self/statm` may be behind by some pages."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the kernel says nothing about resident memory")


def state() -> tuple[int, int, int]:
    """Live bytes of tensors, blocks of Python objects, resident bytes."""
    gc.collect()
    return memory.live_bytes(), sys.getallocatedblocks(), resident()


def growths(step: Round) -> list[tuple[int, int, int]]:
    """How the state changed over windows of rounds, until one in which nothing is kept."""
    found: list[tuple[int, int, int]] = []
    for _ in range(WARM_UP):
        step()
    before = state()
    for _ in range(WINDOWS):
        for _ in range(ROUNDS):
            step()
        after = state()
        live, blocks, bytes_ = (new - old for new, old in zip(after, before, strict=True))
        found.append((live, blocks, bytes_))
        before = after
        if is_flat(found[-1]):
            break
    return found


def is_flat(growth: tuple[int, int, int]) -> bool:
    """Whether a window kept nothing worth mentioning; of tensors, nothing at all."""
    live, blocks, bytes_ = growth
    return live <= 0 and blocks < BLOCKS and bytes_ < RESIDENT


def serve() -> None:
    """Reads names of patterns; forks for each and answers with its growths, or how it died."""
    for line in sys.stdin:
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            # What was imported is no garbage; what the rounds make is collected before it piles up.
            gc.freeze()
            gc.set_threshold(200, 5, 5)
            signal.alarm(PATIENCE)
            try:
                answer = json.dumps(growths({**PATTERNS, **LEAKING}[line.strip()]))
            except BaseException as error:
                answer = json.dumps(repr(error))
            os.write(writer, answer.encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            answer = pipe.read()
        _, status = os.waitpid(child, 0)
        if status or not answer:
            answer = json.dumps(f"died with status {status}")
        print(answer, flush=True)


@pytest.fixture(scope="module")
def server() -> Iterator[subprocess.Popen[str]]:
    # The threads of other libraries would not survive the fork.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    with subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def measured(server: subprocess.Popen[str], name: str) -> list[tuple[int, int, int]]:
    assert server.stdin is not None
    assert server.stdout is not None
    print(name, file=server.stdin, flush=True)
    answer = json.loads(server.stdout.readline())
    if not isinstance(answer, list):
        raise RuntimeError(f"{name}: {answer}")
    return [(live, blocks, bytes_) for live, blocks, bytes_ in answer]


pytestmark = pytest.mark.skipif(
    not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux's account of memory"
)


# --- hooks ----------------------------------------------------------------------------------------


def leaf(*shape: int) -> Any:
    return torch.full(shape or (3,), 0.5, requires_grad=True)


W = leaf(4)


@pattern
def hook_of_a_leaf_over_the_leaf() -> None:
    x = leaf()
    x.register_hook(lambda grad: None if x.requires_grad else grad)
    (x * 2).sum().backward()


@pattern
def hook_after_accumulation_over_the_leaf() -> None:
    x = leaf()
    x.register_post_accumulate_grad_hook(lambda leaf: setattr(x, "grad", None))
    (x * 2).sum().backward()


@pattern
def tensor_hook_over_its_tensor() -> None:
    y = W * 2
    y.register_hook(lambda grad: None if y.requires_grad else grad)
    y.sum().backward()


@pattern
def hooks_over_their_node() -> None:
    y = (W * 2).sum()
    y.register_hook(lambda grad, node=y.grad_fn: None)
    y.grad_fn.register_hook(lambda given, got, node=y.grad_fn: None)
    y.grad_fn.register_prehook(lambda got, node=y.grad_fn: None)
    y.backward()


@pattern
def metadata_over_the_result_and_its_node() -> None:
    y = (W * 2).sum()
    y.grad_fn.metadata["kept"] = (y, y.grad_fn)
    y.backward()


@pattern
def anomaly_mode_in_double_backward() -> None:
    with torch.autograd.set_detect_anomaly(True):
        x = leaf()
        (first,) = torch.autograd.grad(x.exp().sum(), x, create_graph=True)
        first.sum().backward()


@pattern
def hooks_of_every_kind_over_everything_and_removed() -> None:
    x = leaf()
    y = x * 2
    node, accumulator = y.grad_fn, y.grad_fn.next_functions[0][0]
    handles = [
        x.register_hook(lambda grad: None if y.requires_grad else grad),
        x.register_post_accumulate_grad_hook(lambda leaf: y.numel() and None),
        y.register_hook(lambda grad: None if node.name() else grad),
        node.register_prehook(lambda got: None if y.requires_grad else got),
        node.register_hook(lambda given, got: None if node.name() else given),
        accumulator.register_prehook(lambda got: None if y.requires_grad else got),
        accumulator.register_hook(lambda given, got: None if y.requires_grad else given),
        graph.register_multi_grad_hook((x, y), lambda grads: [x, y, node].clear()),
        graph.register_multi_grad_hook((x, y), lambda grad: [x, y].clear(), mode="any"),
    ]
    y.sum().backward()
    for handle in handles:
        handle.remove()


@pattern
def hooks_that_replace_gradients() -> None:
    y = W.exp()
    y.register_hook(lambda grad: grad * 2)
    y.grad_fn.register_prehook(lambda got: (got[0] + 1,))
    y.grad_fn.register_hook(lambda given, got: (given[0] - 1,))
    y.sum().backward()


LASTING = leaf(), leaf()
graph.register_multi_grad_hook(LASTING, lambda grads: None)


@pattern
def a_lasting_hook_over_several_leaves() -> None:
    (LASTING[0] * LASTING[1]).sum().backward()
    (LASTING[0] * 2).sum().backward()


FIRST = leaf()
graph.register_multi_grad_hook((FIRST,), lambda grad: None, mode="any")


@pattern
def a_lasting_hook_for_the_first_of_several() -> None:
    (FIRST * 2).sum().backward()


BROKEN = leaf(), leaf()
graph.register_multi_grad_hook(BROKEN, lambda grads: None)


@pattern
def a_lasting_hook_over_several_leaves_where_runs_fail() -> None:
    a, b = BROKEN
    failing = b * 1
    failing.register_hook(fail)
    with contextlib.suppress(KeyError):
        ((a * 2).sum() + (failing * (a * 3)).sum()).backward()


@pattern
def retained_gradients() -> None:
    y = W * 2
    y.retain_grad()
    y.mul_(2)
    (y * y.detach()).sum().backward()
    assert y.grad is not None


# --- custom functions -----------------------------------------------------------------------------


def custom(forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type(Function)("Custom", (Function,), methods)


def stash(what: str) -> Any:
    """Three times its argument; the context keeps the thing named."""

    def forward(ctx: Any, x: Any) -> Any:
        y = x * 3
        ctx.kept = {"input": x, "output": y, "itself": ctx, "all": (x, y, ctx)}[what]
        ctx.save_for_backward(x, y)
        return y

    return custom(forward, lambda ctx, grad: grad * 3 + 0 * ctx.saved_tensors[1])


KEEPERS = {what: stash(what) for what in ("input", "output", "itself", "all")}


@pattern
def contexts_that_keep_their_input_output_and_themselves() -> None:
    for keeper in KEEPERS.values():
        keeper.apply(W * 1).sum().backward()


@pattern
def contexts_that_keep_everything_and_never_run() -> None:
    KEEPERS["all"].apply(W)


@pattern
def contexts_kept_by_attributes_of_their_output() -> None:
    y = KEEPERS["input"].apply(W)
    y.context = y.grad_fn
    y.sum().backward()


def _two(ctx: Any, x: Any) -> Any:
    ctx.set_materialize_grads(False)
    return x * 2, x * 3


def _one_of_two(ctx: Any, first: Any, second: Any) -> Any:
    assert second is None
    return None if first is None else first * 2


Two = custom(_two, _one_of_two)


@pattern
def gradients_that_are_not_made_of_zeros() -> None:
    Two.apply(W)[0].sum().backward()


def _write(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    return x.mul_(2)


Write = custom(_write, lambda ctx, grad: grad * 2)


@pattern
def custom_functions_that_write_into_views() -> None:
    base = W * 1
    Write.apply(base[1:])
    Write.apply(base)
    base.sum().backward()


Once = custom(lambda ctx, x: x * 2, once_differentiable(lambda ctx, grad: grad * 2))


@pattern
def functions_to_be_differentiated_once() -> None:
    (grad,) = torch.autograd.grad(Once.apply(W * W).sum(), W, create_graph=True)
    with contextlib.suppress(RuntimeError):
        grad.sum().backward()


@pattern
def classes_of_functions_made_and_dropped() -> None:
    custom(lambda ctx, x: x * 2, lambda ctx, grad: grad * 2).apply(W).sum().backward()


# --- higher orders --------------------------------------------------------------------------------


@pattern
def cycles_of_create_graph_that_are_broken() -> None:
    x = leaf()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (x**3).sum().backward(create_graph=True)
    x.grad.sum().backward()
    x.grad = None


@pattern
def gradients_of_gradients_of_gradients() -> None:
    grad = W.sin() * W
    for _ in range(3):
        (grad,) = torch.autograd.grad(grad.sum(), W, create_graph=True)


@pattern
def hessians() -> None:
    torch.autograd.functional.hessian(lambda x: (x**3).sum(), W.detach())


@pattern
def backward_inside_backward() -> None:
    y = W * 2

    def run_another(grad: Any) -> None:
        with torch.enable_grad():
            (leaf() * 2).sum().backward()

    y.register_hook(run_another)
    y.sum().backward()


# --- errors ---------------------------------------------------------------------------------------


def fail(*_: object) -> Any:
    raise KeyError("on purpose")


FailsForward = custom(fail, fail)
FailsBackward = custom(lambda ctx, x: x * 2, fail)
WrongShape = custom(lambda ctx, x: x * 2, lambda ctx, grad: torch.ones(7))
WrongCount = custom(lambda ctx, x: x * 2, lambda ctx, grad: (grad, grad))


@pattern
def errors_in_forward() -> None:
    with contextlib.suppress(KeyError):
        FailsForward.apply(W * 2)
    for call in (lambda: W @ torch.ones(7), lambda: torch.cat([W, 1]), lambda: W.view(7)):
        with contextlib.suppress(RuntimeError, TypeError):
            call()


@pattern
def errors_of_python_in_backward() -> None:
    y = (W * 2).exp()
    with contextlib.suppress(KeyError):
        (FailsBackward.apply(y) * y.sin()).sum().backward()


@pattern
def errors_in_hooks() -> None:
    for where in ("tensor", "pre", "post"):
        y = (W * 2).exp()
        node = y.grad_fn
        register = {
            "tensor": y.register_hook,
            "pre": node.register_prehook,
            "post": node.register_hook,
        }
        register[where](fail)
        with contextlib.suppress(KeyError):
            (y * W).sum().backward()


@pattern
def errors_of_the_engine() -> None:
    for broken in (WrongShape, WrongCount):
        with contextlib.suppress(RuntimeError):
            broken.apply((W * 2).exp()).sum().backward()
    y = W.exp()
    y.sum().backward()
    with contextlib.suppress(RuntimeError):
        y.sum().backward()
    y = W.exp()
    z = y.sum()
    y.detach().zero_()
    with contextlib.suppress(RuntimeError):
        z.backward()


@pattern
def errors_of_arguments_of_backward() -> None:
    for start in (torch.ones(7), None, "text"):
        with contextlib.suppress(RuntimeError, TypeError):
            (W * 2).backward(start)
    with contextlib.suppress(RuntimeError):
        torch.autograd.grad((W * 2).sum(), [W, leaf()])
    with contextlib.suppress(RuntimeError):
        W.add_(1)


@pattern
def errors_that_are_kept_with_their_traceback_for_a_while() -> None:
    y = FailsBackward.apply(W.exp())
    try:
        y.sum().backward()
    except KeyError as error:
        kept = error
        y.error = kept  # A cycle: the frames of the traceback hold the tensor.


@pattern
def errors_in_hooks_of_saved_tensors() -> None:
    with contextlib.suppress(KeyError), graph.saved_tensors_hooks(fail, fail):
        (W * 2).exp()
    with graph.saved_tensors_hooks(lambda tensor: tensor, fail):
        y = (W * 2).exp()
    with contextlib.suppress(KeyError):
        y.sum().backward()


@pattern
def errors_in_checkpoints() -> None:
    calls: list[int] = []

    def region(x: Any) -> Any:
        calls.append(1)
        return x.exp() if len(calls) == 1 else fail()

    for reentrant in (False, True):
        calls.clear()
        y = checkpoint(region, W * 2, use_reentrant=reentrant)
        with contextlib.suppress(KeyError):
            y.sum().backward()


# --- views and writes -----------------------------------------------------------------------------


@pattern
def views_of_views_written_in_place() -> None:
    base = W * 1
    view = base.view(2, 2)
    row, column = view[0], view[:, 1]
    row.mul_(2)
    column.mul_(3)
    view.t()[1:].sigmoid_()
    assert row.grad_fn is not None
    (base.sum() + row.sum()).backward()
    base[1:3].copy_(column)
    assert view.grad_fn is not None


@pattern
def views_refused_for_writing() -> None:
    base = W * 1
    with contextlib.suppress(RuntimeError):
        base.unbind()[0].mul_(2)
    with torch.no_grad():
        view = base[1:]
    with contextlib.suppress(RuntimeError):
        view.mul_(2)
    with contextlib.suppress(RuntimeError):
        W[1:].mul_(2)


@pattern
def assignments_by_index() -> None:
    base = W * 1
    base[torch.tensor([0, 2])] = W[:2]
    base[1:3] = 0
    base[base > 0.4] = W.sum()
    base[0] += 1
    base.sum().backward()


@pattern
def memory_replaced() -> None:
    x = leaf()
    (x * 2).sum().backward()
    x.data = torch.ones(5)
    x.grad = None
    (x * 2).sum().backward()
    y = torch.ones(2)
    y.resize_(50)
    y.set_(x.data)
    torch.add(torch.ones(3), 1, out=y.detach())


# --- saved tensors and checkpoints ----------------------------------------------------------------


@pattern
def hooks_of_saved_tensors() -> None:
    boxes: list[Any] = []

    def pack(tensor: Any) -> Any:
        boxes.append(tensor)  # Holds the outputs with their history: a cycle until the list goes.
        return len(boxes) - 1

    with graph.saved_tensors_hooks(pack, boxes.__getitem__):
        y = (W * 2).exp().sigmoid() * W
    y.sum().backward()
    boxes.clear()


@pattern
def hooks_that_give_the_tensor_itself_back() -> None:
    with graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
        y = (W * 2).exp().sigmoid() * W
    y.sum().backward(retain_graph=True)


@pattern
def hooks_of_single_saved_tensors() -> None:
    y = (W * 2).exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t.numpy(), torch.from_numpy)
    y.sum().backward()


@pattern
def ready_made_hooks_of_saved_tensors() -> None:
    with graph.save_on_cpu():
        y = (W * 2).exp()
    y.sum().backward()
    with graph.allow_mutation_on_saved_tensors():
        y = (W * 2).exp()
        z = y.sin()
        y.mul_(2)
        z.sum().backward()


@pattern
def checkpoints() -> None:
    for reentrant in (False, True):
        y = checkpoint(lambda x: (x.exp() * x).sin(), W * 1, use_reentrant=reentrant)
        y.sum().backward()
        checkpoint(lambda x: (x.exp() * x).sin(), W * 1, use_reentrant=reentrant)  # Never run.


@pattern
def checkpoints_in_checkpoints() -> None:
    def inner(x: Any) -> Any:
        return checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False) * x

    checkpoint(inner, W * 1, use_reentrant=False).sum().backward()


# --- copies, subclasses, other libraries ----------------------------------------------------------


@pattern
def copies() -> None:
    x = leaf()
    x.note = {"of": x}
    x.grad = torch.ones(3)
    other = copy.deepcopy(x)
    assert other.note is not x.note
    copy.copy(x)
    with contextlib.suppress(RuntimeError):
        copy.deepcopy(x * 2)


@pattern
def pickles() -> None:
    x = leaf()
    x.note = [1]
    layer = nn.Linear(2, 2)
    again, view, _ = pickle.loads(pickle.dumps((x, x.detach()[1:], layer)))
    assert again.requires_grad
    assert view.numel() == 2


class Named(torch.Tensor):
    """A subclass with attributes."""


class Counting(torch.Tensor):
    """A subclass that answers calls."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return super().__torch_function__(func, types, args, kwargs or {})


@pattern
def subclasses_with_attributes() -> None:
    x = leaf().as_subclass(Named)
    x.me, x.others = x, [x * 2, W]
    ((x * 2).sum() * x.others[0].sum()).backward()
    x.grad = None


@pattern
def subclasses_that_answer_calls() -> None:
    x = torch.ones(3).as_subclass(Counting).requires_grad_()
    y = (x * 2).exp()
    y[1:].clone().mul_(2)
    torch.stack([y, y]).sum().backward()
    assert isinstance(x.grad.sum(), torch.Tensor)


@pattern
def arrays() -> None:
    x = torch.ones(50)
    torch.from_numpy(x.numpy()).add_(1)
    torch.from_numpy(numpy.ones(50)).requires_grad_().sum().backward()
    torch.tensor(numpy.arange(3.0))
    torch.frombuffer(bytearray(64), dtype=torch.float32)
    numpy.asarray(x[1:])
    assert x.tolist()[0] + x.untyped_storage().nbytes() > 0


@pattern
def exchanges_by_dlpack() -> None:
    x = torch.ones(50)
    numpy.from_dlpack(x)
    torch.from_dlpack(numpy.ones(50))
    torch.from_dlpack(x.__dlpack__())
    x.__dlpack__()


# --- modules and optimizers -----------------------------------------------------------------------


def network() -> Any:
    return nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.ReLU(), nn.Dropout(), nn.Linear(4, 1))


def train(model: Any, optimizer: Any) -> None:
    loss = model(torch.ones(2, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


MODEL = network()
ADAM = torch.optim.AdamW(MODEL.parameters(), lr=1e-4)
SGD = torch.optim.SGD(MODEL.parameters(), lr=1e-4, momentum=0.9)


@pattern
def steps_of_training() -> None:
    train(MODEL, ADAM)
    train(MODEL, SGD)


@pattern
def modules_made_trained_and_dropped() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    model.parent = [model]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model[0].register_forward_hook(lambda module, args, output: model[1](output))
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    model.load_state_dict(model.state_dict())
    parameter = nn.Parameter(torch.ones(3))
    parameter.owner = parameter
    copy.deepcopy(parameter)


# --- threads --------------------------------------------------------------------------------------


def in_thread(function: Round) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


@pattern
def threads_that_die() -> None:
    in_thread(lambda: (leaf() * 2).exp().sum().backward())


@pattern
def threads_that_die_with_hooks_in_force() -> None:
    def work() -> None:
        graph.saved_tensors_hooks(lambda t, kept=leaf(): t, lambda t: t).__enter__()  # noqa: B008
        (leaf() * 2).exp().sum().backward()

    in_thread(work)


@pattern
def graphs_that_go_from_thread_to_thread() -> None:
    made: list[Any] = []
    in_thread(lambda: made.append((W * 2).exp().sum()))
    in_thread(lambda: made.pop().backward())


# --- the tests ------------------------------------------------------------------------------------

KEPT: list[Any] = []
LEAKING: dict[str, Round] = {
    "a tensor": lambda: KEPT.append(torch.ones(3)),
    "a tensor with its node": lambda: KEPT.append(W * 2),
    "a node": lambda: KEPT.append((W * 2).grad_fn),
    "memory of the C library": lambda: KEPT.append(io.BytesIO(b"x" * 200).getbuffer()),
}
"""What each round keeps, for the measure itself to be measured."""


@pytest.mark.parametrize("what", LEAKING)
def test_one_small_thing_kept_per_round_is_seen(server: subprocess.Popen[str], what: str) -> None:
    windows = measured(server, what)
    assert len(windows) == WINDOWS
    assert not any(is_flat(growth) for growth in windows), windows


@pytest.mark.parametrize("name", PATTERNS)
def test_a_thousand_rounds_keep_nothing(server: subprocess.Popen[str], name: str) -> None:
    windows = measured(server, name)
    assert is_flat(windows[-1]), f"live, blocks, resident of each thousand rounds: {windows}"


if __name__ == "__main__":
    serve()
