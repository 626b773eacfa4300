"""A small picture of numbers as inline SVG: one path for each of a few colours.

A path of all cells of a colour keeps the text short: some ten characters a cell. Numbers that are
not finite have colours of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["heat_map"]

Color = tuple[int, int, int]

_LEVELS = 16
_SEQUENTIAL: tuple[Color, ...] = ((239, 246, 255), (147, 197, 253), (37, 99, 235), (30, 27, 75))
_DIVERGING: tuple[Color, ...] = (
    (30, 58, 138), (96, 165, 250), (248, 250, 252), (248, 113, 113), (127, 29, 29),
)  # fmt: skip
_NAN, _ABOVE, _BELOW = "#d946ef", "#f59e0b", "#10b981"


def heat_map(rows: Sequence[Sequence[float]], title: str) -> str:
    """The picture of a table of numbers, with a key of its colours below.

    Numbers on both sides of zero are blue below and red above it; others run from light to dark.

    Args:
        rows: the numbers, ``rows[0]`` at the top; all rows of one length.
        title: what it shows; already escaped.
    """
    finite = [value for line in rows for value in line if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    is_diverging = low < 0 < high
    if is_diverging:
        high = max(high, -low)
        low = -high
    stops = _DIVERGING if is_diverging else _SEQUENTIAL
    paths: dict[str, list[str]] = {}
    for y, line in enumerate(rows):
        for x, value in enumerate(line):
            color = _color(value, low, high, stops)
            paths.setdefault(color, []).append(f"M{x} {y}h1v1h-1z")
    width, height = max(map(len, rows), default=0), len(rows)
    cell = max(4, min(14, 320 // max(width, 1), 200 // max(height, 1)))
    marks = "".join(f'<path fill="{color}" d="{"".join(d)}"/>' for color, d in paths.items())
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * cell}" height="{height * cell}" '
        f'viewBox="0 0 {width} {height}" shape-rendering="crispEdges" role="img">'
        f"<title>{title}</title>{marks}</svg>"
    )
    return f'<div style="margin:4px 0">{picture}{_key(low, high, stops, set(paths))}</div>'


def _color(value: float, low: float, high: float, stops: Sequence[Color]) -> str:
    if math.isnan(value):
        return _NAN
    if math.isinf(value):
        return _ABOVE if value > 0 else _BELOW
    # (Halved, so that the largest numbers do not overflow.)
    span = high / 2 - low / 2
    part = (value / 2 - low / 2) / span if span > 0 else 0.5
    return _shade(round(part * _LEVELS) / _LEVELS, stops)


def _shade(part: float, stops: Sequence[Color]) -> str:
    place = max(0.0, min(1.0, part)) * (len(stops) - 1)
    first = min(int(place), len(stops) - 2)
    mixed = (
        round(a + (b - a) * (place - first))
        for a, b in zip(stops[first], stops[first + 1], strict=True)
    )
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def _key(low: float, high: float, stops: Sequence[Color], used: set[str]) -> str:
    """The colours' meaning, in one line."""
    ramp = ",".join(_shade(step / 4, stops) for step in range(5))
    bar = (
        f'<span style="display:inline-block;width:80px;height:8px;margin:0 6px;'
        f'background:linear-gradient(to right,{ramp})"></span>'
    )
    special = "".join(
        f'<span style="display:inline-block;width:8px;height:8px;margin:0 4px 0 10px;'
        f'background:{color}"></span>{name}'
        for color, name in ((_NAN, "nan"), (_ABOVE, "inf"), (_BELOW, "-inf"))
        if color in used
    )
    return f'<div style="font-size:11px">{low:.4g}{bar}{high:.4g}{special}</div>'
