"""Switches of libraries that are not here: kept, checked and given back, without effect.

A switch that PyTorch does not have is an AttributeError, so that a misspelt one is found.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

Check = Callable[[str, object], None]


def is_bool(name: str, value: object) -> None:
    """Refuses a value that is not a bool."""
    if not isinstance(value, bool):
        raise RuntimeError(f"{name} expects a bool, but got {type(value).__name__}")


def is_int(name: str, value: object) -> None:
    """Refuses a value that is not a whole number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise RuntimeError(f"{name} expects an int, but got {type(value).__name__}")


def is_precision(name: str, value: object) -> None:
    """Refuses a name that is not a precision of products of ``float32``."""
    if not isinstance(value, str):
        raise TypeError(f"{name} expects a string, but got {type(value).__name__}")
    if value not in ("none", "ieee", "tf32", "bf16"):
        raise RuntimeError(f"Unknown precision: {value}")


class SwitchModule(ModuleType):
    """A module whose public attributes are its functions and its switches."""

    _switches: dict[str, Check]

    def __setattr__(self, name: str, value: Any) -> None:
        switches = self.__dict__["_switches"]
        if name in switches:
            switches[name](name, value)
        elif not (name.startswith("_") or name in self.__dict__ or isinstance(value, ModuleType)):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name)
        super().__setattr__(name, value)


def guard(namespace: dict[str, Any], **switches: Check) -> None:
    """Lets a module take values for its switches only, and only those that their checks pass."""
    namespace["_switches"] = switches
    sys.modules[namespace["__name__"]].__class__ = SwitchModule


class Switches:
    """An object whose only attributes are switches."""

    def __init__(self, **switches: tuple[Any, Check]) -> None:
        checks = {name: check for name, (_, check) in switches.items()}
        object.__setattr__(self, "_switches", checks)
        for name, (value, _) in switches.items():
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"Unknown attribute {name}", name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._switches:
            raise AttributeError(f"Unknown attribute {name}", name=name, obj=self)
        self._switches[name](name, value)
        object.__setattr__(self, name, value)


@contextmanager
def switched(module: dict[str, Any], values: dict[str, Any]) -> Iterator[None]:
    """Gives switches of a module other values until the context is left; ``None`` is no value."""
    chosen = {name: value for name, value in values.items() if value is not None}
    for name, value in chosen.items():
        module["_switches"][name](name, value)
    previous = {name: module[name] for name in chosen}
    module.update(chosen)
    try:
        yield
    finally:
        module.update(previous)
