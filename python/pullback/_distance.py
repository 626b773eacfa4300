"""Distances, and losses made of them, that the main namespace has beside ``nn.functional``.

They are those of ``nn.functional``, which is loaded at the first call; losses take their reduction
as a number here: 0 for none, 1 for the mean, 2 for the sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._tensor import Tensor

__all__ = [
    "cosine_embedding_loss",
    "cosine_similarity",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "norm_except_dim",
    "pairwise_distance",
    "poisson_nll_loss",
    "triplet_margin_loss",
]


def _functions() -> Any:
    from .nn import functional

    return functional


def _word(reduction: int) -> str:
    """A number as the word that functions of ``nn`` take.

    Raises:
        ValueError: there is none for it.
    """
    words = ("none", "mean", "sum")
    if reduction not in (0, 1, 2):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return words[reduction]


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """``x1 . x2 / (max(|x1|, eps) max(|x2|, eps))`` along ``dim``; the two broadcast."""
    found: Tensor = _functions().cosine_similarity(x1, x2, dim, eps)
    return found


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The ``p``-norm of ``x1 - x2 + eps`` along the last dimension."""
    found: Tensor = _functions().pairwise_distance(x1, x2, p, eps, keepdim)
    return found


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norms over all dimensions but ``dim``, which stay with size 1; of all with -1."""
    from .nn.utils._norm import norm_except_dim as norms

    return norms(v, pow, dim)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """``1 - cos`` where ``target == 1``, ``max(0, cos - margin)`` where it is -1; reduced."""
    loss: Tensor = _functions().cosine_embedding_loss(
        input1, input2, target, margin, reduction=_word(reduction)
    )
    return loss


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 1
) -> Tensor:
    """``x`` for target 1, ``max(0, margin - x)`` for target -1; reduced."""
    loss: Tensor = _functions().hinge_embedding_loss(
        input, target, margin, reduction=_word(reduction)
    )
    return loss


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """``max(0, -target (input1 - input2) + margin)``, reduced."""
    loss: Tensor = _functions().margin_ranking_loss(
        input1, input2, target, margin, reduction=_word(reduction)
    )
    return loss


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    """The negative log likelihood of counts under a Poisson law, reduced."""
    loss: Tensor = _functions().poisson_nll_loss(
        input, target, log_input, full, eps=eps, reduction=_word(reduction)
    )
    return loss


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 1,
) -> Tensor:
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)``, reduced."""
    loss: Tensor = _functions().triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=_word(reduction)
    )
    return loss
