"""Ops by namespace, name and overload: ``torch.ops.aten.mul.Tensor``. There is one namespace."""

from __future__ import annotations

from ._ops import aten as aten

__all__ = ["aten"]
