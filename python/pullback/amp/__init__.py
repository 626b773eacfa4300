"""Automatic mixed precision: ops in dtypes that suit them, and losses scaled for ``float16``."""

from __future__ import annotations

from .. import _absent
from . import autocast_mode, grad_scaler
from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = [
    "GradScaler",
    "autocast",
    "autocast_mode",
    "custom_bwd",
    "custom_fwd",
    "grad_scaler",
    "is_autocast_available",
]

_absent.announce(globals())
