"""cuDNN, which this build has no use for; its switches have no effect."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ._switch import switched

__all__ = [
    "allow_tf32",
    "benchmark",
    "benchmark_limit",
    "deterministic",
    "enabled",
    "flags",
    "is_acceptable",
    "is_available",
    "version",
]

enabled = True
benchmark = False
benchmark_limit: int | None = 10
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Whether this build uses it."""
    return False


def version() -> int | None:
    """Its version; there is none."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """Whether it could work on the tensor."""
    return False


def flags(
    enabled: bool | None = None,
    benchmark: bool | None = None,
    benchmark_limit: int | None = None,
    deterministic: bool | None = None,
    allow_tf32: bool | None = None,
) -> AbstractContextManager[None]:
    """Sets switches until the context is left."""
    return switched(
        globals(),
        {
            "enabled": enabled,
            "benchmark": benchmark,
            "benchmark_limit": benchmark_limit,
            "deterministic": deterministic,
            "allow_tf32": allow_tf32,
        },
    )
