"""The reductions that masked tensors have, by name and as ops."""

from __future__ import annotations

from ... import ops

__all__: list[str] = []

REDUCE_NAMES = [
    *("sum", "mean", "amin", "amax", "argmin", "argmax", "prod", "all", "norm", "var", "std")
]
NATIVE_REDUCE_MAP = {getattr(ops.aten, name): name for name in REDUCE_NAMES}
NATIVE_REDUCE_FNS = list(NATIVE_REDUCE_MAP)
