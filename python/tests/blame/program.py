"""What a broken program is, and which lines its error has to name.

A program says in comments at the ends of its own lines what the error has to say of them::

    y = x.exp()  # made: ExpBackward0
    y.add_(1)  # wrote: add_

The word before the colon says under which heading the line has to stand, what is after it is put
into the heading. Which words there are, and in which order they stand in the message, is said by
the program's `Cause`. Two words at one line are divided by a semicolon.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Cause:
    """A kind of error: what its message says, and in which order it names which lines."""

    phrase: str
    """A part of the message that programs may look for."""
    headings: dict[str, str]
    """For each word of a comment the heading of its line, in the order of the message."""
    hint: str = ""
    """A pattern that the last line has to fit; empty where the message has no hint."""
    optional: frozenset[str] = frozenset()
    """The words that a program may leave out."""


class Named(NamedTuple):
    """A line as a message names it."""

    heading: str
    file: str
    line: int
    function: str
    text: str | None
    """None if the file could not be read."""
    marked: str | None
    """What stands above the marks; None if there are no marks."""


class Report(NamedTuple):
    """A message, taken to pieces."""

    message: str
    lines: list[Named]
    hint: str | None


PLACE = re.compile(r'    File "(?P<file>.*)", line (?P<line>[0-9]+), in (?P<function>.*)')


def read_report(text: str) -> Report:
    """Takes a message to pieces; an AssertionError if it has other pieces or another order."""
    message, gap, rest = text.partition("\n\n")
    assert gap, f"no line is named in {text!r}"
    pieces = rest.split("\n")
    hint = None
    if pieces[-1].startswith("  Hint: "):
        hint = pieces.pop().removeprefix("  Hint: ")
    return Report(message, list(read_lines(pieces)), hint)


def read_lines(pieces: list[str]) -> Iterator[Named]:
    """The named lines, each of them a heading, a place, a text and perhaps marks."""
    while pieces:
        heading = re.fullmatch(r"  (\S.*):", pieces.pop(0))
        assert heading, "this is no heading"
        place = PLACE.fullmatch(pieces.pop(0))
        assert place, "a heading without a line"
        text, marked = None, None
        if pieces and pieces[0].startswith("      "):
            text = pieces.pop(0)
        if text and pieces and re.fullmatch(r" {6,}\^+", pieces[0]):
            marks = pieces.pop(0)
            marked = text[marks.index("^") : len(marks)]
        shown = None if text is None else text[6:]
        yield Named(heading[1], place["file"], int(place["line"]), place["function"], shown, marked)


class Program:
    """A broken program, with what its error has to say."""

    def __init__(
        self, run: Callable[[], object], cause: Cause, hint: str | None, phrase: str
    ) -> None:
        self.run = run
        self.cause = cause
        self.hint = cause.hint if hint is None else hint
        self.phrase = phrase or cause.phrase
        self.name = run.__name__
        self.expected = list(self.find_lines())

    def find_lines(self) -> Iterator[Named]:
        """The lines that its comments mark, in the order in which the message names them."""
        source, first = inspect.getsourcelines(self.run)
        file = self.run.__code__.co_filename
        found: dict[str, Named] = {}
        for number, text in enumerate(source, first):
            for word, rest in read_marks(text):
                heading = self.cause.headings[word].format(rest)
                function = function_at(self.run.__code__, number)
                assert word not in found, f"{self.name}: two lines are marked with {word!r}"
                found[word] = Named(heading, file, number, function, text.strip(), None)
        missing = set(self.cause.headings) - set(found) - self.cause.optional
        assert not missing, f"{self.name}: no line is marked with {missing}"
        assert found, f"{self.name}: no line is marked"
        return (found[word] for word in self.cause.headings if word in found)

    def check(self, message: str) -> None:
        """That a message names the marked lines, and nothing but them."""
        report = read_report(message)
        assert self.phrase in report.message, message
        found = [line._replace(marked=None) for line in report.lines]
        assert found == self.expected, f"{message}\nshould name {self.expected}"
        if not self.hint:
            assert report.hint is None, message
        else:
            assert report.hint is not None, message
            assert re.search(self.hint, report.hint), message


def read_marks(text: str) -> Iterator[tuple[str, str]]:
    """The words in the comment of a line, each with what is after its colon."""
    comment = re.search(
        r"  # ((?:made|wrote|freed|output|input|write|used|view)(?=[:;]|$).*)$", text
    )
    for mark in comment[1].split("; ") if comment else ():
        word, _, rest = mark.partition(": ")
        yield word, rest


def function_at(code: types.CodeType, number: int) -> str:
    """The name of the innermost function that a line belongs to."""
    inner = [const for const in code.co_consts if isinstance(const, types.CodeType)]
    for each in inner:
        name = function_at(each, number)
        if name:
            return name
    if any(line == number for _, _, line in code.co_lines()):
        return getattr(code, "co_qualname", code.co_name)
    return ""


PROGRAMS: list[Program] = []


def broken(
    cause: Cause, *, hint: str | None = None, phrase: str = ""
) -> Callable[[Callable[[], object]], Callable[[], object]]:
    """Enters a function as a program that ends with a RuntimeError of this cause.

    Args:
        cause: What the message says.
        hint: A pattern for the hint, where it is another than the usual one of the cause.
        phrase: A part of the message, where it is another than the usual one of the cause.
    """

    def enter(run: Callable[[], object]) -> Callable[[], object]:
        PROGRAMS.append(Program(run, cause, hint, phrase))
        return run

    return enter


CHANGE_A_CLONE = r"^let \S+ change a clone\(\) of it, or write before the value is used$"
USE_THE_OTHER_FORM = (
    r"^(\S+) gives a new tensor (?:and leaves this one as it is|"
    r"\(x = x ([-+*/]) y instead of x \2= y\)); or let \1_ change a clone\(\)$"
)
PUT_TOGETHER = r"^write to a clone\(\) of it, or put it together from parts by torch.where or "
LEAVE_THE_SWITCH = r"^(\S+) gives a new tensor: leave the underscore, or inplace=True, away$"
LEAVE_OUT = r"^leave out= away, which gives a new tensor$"
BEFORE_THE_STEP = r"^call backward\(\) before the optimizer's step, or run the forward again"

STALE = Cause(
    phrase="has been modified by an inplace operation: [torch.",
    headings={"made": "{} needs it and was made here", "wrote": "{} changed it here"},
    hint=f"{USE_THE_OTHER_FORM}|{PUT_TOGETHER}",
)
FREED = Cause(
    phrase="Trying to backward through the graph a second time",
    headings={"made": "{} was made here", "freed": "this backward freed it"},
    hint=r"^give the first backward retain_graph=True, or detach\(\) what one iteration hands on",
)
UNUSED = Cause(
    phrase="appears to not have been used in the graph",
    headings={
        "output": "{} of the output was made here",
        "input": "{} of input 0, which it does not lead to, was made here",
    },
    hint=r"^nothing leads from input 0 to the output: was it detached, copied \(`.data`, ",
    optional=frozenset({"input"}),
)
LEAF_WRITE = Cause(
    phrase="a leaf Variable that requires grad is being used in an in-place operation.",
    headings={"write": "the write is here"},
    hint=r"^write under no_grad\(\), if it is not to be differentiated, or write to a clone\(\)$",
)
LEAF_VIEW_WRITE = Cause(
    phrase="a view of a leaf Variable that requires grad is being used in an in-place operation.",
    headings={"write": "the write is here", "view": "{} made the view here"},
    hint=LEAF_WRITE.hint,
)
VIEW_WRITE = Cause(
    phrase="is a view and is being modified inplace",
    headings={"write": "the write is here", "view": "{} made the view here"},
    optional=frozenset({"view"}),
)
BACKWARD = Cause(phrase="", headings={"made": "{} was made here"})
"""What a node's own run ends with."""
NAN = Cause(
    phrase="returned nan values in its",
    headings=BACKWARD.headings,
    hint=r"^the slope is infinite or 0/0 at this value: add an epsilon, clamp the argument, or ",
)
GRADIENTS = Cause(
    phrase="",
    headings=BACKWARD.headings,
    hint=r"^backward gives one gradient per argument of forward, of that argument's shape; None",
)
"""What is wrong with the gradients that a custom function gives."""
DETACHED = Cause(
    phrase="saved tensor that has been detached in-place",
    headings={"made": "{} needs it and was made here"},
    hint=r"^write x = x.detach\(\) instead of x.detach_\(\)$",
)
