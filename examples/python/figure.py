"""A picture of several panels: lines, points, heat maps, bars and small images side by side.

`Figure` is a grid of cells with a title; `Figure.axes` gives a `Panel`, which maps numbers to
pixels and draws onto the canvas at once; `Figure.tiles` fills a cell with small images. Built
on `canvas` and `chart`, so that a program needs no library to show what it learned.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence

from canvas import WHITE, Canvas, Color, parse_color, text_width
from chart import GRID, INK, MUTED, PALETTE, Axes, Series, draw_legend

TITLE_HEIGHT = 64
# Colour maps: a value's place between `low` and `high` chooses between these.
SEQUENTIAL = tuple(map(parse_color, ("#f8fafc", "#93c5fd", "#2563eb", "#1e1b4b")))
DIVERGING = tuple(map(parse_color, ("#1e3a8a", "#60a5fa", "#f8fafc", "#f87171", "#7f1d1d")))
GRAY = tuple(map(parse_color, ("#ffffff", "#0f172a")))
# Ten colours that can be told apart, for classes.
CLASSES = (
    *PALETTE,
    *map(parse_color, ("#0891b2", "#ca8a04", "#db2777", "#475569", "#65a30d")),
)

Rows = Sequence[Sequence[float]]


def shade(part: float, stops: Sequence[Color]) -> Color:
    """The colour at `part` (0 to 1) of the way through the colours."""
    if not math.isfinite(part):
        return GRID
    place = max(0.0, min(1.0, part)) * (len(stops) - 1)
    first = min(int(place), len(stops) - 2)
    near, far = stops[first], stops[first + 1]
    red, green, blue = (
        round(a + (b - a) * (place - first)) for a, b in zip(near, far, strict=True)
    )
    return red, green, blue


class Panel(Axes):
    """One pair of axes in a figure."""

    def line(self, series: Series) -> None:
        """Draws a line, cut at the top and the bottom; points that are not finite are left out."""
        points = [
            self.place(x, y)
            for x, y in zip(series.xs, series.ys, strict=True)
            if math.isfinite(x) and math.isfinite(y)
        ]
        for part in self.clipped(points):
            self.canvas.polyline(part, series.color, series.width, series.alpha)
        if series.markers:
            self.points(series.xs, series.ys, series.color, series.width + 0.6)

    def lines(self, series: Sequence[Series], legend: str = "above") -> None:
        """Draws several lines and a legend of those that have names.

        The legend is below the title ("above"), or within the axes ("top", "bottom").
        """
        for line in series:
            self.line(line)
        named = [line for line in series if line.name]
        if legend == "above":
            self.key([(line.name, line.color) for line in named])
        else:
            draw_legend(self.canvas, named, self, legend)

    def key(self, names: Sequence[tuple[str, Color]]) -> None:
        """Writes names with their colours below the title."""
        x, y = float(self.left), self.top - 17
        for name, color in names:
            self.canvas.line(x + 2, y, x + 14, y, color, 4)
            self.canvas.text(x + 24, y, name, INK, 1.6)
            x += 40 + text_width(name, 1.6)

    def points(
        self, xs: Sequence[float], ys: Sequence[float], color: Color, radius: float = 3.0,
        alpha: float = 1.0,
    ) -> None:  # fmt: skip
        """Draws discs at those points that lie within the axes."""
        for x, y in zip(xs, ys, strict=True):
            if self.x_low <= x <= self.x_high and self.y_low <= y <= self.y_high:
                at = self.place(x, y)
                self.canvas.polyline([at, at], color, 2 * radius, alpha)

    def arrow(self, x: float, y: float, dx: float, dy: float, color: Color) -> None:
        """Draws an arrow from (x, y), both ends in the numbers of the axes."""
        (x1, y1), (x2, y2) = self.place(x, y), self.place(x + dx, y + dy)
        length = math.hypot(x2 - x1, y2 - y1)
        if length < 1e-6:
            return
        self.canvas.line(x1, y1, x2, y2, color, 1.4)
        along_x, along_y = (x2 - x1) / length, (y2 - y1) / length
        for side in (-1, 1):
            back_x = x2 - 5 * along_x + side * 3 * along_y
            back_y = y2 - 5 * along_y - side * 3 * along_x
            self.canvas.line(x2, y2, back_x, back_y, color, 1.4)

    def bars(self, edges: Sequence[float], heights: Sequence[float], color: Color) -> None:
        """Draws a bar between each two neighbouring edges, from the bottom up."""
        for left, right, height in zip(edges, edges[1:], heights, strict=False):
            x1, y1 = self.place(left, min(height, self.y_high))
            x2, y2 = self.place(right, self.y_low)
            if round(y2) > round(y1):
                width = max(1, round(x2) - round(x1) - 1)
                self.canvas.fill(round(x1), round(y1), width, round(y2) - round(y1), color)

    def image(
        self, rows: Rows, low: float, high: float, stops: Sequence[Color] = SEQUENTIAL,
        bar: bool = True,
    ) -> None:  # fmt: skip
        """Fills the panel with a heat map: `rows[0]` at the bottom; `bar` adds the colours' key."""
        height, width = self.bottom - self.top, self.right - self.left
        for i, row in enumerate(rows):
            bottom = self.bottom - round(i * height / len(rows))
            top = self.bottom - round((i + 1) * height / len(rows))
            for j, value in enumerate(row):
                left = self.left + round(j * width / len(row))
                right = self.left + round((j + 1) * width / len(row))
                color = shade((value - low) / ((high - low) or 1.0), stops)
                self.canvas.fill(left, top, right - left, bottom - top, color)
        if bar:
            self._key(low, high, stops)

    def _key(self, low: float, high: float, stops: Sequence[Color]) -> None:
        left, height = self.right + 14, self.bottom - self.top
        for y in range(height):
            self.canvas.fill(left, self.bottom - y - 1, 14, 1, shade(y / height, stops))
        self.canvas.text(left + 20, self.bottom - 6, f"{low:.2g}", MUTED, size=1.7)
        self.canvas.text(left + 20, self.top + 6, f"{high:.2g}", MUTED, size=1.7)


class Figure:
    """A grid of cells of one size below a title."""

    def __init__(
        self, title: str, columns: int = 2, rows: int = 1, width: int = 560, height: int = 470
    ) -> None:
        self.width, self.height = width, height
        self.canvas = Canvas(columns * width, rows * height + TITLE_HEIGHT)
        self.canvas.text(30, 38, title, INK, size=3, weight=1.15)

    def axes(
        self, cell: tuple[int, int], title: str, x: tuple[float, float], y: tuple[float, float],
        labels: tuple[str, str], percent: bool = False, right: int = 32, span: int = 1,
        names: Mapping[str, Sequence[str]] | None = None,
    ) -> Panel:  # fmt: skip
        """Draws axes into a cell (column, row); `labels` are those of x and y.

        Args:
            cell: the column and the row, from 0.
            title: what the panel shows.
            x: the ends of the horizontal axis.
            y: the ends of the vertical axis.
            labels: the names of the axes.
            percent: whether the vertical axis shows fractions as such.
            right: the room at the right, for the key of a heat map.
            span: how many columns the panel takes.
            names: what an axis ("x", "y") shows, evenly spaced, in the place of numbers.
        """
        left, top = cell[0] * self.width, TITLE_HEIGHT + cell[1] * self.height
        box = (left + 104, top + 58, left + span * self.width - right, top + self.height - 72)
        panel = Panel(self.canvas, box, x, y)
        self.canvas.text(box[0], top + 16, title, INK)
        panel.draw(*labels, percent, names)
        return panel

    def tiles(
        self, cell: tuple[int, int], title: str, images: Sequence[Rows], columns: int,
        captions: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """Fills a cell with small images of values from 0 (white) to 1 (dark), row by row."""
        left, top = cell[0] * self.width + 44, TITLE_HEIGHT + cell[1] * self.height
        self.canvas.text(left, top + 16, title, INK)
        caption = 22 if captions else 0
        rows = -(-len(images) // columns)
        across = (self.width - 68) / columns
        down = (self.height - 64) / rows
        for number, image in enumerate(images):
            x = left + round((number % columns) * across)
            y = top + 46 + round((number // columns) * down)
            self.tile(x, y, round(min(across, down - caption)) - 4, image)
            if captions:
                size = round(min(across, down - caption)) - 4
                middle = x + size / 2
                self.canvas.text(middle, y + size + 11, captions[number], MUTED, 1.6, align=0.5)

    def tile(self, x: int, y: int, size: int, image: Rows) -> None:
        """Draws one small square image, `image[0]` at the top."""
        self.canvas.fill(x - 1, y - 1, size + 2, size + 2, GRID)
        self.canvas.fill(x, y, size, size, WHITE)
        for i, row in enumerate(image):
            top, bottom = round(i * size / len(image)), round((i + 1) * size / len(image))
            for j, value in enumerate(row):
                left, right = round(j * size / len(row)), round((j + 1) * size / len(row))
                color = shade(value, GRAY)
                self.canvas.fill(x + left, y + top, right - left, bottom - top, color)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the picture as a PNG file."""
        self.canvas.save(path)


def spread(values: Sequence[float], margin: float = 0.05) -> tuple[float, float]:
    """The ends of an axis that shows all finite values with some room around them."""
    finite = [value for value in values if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    room = margin * ((high - low) or abs(high) or 1.0)
    return low - room, high + room
