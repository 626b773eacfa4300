"""What a fuzzer is made of: a way to draw cases, and a rule that each must keep."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any

Case = dict[str, Any]
"""JSON: texts, numbers, lists and dictionaries."""


class Wrong(Exception):
    """A case broke its target's rule; ``kind`` is one word, the same for the same defect."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Target(ABC):
    """One kind of cases and the rule that they must keep."""

    name: str
    patience: float = 20.0
    """Seconds after which one case counts as hanging (machines are shared)."""
    memory: int = 2 << 30
    """Bytes of address space beyond what the process has at the start."""
    batch: int = 2000
    """Cases of one child."""

    @abstractmethod
    def draw(self, choose: Random) -> Case:
        """A case; the same for the same state of ``choose``."""

    @abstractmethod
    def run(self, case: Case) -> str:
        """Runs a case and says in a few words how it went, the same for cases of one kind.

        Raises:
            Wrong: if the case breaks the rule. Any other exception does so too.
        """

    @abstractmethod
    def smaller(self, case: Case) -> Iterator[Case]:
        """Cases that are a little smaller, the greatest steps first."""

    @abstractmethod
    def program(self, case: Case) -> str:
        """A program that does what the case does."""

    def group(self, case: Case) -> str:
        """Findings of one group and kind are reported once."""
        return ""


def without(items: list[Any]) -> Iterator[list[Any]]:
    """The list without a half, a quarter, ... and without each item."""
    size = len(items) // 2
    while size >= 1:
        for start in range(0, len(items), size):
            yield items[:start] + items[start + size :]
        size //= 2
    if len(items) == 1:
        yield []


def variants(case: Case, key: str, values: Iterable[Any]) -> Iterator[Case]:
    """The case with each of these values under a key."""
    for value in values:
        yield {**case, key: value}


Draw = Callable[[Random], Case]
