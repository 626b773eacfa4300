"""Switches that are set for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def switched(module: dict[str, Any], values: dict[str, Any]) -> Iterator[None]:
    """Gives variables of a module other values until the context is left; ``None`` is no value."""
    previous = {name: module[name] for name in values}
    module.update({name: value for name, value in values.items() if value is not None})
    try:
        yield
    finally:
        module.update(previous)
