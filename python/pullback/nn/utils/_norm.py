"""Norms over all dimensions but one, of both forms of weight norm."""

from __future__ import annotations

from ..._tensor import Tensor

__all__: list[str] = []


def norm_except_dim(v: Tensor, order: float, dim: int) -> Tensor:
    """The norms over all dimensions but ``dim``, which stay with size 1; of all with -1."""
    if dim == -1:
        return v.norm(order)
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    return v.norm(order, others, keepdim=True) if others else v.abs()


def normalised(v: Tensor, g: Tensor, dim: int) -> Tensor:
    """``g v / |v|``, the norms of :func:`norm_except_dim`."""
    return v * (g / norm_except_dim(v, 2, dim))
