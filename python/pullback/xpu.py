"""Intel's GPUs, which this build has no backend for."""

from __future__ import annotations

from . import _absent

__all__ = ["device_count", "is_available"]


def is_available() -> bool:
    """Whether tensors can live on one."""
    return False


def device_count() -> int:
    """How many there are to live on."""
    return 0


_absent.announce(globals())
