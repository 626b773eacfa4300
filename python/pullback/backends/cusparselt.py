"""cuSPARSELt, which this build does without."""

from __future__ import annotations

from .. import _absent
from ._switch import guard

__all__ = ["get_max_alg_id", "is_available", "version"]


def is_available() -> bool:
    """Whether this build uses cuSPARSELt."""
    return False


def version() -> int | None:
    """The version of cuSPARSELt; there is none."""
    return None


def get_max_alg_id() -> int | None:
    """The number of its last algorithm; there is none."""
    return None


guard(globals())
_absent.announce(globals())
