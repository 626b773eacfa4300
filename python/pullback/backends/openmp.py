"""Whether OpenMP is used: no."""

from __future__ import annotations

from .. import _absent
from ._switch import guard

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether this build uses OpenMP."""
    return False


guard(globals())
_absent.announce(globals())
