"""Errors of the graph name the lines of the program that made them so.

The programs are in `blame`, by cause: the usual ones that users report. How a line is found is
tested in `test_blame_frame.py` and `test_blame_mark.py`.
"""

from __future__ import annotations

import re
import sys
import warnings
from typing import Any

import pytest
from blame import failing, freed, place, refused, stale, training, unused
from blame.program import PROGRAMS, Program, read_report

import pullback as torch
from pullback.autograd import Function

CAUSES = [failing, freed, place, refused, stale, training, unused]


def as_case(program: Program) -> Any:
    cause = program.run.__module__.removeprefix("blame.")
    return pytest.param(program, id=f"{cause}-{program.name}")


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
@pytest.mark.filterwarnings("ignore:Error detected in")
@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
@pytest.mark.parametrize("program", [as_case(program) for program in PROGRAMS])
def test_a_broken_program_is_told_its_lines(program: Program) -> None:
    with pytest.raises(RuntimeError) as caught:
        program.run()
    program.check(str(caught.value))


def test_every_cause_has_its_programs_and_each_its_name() -> None:
    assert {program.run.__module__ for program in PROGRAMS} == {each.__name__ for each in CAUSES}
    names = [(program.run.__module__, program.name) for program in PROGRAMS]
    assert len(set(names)) == len(names) > 150


def without(pattern: str, message: str) -> str:
    changed = re.sub(pattern, "", message, flags=re.MULTILINE)
    assert changed != message
    return changed


@pytest.mark.parametrize(
    "spoil",
    [
        lambda message: message.partition("\n\n")[0],
        lambda message: without(r"^  add_ changed.*\n    File.*\n.*\n(      +\^+\n)?", message),
        lambda message: without(r"^  ExpBackward0 .*\n    File.*\n.*\n(      +\^+\n)?", message),
        lambda message: without(r"^  Hint: .*", message),
        lambda message: without(r"^  add_ changed it here:\n", message),
        lambda message: message.replace("add_ changed", "mul_ changed"),
        lambda message: message.replace("y.add_(1)", "y.add_(2)"),
        lambda message: message.replace("stale.py", "_tensor.py", 1),
        lambda message: re.sub(r"line (\d+)", lambda n: f"line {int(n[1]) + 1}", message, count=1),
        lambda message: message.replace(", in the_output", ", in an_output", 1),
        lambda message: message + "\n  Hint: another line",
    ],
)
def test_a_message_that_lacks_something_does_not_pass(spoil: Any) -> None:
    program = next(each for each in PROGRAMS if each.name == "the_output_of_exp_is_shifted")
    with pytest.raises(RuntimeError) as caught:
        program.run()
    message = str(caught.value)
    program.check(message)
    with pytest.raises(AssertionError):
        program.check(spoil(message))


def test_the_order_of_the_lines_counts() -> None:
    program = next(each for each in PROGRAMS if each.name == "the_output_of_exp_is_shifted")
    with pytest.raises(RuntimeError) as caught:
        program.run()
    report = read_report(str(caught.value))
    assert report.lines[0].line + 1 == report.lines[1].line
    turned = report._replace(lines=report.lines[::-1])
    assert [line._replace(marked=None) for line in turned.lines] != program.expected


def test_a_leaf_without_history_has_no_line_of_its_own() -> None:
    x, y = (torch.ones(3, requires_grad=True) for _ in range(2))
    with pytest.raises(RuntimeError, match="appears to not have been used") as caught:
        torch.autograd.grad(x, y, torch.ones(3))
    assert "File" not in str(caught.value)
    assert "Hint" not in str(caught.value)


def test_a_hint_names_only_what_there_is() -> None:
    wrong = []
    for name in ("cauchy_", "exponential_", "geometric_", "log_normal_", "normal_", "uniform_"):
        x = torch.ones(3, requires_grad=True)
        y = x.exp()
        with torch.no_grad():
            getattr(y, name)(*([0.5] if name == "geometric_" else []))
        with pytest.raises(RuntimeError) as caught:
            y.sum().backward()
        hint = read_report(str(caught.value)).hint or ""
        adviser = re.match(r"(\w+) gives a new tensor", hint)
        if adviser and not hasattr(torch.Tensor, adviser[1]):
            wrong.append(name)
    assert wrong == []


def test_an_input_whose_gradient_a_backward_left_out_is_told_from_one_without_path() -> None:
    class Half(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x / 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return None

    x = torch.ones(3, requires_grad=True) * 1
    with pytest.raises(RuntimeError, match="not have been used in the graph") as caught:
        torch.autograd.grad(Half.apply(x).sum(), x)
    hint = read_report(str(caught.value)).hint
    assert hint is not None
    assert re.match("the graph leads to input 0, but a function on the way gave no gradient", hint)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have notes from 3.11 on")
def test_an_exception_of_a_users_backward_is_the_same_with_a_note_of_the_call() -> None:
    raised = KeyError("mine")

    class Failing(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            raise raised

    y = Failing.apply(torch.ones(3, requires_grad=True))
    with pytest.raises(KeyError) as caught:
        y.sum().backward()
    assert caught.value is raised
    assert caught.value.args == ("mine",)
    (note,) = caught.value.__notes__
    assert re.search(r"FailingBackward was made here:\n    File \".*test_blame.py\", line", note)
    assert "y = Failing.apply(torch.ones(3, requires_grad=True))" in note


def test_a_warning_that_is_made_an_error_is_raised_by_backward_itself() -> None:
    x = torch.ones(3, requires_grad=True)
    y = (x * x).sum()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match=r"create_graph=True"):
                y.backward(create_graph=True)
    finally:
        torch.set_warn_always(False)
    assert (x + 1).sum().item() == 6
