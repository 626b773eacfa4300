"""Searches in a text for lines that must, or must not, be there."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, NoReturn

_DIRECTIVE = re.compile(r"CHECK(?:-(NEXT|SAME|NOT|DAG|REGEX|COUNT)(?:-(\d+))?(-EXACTLY)?)?: ?(.*)")


class _Wish(NamedTuple):
    kind: str
    text: str
    times: int = 1
    is_exact: bool = False


class FileCheck:
    """Wishes about a text, each about what follows the one before.

    ``FileCheck().check("a").check_not("b").check("c").run(text)`` is an error unless ``a`` is
    there, ``c`` after it, and no ``b`` between them.
    """

    def __init__(self) -> None:
        self._wishes: list[_Wish] = []

    def _add(self, *wish: Any) -> FileCheck:
        self._wishes.append(_Wish(*wish))
        return self

    def check(self, test: str) -> FileCheck:
        """The text follows."""
        return self._add("", test)

    def check_not(self, test: str) -> FileCheck:
        """The text does not come before what the next wish finds."""
        return self._add("NOT", test)

    def check_same(self, test: str) -> FileCheck:
        """The text follows on the same line."""
        return self._add("SAME", test)

    def check_next(self, test: str) -> FileCheck:
        """The text follows on the next line."""
        return self._add("NEXT", test)

    def check_count(self, test: str, count: int, exactly: bool = False) -> FileCheck:
        """The text follows a number of times; with ``exactly`` no more often."""
        return self._add("COUNT", test, count, exactly)

    def check_dag(self, test: str) -> FileCheck:
        """The text follows, before or after those of the wishes of this kind beside it."""
        return self._add("DAG", test)

    def check_regex(self, test: str) -> FileCheck:
        """Requires that a match of a regular expression follows."""
        return self._add("REGEX", test)

    def check_source_highlighted(self, test: str) -> FileCheck:
        """The text follows, on a line above one that marks it with ``~~~``."""
        return self._add("HIGHLIGHTED", test)

    def run(self, *texts: Any) -> None:
        """Looks for all checks in the text of an object; of two texts the first has the wishes.

        Raises:
            RuntimeError: for a wish that is not fulfilled, with the text.
            TypeError: for another number of texts.
        """
        if len(texts) == 2:
            self.run_from_annotations(*texts)
            return
        if len(texts) != 1:
            raise TypeError(f"FileCheck.run() takes one or two texts, but got {len(texts)}")
        self._run(self._wishes, str(texts[0]))

    def run_from_annotations(self, checks_file: str, test_string: Any) -> None:
        """As :meth:`run` with wishes written as lines ``# CHECK: text``."""
        wishes = []
        for kind, count, exactly, text in _DIRECTIVE.findall(checks_file):
            wishes.append(_Wish(kind, text.strip(), int(count or 1), bool(exactly)))
        if not wishes:
            raise RuntimeError(f"Could not parse any checks from the text:\n{checks_file}")
        self._run(wishes, str(test_string))

    def _run(self, wishes: list[_Wish], text: str) -> None:
        if not wishes:
            raise RuntimeError("No checks have been added to this instance of FileCheck!")
        at, index = 0, 0
        while index < len(wishes):
            wish = wishes[index]
            if wish.kind in ("NOT", "DAG"):
                group = [wish]
                while index + len(group) < len(wishes) and (
                    wishes[index + len(group)].kind == wish.kind
                ):
                    group.append(wishes[index + len(group)])
                index += len(group)
                if wish.kind == "DAG":
                    at = max(self._find(one, text, at)[1] for one in group)
                else:
                    after = wishes[index] if index < len(wishes) else None
                    end = len(text) if after is None else self._find(after, text, at)[0]
                    self._refuse(group, text, at, end)
                continue
            at = self._find(wish, text, at)[1]
            index += 1

    def _find(self, wish: _Wish, text: str, at: int) -> tuple[int, int]:
        """Where the next match of the pattern begins and ends."""
        pattern = wish.text if wish.kind == "REGEX" else re.escape(wish.text)
        found = re.compile(pattern).search(text, at)
        if found is None:
            self._fail(f'Expected to find "{wish.text}" but did not find it', text)
        between = text[at : found.start()]
        lines = {"SAME": 0, "NEXT": 1}.get(wish.kind)
        if lines is not None and between.count("\n") != lines:
            self._fail(f'Expected to find "{wish.text}" {lines} line(s) on', text)
        if wish.kind == "HIGHLIGHTED":
            return self._highlighted(wish, text, found.start(), found.end())
        return found.start(), self._repeated(wish, text, found.end())

    def _repeated(self, wish: _Wish, text: str, end: int) -> int:
        for _ in range(1, wish.times):
            start = text.find(wish.text, end)
            if start < 0:
                self._fail(f'Expected to find "{wish.text}" {wish.times} times', text)
            end = start + len(wish.text)
        if wish.is_exact and text.find(wish.text, end) >= 0:
            self._fail(f'Expected to not find "{wish.text}" but found it again', text)
        return end

    def _highlighted(self, wish: _Wish, text: str, start: int, end: int) -> tuple[int, int]:
        line = text.rfind("\n", 0, start) + 1
        below = text.find("\n", end) + 1
        mark = text[below + start - line : below + end - line]
        if below == 0 or not mark or set(mark) - {"~"}:
            self._fail(f'Expected to find "{wish.text}" highlighted', text)
        return start, below + end - line

    def _refuse(self, group: list[_Wish], text: str, at: int, end: int) -> None:
        for one in group:
            if text.find(one.text, at, end) >= 0:
                self._fail(f'Expected to not find "{one.text}" but found it', text)

    def _fail(self, reason: str, text: str) -> NoReturn:
        raise RuntimeError(f"{reason}\nFrom {self!r} in:\n{text}")

    def __repr__(self) -> str:
        return " ".join(f"CHECK{'-' if w.kind else ''}{w.kind}: {w.text}" for w in self._wishes)
