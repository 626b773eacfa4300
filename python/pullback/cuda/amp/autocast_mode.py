"""Older names of ``torch.autocast("cuda")`` and of the decorators of custom functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ... import _C
from ...amp import autocast_mode as _autocast_mode

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


class autocast(_autocast_mode.autocast):
    """See ``torch.autocast``, whose first argument is ``"cuda"`` here."""

    def __init__(
        self, enabled: bool = True, dtype: _C.dtype = _C.float16, cache_enabled: bool = True
    ) -> None:
        warnings.warn(
            "`torch.cuda.amp.autocast(args...)` is deprecated. "
            "Please use `torch.amp.autocast('cuda', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cuda", dtype, enabled, cache_enabled)


def _warn(name: str, instead: str) -> None:
    warnings.warn(
        f"`torch.cuda.amp.{name}` is deprecated. Please use `torch.amp.{instead}` instead.",
        FutureWarning,
        stacklevel=3,
    )


def _cast(value: Any, dtype: _C.dtype) -> Any:
    _warn("autocast_mode._cast(value, dtype)", "autocast_mode._cast(value, 'cuda', dtype)")
    return _autocast_mode._cast(value, "cuda", dtype)


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, cast_inputs: _C.dtype | None = None
) -> Any:
    """See ``torch.amp.custom_fwd``, whose ``device_type`` is ``"cuda"`` here."""
    _warn("custom_fwd(args...)", "custom_fwd(args..., device_type='cuda')")
    return _autocast_mode.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any]) -> Any:
    """See ``torch.amp.custom_bwd``, whose ``device_type`` is ``"cuda"`` here."""
    _warn("custom_bwd(args...)", "custom_bwd(args..., device_type='cuda')")
    return _autocast_mode.custom_bwd(bwd, device_type="cuda")
