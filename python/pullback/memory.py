"""The memory of the allocator: live, cached and peak bytes, and functions that release memory."""

from __future__ import annotations

from . import _C

__all__ = [
    "MemoryBudgetError",
    "cached_bytes",
    "empty_cache",
    "live_bytes",
    "peak_bytes",
    "reset_peak",
    "set_cache_limit",
    "stats",
]


class MemoryBudgetError(_C.OutOfMemoryError):
    """A limit of :func:`pullback.memory_budget` cannot be held; says what would be needed."""


def live_bytes() -> int:
    """Bytes in blocks that tensors hold now, rounded up to block sizes."""
    return _C._memory_live()


def cached_bytes() -> int:
    """Bytes of freed blocks that are kept for the next tensors."""
    return _C._memory_cached()


def peak_bytes() -> int:
    """The most that :func:`live_bytes` has been since the start or :func:`reset_peak`."""
    return _C._memory_peak()


def reset_peak() -> None:
    """Lets :func:`peak_bytes` start again from the present."""
    _C._memory_reset_peak()


def empty_cache() -> None:
    """Gives every cached block back to the system."""
    _C._memory_empty_cache()


def set_cache_limit(bytes: int) -> None:
    """Sets how many bytes of freed blocks may be kept.

    Raises:
        ValueError: for more bytes than an address space has.
    """
    _C._memory_set_cache_limit(bytes)


def stats() -> dict[str, int]:
    """All figures by name: ``live``, ``cached``, ``peak``."""
    return {"live": live_bytes(), "cached": cached_bytes(), "peak": peak_bytes()}
