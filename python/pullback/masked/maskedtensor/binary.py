"""The operations on two tensors that masked tensors have, by name and as ops."""

from __future__ import annotations

from ... import ops
from .._name import BINARY

__all__: list[str] = []

BINARY_NAMES = sorted({name for name in BINARY if not name.startswith("__")} - {"pow", "rsub"})
INPLACE_BINARY_NAMES = [
    f"{name}_"
    for name in BINARY_NAMES
    if name not in ("fmax", "fmin", "logaddexp", "logaddexp2", "maximum", "minimum")
]
NATIVE_BINARY_MAP = {getattr(ops.aten, name): name for name in BINARY_NAMES}
NATIVE_INPLACE_BINARY_MAP = {getattr(ops.aten, name): name for name in INPLACE_BINARY_NAMES}
NATIVE_BINARY_FNS = list(NATIVE_BINARY_MAP)
NATIVE_INPLACE_BINARY_FNS = list(NATIVE_INPLACE_BINARY_MAP)
