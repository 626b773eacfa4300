"""CUDA, which this build has no backend for; its switches have no effect."""

from __future__ import annotations

from .. import _absent
from ._switch import Switches, guard, is_bool, is_precision

__all__ = ["is_built", "matmul"]


def is_reduction(name: str, value: object) -> None:
    """Refuses what says not whether sums may be kept in the inputs' dtype."""
    values = value if isinstance(value, (list, tuple)) else [value]
    if not values or not all(isinstance(item, bool) for item in values):
        raise TypeError(f"{name} expects a bool or a tuple/list of bools, but got {type(value)}")


# How matrices would be multiplied.
matmul = Switches(
    allow_tf32=(False, is_bool),
    allow_fp16_reduced_precision_reduction=(True, is_reduction),
    allow_bf16_reduced_precision_reduction=(True, is_reduction),
    allow_fp16_accumulation=(False, is_bool),
    fp32_precision=("none", is_precision),
)


def is_built() -> bool:
    """Whether this build could use it."""
    return False


guard(globals())
_absent.announce(globals())
