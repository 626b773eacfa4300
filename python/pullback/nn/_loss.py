"""Losses as functions; ``functional.py`` exports them.

Each checks its arguments and calls one native; losses without a native are written in terms of
others and reduced by :func:`_reduce`. Not here: the modules (``modules/loss.py``). Invariant:
``reduction`` is ``'none'``, ``'mean'`` or ``'sum'``, anything else is a ``ValueError``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from .._promotion import result_type
from .._tensor import Tensor
from ..amp.autocast_mode import casts
from ._native import VF as _VF
from ._native import nn as _nn
from ._reduction import get_enum, resolved

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "pairwise_distance",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]

_mse_loss = _nn.mse_loss
_cross_entropy_loss = _nn.cross_entropy_loss


def _reduce(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")


def _weighted(loss: Tensor, weight: Tensor, input: Tensor, reduction: str) -> Tensor:
    """The reduction of ``loss * weight``; the mean is the weighted one."""
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    loss = loss * weight
    if reduction == "mean":
        return loss.sum() / weight.sum()
    return _reduce(loss, reduction)


def _aligned(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Broadcasts two tensors of different sizes against each other, with a warning."""
    if target.size() == input.size():
        return input, target
    warnings.warn(
        f"Using a target size ({target.size()}) that is different to the input size "
        f"({input.size()}). This will likely lead to incorrect results due to broadcasting. "
        "Please ensure they have the same size.",
        stacklevel=3,
    )
    input, target = _VF.broadcast_tensors([input, target])
    return input, target


def _broadcast_shape(first: Any, second: Any) -> list[int]:
    rank = max(len(first), len(second))
    shape = []
    for a, b in zip(
        [1] * (rank - len(first)) + list(first),
        [1] * (rank - len(second)) + list(second),
        strict=True,
    ):
        if a != b and a != 1 and b != 1:
            raise RuntimeError(
                f"Shape mismatch: objects cannot be broadcast to a single shape: "
                f"{list(first)} and {list(second)}"
            )
        shape.append(b if a == 1 else a)
    return shape


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squared error ``(input - target)**2``, reduced.

    Args:
        input: predictions, any shape.
        target: the same shape; other shapes broadcast, with a warning.
        weight: factors of the elements, the shape of ``input``; the mean is then weighted.
    """
    reduction = resolved(reduction, size_average, reduce)
    input_, target = _aligned(input, target)
    if weight is None:
        loss: Tensor = _mse_loss(input_, target, get_enum(reduction))
        return loss
    return _weighted((input_ - target).square(), weight, input, reduction)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The absolute error ``|input - target|``, reduced; arguments as :func:`mse_loss`."""
    reduction = resolved(reduction, size_average, reduce)
    input_, target = _aligned(input, target)
    if weight is None:
        loss: Tensor = _nn.l1_loss(input_, target, get_enum(reduction))
        return loss
    return _weighted((input_ - target).abs(), weight, input, reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """``d**2 / (2 beta)`` where ``d = |input - target| < beta``, else ``d - beta / 2``; reduced."""
    number = get_enum(resolved(reduction, size_average, reduce))
    input, target = _aligned(input, target)
    if beta == 0.0:
        absolute: Tensor = _nn.l1_loss(input, target, number)
        return absolute
    loss: Tensor = _nn.smooth_l1_loss(input, target, number, beta)
    return loss


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """``d**2 / 2`` where ``d = |input - target| <= delta``, else ``delta (d - delta / 2)``.

    With ``weight`` (the shape of ``input``) the mean divides by the number of elements.
    """
    input_, target = _aligned(input, target)
    if weight is None:
        loss: Tensor = _nn.huber_loss(input_, target, get_enum(reduction), delta)
        return loss
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    return _reduce(_nn.huber_loss(input_, target, get_enum("none"), delta) * weight, reduction)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """``-log(softmax(input)[target])`` over the class dimension, reduced.

    Args:
        input: unnormalised logits, ``(C)``, ``(N, C)`` or ``(N, C, d1, ...)``.
        target: class indices (the shape without ``C``) or probabilities (the same shape).
        weight: a factor for each class, ``(C)``.
        ignore_index: targets of this index do not contribute.
        label_smoothing: in [0, 1]: how far targets are mixed with the uniform distribution.
    """
    if size_average is not None or reduce is not None:
        reduction = resolved(reduction, size_average, reduce)
    loss: Tensor = _cross_entropy_loss(
        input, target, weight, get_enum(reduction), ignore_index, label_smoothing
    )
    return loss


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``-input[target]`` for log-probabilities ``input``; arguments as :func:`cross_entropy`."""
    number = get_enum(resolved(reduction, size_average, reduce))
    loss: Tensor = _nn.nll_loss_nd(input, target, weight, number, ignore_index)
    return loss


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``-(target log(input) + (1 - target) log(1 - input))`` for probabilities; reduced.

    Raises:
        ValueError: the sizes of ``input`` and ``target`` differ.
    """
    number = get_enum(resolved(reduction, size_average, reduce))
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size "
            f"({input.size()}) is deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(_broadcast_shape(target.shape, weight.shape))
    loss: Tensor = _nn.binary_cross_entropy(input, target, weight, number)
    return loss


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """:func:`binary_cross_entropy` of ``sigmoid(input)``, computed without overflow.

    Args:
        pos_weight: factors of the positive term, broadcast against ``target``.

    Raises:
        ValueError: the sizes of ``input`` and ``target`` differ.
    """
    number = get_enum(resolved(reduction, size_average, reduce))
    if target.size() != input.size():
        raise ValueError(
            f"Target size ({target.size()}) must be the same as input size ({input.size()})"
        )
    loss: Tensor = _VF.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)
    return loss


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """``target (log(target) - input)`` for log-probabilities ``input``, reduced.

    Args:
        reduction: also ``'batchmean'``: the sum divided by the first size, which is the
            Kullback-Leibler divergence per sample (``'mean'`` divides by all elements).
        log_target: whether ``target`` is in log space, too.
    """
    if size_average is not None or reduce is not None:
        reduction = resolved(reduction, size_average, reduce)
    elif reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support "
            "size.'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.",
            stacklevel=2,
        )
    batchmean = reduction == "batchmean"
    number = get_enum("sum" if batchmean else reduction)
    loss: Tensor = _VF.kl_div(input, target, number, log_target=log_target)
    return loss / input.size(0) if batchmean and input.dim() != 0 else loss


@casts("fp32")
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log likelihood of counts ``target`` under a Poisson law; reduced.

    Args:
        input: the rate, or its logarithm with ``log_input``.
        full: whether Stirling's approximation of ``log(target!)`` is added where target > 1.
        eps: keeps the logarithm finite without ``log_input``.
    """
    reduction = resolved(reduction, size_average, reduce)
    get_enum(reduction)
    if log_input:
        loss = input.exp() - target * input
    else:
        loss = input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return _reduce(loss, reduction)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """``(log(var) + (input - target)**2 / var) / 2`` with ``var`` at least ``eps``; reduced.

    Args:
        var: the variance: a number, the shape of ``input``, that shape without the last
            dimension, or with one dimension of size 1.
        full: whether the constant ``log(2 pi) / 2`` is added.

    Raises:
        ValueError: a negative variance, one of another shape, or an unknown reduction.
    """
    variance = _variance(var, input)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    from ..autograd import no_grad

    # The floor must not cut the gradient of var, so it is put under the data only.
    variance = variance.clone()
    with no_grad():
        variance.clamp_(min=eps)
    loss = 0.5 * (variance.log() + (input - target) ** 2 / variance)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduce(loss, reduction)


def _variance(var: Tensor | float, input: Tensor) -> Tensor:
    """The variance as a tensor that broadcasts against the input."""
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        return var * _VF.ones_like(input)
    if bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    if var.size() == input.size():
        return var
    if input.size()[:-1] == var.size():
        return var.unsqueeze(-1)
    if input.dim() == var.dim():
        other = [v for i, v in zip(input.shape, var.shape, strict=True) if i != v]
        if other == [1]:
            return var
    raise ValueError("var is of incorrect size")


@casts("fp32")
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``input`` where ``target == 1``, ``max(0, margin - input)`` where it is -1; reduced."""
    reduction = resolved(reduction, size_average, reduce)
    get_enum(reduction)
    apart = _VF.where(target == 1, 0, (margin - input).clamp_min(0))
    together = _VF.where(target == -1, 0, input)
    return _reduce(apart + together, reduction)


@casts("fp32")
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, -target (input1 - input2) + margin)`` for ``target`` of 1 and -1; reduced."""
    reduction = resolved(reduction, size_average, reduce)
    get_enum(reduction)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return _reduce((-target * (input1 - input2) + margin).clamp_min(0), reduction)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """``x1 . x2 / (max(|x1|, eps) max(|x2|, eps))`` along ``dim``; the two broadcast.

    Raises:
        RuntimeError: the dtype common to both is not floating-point.
    """
    if x1.dtype is not x2.dtype or not x1.is_floating_point():
        common = result_type(x1, x2)
        if not common.is_floating_point:
            raise RuntimeError(
                "expected common dtype to be floating point, yet common dtype is "
                f"{str(common).removeprefix('torch.')}"
            )
        x1, x2 = x1.to(common), x2.to(common)
    for back, (first, second) in enumerate(zip(x1.shape[::-1], x2.shape[::-1], strict=False), 1):
        if first != second and first != 1 and second != 1:
            raise RuntimeError(
                f"The size of tensor a ({first}) must match the size of tensor b ({second}) at "
                f"non-singleton dimension {max(x1.dim(), x2.dim()) - back}"
            )
    shape = _broadcast_shape(x1.shape, x2.shape)
    x1, x2 = x1.expand(shape), x2.expand(shape)
    x1 = x1 / x1.norm(2, dim, keepdim=True).clamp_min(eps)
    x2 = x2 / x2.norm(2, dim, keepdim=True).clamp_min(eps)
    return (x1 * x2).sum(dim)


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The ``p``-norm of ``x1 - x2 + eps`` along the last dimension."""
    return (x1 - x2 + eps).norm(p, -1, keepdim=keepdim)


@casts("fp32")
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``1 - cos`` where ``target == 1``, ``max(0, cos - margin)`` where it is -1; reduced.

    Args:
        input1, input2: ``(N, D)`` or ``(D)``.
        target: ``(N)`` or ``()``.
    """
    reduction = resolved(reduction, size_average, reduce)
    get_enum(reduction)
    if target.dim() not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    for input in (input1, input2):
        if input.dim() != target.dim() + 1:
            raise RuntimeError(
                f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but "
                f"found inputs with sizes {list(input1.shape)} and {list(input2.shape)}."
            )
    # The floor under both squared norms, not under the norms, as the definition has it.
    floor = 1e-12
    dot = (input1 * input2).sum(target.dim())
    square1 = (input1 * input1).sum(target.dim()) + floor
    square2 = (input2 * input2).sum(target.dim()) + floor
    cosine = dot / (square1 * square2).sqrt()
    zero = _VF.zeros_like(cosine)
    same = _VF.where(target == 1, 1 - cosine, zero)
    other = _VF.where(target == -1, (cosine - margin).clamp_min(0), zero)
    return _reduce(same + other, reduction)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``log(1 + exp(-target input))`` for ``target`` of 1 and -1; reduced."""
    reduction = resolved(reduction, size_average, reduce)
    return _nn.soft_margin_loss(input, target, get_enum(reduction))


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over the last dimension of one binary cross entropy per class; reduced."""
    reduction = resolved(reduction, size_average, reduce)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    log_sigmoid = _nn.log_sigmoid
    loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return _reduce(loss.sum(-1) / input.size(-1), reduction)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``sum_{j != y} max(0, weight[y] (margin - x[y] + x[j]))**p / C`` for class ``y``; reduced.

    The weight is applied outside of the power, as ``weight[y] * max(0, ...)**p``.

    Raises:
        ValueError: ``p`` is not 1 or 2, or ``weight`` is not one-dimensional.
    """
    reduction = resolved(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return _nn.multi_margin_loss(input, target, p, margin, weight, get_enum(reduction))


@casts("fp32")
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)``, reduced.

    ``d`` is :func:`pairwise_distance` with ``p`` and ``eps``.

    Args:
        swap: whether the smaller of ``d(anchor, negative)`` and ``d(positive, negative)`` counts.

    Raises:
        ValueError: ``margin`` is not positive.
    """
    return triplet_margin_with_distance_loss(
        anchor,
        positive,
        negative,
        distance_function=lambda a, b: pairwise_distance(a, b, p, eps),
        margin=margin,
        swap=swap,
        reduction=resolved(reduction, size_average, reduce),
    )


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """As :func:`triplet_margin_loss`, for any distance (default: :func:`pairwise_distance`)."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    dims = (anchor.dim(), positive.dim(), negative.dim())
    if len(set(dims)) != 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {dims[0]}D, positive {dims[1]}D, and negative "
            f"{dims[2]}D inputs"
        )
    distance = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = _VF.minimum(far, distance(positive, negative))
    return _reduce((margin + near - far).clamp_min(0), reduction)
