"""Whether the library is used: it is not."""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether this build uses it."""
    return False
