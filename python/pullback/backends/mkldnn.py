"""oneDNN, which this build does without; its switches have no effect."""

from __future__ import annotations

from contextlib import AbstractContextManager

from .. import _absent
from ._switch import guard, is_bool, is_precision, switched

__all__ = [
    "allow_tf32",
    "deterministic",
    "enabled",
    "flags",
    "fp32_precision",
    "is_available",
]

enabled = True
deterministic = False
allow_tf32 = True
fp32_precision = "none"


def is_available() -> bool:
    """Whether this build uses oneDNN."""
    return False


def flags(
    enabled: bool | None = None,
    deterministic: bool | None = None,
    allow_tf32: bool | None = None,
    fp32_precision: str | None = None,
) -> AbstractContextManager[None]:
    """Sets switches until the context is left."""
    values = {
        "enabled": enabled,
        "deterministic": deterministic,
        "allow_tf32": allow_tf32,
        "fp32_precision": fp32_precision,
    }
    return switched(globals(), values)


guard(
    globals(),
    enabled=is_bool,
    deterministic=is_bool,
    allow_tf32=is_bool,
    fp32_precision=is_precision,
)
_absent.announce(globals())
