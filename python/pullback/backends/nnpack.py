"""NNPACK, which this build does without; its switch has no effect."""

from __future__ import annotations

from contextlib import AbstractContextManager

from .. import _absent
from ._switch import guard, is_bool, switched

__all__ = ["enabled", "flags", "is_available", "set_flags"]

enabled = True


def is_available() -> bool:
    """Whether this build uses NNPACK."""
    return False


def set_flags(_enabled: bool) -> tuple[bool]:
    """Sets the switch, and returns its previous value."""
    global enabled
    is_bool("enabled", _enabled)
    before, enabled = enabled, _enabled
    return (before,)


def flags(enabled: bool = False) -> AbstractContextManager[None]:
    """Sets the switch until the context is left."""
    return switched(globals(), {"enabled": enabled})


guard(globals(), enabled=is_bool)
_absent.announce(globals())
