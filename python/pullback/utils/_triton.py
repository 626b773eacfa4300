"""Questions about Triton, which has no place here: kernels are those of Rust."""

from __future__ import annotations

__all__ = ["has_triton", "has_triton_package"]


def has_triton_package() -> bool:
    """Whether Triton's package is of use: never."""
    return False


def has_triton() -> bool:
    """Whether there is a device that Triton compiles for: never."""
    return False
