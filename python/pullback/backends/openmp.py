"""Whether the library is used: it is not."""

from __future__ import annotations

from .. import _absent
from ._switch import guard

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether this build uses it."""
    return False


guard(globals())
_absent.announce(globals())
