"""cuDNN, which this build has no use for; its switches have no effect."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from .. import _absent
from ._switch import guard, is_bool, is_int, is_precision, switched

__all__ = [
    "allow_tf32",
    "benchmark",
    "benchmark_limit",
    "deterministic",
    "enabled",
    "flags",
    "fp32_precision",
    "is_acceptable",
    "is_available",
    "version",
]

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True
fp32_precision = "none"


def is_available() -> bool:
    """Whether this build uses cuDNN."""
    return False


def version() -> int | None:
    """The version of cuDNN; there is none."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """Whether cuDNN could work on the tensor."""
    return False


def flags(
    enabled: bool | None = None,
    benchmark: bool | None = None,
    benchmark_limit: int | None = None,
    deterministic: bool | None = None,
    allow_tf32: bool | None = None,
    fp32_precision: str | None = None,
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
            "fp32_precision": fp32_precision,
        },
    )


guard(
    globals(),
    enabled=is_bool,
    benchmark=is_bool,
    benchmark_limit=is_int,
    deterministic=is_bool,
    allow_tf32=is_bool,
    fp32_precision=is_precision,
)
_absent.announce(globals())
