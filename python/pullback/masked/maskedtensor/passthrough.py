"""The ops that treat data and mask of masked tensors alike."""

from __future__ import annotations

from ... import ops
from .._name import FOLD, JOINING, SHAPE, VIEW

__all__: list[str] = []

_NAMES = sorted(name for name in FOLD | JOINING | SHAPE | VIEW if hasattr(ops.aten, name))
PASSTHROUGH_FNS = [getattr(ops.aten, name) for name in _NAMES]
