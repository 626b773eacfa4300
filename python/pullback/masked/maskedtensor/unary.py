"""The operations on one tensor that masked tensors have, by name and as ops."""

from __future__ import annotations

from ... import ops
from .._name import UNARY

__all__: list[str] = []

# (Filling is an operation here, but none of PyTorch's list; a power counts as one there.)
UNARY_NAMES = sorted({name for name in UNARY if not name.startswith("__")} - {"fill", "zero"})
UNARY_NAMES = sorted([*UNARY_NAMES, "pow"])
INPLACE_UNARY_NAMES = [
    f"{name}_" for name in UNARY_NAMES if name not in ("angle", "isnan", "positive", "signbit")
]
NATIVE_UNARY_MAP = {getattr(ops.aten, name): name for name in UNARY_NAMES}
NATIVE_INPLACE_UNARY_MAP = {getattr(ops.aten, name): name for name in INPLACE_UNARY_NAMES}
NATIVE_UNARY_FNS = list(NATIVE_UNARY_MAP)
NATIVE_INPLACE_UNARY_FNS = list(NATIVE_INPLACE_UNARY_MAP)
