"""Apple's GPUs, which this build has no backend for."""

from __future__ import annotations

from .. import _absent
from ._switch import guard

__all__ = ["is_available", "is_built"]


def is_built() -> bool:
    """Whether this build could use them."""
    return False


def is_available() -> bool:
    """Whether tensors can live on one."""
    return False


guard(globals())
_absent.announce(globals())
