"""KleidiAI, which this build does without."""

from __future__ import annotations

from .. import _absent
from ._switch import guard

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether this build uses KleidiAI."""
    return False


guard(globals())
_absent.announce(globals())
