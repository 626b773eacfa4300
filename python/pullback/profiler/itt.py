"""Ranges for Intel's profilers, whose library is not part of this build."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]

_MISSING = "ITT functions not installed. Are you sure you have a ITT build?"


def is_available() -> bool:
    """Whether the library is there."""
    return False


def range_push(msg: str) -> NoReturn:
    """Would open a range.

    Raises:
        RuntimeError: without the library.
    """
    raise RuntimeError(_MISSING)


def range_pop() -> NoReturn:
    """Would close the last range.

    Raises:
        RuntimeError: without the library.
    """
    raise RuntimeError(_MISSING)


def mark(msg: str) -> NoReturn:
    """Would mark an instant.

    Raises:
        RuntimeError: without the library.
    """
    raise RuntimeError(_MISSING)


@contextmanager
def range(msg: str, *args: object, **kwargs: object) -> Iterator[None]:
    """Would be a range from entering to leaving.

    Raises:
        RuntimeError: without the library.
    """
    range_push(msg.format(*args, **kwargs))
    yield
