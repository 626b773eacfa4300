"""Ranges for NVIDIA's profiler, which is not there: they are kept apart, and shown to nobody."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator
from typing import Any

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]

_open = threading.local()
_numbers = itertools.count(1)


def range_push(msg: str) -> int:
    """Opens a range within this thread's others, and says within how many."""
    depth: int = getattr(_open, "depth", 0)
    _open.depth = depth + 1
    return depth


def range_pop() -> int:
    """Closes the innermost range, and says within how many it was; -2 if none is open."""
    depth: int = getattr(_open, "depth", 0)
    if depth == 0:
        return -2
    _open.depth = depth - 1
    return depth - 1


def range_start(msg: str) -> int:
    """Opens a range that may be closed anywhere, and gives its number."""
    return next(_numbers)


def range_end(range_id: int) -> None:
    """Closes the range with this number."""


def mark(msg: str) -> None:
    """Marks a point in time."""


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A context that is a range; the message is formatted with the other arguments."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
