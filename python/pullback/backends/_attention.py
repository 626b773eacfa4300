"""Which algorithms ``scaled_dot_product_attention`` may take, as switches."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from .._attention_backends import ALLOWED as _allowed
from ._switch import is_bool

_NAMES = ("flash", "math", "mem_efficient", "cudnn")


class SDPAParams(NamedTuple):
    """The arguments of a call of attention."""

    query: Any
    key: Any
    value: Any
    attn_mask: Any
    dropout: float
    is_causal: bool
    enable_gqa: bool


def _set(name: str, enabled: bool) -> None:
    is_bool(name, enabled)
    _allowed[name] = enabled


def flash_sdp_enabled() -> bool:
    """The setting of :func:`enable_flash_sdp`."""
    return _allowed["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    """Keeps whether FlashAttention may be taken."""
    _set("flash", enabled)


def mem_efficient_sdp_enabled() -> bool:
    """The setting of :func:`enable_mem_efficient_sdp`."""
    return _allowed["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Keeps whether the algorithm with little memory may be taken."""
    _set("mem_efficient", enabled)


def math_sdp_enabled() -> bool:
    """The setting of :func:`enable_math_sdp`."""
    return _allowed["math"]


def enable_math_sdp(enabled: bool) -> None:
    """Keeps whether the formula may be taken."""
    _set("math", enabled)


def cudnn_sdp_enabled() -> bool:
    """The setting of :func:`enable_cudnn_sdp`."""
    return _allowed["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Keeps whether cuDNN may be taken."""
    _set("cudnn", enabled)


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """The setting of :func:`allow_fp16_bf16_reduction_math_sdp`."""
    return _allowed["reduced"]


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Keeps whether sums may be rounded to 16 bits; none is."""
    _set("reduced", enabled)


def is_flash_attention_available() -> bool:
    """Whether FlashAttention is part of the build: no."""
    return False


def is_ck_sdpa_available() -> bool:
    """Whether Composable Kernel is part of the build: no."""
    return False


def _cannot(params: Any, debug: bool, name: str) -> bool:
    if debug:
        warnings.warn(f"{name} is not part of this build", stacklevel=3)
    return False


def can_use_flash_attention(params: Any, debug: bool = False) -> bool:
    """Whether FlashAttention could compute it: never; a warning says why if ``debug``."""
    return _cannot(params, debug, "FlashAttention")


def can_use_efficient_attention(params: Any, debug: bool = False) -> bool:
    """Whether the algorithm with little memory could: never; a warning says why if ``debug``."""
    return _cannot(params, debug, "memory efficient attention")


def can_use_cudnn_attention(params: Any, debug: bool = False) -> bool:
    """Whether cuDNN could compute it: never; a warning says why if ``debug``."""
    return _cannot(params, debug, "cuDNN")


@contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[None]:
    """Sets the four switches until the context is left."""
    wanted = (enable_flash, enable_math, enable_mem_efficient, enable_cudnn)
    before = dict(_allowed)
    for name, value in zip(_NAMES, wanted, strict=True):
        is_bool(name, value)
    _allowed.update(zip(_NAMES, wanted, strict=True))
    try:
        yield
    finally:
        _allowed.update(before)


def _library(names: tuple[str, ...], kind: str) -> Any:
    """A setting that takes one of some names and gives the one that is kept."""
    kept = [names[0]]

    def preferred(backend: str | None = None) -> str:
        if backend is not None:
            if str(backend) not in names:
                raise RuntimeError(
                    f"Unknown input value {backend!r}. Choose from: {', '.join(names)}."
                )
            kept[0] = str(backend)
        return kept[0]

    preferred.__name__ = preferred.__qualname__ = f"preferred_{kind}_library"
    preferred.__doc__ = f"Keeps which of {', '.join(names)} would compute, and says which is kept."
    return preferred


preferred_linalg_library = _library(("default", "cusolver", "magma"), "linalg")
preferred_blas_library = _library(("cublas", "cublaslt", "ck", "default"), "blas")
preferred_rocm_fa_library = _library(("default", "aotriton", "ck"), "rocm_fa")
