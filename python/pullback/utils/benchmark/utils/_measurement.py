"""The task that is measured, the times that it took, and their presentation."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = [
    "Measurement",
    "TaskSpec",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "trim_sigfig",
    "unit_to_english",
]

_MAX_SIGNIFICANT_FIGURES = 4
# Above this part of the median, the distance between the quartiles is worth a warning.
_IQR_WARN, _IQR_GROSS = 0.1, 0.25
_MIN_CONFIDENCE_INTERVAL = 25e-9


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """The task that is measured: the statement, its setup, and labels.

    Args:
        stmt: the statement.
        setup: what runs once before it.
        global_setup: what C++ would have at its top.
        label: what is measured.
        sub_label: of which kind.
        description: in which variant.
        env: in which environment.
        num_threads: how many threads compute.
    """

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """A title of one line."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt + (f": {self.sub_label}" if self.sub_label else "")
        return (
            "stmt:"
            + (f" ({self.sub_label})" if self.sub_label else "")
            + "\n"
            + textwrap.indent(self.stmt, "  ")
        )

    def setup_str(self) -> str:
        """The setup of the statement, as text."""
        if self.setup in ("", "pass"):
            return ""
        if "\n" in self.setup:
            return f"setup:\n{textwrap.indent(self.setup, '  ')}"
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """A summary of all measurements."""
        parts = [
            self.title,
            self.description or "",
            self.setup_str(),
        ]
        return "\n".join(f"{i}" if "\n" in i else f"  {i}" for i in parts if i)


def _quantile(values: list[float], part: float) -> float:
    """The value below which a part of the sorted values lies, between neighbours if need be."""
    at = part * (len(values) - 1)
    low = math.floor(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """The times of one task, and their statistics.

    Args:
        number_per_run: how often the statement ran in each time.
        raw_times: the times, in seconds.
        task_spec: the task.
        metadata: anything else.
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    @property
    def stmt(self) -> str:
        """The statement."""
        return self.task_spec.stmt

    @property
    def description(self) -> str | None:
        """The variant that was measured."""
        return self.task_spec.description

    @property
    def label(self) -> str | None:
        """The label of the task."""
        return self.task_spec.label

    @property
    def sub_label(self) -> str | None:
        """The kind within the label."""
        return self.task_spec.sub_label

    @property
    def num_threads(self) -> int:
        """The number of threads that computed."""
        return self.task_spec.num_threads

    @property
    def times(self) -> list[float]:
        """The seconds of one run of the statement, of each time."""
        return [time / self.number_per_run for time in self.raw_times]

    def _sorted(self) -> list[float]:
        if not self.raw_times:
            raise ValueError("No measurements are available.")
        return sorted(self.times)

    @property
    def mean(self) -> float:
        """The mean."""
        times = self._sorted()
        return math.fsum(times) / len(times)

    @property
    def median(self) -> float:
        """The median."""
        return _quantile(self._sorted(), 0.5)

    @property
    def iqr(self) -> float:
        """The distance between the first and the third quartile."""
        times = self._sorted()
        return _quantile(times, 0.75) - _quantile(times, 0.25)

    @property
    def significant_figures(self) -> int:
        """The number of significant digits of the median.

        It is an interval of 1.645 standard errors (90 per cent) of normally distributed times,
        whose deviation the quartiles give: ``iqr / 1.349``.
        """
        n = len(self.raw_times)
        if n == 0:
            raise ValueError("No measurements are available.")
        deviation = self.iqr / 1.349
        interval = max(1.645 * deviation / math.sqrt(n), _MIN_CONFIDENCE_INTERVAL)
        relative = math.log10(self.median / interval) if self.median > 0 else 0.0
        return min(max(math.floor(relative), 1), 5)

    @property
    def has_warnings(self) -> bool:
        """Whether the times are far apart."""
        return bool(self._warning())

    def meets_confidence(self, threshold: float = _IQR_WARN) -> bool:
        """Whether the distance between the quartiles is below a part of the median."""
        return self.iqr / self.median < threshold

    def _warning(self) -> str:
        if len(self.raw_times) < 3 or self.median == 0:
            return ""
        part = self.iqr / self.median
        if part < _IQR_WARN:
            return ""
        word = "very high" if part > _IQR_GROSS else "high"
        return f"  WARNING: Interquartile range is {part * 100:.1f}% of the median: it is {word}."

    @property
    def as_row_name(self) -> str:
        """The name of the row in a table."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    @property
    def title(self) -> str:
        """A title of one line."""
        return self.task_spec.title

    @property
    def env(self) -> str:
        """The environment of the measurement."""
        return "Unspecified env" if self.task_spec.env is None else self.task_spec.env

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        lines = [object.__repr__(self), self.task_spec.summarize()]
        n = len(self.raw_times)
        if n == 1:
            lines.append(f"  {self.median / scale:.2f} {unit}")
        else:
            times = self._sorted()
            low, high = _quantile(times, 0.25) / scale, _quantile(times, 0.75) / scale
            lines.append(f"  Median: {self.median / scale:.2f} {unit}")
            if n >= 4:
                lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        threads = self.task_spec.num_threads
        runs = "" if self.number_per_run == 1 else f", {self.number_per_run} runs per measurement"
        lines.append(f"  {n} measurement{'s' if n > 1 else ''}{runs}, {threads} thread(s)")
        warning = self._warning()
        return "\n".join([*lines, warning] if warning else lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task, with the times of all its measurements."""
        groups: dict[TaskSpec, list[Measurement]] = defaultdict(list)
        for measurement in measurements:
            groups[measurement.task_spec].append(measurement)
        merged = []
        for spec, group in groups.items():
            times = [time for m in group for time in m.times]
            merged.append(Measurement(1, times, spec, None))
        return merged


_UNITS = (("ns", "nanosecond", 1e-9), ("us", "microsecond", 1e-6), ("ms", "millisecond", 1e-3),
          ("s", "second", 1.0))  # fmt: skip


def select_unit(t: float) -> tuple[str, float]:
    """The unit that suits a time in seconds, and how many seconds it is."""
    found = _UNITS[0]
    for unit in _UNITS:
        if t >= unit[2]:
            found = unit
    return found[0], found[2]


def unit_to_english(u: str) -> str:
    """The word for a unit of time.

    Raises:
        KeyError: for another.
    """
    return {short: word for short, word, _ in _UNITS}[u]


def trim_sigfig(x: float, n: int) -> float:
    """The number with only its first ``n`` figures.

    Raises:
        AssertionError: if ``n`` is no whole number.
    """
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    if x == 0:
        return 0.0
    magnitude = math.ceil(math.log10(abs(x)))
    scale = 10.0 ** (magnitude - n)
    return float(round(x / scale) * scale)


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Each of the elements once, in the order of their first occurrence."""
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """A context in which this many threads compute."""
    from .... import get_num_threads, set_num_threads

    before = get_num_threads()
    try:
        set_num_threads(n)
        yield
    finally:
        set_num_threads(before)
