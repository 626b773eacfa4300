"""What measuring leaves: a measurement per case, and the run of a library that they belong to."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

# Numbers that stand for a result: the mean size of a tensor, or the first losses of a program.
Check = float | list[Any] | None


class Status(str, Enum):
    """How a measurement ended."""

    OK = "ok"
    MISSING = "missing"
    """The library lacks something, or refuses it."""
    CRASH = "crash"
    TIMEOUT = "timeout"


@dataclass
class Measurement:
    """One case with one library: nanoseconds per unit, shortest, median and longest of repeats."""

    status: Status = Status.OK
    why: str = ""
    shortest: float | None = None
    median: float | None = None
    longest: float | None = None
    # Processor time of all threads, of the repeat that took least.
    processor: float | None = None
    repeats: int = 0
    # Processors that other programs kept busy meanwhile.
    others: float = 0.0
    check: Check = None
    details: dict[str, Any] = field(default_factory=dict)

    def time(self, of_processor: bool) -> float | None:
        """The time that is compared."""
        return self.processor if of_processor and self.processor else self.shortest


@dataclass
class Run:
    """All that was measured with one library in one go."""

    library: str
    version: str
    threads: int
    python: str
    measurements: dict[str, Measurement] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Writes the run as JSON; a reader never sees half a file."""
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(asdict(self), indent=0))
        unfinished.replace(path)

    @classmethod
    def read(cls, path: Path) -> Run:
        """A run that was written."""
        fields = json.loads(path.read_text())
        measurements = {
            name: Measurement(**{**one, "status": Status(one["status"])})
            for name, one in fields.pop("measurements").items()
        }
        return cls(**fields, measurements=measurements)
