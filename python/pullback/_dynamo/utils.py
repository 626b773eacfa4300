"""Questions about the compiler, which is not here."""

from __future__ import annotations

from typing import Any

__all__ = ["is_compile_supported"]


def is_compile_supported(device_type: Any) -> bool:
    """Whether programs are compiled for a device: never."""
    return False
