"""How the line of a call is found: by instruction, past the package's frames, without an object.

What is compared is what the interpreter itself says: `co_positions` of the instruction that a
traceback stopped at, and the names and lines of code objects. The broken programs are in
`test_blame.py`.
"""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import gc
import linecache
import re
import subprocess
import sys
import textwrap
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from blame.program import Named, read_report

import pullback as torch
from pullback import nn
from pullback.autograd import Function, functional, grad
from pullback.nn import functional as F
from pullback.utils.checkpoint import checkpoint

HAS_COLUMNS = sys.version_info >= (3, 11)


def leaf() -> Any:
    return torch.ones(3, requires_grad=True)


def line_of(t: Any) -> Named:
    """Where the node of a tensor was made, as the error says that nothing leads to it."""
    with pytest.raises(RuntimeError, match="not have been used in the graph") as caught:
        grad(torch.zeros((), requires_grad=True).exp(), t)
    line = read_report(str(caught.value)).lines[-1]
    assert "of input 0, which it does not lead to" in line.heading
    return line


def lines_of_stale(y: Any) -> list[Named]:
    """What the error of a stale value names."""
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
        y.sum().backward()
    return read_report(str(caught.value)).lines


def load(path: Path, source: str) -> dict[str, Any]:
    """The names that a file of this source has."""
    path.write_text(source, encoding="utf-8")
    names: dict[str, Any] = {"torch": torch, "leaf": leaf}
    exec(compile(source, str(path), "exec"), names)
    return names


def run_python(*arguments: str) -> str:
    """What another interpreter printed."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


# The marks.

REFUSED = [
    "x.add_(1)",
    "y = x.add_(1)",
    "y = (1, x.add_(1), 2)",
    "y = [k for k in (x.neg_(), 1)]",
    "x += 1",
    "x **= 2",
    "x[0] = 1",
    "x[0:2] += 1",
    "x[x > 0] = 0.0",
    "y = -x.exp_()",
    "y = torch.neg(x).exp().add(x.mul_(2))",
    "y = 'äöü', '€', '😀', x.mul_(2)  # ß",
    "ä = x.mul_(2); ö = 1",
    "y = F.relu(x, inplace=True)",
    "if x.add_(1) is None: pass",
    "y = (lambda ü: ü.zero_())(x)",
    "y = f'{x.add_(1)}'",
    "assert x.fill_(3) is x",
    "y = x.mul_(\n        2)",
    "y = (x\n        .mul_(2))",
    "y = (torch\n        .neg(x).exp(), x.sub_(\n1))",
    "y = {1: 2, 'a': x.clamp_(max=1)}['a']",
    "y = x.add_(1) if x is not None else x.sub_(1)",
    "\tx.add_(1) ; y = 1",
]


def said_by_the_interpreter(error: BaseException, path: Path) -> tuple[int, str, str | None]:
    """The line, its text and the part that the instruction has, by `co_positions`."""
    trace, found = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            found = trace
        trace = trace.tb_next
    assert found is not None
    positions = list(found.tb_frame.f_code.co_positions())
    line, end_line, start, end = positions[found.tb_lasti // 2]
    assert line is not None
    text = path.read_text(encoding="utf-8").splitlines()[line - 1]
    if end_line != line:
        return line, text.strip(), None
    part = text.encode()[start:end].decode()
    return line, text.strip(), None if part == text.strip() else part


@pytest.mark.skipif(not HAS_COLUMNS, reason="the interpreter knows no columns")
@pytest.mark.parametrize("statement", REFUSED)
def test_the_marks_stand_where_the_interpreter_says(statement: str, tmp_path: Path) -> None:
    path = tmp_path / "marked.py"
    indent = "" if statement.startswith("\t") else "    "
    between = "if True:\n\t" if indent == "" else "if True:\n    "
    source = f"{between}def run(x, F):\n{indent * 2}{indent and ''}"
    source = source + (f"\t\t{statement.strip()}" if not indent else statement) + "\n"
    run = load(path, source)["run"]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad") as caught:
        run(leaf(), F)
    named = read_report(str(caught.value)).lines[0]
    line, text, part = said_by_the_interpreter(caught.value, path)
    assert (named.heading, named.file) == ("the write is here", str(path))
    assert (named.line, named.text, named.marked) == (line, text, part)


def test_marks_are_below_the_inner_call_and_not_the_outer_one() -> None:
    x = leaf()
    y = (x * 1).exp() + torch.sin(x).cos()
    left, right = (edge[0] for edge in y.grad_fn.next_functions)
    assert (left.name(), right.name()) == ("ExpBackward0", "CosBackward0")
    parts = [line_of(t).marked for t in (y, torch.abs(x + 1))]
    if HAS_COLUMNS:
        assert parts == ["(x * 1).exp() + torch.sin(x).cos()", "torch.abs(x + 1)"]
    else:
        assert parts == [None, None]


def test_without_columns_the_lines_have_no_marks(tmp_path: Path) -> None:
    script = tmp_path / "plain.py"
    script.write_text(SCRIPT, encoding="utf-8")
    report = read_report(run_python("-X", "no_debug_ranges", "-m", "pullback", str(script)))
    assert [line.line for line in report.lines] == [5, 6]
    assert all(line.marked is None for line in report.lines)


# The code.


def test_code_of_a_string_has_lines_without_text() -> None:
    names: dict[str, Any] = {"x": leaf()}
    exec("y = 1\n\ny = x.exp()\ny.add_(1)", names)
    made, wrote = lines_of_stale(names["y"])
    assert (made.file, made.line, made.function, made.text) == ("<string>", 3, "<module>", None)
    assert (wrote.file, wrote.line, wrote.function, wrote.text) == ("<string>", 4, "<module>", None)


def test_code_of_eval_has_a_line() -> None:
    made = line_of(eval("(lambda x: x.exp())(leaf())"))
    assert (made.file, made.line, made.function, made.text) == ("<string>", 1, "<lambda>", None)


def test_text_that_only_the_interpreter_has_is_shown() -> None:
    source = "def run(x):\n    return x.exp().neg()\n"
    linecache.cache["<cell 7>"] = (len(source), None, source.splitlines(True), "<cell 7>")
    names: dict[str, Any] = {}
    exec(compile(source, "<cell 7>", "exec"), names)
    made = line_of(names["run"](leaf()))
    assert (made.file, made.line, made.text) == ("<cell 7>", 2, "return x.exp().neg()")


def test_code_that_is_gone_still_names_its_line(tmp_path: Path) -> None:
    source = "def run(x):\n    y = x.exp()\n    y.add_(1)\n    return y\n"
    names = load(tmp_path / "gone.py", source)
    y = names["run"](leaf())
    names.clear()
    gc.collect()
    made, wrote = lines_of_stale(y)
    assert (made.line, made.function, made.text) == (2, "run", "y = x.exp()")
    assert (wrote.line, wrote.function, wrote.text) == (3, "run", "y.add_(1)")


def exp_of(x: Any) -> Any:
    return x.exp()


def copy_of_exp(name: str, first_line: int) -> Callable[[Any], Any]:
    """A function with a code object of its own, from line ``first_line`` of a file ``name``."""
    code = exp_of.__code__.replace(co_filename=name, co_firstlineno=first_line)
    return types.FunctionType(code, globals())


def test_many_short_lived_code_objects_are_told_apart() -> None:
    kept = []
    for k in range(10_000):
        y = copy_of_exp(f"<{k}>", k + 1)(leaf())
        if k % 1000 == 0 or k >= 9_900:
            kept.append((k, y))
    for k, y in kept:
        if k >= 9_900:
            made = line_of(y)
            assert (made.file, made.line) == (f"<{k}>", k + 2)


def test_a_line_that_was_forgotten_is_left_out_and_not_mistaken() -> None:
    old = copy_of_exp("<old>", 1)(leaf())
    assert line_of(old).file == "<old>"
    for k in range(10_000):
        copy_of_exp(f"<new {k}>", 1)(leaf())
    with pytest.raises(RuntimeError, match="not have been used") as caught:
        grad(leaf().sum(), old)
    assert "of the output was made here" in str(caught.value)
    assert "of input 0, which it does not lead to, was made here" not in str(caught.value)
    assert "<new" not in str(caught.value)


GROWTH = """
import sys, types
import pullback as torch

def exp_of(x):
    return x.exp()

def resident():
    for line in open("/proc/self/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) // 1024

def make(count):
    for k in range(count):
        code = exp_of.__code__.replace(co_filename=f"<{k}>" + "x" * 16384)
        types.FunctionType(code, globals())(x)

x = torch.ones(3, requires_grad=True)
make(6_000)
before = resident()
make(14_000)
print(resident() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_many_short_lived_code_objects_take_bounded_memory() -> None:
    # Without a bound the names of 14,000 files would be 220 MiB.
    assert int(run_python("-c", GROWTH)) < 60


def test_a_line_far_down_a_file(tmp_path: Path) -> None:
    path = tmp_path / "long.py"
    source = "\n" * 70_000 + "def run(x):\n    y = x.exp()\n    y.add_(1)\n    return y\n"
    made, wrote = lines_of_stale(load(path, source)["run"](leaf()))
    assert (made.line, made.text) == (70_002, "y = x.exp()")
    assert (wrote.line, wrote.text) == (70_003, "y.add_(1)")


def test_a_function_that_spans_more_lines_than_fit_two_bytes(tmp_path: Path) -> None:
    path = tmp_path / "wide.py"
    gap = "\n" * 66_000
    source = f"def run(x):\n    y = x.exp()\n{gap}    y.add_(1)\n{gap}    return y.neg()\n"
    made, wrote = lines_of_stale(load(path, source)["run"](leaf()))
    assert (made.line, wrote.line) == (2, 66_003)


def test_a_huge_body_with_wide_arguments(tmp_path: Path) -> None:
    count = 3_000
    lines = ["def run(x, go):"]
    lines += [f"    v{k} = {k} + 0.5" for k in range(count)]
    lines += ["    while go:", "        y = v2999 and x.exp()"]
    lines += [f"        v{k} = v{count - 1 - k} * {k + count}.25" for k in range(count)]
    lines += ["        go = False", "    y.add_(v1 * 0 + 1); z = v2998", "    return y"]
    run = load(tmp_path / "huge.py", "\n".join(lines) + "\n")["run"]
    assert len(run.__code__.co_code) > 2**15
    made, wrote = lines_of_stale(run(leaf(), True))
    assert (made.line, made.text) == (count + 3, "y = v2999 and x.exp()")
    assert (wrote.line, wrote.text) == (2 * count + 5, "y.add_(v1 * 0 + 1); z = v2998")
    if HAS_COLUMNS:
        assert (made.marked, wrote.marked) == ("x.exp()", "y.add_(v1 * 0 + 1)")


def test_a_line_is_the_same_under_a_trace_function(tmp_path: Path) -> None:
    source = "def run(x):\n    y = x.exp()\n    y = y + 0\n    return y.abs()\n"
    run = load(tmp_path / "traced.py", source)["run"]
    seen = []
    before = sys.gettrace()

    def trace(frame: types.FrameType, event: str, argument: Any) -> Any:
        seen.append(event)
        return trace

    sys.settrace(trace)
    try:
        y = run(leaf())
    finally:
        sys.settrace(before)
    assert "line" in seen
    made = line_of(y)
    assert (made.line, made.marked) == (4, "y.abs()" if HAS_COLUMNS else None)


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
    inside = f"{states.__qualname__ if HAS_COLUMNS else 'states'}"
    assert [line_of(t).line for t in (first, second)] == [first_line + 3] * 2
    assert line_of(first).function == inside
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

SCRIPT = textwrap.dedent(
    """\
    import torch


    def layer(x):
        y = torch.sigmoid(x); z = 1
        y.add_(z); return y


    try:
        layer(torch.ones(3, requires_grad=True)).sum().backward()
    except RuntimeError as error:
        print(error, end="")
    """
)


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
    lambda: torch.linalg.norm(table()),
    lambda: 2 - table(),
    lambda: 2 / table(),
    lambda: 2 ** table(),
    lambda: reversed(table()),
    lambda: list(table())[0],
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
        return y

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
