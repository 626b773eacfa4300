"""Distances between vectors, as modules."""

from __future__ import annotations

from ..._tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    """The ``p``-norm of ``x1 - x2 + eps`` along the last dimension.

    Args:
        p: the order of the norm.
        eps: keeps the gradient finite where the vectors are equal.
        keepdim: whether the last dimension stays, with size 1.
    """

    norm: float
    eps: float
    keepdim: bool

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Distances of ``(*, D)`` and ``(*, D)``."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """``x1 . x2 / (max(|x1|, eps) max(|x2|, eps))`` along ``dim``.

    Args:
        dim: the dimension of the vectors.
        eps: the least norm.
    """

    dim: int
    eps: float

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Similarities; the inputs broadcast and lose dimension ``dim``."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
