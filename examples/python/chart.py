"""Charts as PNG files, drawn by hand: lines over a grid with a legend, and a confusion matrix.

Only the standard library is used. A chart computes its own ticks; the caller gives numbers
and names.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from canvas import WHITE, Canvas, Color, parse_color, text_width

Point = tuple[float, float]

INK = parse_color("#1e293b")
MUTED = parse_color("#64748b")
GRID = parse_color("#e2e8f0")
PANEL = parse_color("#fbfcfe")
PALETTE = tuple(map(parse_color, ("#2563eb", "#ea580c", "#16a34a", "#9333ea", "#dc2626")))


class Series(NamedTuple):
    """One line: a name for the legend (none if empty), its points, and how it looks."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    color: Color = PALETTE[0]
    width: float = 2.6
    alpha: float = 1.0
    markers: bool = False


def ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Round numbers between `low` and `high`: multiples of 1, 2 or 5 times a power of ten."""
    span = high - low
    if span <= 0 or not math.isfinite(span):
        return [low]
    power = 10.0 ** math.floor(math.log10(span / about))
    step = next(step * power for step in (1, 2, 5, 10) if span / (step * power) <= about)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [count * step for count in range(first, last + 1)]


def smooth(values: Sequence[float], keep: float = 0.9) -> list[float]:
    """The running mean with weights falling by `keep`, corrected for its start."""
    result, total, weight = [], 0.0, 0.0
    for value in values:
        total = keep * total + (1 - keep) * value
        weight = keep * weight + (1 - keep)
        result.append(total / weight)
    return result


def tick_label(value: float, step: float, percent: bool) -> str:
    """A tick's number with as many places as the step between ticks needs."""
    if percent:
        digits = 0 if step >= 0.0099 else 1
        return f"{100 * value:.{digits}f}%"
    digits = max(0, -math.floor(math.log10(step) + 1e-9)) if step < 1 else 0
    return f"{value:.{digits}f}"


class Axes:
    """The plot area: maps numbers to pixels and draws what is not data."""

    def __init__(
        self, canvas: Canvas, box: tuple[int, int, int, int], x: Sequence[float], y: Sequence[float]
    ) -> None:
        self.canvas = canvas
        self.left, self.top, self.right, self.bottom = box
        self.x_low, self.x_high = x
        self.y_low, self.y_high = y

    def place(self, x: float, y: float) -> tuple[float, float]:
        """The pixel of a point."""
        x_part = (x - self.x_low) / ((self.x_high - self.x_low) or 1)
        y_part = (y - self.y_low) / ((self.y_high - self.y_low) or 1)
        return (
            self.left + x_part * (self.right - self.left),
            self.bottom - y_part * (self.bottom - self.top),
        )

    def clipped(self, points: list[Point]) -> list[list[Point]]:
        """The parts of a line, in pixels, that lie between the top and the bottom."""
        parts: list[list[Point]] = []
        for (x1, y1), (x2, y2) in pairwise(points):
            crossed = [edge for edge in (self.top, self.bottom) if (y1 - edge) * (y2 - edge) < 0]
            cuts = sorted([0.0, 1.0, *((edge - y1) / (y2 - y1) for edge in crossed)])
            for start, end in pairwise(cuts):
                if not self.top <= y1 + (start + end) / 2 * (y2 - y1) <= self.bottom:
                    continue
                first = (x1 + start * (x2 - x1), y1 + start * (y2 - y1))
                last = (x1 + end * (x2 - x1), y1 + end * (y2 - y1))
                if parts and parts[-1][-1] == first:
                    parts[-1].append(last)
                else:
                    parts.append([first, last])
        return parts

    def draw(
        self, x_label: str, y_label: str, percent: bool,
        names: Mapping[str, Sequence[str]] | None = None,
    ) -> None:  # fmt: skip
        """Draws the panel, the grid, the ticks and the names of the axes.

        An axis ("x", "y") that is in `names` shows these, evenly spaced, in the place of numbers.
        """
        canvas = self.canvas
        canvas.fill(self.left, self.top, self.right - self.left, self.bottom - self.top, PANEL)
        for axis, low, high in (("x", self.x_low, self.x_high), ("y", self.y_low, self.y_high)):
            values = ticks(low, high, 8 if axis == "x" else 6)
            step = values[1] - values[0] if len(values) > 1 else 1.0
            labels = [tick_label(value, step, percent and axis == "y") for value in values]
            if names is not None and axis in names:
                labels = list(names[axis])
                part = (high - low) / len(labels)
                values = [low + (at + 0.5) * part for at in range(len(labels))]
            for value, label in zip(values, labels, strict=True):
                if axis == "x":
                    x, _ = self.place(value, self.y_low)
                    canvas.line(x, self.top, x, self.bottom, GRID, 1.2)
                    canvas.text(x, self.bottom + 20, label, MUTED, align=0.5)
                else:
                    _, y = self.place(self.x_low, value)
                    canvas.line(self.left, y, self.right, y, GRID, 1.2)
                    canvas.text(self.left - 12, y, label, MUTED, align=1)
        canvas.line(self.left, self.bottom, self.right, self.bottom, MUTED, 1.6)
        canvas.line(self.left, self.top, self.left, self.bottom, MUTED, 1.6)
        canvas.text((self.left + self.right) / 2, self.bottom + 50, x_label, INK, align=0.5)
        canvas.text(
            self.left - 82, (self.top + self.bottom) / 2, y_label, INK, align=0.5, upright=False
        )


def line_chart(
    path: str | os.PathLike[str],
    series: Sequence[Series],
    title: str,
    x_label: str,
    y_label: str,
    y_range: tuple[float, float] | None = None,
    percent: bool = False,
    legend: str = "top",
) -> None:
    """Draws lines over a common grid; `legend` is "top" or "bottom", at the right.

    Without `y_range` the axis covers the finite values, with it lines are cut at its ends.
    `percent` shows fractions as such.
    Raises `ValueError` if there is no point to draw.
    """
    xs = [float(x) for line in series for x in line.xs]
    ys = [float(y) for line in series for y in line.ys if math.isfinite(y)]
    if not xs or not ys:
        raise ValueError(f"{os.fspath(path)}: the chart {title!r} has no finite point")
    if y_range is None:
        margin = 0.05 * ((max(ys) - min(ys)) or 1.0)
        low = 0.0 if 0 <= min(ys) <= 0.4 * max(ys) else min(ys) - margin
        y_range = (low, max(ys) + margin)
    canvas = Canvas(1120, 680)
    canvas.text(104, 42, title, INK, size=3, weight=1.15)
    axes = Axes(canvas, (104, 84, 1080, 596), (min(xs), max(xs)), y_range)
    axes.draw(x_label, y_label, percent)
    for line in series:
        points = [
            axes.place(x, y) for x, y in zip(line.xs, line.ys, strict=True) if math.isfinite(y)
        ]
        for part in axes.clipped(points):
            canvas.polyline(part, line.color, line.width, line.alpha)
        for x, y in points if line.markers else ():
            if axes.top <= y <= axes.bottom:
                canvas.disc(x, y, line.width + 2.2, WHITE)
                canvas.disc(x, y, line.width + 0.6, line.color)
    draw_legend(canvas, [line for line in series if line.name], axes, legend)
    canvas.save(path)


def draw_legend(canvas: Canvas, series: Sequence[Series], axes: Axes, where: str) -> None:
    """Draws the names of lines into a corner at the right: "top" or "bottom"."""
    if not series:
        return
    width = max(text_width(line.name) for line in series) + 72
    height = 28 * len(series) + 16
    left = axes.right - width - 18
    top = axes.top + 18 if where == "top" else axes.bottom - height - 18
    canvas.round_box(left - 1.5, top - 1.5, width + 3, height + 3, 9, GRID)
    canvas.round_box(left, top, width, height, 8, WHITE)
    for row, line in enumerate(series):
        y = top + 22 + 28 * row
        canvas.line(left + 16, y, left + 44, y, line.color, line.width + 0.6, line.alpha)
        canvas.text(left + 56, y, line.name, INK)


def confusion_matrix(
    path: str | os.PathLike[str],
    counts: Sequence[Sequence[int]],
    labels: Sequence[str],
    title: str,
) -> None:
    """Draws a square table of counts: rows the true classes, columns the predicted ones.

    Right answers are shaded blue and wrong ones red, by their share of the row.
    """
    size = len(counts)
    cell = max(30, min(60, 640 // size))
    left, top = 130, 128
    canvas = Canvas(left + cell * size + 60, top + cell * size + 70)
    canvas.text(left, 40, title, INK, size=3, weight=1.15)
    right = sum(counts[k][k] for k in range(size))
    total = sum(map(sum, counts))
    share = 100 * right / total if total else 0.0
    canvas.text(left, 74, f"{right} of {total} right ({share:.2f}%)", MUTED)
    for row, line in enumerate(counts):
        y = top + row * cell
        canvas.text(left - 16, y + cell / 2, labels[row], INK, align=1)
        canvas.text(left + (row + 0.5) * cell, top - 18, labels[row], INK, align=0.5)
        of_row = sum(line) or 1
        for column, count in enumerate(line):
            _draw_cell(canvas, left + column * cell, y, cell, count, of_row, row == column)
    canvas.text(left + cell * size / 2, top + cell * size + 32, "predicted", INK, align=0.5)
    canvas.text(44, top + cell * size / 2, "true", INK, align=0.5, upright=False)
    canvas.save(path)


def _draw_cell(
    canvas: Canvas, x: int, y: int, cell: int, count: int, of_row: int, is_right: bool
) -> None:
    full = PALETTE[0] if is_right else PALETTE[4]
    part = count / of_row
    # A single error must be seen, so errors start at a visible shade.
    depth = (0.12 + 0.88 * part) if is_right else (0.0 if count == 0 else 0.25 + 0.75 * part)
    shade = tuple(
        round(back + (front - back) * depth)
        for front, back in zip(full, (246, 248, 251), strict=True)
    )
    canvas.fill(x + 1, y + 1, cell - 2, cell - 2, (shade[0], shade[1], shade[2]))
    if count:
        ink = WHITE if depth > 0.55 else INK
        canvas.text(x + cell / 2, y + cell / 2, str(count), ink, align=0.5)
