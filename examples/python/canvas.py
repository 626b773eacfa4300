"""An RGB picture in memory: smooth lines, discs, boxes and text, saved as PNG.

Everything is drawn by coverage: a pixel takes as much of the colour as the shape covers of
it, which is what makes edges smooth. No library is used; `zlib` packs the PNG. Invariant:
drawing outside the picture is allowed and has no effect.
"""

from __future__ import annotations

import math
import os
import struct
import zlib
from itertools import pairwise

import font

Color = tuple[int, int, int]

WHITE: Color = (255, 255, 255)


def parse_color(text: str) -> Color:
    """The colour of a text like `#1f77b4`."""
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


class Canvas:
    """A picture of `width` by `height` pixels, filled with one colour."""

    def __init__(self, width: int, height: int, background: Color = WHITE) -> None:
        self.width = width
        self.height = height
        self._pixels = bytearray(bytes(background) * (width * height))

    def blend(self, x: int, y: int, color: Color, coverage: float) -> None:
        """Mixes `coverage` (0 to 1) of a colour into one pixel."""
        if not (0 <= x < self.width and 0 <= y < self.height) or coverage <= 0:
            return
        at = 3 * (y * self.width + x)
        pixels = self._pixels
        coverage = min(coverage, 1.0)
        for channel in range(3):
            old = pixels[at + channel]
            pixels[at + channel] = round(old + (color[channel] - old) * coverage)

    def fill(self, left: int, top: int, width: int, height: int, color: Color) -> None:
        """Fills whole pixels of a box."""
        first, last = max(left, 0), min(left + width, self.width)
        if first >= last:
            return
        row = bytes(color) * (last - first)
        for y in range(max(top, 0), min(top + height, self.height)):
            at = 3 * (y * self.width + first)
            self._pixels[at : at + len(row)] = row

    def round_box(
        self, left: float, top: float, width: float, height: float, radius: float, color: Color,
        alpha: float = 1.0,
    ) -> None:  # fmt: skip
        """Fills a box with round corners."""
        middle_x, middle_y = left + width / 2, top + height / 2
        reach_x, reach_y = width / 2 - radius, height / 2 - radius
        for y in range(math.floor(top), math.ceil(top + height) + 1):
            for x in range(math.floor(left), math.ceil(left + width) + 1):
                dx = max(abs(x - middle_x) - reach_x, 0.0)
                dy = max(abs(y - middle_y) - reach_y, 0.0)
                self.blend(x, y, color, alpha * (radius + 0.5 - math.hypot(dx, dy)))

    def line(
        self, x1: float, y1: float, x2: float, y2: float, color: Color, width: float = 1.0,
        alpha: float = 1.0,
    ) -> None:  # fmt: skip
        """Draws a segment with round ends."""
        self.polyline([(x1, y1), (x2, y2)], color, width, alpha)

    def polyline(
        self, points: list[tuple[float, float]], color: Color, width: float = 1.0,
        alpha: float = 1.0,
    ) -> None:  # fmt: skip
        """Draws a line through points; joints are covered once, however thin the alpha."""
        cover: dict[tuple[int, int], float] = {}
        for (x1, y1), (x2, y2) in pairwise(points):
            _cover_segment(cover, x1, y1, x2, y2, width / 2)
        for (x, y), coverage in cover.items():
            self.blend(x, y, color, coverage * alpha)

    def disc(self, x: float, y: float, radius: float, color: Color) -> None:
        """Fills a circle."""
        self.polyline([(x, y), (x, y)], color, 2 * radius)

    def text(
        self, x: float, y: float, text: str, color: Color, size: float = 2.0, align: float = 0.0,
        weight: float = 1.0, upright: bool = True,
    ) -> None:  # fmt: skip
        """Writes text with its vertical middle at `y`; `align` 0, 0.5, 1 is left, centre, right.

        `size` is pixels per dot of the font. With `upright=False` the text runs upwards and
        `x` is its middle line.
        """
        along = -align * text_width(text, size)
        across = -(font.HEIGHT - 1) * size / 2
        cover: dict[tuple[int, int], float] = {}
        radius = 0.42 * size * weight
        for character in text:
            for x1, y1, x2, y2 in font.strokes(character):
                start = (along + x1 * size, across + y1 * size)
                end = (along + x2 * size, across + y2 * size)
                if not upright:
                    start, end = (start[1], -start[0]), (end[1], -end[0])
                _cover_segment(cover, x + start[0], y + start[1], x + end[0], y + end[1], radius)
            along += (len(font.columns(character)) + 1) * size
        for (column, row), coverage in cover.items():
            self.blend(column, row, color, coverage)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the picture as a PNG file."""
        stride = 3 * self.width
        rows = bytearray()
        for y in range(self.height):
            # Each row begins with the number of its filter; 0 is none.
            rows.append(0)
            rows += self._pixels[y * stride : (y + 1) * stride]
        header = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        with open(path, "wb") as file:
            file.write(b"\x89PNG\r\n\x1a\n")
            for kind, data in (
                (b"IHDR", header),
                (b"IDAT", zlib.compress(rows, 9)),
                (b"IEND", b""),
            ):
                checksum = zlib.crc32(kind + data)
                file.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum))


def text_width(text: str, size: float = 2.0) -> float:
    """The width in pixels of a text."""
    return size * max(sum(len(font.columns(character)) + 1 for character in text) - 1, 0)


def _cover_segment(
    cover: dict[tuple[int, int], float], x1: float, y1: float, x2: float, y2: float, radius: float
) -> None:
    """Adds the coverage of a segment with round ends, the larger value where shapes meet."""
    dx, dy = x2 - x1, y2 - y1
    length = dx * dx + dy * dy
    reach = radius + 1
    for y in range(math.floor(min(y1, y2) - reach), math.ceil(max(y1, y2) + reach) + 1):
        # Only the part of the row that the segment can reach: steep lines stay cheap.
        low, high = _row_span(x1, y1, x2, y2, y, reach)
        for x in range(low, high + 1):
            along = 0.0
            if length:
                along = max(0.0, min(1.0, ((x - x1) * dx + (y - y1) * dy) / length))
            distance = math.hypot(x - x1 - along * dx, y - y1 - along * dy)
            coverage = min(radius + 0.5 - distance, 1.0)
            if coverage > cover.get((x, y), 0.0):
                cover[x, y] = coverage


def _row_span(x1: float, y1: float, x2: float, y2: float, y: int, reach: float) -> tuple[int, int]:
    low, high = min(x1, x2), max(x1, x2)
    if y1 != y2:
        ends = []
        for edge in (y - reach, y + reach):
            along = max(0.0, min(1.0, (edge - y1) / (y2 - y1)))
            ends.append(x1 + along * (x2 - x1))
        low, high = min(ends), max(ends)
    return math.floor(low - reach), math.ceil(high + reach)
