"""Losses against lists of labels: of several classes at once, and of sequences (CTC)."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._tensor import Tensor
from ._native import VF as _VF
from ._reduction import get_enum, resolved

__all__ = ["ctc_loss", "multilabel_margin_loss"]


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """``-ln P(targets)`` over all alignments with the steps of the input (Graves et al. 2006).

    Args:
        log_probs: normalised log-probabilities of the classes, ``(T, N, C)`` or ``(T, C)``.
        targets: labels ``(N, S)``, or those of all examples one after the other.
        input_lengths: how many steps each example has: integers or a tensor of them; likewise
        target_lengths: how many labels.
        blank: the class that separates labels.
        reduction: ``'none'``, ``'mean'`` (of the losses per label) or ``'sum'``.
        zero_infinity: whether what cannot be aligned counts nothing.

    Raises:
        RuntimeError: shapes or lengths that do not fit.
        NotImplementedError: half precision.
    """
    number = get_enum(reduction)
    lengths = (input_lengths, target_lengths)
    return _VF.ctc_loss(log_probs, targets, *lengths, blank, number, zero_infinity)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``sum max(0, 1 - (x[y] - x[i])) / C`` over the target classes ``y`` and the others ``i``.

    Args:
        input: scores ``(N, C)`` or ``(C)``.
        target: for each example its classes, ended by -1 if they are fewer than ``C``.

    Raises:
        RuntimeError: shapes that do not fit, or a class that is not there.
        NotImplementedError: a dtype other than single and double precision.
    """
    number = get_enum(resolved(reduction, size_average, reduce))
    _check_classes(input, target)
    classes = max(1, input.numel()) if input.dim() < 2 else input.size(1)
    scores, labels = input.reshape(-1, classes), target.reshape(-1, classes)
    is_given = (labels >= 0).cumprod(1).bool()
    given_labels = labels.masked_fill(~is_given, 0)
    counts = _VF.zeros_like(labels).scatter_add(1, given_labels, is_given.long())
    lacking = 1 - scores.gather(1, given_labels).unsqueeze(2) + scores.unsqueeze(1)
    counted = is_given.unsqueeze(2) & (counts == 0).unsqueeze(1)
    losses = (lacking.clamp_min(0) * counted.to(input.dtype)).sum((1, 2)) / classes
    if number == 1:
        return losses.mean() if losses.numel() else losses.sum()
    if number == 2:
        return losses.sum()
    return losses.squeeze(0) if input.dim() < 2 else losses


def _check_classes(input: Tensor, target: Tensor) -> None:
    if input.dim() > 2 or (input.dim() > 0 and input.size(-1) == 0):
        raise RuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got:"
            f" {list(input.shape)}"
        )
    if target.shape != input.shape:
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}"
        )
    if target.dtype != _C.int64:
        raise RuntimeError(f"expected scalar type Long but found {target.type()[6:-6]}")
    classes = 1 if input.dim() == 0 else input.size(-1)
    if target.numel() and bool(((target < -1) | (target >= classes)).any()):
        raise RuntimeError("argument #2 'target' is out of range")
    if input.dtype not in (_C.float32, _C.float64):
        raise NotImplementedError(
            '"multilabel_margin_loss_forward_out_frame" not implemented for'
            f" '{input.type()[6:-6]}'"
        )
