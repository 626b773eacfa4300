"""The cache of scripts of modules, which is empty: libraries clear the list."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

__all__ = ["concrete_type_store"]

_types: dict[Any, Any] = {}
concrete_type_store = SimpleNamespace(type_store=_types)
