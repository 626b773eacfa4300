"""The CPU under the names of a device's module: one device, which never lags behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _absent, _lazy

if TYPE_CHECKING:
    from . import amp as amp

__all__ = [
    "current_device",
    "device_count",
    "is_available",
    "is_initialized",
    "set_device",
    "synchronize",
]

_lazy.submodules(globals(), "amp")


def is_available() -> bool:
    """True: there is a CPU."""
    return True


def is_initialized() -> bool:
    """True: nothing needs to be made ready."""
    return True


def device_count() -> int:
    """One."""
    return 1


def current_device() -> str:
    """The device that work is done on, ``"cpu"``."""
    return "cpu"


def set_device(device: Any) -> None:
    """Does nothing: there is no other."""


def synchronize(device: Any = None) -> None:
    """Does nothing: no work is ever outstanding."""


_absent.announce(globals())
