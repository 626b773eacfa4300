"""CUDA, which this build has no backend for; its switches have no effect."""

from __future__ import annotations

from .. import _absent
from ._attention import (
    SDPAParams,
    allow_fp16_bf16_reduction_math_sdp,
    can_use_cudnn_attention,
    can_use_efficient_attention,
    can_use_flash_attention,
    cudnn_sdp_enabled,
    enable_cudnn_sdp,
    enable_flash_sdp,
    enable_math_sdp,
    enable_mem_efficient_sdp,
    flash_sdp_enabled,
    fp16_bf16_reduction_math_sdp_allowed,
    is_ck_sdpa_available,
    is_flash_attention_available,
    math_sdp_enabled,
    mem_efficient_sdp_enabled,
    preferred_blas_library,
    preferred_linalg_library,
    preferred_rocm_fa_library,
    sdp_kernel,
)
from ._switch import Switches, guard, is_bool, is_precision

__all__ = [
    "SDPAParams",
    "allow_fp16_bf16_reduction_math_sdp",
    "can_use_cudnn_attention",
    "can_use_efficient_attention",
    "can_use_flash_attention",
    "cudnn_sdp_enabled",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "fp16_bf16_reduction_math_sdp_allowed",
    "is_built",
    "is_ck_sdpa_available",
    "is_flash_attention_available",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
    "preferred_blas_library",
    "preferred_linalg_library",
    "preferred_rocm_fa_library",
    "sdp_kernel",
]


def is_reduction(name: str, value: object) -> None:
    """Refuses a value that does not say whether sums may be kept in the inputs' dtype."""
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
    """Whether this build could use CUDA."""
    return False


guard(globals())
_absent.announce(globals())
