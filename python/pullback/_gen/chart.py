"""Charts of the recorded times in `benches/record`, as SVG written by hand.

`read` takes the tables of a record, `overview` shows every case of every group on one axis,
`bars` one group case by case. The axis is the time of pullback over that of PyTorch, and is
logarithmic, since half and double are equally far from one. Nothing is measured here.
"""

from __future__ import annotations

import html
import math
import re
from pathlib import Path
from typing import NamedTuple

__all__ = ["Case", "Group", "bars", "overview", "read"]

_HEADING = re.compile(r"^## Group (\w): geometric mean ([\d.]+) over (\d+)$")
_ROW = re.compile(r"^\| (\w)\.(\S+) \| ([^|]+) \| ([^|]+) \| ([\d.]+) \|")

TITLES = {
    "A": "overhead of small calls",
    "B": "bandwidth: a million elements and more",
    "C": "compute: products, convolutions, linear algebra",
    "D": "whole training steps",
    "E": "import",
}
_FASTER, _SLOWER, _INK, _MUTED, _GRID = "#2563eb", "#ea580c", "#0f172a", "#64748b", "#e2e8f0"
_STYLE = (
    "text{font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;"
    f"font-size:12px;fill:{_INK}}}.m{{fill:{_MUTED};font-size:11px}}.h{{font-size:16px;"
    "font-weight:600}"
)


class Case(NamedTuple):
    """A row of a record: both times as it prints them, and pullback's over PyTorch's."""

    name: str
    theirs: str
    ours: str
    ratio: float


class Group(NamedTuple):
    """The cases under one heading, and the geometric mean that the record gives."""

    letter: str
    mean: float
    cases: list[Case]


def read(record: Path) -> list[Group]:
    """The groups of a record; `ValueError` if one has not the number of rows that it claims."""
    groups: list[Group] = []
    counts: list[int] = []
    for line in record.read_text().splitlines():
        if heading := _HEADING.match(line):
            groups.append(Group(heading[1], float(heading[2]), []))
            counts.append(int(heading[3]))
        elif row := _ROW.match(line):
            case = Case(row[2], row[3].strip(), row[4].strip(), float(row[5]))
            next(g for g in groups if g.letter == row[1]).cases.append(case)
    if not groups or [len(group.cases) for group in groups] != counts:
        raise ValueError(f"{record.name} does not hold the rows that its headings count")
    return groups


class _Axis(NamedTuple):
    """A logarithmic axis from `low` to `high` between two places of the picture."""

    left: float
    right: float
    low: float
    high: float

    def at(self, ratio: float) -> float:
        """The position of a ratio on the axis."""
        share = math.log(ratio / self.low) / math.log(self.high / self.low)
        return self.left + share * (self.right - self.left)

    def lines(self, top: float, bottom: float) -> list[str]:
        """Grid and labels; the line of equal times is the strongest."""
        out = []
        for mark in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0):
            if not self.low <= mark <= self.high:
                continue
            x, width = self.at(mark), 2 if mark == 1 else 1
            color = _INK if mark == 1 else _GRID
            out.append(
                f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}" stroke="{color}" '
                f'stroke-width="{width}"/>'
            )
            label = "equal" if mark == 1 else f"{mark:g}"
            out.append(_text(x, bottom + 16, label, "m", "middle"))
        return out


def _axis(groups: list[Group]) -> _Axis:
    """An axis on which every case of the groups has its place."""
    ratios = [case.ratio for group in groups for case in group.cases]
    return _Axis(330, 780, min(0.02, *ratios), max(2.0, *ratios))


def _text(x: float, y: float, text: str, style: str = "", anchor: str = "start") -> str:
    style = f' class="{style}"' if style else ""
    return f'<text{style} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _picture(width: int, height: int, title: str, body: list[str]) -> str:
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">',
        f"<title>{html.escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        '<rect width="100%" height="100%" fill="#f8fafc"/>',
        _text(20, 28, title, "h"),
    ]
    return "\n".join([*head, *body, "</svg>", ""])


def overview(groups: list[Group]) -> str:
    """A line of dots for each group, a dot for each case, and a mark at the geometric mean."""
    axis, row, top = _axis(groups), 52, 50
    bottom = top + row * len(groups)
    out = axis.lines(top, bottom)
    for number, group in enumerate(groups):
        y = top + row * (number + 0.5)
        count = f"{len(group.cases)} case{'s' if len(group.cases) > 1 else ''}"
        out.append(_text(20, y - 2, TITLES[group.letter]))
        out.append(_text(20, y + 14, f"{count}, geometric mean {group.mean:.2f}", "m"))
        for place, case in enumerate(sorted(group.cases, key=lambda case: case.ratio)):
            # Spread a little, so that equal cases do not hide each other.
            shift = (place * 7 % 5 - 2) * 4
            color = _FASTER if case.ratio <= 1 else _SLOWER
            out.append(
                f'<circle cx="{axis.at(case.ratio):.1f}" cy="{y + shift:.1f}" r="3.5" '
                f'fill="{color}" fill-opacity="0.55"/>'
            )
        x = axis.at(group.mean)
        out.append(
            f'<line x1="{x:.1f}" y1="{y - 18:.1f}" x2="{x:.1f}" y2="{y + 18:.1f}" '
            f'stroke="{_INK}" stroke-width="3"/>'
        )
    out.append(_text(555, bottom + 36, "pullback's time / PyTorch's time", "m", "middle"))
    return _picture(800, bottom + 50, "Time of pullback over time of PyTorch", out)


def bars(group: Group) -> str:
    """A bar for each case of a group, with both times."""
    axis, row, top = _axis([group]), 18, 46
    bottom = top + row * len(group.cases)
    out = axis.lines(top, bottom)
    for number, case in enumerate(sorted(group.cases, key=lambda case: case.ratio)):
        y = top + row * number
        start, end = sorted((axis.at(1.0), axis.at(case.ratio)))
        color = _FASTER if case.ratio <= 1 else _SLOWER
        out.append(_text(20, y + 13, case.name))
        out.append(_text(320, y + 13, f"{case.theirs} → {case.ours}", "m", "end"))
        out.append(
            f'<rect x="{start:.1f}" y="{y + 3}" width="{max(end - start, 1):.1f}" height="12" '
            f'rx="2" fill="{color}" fill-opacity="0.8"/>'
        )
    out.append(
        _text(555, bottom + 36, "pullback's time / PyTorch's time (times: PyTorch → pullback)",
              "m", "middle")
    )  # fmt: skip
    title = f"Group {group.letter}, {TITLES[group.letter]}"
    return _picture(800, bottom + 50, title, out)
