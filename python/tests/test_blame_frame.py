"""Whose line it is: the frame of the program that called, past the package's own.

How a line is told from a frame is tested in `test_blame_mark.py`, the broken programs in
`test_blame.py`.
"""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import re
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from blame.line import SCRIPT, leaf, line_of, lines_of_stale, load, run_python
from blame.program import read_report

import pullback as torch
from pullback import nn
from pullback.autograd import Function, functional
from pullback.nn import functional as F
from pullback.utils.checkpoint import checkpoint

# The frames.


def test_a_suspended_generator_and_who_advances_it_have_each_their_line() -> None:
    def states() -> Any:
        x = leaf()
        while True:
            x = x.sigmoid()
            yield x

    steps = states()
    first, second = next(steps), next(steps)
    outside = second.neg()
    first_line = states.__code__.co_firstlineno
    assert [line_of(t).line for t in (first, second)] == [first_line + 3] * 2
    assert line_of(first).function.endswith("states")
    assert line_of(outside).text == "outside = second.neg()"


def test_coroutines_that_take_turns_have_each_their_line() -> None:
    async def one(x: Any) -> Any:
        for _ in range(3):
            await asyncio.sleep(0)
            x = x.exp()
        return x

    async def other(x: Any) -> Any:
        for _ in range(3):
            await asyncio.sleep(0)
            x = x.neg()
        return x

    async def both() -> Any:
        return await asyncio.gather(one(leaf()), other(leaf()))

    a, b = asyncio.run(both())
    assert (line_of(a).text, line_of(b).text) == ("x = x.exp()", "x = x.neg()")


def test_threads_that_run_at_once_have_each_their_line(tmp_path: Path) -> None:
    names = load(
        tmp_path / "threads.py",
        "".join(f"def run{k}(x):\n    return x.mul({k})\n" for k in range(6)),
    )
    wrong: list[Any] = []
    start = threading.Barrier(6)

    def work(k: int) -> None:
        run, x = names[f"run{k}"], leaf()
        start.wait(60)
        for _ in range(100):
            y = run(x)
            made = line_of(y)
            if (made.line, made.function) != (2 * k + 2, f"run{k}"):
                wrong.append(made)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    sys.setswitchinterval(before)
    assert not any(each.is_alive() for each in threads)
    assert wrong == []


def wait_for(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_without_a_frame_there_is_no_line() -> None:
    made: list[Any] = []
    # The new thread runs only C: it calls a method of list, which asks a map.
    _thread.start_new_thread(made.extend, (map(torch.exp, [leaf()]),))
    wait_for(lambda: bool(made))
    version = made[0]._version
    _thread.start_new_thread(made[0].add_, (1,))
    wait_for(lambda: made[0]._version > version)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
        made[0].sum().backward()
    assert "File" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "Hint: enable anomaly detection" in str(caught.value)


def test_a_write_without_a_frame_leaves_the_line_of_the_op() -> None:
    y = leaf().exp()
    version = y._version
    _thread.start_new_thread(y.add_, (1,))
    wait_for(lambda: y._version > version)
    (made,) = lines_of_stale(y)
    assert made.text == "y = leaf().exp()"


# The package's own frames are passed by.


def test_a_script_run_by_the_package_is_named(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT, encoding="utf-8")
    made, wrote = read_report(run_python("-m", "pullback", str(script))).lines
    assert (made.file, made.line, made.function) == (str(script), 5, "layer")
    assert made.text == "y = torch.sigmoid(x); z = 1"
    assert (wrote.file, wrote.line, wrote.function) == (str(script), 6, "layer")
    assert wrote.text == "y.add_(z); return y"


class Passed(torch.Tensor):
    """A subclass: its ops go through a method that the package writes in Python."""


class Twice(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2


def table() -> Any:
    return torch.ones(2, 4, requires_grad=True)


CALLS: list[Callable[[], Any]] = [
    lambda: nn.Linear(4, 2)(table()),
    lambda: nn.Sequential(nn.Linear(4, 2), nn.Sequential(nn.ReLU(), nn.Tanh()))(table()),
    lambda: nn.LSTM(4, 2, num_layers=2)(table())[0],
    lambda: nn.GRUCell(4, 2)(table()),
    lambda: nn.BatchNorm1d(4)(table()),
    lambda: nn.Embedding(4, 2)(torch.tensor([1])),
    lambda: nn.MultiheadAttention(4, 2)(table(), table(), table())[0],
    lambda: nn.CrossEntropyLoss()(table(), torch.tensor([0, 1])),
    lambda: nn.TripletMarginLoss()(table(), table() * 2, table() * 3),
    lambda: F.gelu(table()),
    lambda: F.dropout(table(), 0.5),
    lambda: F.normalize(table()),
    lambda: F.cosine_similarity(table(), table()),
    lambda: F.gumbel_softmax(table()),
    lambda: F.cross_entropy(table(), torch.tensor([0, 1])),
    lambda: F.scaled_dot_product_attention(table(), table(), table()),
    lambda: F.pad(table(), (1, 1), mode="circular"),
    lambda: F.glu(table()),
    lambda: torch.einsum("ij,kj->ik", table(), table()),
    lambda: torch.stack([table(), table()]),
    lambda: torch.linalg.vector_norm(table()),
    lambda: 2 - table(),
    lambda: 2 / table(),
    lambda: 2 ** table(),
    lambda: reversed(table()),
    lambda: next(iter(table())),
    lambda: Twice.apply(table()),
    lambda: table().as_subclass(Passed).exp(),
    lambda: checkpoint(torch.exp, table(), use_reentrant=False),
    lambda: checkpoint(torch.exp, table(), use_reentrant=True),
    lambda: functional.jacobian(torch.exp, table(), create_graph=True),
    lambda: nn.utils.parameters_to_vector([table()]),
    lambda: torch.enable_grad()(torch.exp)(table()),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: str(call.__code__.co_firstlineno))
def test_a_call_of_what_the_package_writes_in_python_names_the_caller(
    call: Callable[[], Any],
) -> None:
    made = line_of(call())
    assert (made.file, made.line) == (__file__, call.__code__.co_firstlineno)
    assert made.function == "<lambda>"
    assert made.text is not None
    assert made.text.startswith("lambda: ")


WRITES: list[Callable[[Any], Any]] = [
    lambda y: F.relu(y, inplace=True),
    lambda y: nn.ELU(inplace=True)(y),
    lambda y: F.dropout(y, 0.5, inplace=True),
    lambda y: nn.init.uniform_(y),
    lambda y: torch.no_grad()(y.add_)(1),
    lambda y: torch.no_grad()(nn.init.zeros_)(y),
    lambda y: Twice.apply(y.add_(1)),
]


@pytest.mark.parametrize("write", WRITES, ids=lambda write: str(write.__code__.co_firstlineno))
def test_a_write_by_what_the_package_writes_in_python_names_the_caller(
    write: Callable[[Any], Any],
) -> None:
    y = leaf().exp()
    with torch.no_grad():
        write(y)
    made, wrote = lines_of_stale(y)
    assert made.text == "y = leaf().exp()"
    assert (wrote.file, wrote.line) == (__file__, write.__code__.co_firstlineno)


def test_the_block_of_a_checkpoint_is_named_when_it_runs_again() -> None:
    runs = []

    def block(x: Any) -> Any:
        y = x.exp()
        runs.append(line_of(y))
        return y.sin()

    checkpoint(block, leaf(), use_reentrant=False).sum().backward()
    assert [line.text for line in runs] == ["y = x.exp()"] * 2


def test_the_body_of_a_module_is_named_and_not_who_calls_it() -> None:
    class Net(nn.Module):
        def forward(self, x: Any) -> Any:
            return F.softmax(x * 2, dim=0)

    made = line_of(nn.Sequential(Net())(leaf()))
    assert made.text == "return F.softmax(x * 2, dim=0)"
    assert made.function.endswith("forward")


def test_an_exception_that_is_handled_stays_as_it_is() -> None:
    y = leaf().exp()
    y.add_(1)
    try:
        raise KeyError("the first")
    except KeyError:
        with contextlib.suppress(RuntimeError):
            y.sum().backward()
        assert isinstance(sys.exc_info()[1], KeyError)
    with pytest.raises(RuntimeError) as caught:
        y.sum().backward()
    assert re.search(r"\n  Hint: .*\Z", str(caught.value))
