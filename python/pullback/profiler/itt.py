"""Ranges for Intel's profilers, by the package ``ittapi`` where that is installed."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]

_MISSING = (
    "ITT functions not installed. Are you sure you have a ITT build? (Here that is the package "
    "ittapi.)"
)
_DOMAIN = "PyTorch"


class _Tool:
    """The package, with the domain of this library and the names that were used."""

    def __init__(self, package: Any) -> None:
        self.package = package
        self.domain = package.domain(_DOMAIN)
        self.named = functools.lru_cache(maxsize=4096)(package.string_handle)


@functools.cache
def _found() -> _Tool | None:
    try:
        return _Tool(importlib.import_module("ittapi"))
    except ImportError:
        return None


def _tool() -> _Tool:
    found = _found()
    if found is None:
        raise RuntimeError(_MISSING)
    return found


def is_available() -> bool:
    """Whether the package is there."""
    return _found() is not None


def range_push(msg: str) -> None:
    """Opens a range of this thread inside of the last one.

    Raises:
        RuntimeError: without the package.
    """
    tool = _tool()
    tool.package.task_begin(tool.domain, tool.named(msg))


def range_pop() -> None:
    """Closes this thread's last range.

    Raises:
        RuntimeError: without the package.
    """
    tool = _tool()
    tool.package.task_end(tool.domain)


def mark(msg: str) -> None:
    """Marks an instant: a range that ends at once.

    Raises:
        RuntimeError: without the package.
    """
    range_push(msg)
    range_pop()


@contextmanager
def range(msg: str, *args: object, **kwargs: object) -> Iterator[None]:
    """A range from entering to leaving, named ``msg.format(*args, **kwargs)``.

    Raises:
        RuntimeError: without the package.
    """
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
