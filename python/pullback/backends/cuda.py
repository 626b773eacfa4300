"""CUDA, which this build has no backend for; its switches have no effect."""

from __future__ import annotations

__all__ = ["is_built", "matmul"]


class _Matmul:
    """How matrices would be multiplied."""

    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True


matmul = _Matmul()


def is_built() -> bool:
    """Whether this build could use it."""
    return False
