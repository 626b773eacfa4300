"""Lines and marks of instructions: whatever the code is like, and after it is gone.

What is compared is what the interpreter itself says: `co_positions` of the instruction that a
traceback stopped at, and the names and lines of code objects. Which frame is asked is tested in
`test_blame_frame.py`, the broken programs in `test_blame.py`.
"""

from __future__ import annotations

import gc
import linecache
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from blame.line import HAS_COLUMNS, SCRIPT, leaf, line_of, lines_of_stale, load, run_python
from blame.program import read_report

import pullback as torch
from pullback.autograd import grad
from pullback.autograd.graph import GradientEdge
from pullback.nn import functional as F

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
    source = f"def run(x, F):\n{indent}{statement}\n"
    run = load(path, source)["run"]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad") as caught:
        run(leaf(), F)
    named = read_report(str(caught.value)).lines[0]
    line, text, part = said_by_the_interpreter(caught.value, path)
    assert (named.heading, named.file) == ("the write is here", str(path))
    assert (named.line, named.text, named.marked) == (line, text, part)


@pytest.mark.skipif(not HAS_COLUMNS, reason="the interpreter knows no columns")
def test_each_op_of_a_line_has_its_own_marks() -> None:
    x = leaf()
    y = (x * 1).exp() + torch.sin(x - 1).cos()
    left, right = (edge[0] for edge in y.grad_fn.next_functions)
    nodes = [left, left.next_functions[0][0], right, right.next_functions[0][0]]
    lines = [line_of(GradientEdge(node, 0)) for node in nodes]
    parts = ["(x * 1).exp()", "x * 1", "torch.sin(x - 1).cos()", "torch.sin(x - 1)"]
    assert [line.marked for line in lines] == parts
    assert line_of(y).marked == "(x * 1).exp() + torch.sin(x - 1).cos()"


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


def test_text_that_only_the_interpreter_has_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "def run(x):\n    return x.exp().neg()\n"
    entry = (len(source), None, source.splitlines(True), "<cell 7>")
    monkeypatch.setitem(linecache.cache, "<cell 7>", entry)
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
        if k >= 9_000:
            kept.append((k, y))
    for k, y in kept:
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
