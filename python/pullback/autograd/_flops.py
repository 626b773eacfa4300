"""How many operations on numbers an op makes, by the sizes of what it was given.

For products of matrices, convolutions, and elementwise ``mul`` and ``add``; a multiplication and an
addition count as two. Others count as none.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any


def _product(shapes: list[Any], first: int, rank: int) -> int:
    """Twice the sizes of a product: rows, columns and what is summed over, for each matrix."""
    a, b = shapes[first], shapes[first + 1]
    if len(a) != rank or len(b) != rank:
        raise ValueError(f"not matrices: {a} and {b}")
    return int(2 * math.prod(a) * b[-1])


def _mm(shapes: list[Any], values: list[Any]) -> int:
    return _product(shapes, 0, 2)


def _addmm(shapes: list[Any], values: list[Any]) -> int:
    return _product(shapes, 1, 2)


def _bmm(shapes: list[Any], values: list[Any]) -> int:
    return _product(shapes, 0, 3)


def _baddbmm(shapes: list[Any], values: list[Any]) -> int:
    return _product(shapes, 1, 3)


def _elementwise(shapes: list[Any], values: list[Any]) -> int:
    """One for each element of the result."""
    a, b = shapes[0], shapes[1]
    count = 1
    for at in range(1, max(len(a), len(b)) + 1):
        sizes = [shape[-at] for shape in (a, b) if at <= len(shape)]
        count *= 0 if 0 in sizes else max(sizes)
    return count


def _pair(value: Any) -> tuple[int, int]:
    numbers = [value] if isinstance(value, int) else list(value)
    return numbers[0], numbers[-1]


def _conv2d(shapes: list[Any], values: list[Any]) -> int:
    """For each element of the result, twice the elements of a filter."""
    image, weight = shapes[0], shapes[1]
    stride, padding, dilation = values[3], values[4], values[5]
    if isinstance(padding, str):
        steps = _pair(dilation)
        edges = [steps[at] * (size - 1) for at, size in enumerate(weight[-2:])]
        added = edges if padding == "same" else [0, 0]
    else:
        added = [2 * padding_ for padding_ in _pair(padding)]
    result = 1
    for at, size in enumerate(image[-2:]):
        reach = _pair(dilation)[at] * (weight[-2:][at] - 1) + 1
        result *= max((size + added[at] - reach) // _pair(stride)[at] + 1, 0)
    batch = image[0] if len(image) == 4 else 1
    return int(2 * batch * result * math.prod(weight))


_COUNTERS: dict[str, Callable[[list[Any], list[Any]], int]] = {
    "aten::conv2d": _conv2d,
    "aten::mm": _mm,
    "aten::addmm": _addmm,
    "aten::bmm": _bmm,
    "aten::baddbmm": _baddbmm,
    "aten::mul": _elementwise,
    "aten::add": _elementwise,
}


def count(name: str, shapes: list[Any] | None, values: list[Any] | None) -> int:
    """The operations of a call; none, with a warning, where what it was given is not known."""
    counter = _COUNTERS.get(name)
    if counter is None:
        return 0
    try:
        return counter(shapes or [], values or [])
    except (IndexError, TypeError, ValueError) as error:
        warnings.warn(f"Failed to compute flops of {name}: {error}", stacklevel=2)
        return 0
