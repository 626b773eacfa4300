"""Apple's GPUs, which this build has no backend for."""

from __future__ import annotations

import platform

from .. import _absent
from ._switch import guard

__all__ = [
    "get_core_count",
    "get_name",
    "is_available",
    "is_built",
    "is_macos13_or_newer",
    "is_macos_or_newer",
]


def is_built() -> bool:
    """Whether this build could use Apple's GPUs."""
    return False


def is_available() -> bool:
    """Whether tensors can be on Apple's GPUs."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Whether this is macOS of that version or a later one."""
    parts = [int(part) for part in platform.mac_ver()[0].split(".") if part]
    return tuple(parts) >= (major, minor) if parts else False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Whether this is macOS 13 of that minor version, or a later one."""
    return is_macos_or_newer(13, minor)


def get_core_count() -> int:
    """How many cores the GPU has.

    Raises:
        RuntimeError: always: there is no GPU to ask.
    """
    raise RuntimeError("Cannot execute get_core_count() without MPS backend.")


def get_name() -> str:
    """What the GPU is called.

    Raises:
        RuntimeError: always: there is no GPU to ask.
    """
    raise RuntimeError("Cannot execute get_name() without MPS backend.")


guard(globals())
_absent.announce(globals())
