"""Measurements as a table: a row for each kind, a column for each variant."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from ._measurement import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

__all__ = ["Colorize", "Compare"]

_BEST, _GOOD, _BAD, _WORST, _END = (
    "\033[92m\033[1m", "\033[34m", "\033[2m\033[91m", "\033[31m\033[1m", "\033[0m",
)  # fmt: skip


class Colorize(enum.Enum):
    """Which times are compared by colours."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """A table of measurements, with times in a unit common to all.

    Args:
        results: the measurements; those of one task are one.
    """

    def __init__(self, results: Sequence[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim = False
        self._colorize = Colorize.NONE
        self._highlight = False

    def extend_results(self, results: Sequence[Measurement]) -> None:
        """Adds measurements.

        Raises:
            ValueError: for what is none.
        """
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(
                    f"Expected an instance of `Measurement`, got {type(result)} instead."
                )
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Shows only significant figures."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colours the times, within each column or with ``rowwise`` each row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Marks times that are far apart."""
        self._highlight = True

    def print(self) -> None:
        """Prints the table."""
        print(str(self))

    def __str__(self) -> str:
        merged = Measurement.merge(self._results)
        labels = ordered_unique(m.label for m in merged)
        return "\n\n".join(self._table([m for m in merged if m.label == one]) for one in labels)

    def _table(self, results: list[Measurement]) -> str:
        unit, scale = select_unit(min(m.median for m in results))
        columns = ordered_unique(m.description for m in results)
        keys = ordered_unique((m.num_threads, m.env, m.as_row_name) for m in results)
        cells = {((m.num_threads, m.env, m.as_row_name), m.description): m for m in results}
        head = ["", *(column or "" for column in columns)]
        lines: list[list[str]] = []
        threads = None
        for key in keys:
            if key[0] != threads:
                threads = key[0]
                lines.append([f"{threads} thread{'s' if threads > 1 else ''}:"])
            found = [cells.get((key, column)) for column in columns]
            lines.append([f"  {key[2]}", *(self._text(m, scale) for m in found)])
        widths = [
            max(len(row[at]) for row in [head, *lines] if at < len(row)) for at in range(len(head))
        ]
        colours = self._colours(keys, columns, cells)
        rows = iter(keys)
        out = [self._line(head, widths, {})]
        for line in lines:
            if len(line) == 1:
                out.append(line[0] + " " + "-" * (sum(widths) + 3 * len(widths) - len(line[0])))
            else:
                key = next(rows)
                paint = {at: colours.get((key, c), "") for at, c in enumerate(columns, 1)}
                out.append(self._line(line, widths, paint))
        title = f"[{'-' * 8} {results[0].label or results[0].title} {'-' * 8}]"
        return "\n".join([title, *out, "", f"Times are in {unit_to_english(unit)}s ({unit})."])

    def _text(self, result: Measurement | None, scale: float) -> str:
        if result is None:
            return ""
        value = result.median
        if self._trim:
            value = trim_sigfig(value, result.significant_figures)
        mark = " (! XX%)".replace("XX", f"{result.iqr / result.median * 100:.0f}")
        return f"{value / scale:.1f}" + (mark if self._highlight and result.has_warnings else "")

    @staticmethod
    def _line(row: list[str], widths: list[int], colours: dict[int, str]) -> str:
        parts = [f"{row[0]:<{widths[0]}}"]
        for at in range(1, len(row)):
            text = f"{row[at]:>{widths[at]}}"
            parts.append(f"{colours[at]}{text}{_END}" if colours.get(at) else text)
        return "  |  ".join(parts)

    def _colours(self, keys: Any, columns: Any, cells: Any) -> dict[Any, str]:
        if self._colorize == Colorize.NONE:
            return {}
        by_row = self._colorize == Colorize.ROWWISE
        groups = (
            [[(k, c) for c in columns] for k in keys]
            if by_row
            else [[(k, c) for k in keys] for c in columns]
        )
        found = {}
        for group in groups:
            times = {index: cells[index].median for index in group if index in cells}
            least = min(times.values(), default=0.0)
            for index, time in times.items():
                ratio = time / least if least else 1.0
                found[index] = (
                    _BEST if ratio <= 1.05 else _GOOD if ratio <= 1.2
                    else "" if ratio <= 2 else _BAD if ratio <= 5 else _WORST
                )  # fmt: skip
        return found
