"""The named tuples that ops with several results return, as ``return_types.max``."""

from __future__ import annotations

from typing import Any

from . import _C


def __getattr__(name: str) -> Any:
    """The type of the op called ``name``."""
    if name.startswith("__"):
        raise AttributeError(name)
    return _C._return_type(name)
