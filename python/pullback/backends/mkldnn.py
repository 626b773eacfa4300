"""oneDNN, which this build does without; its switches have no effect."""

from __future__ import annotations

from contextlib import AbstractContextManager

from ._switch import switched

__all__ = ["deterministic", "enabled", "flags", "is_available"]

enabled = True
deterministic = False


def is_available() -> bool:
    """Whether this build uses it."""
    return False


def flags(
    enabled: bool | None = None, deterministic: bool | None = None
) -> AbstractContextManager[None]:
    """Sets switches until the context is left."""
    return switched(globals(), {"enabled": enabled, "deterministic": deterministic})
