"""Metadata that is kept through changes of a graph."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .node import Node

__all__ = [
    "format_stack",
    "get_current_meta",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "set_current_meta",
    "set_stack_trace",
]

_current: dict[str, Any] = {}
_is_on = False


@contextlib.contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """A context in which the current metadata can be read."""
    global _is_on
    before = _is_on, dict(_current)
    _is_on = enable
    try:
        yield
    finally:
        _is_on = before[0]
        _current.clear()
        _current.update(before[1])


def set_stack_trace(stack: list[str]) -> None:
    """Sets the lines of the program to which the following nodes belong."""
    if _is_on and stack:
        _current["stack_trace"] = "".join(stack)


def format_stack() -> list[str]:
    """The lines of the program that are current."""
    return [_current["stack_trace"]] if "stack_trace" in _current else []


def has_preserved_node_meta() -> bool:
    """Whether metadata is kept."""
    return _is_on


@contextlib.contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """While it lasts, the metadata of a node is current."""
    before = dict(_current)
    if _is_on:
        _current.update(node.meta)
    try:
        yield
    finally:
        _current.clear()
        _current.update(before)


def get_current_meta() -> dict[str, Any]:
    """The metadata that is current."""
    return _current
