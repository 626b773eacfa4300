"""MIOpen, which this build has no use for; its switch has no effect."""

from __future__ import annotations

from contextlib import AbstractContextManager

from .. import _absent
from ._switch import guard, is_bool, switched

__all__ = ["flags", "immediate"]

immediate = False


def flags(immediate: bool | None = None) -> AbstractContextManager[None]:
    """Sets the switch until the context is left."""
    return switched(globals(), {"immediate": immediate})


guard(globals(), immediate=is_bool)
_absent.announce(globals())
