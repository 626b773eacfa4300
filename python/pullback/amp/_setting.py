"""The older functions of autocast's settings, one per type of devices.

Each warns, and does what the function with a ``device_type`` does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .. import _C

__all__ = [
    "get_autocast_cpu_dtype",
    "get_autocast_gpu_dtype",
    "get_autocast_ipu_dtype",
    "get_autocast_xla_dtype",
    "is_autocast_cpu_enabled",
    "is_autocast_ipu_enabled",
    "is_autocast_xla_enabled",
    "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled",
    "set_autocast_gpu_dtype",
    "set_autocast_ipu_dtype",
    "set_autocast_ipu_enabled",
    "set_autocast_xla_dtype",
    "set_autocast_xla_enabled",
]


def _older(name: str, newer: Callable[..., Any], device_type: str, *values: str) -> Any:
    """``newer`` with the device type filled in, under its older name."""
    instead = f"torch.{newer.__name__}({', '.join([repr(device_type), *values])})"
    text = f"torch.{name}({', '.join(values)}) is deprecated. Please use {instead} instead."

    def function(*args: Any) -> Any:
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return newer(device_type, *args)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The older name of ``{instead}``."
    return function


def _is_enabled(kind: str) -> Any:
    return _older(f"is_autocast_{kind}_enabled", _C.is_autocast_enabled, kind)


def _set_enabled(kind: str) -> Any:
    return _older(f"set_autocast_{kind}_enabled", _C.set_autocast_enabled, kind, "enabled")


def _get_dtype(kind: str, device_type: str) -> Any:
    return _older(f"get_autocast_{kind}_dtype", _C.get_autocast_dtype, device_type)


def _set_dtype(kind: str, device_type: str) -> Any:
    return _older(f"set_autocast_{kind}_dtype", _C.set_autocast_dtype, device_type, "dtype")


is_autocast_cpu_enabled = _is_enabled("cpu")
is_autocast_ipu_enabled = _is_enabled("ipu")
is_autocast_xla_enabled = _is_enabled("xla")
set_autocast_cpu_enabled = _set_enabled("cpu")
set_autocast_ipu_enabled = _set_enabled("ipu")
set_autocast_xla_enabled = _set_enabled("xla")
get_autocast_cpu_dtype = _get_dtype("cpu", "cpu")
get_autocast_gpu_dtype = _get_dtype("gpu", "cuda")
get_autocast_ipu_dtype = _get_dtype("ipu", "ipu")
get_autocast_xla_dtype = _get_dtype("xla", "xla")
set_autocast_cpu_dtype = _set_dtype("cpu", "cpu")
set_autocast_gpu_dtype = _set_dtype("gpu", "cuda")
set_autocast_ipu_dtype = _set_dtype("ipu", "ipu")
set_autocast_xla_dtype = _set_dtype("xla", "xla")
