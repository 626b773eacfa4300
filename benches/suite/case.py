"""What a case is: a name, a way to prepare what is timed, and what it costs at the least."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from suite.inputs import Inputs

# What is called again and again.
Action = Callable[[], Any]


@dataclass(frozen=True)
class Statement:
    """A line of Python and the names in it, timed without a function call around it.

    For calls so short that the call of a Python function would be a good part of their time.
    """

    text: str
    names: dict[str, Any]


class Manner(Enum):
    """How a case is timed."""

    REPEATED = auto()
    """Again and again, in the process that measures the other cases."""
    PROGRAM = auto()
    """Step after step in a process of its own, which tells the memory it needs; returns a loss."""
    ONCE = auto()
    """One time in a process of its own, which may die of it; returns its own details."""

    OUTSIDE = auto()
    """By starting interpreters (`process.py`)."""


@dataclass(frozen=True)
class Cost:
    """What a case cannot do without, from which the least possible time follows.

    Bytes are moved once from or to memory per unit of the case, operations are those of floating
    point in one call. `loop` names the loop of `limits.rs` that moves bytes in the same way.
    """

    bytes_per_unit: float | None = None
    operations: float | None = None
    dtype: str = "f32"
    loop: str = "triad"


@dataclass(frozen=True)
class Case:
    """One program. Times are per unit, and one call does `units` of them."""

    name: str
    prepare: Callable[[Inputs], Action | Statement]
    unit: str = "call"
    units: int = 1
    cost: Cost = field(default_factory=Cost)
    manner: Manner = Manner.REPEATED
    # Random numbers, and sums whose rounding depends on their order, differ between libraries.
    has_comparable_result: bool = True

    @property
    def group(self) -> str:
        """The letter of its group."""
        return self.name[0]
