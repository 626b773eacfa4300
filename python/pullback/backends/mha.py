"""A quicker way through transformer layers in evaluation; there is one way, so a switch only."""

from __future__ import annotations

from .. import _absent
from ._switch import guard, is_bool

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_is_fastpath_enabled = True


def get_fastpath_enabled() -> bool:
    """The setting of :func:`set_fastpath_enabled`."""
    return _is_fastpath_enabled


def set_fastpath_enabled(value: bool) -> None:
    """Keeps whether the quicker way may be taken.

    Raises:
        RuntimeError: for what is no bool.
    """
    global _is_fastpath_enabled
    is_bool("set_fastpath_enabled", value)
    _is_fastpath_enabled = value


guard(globals())
_absent.announce(globals())
