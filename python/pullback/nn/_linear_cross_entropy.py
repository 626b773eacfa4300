"""Cross entropy of logits that a matrix gives, without all logits at once; for ``functional``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._tensor import Tensor
from ._loss import cross_entropy
from ._native import nn as _nn

if TYPE_CHECKING:
    from .modules.linear_cross_entropy_options import LinearCrossEntropyOptions

__all__ = ["linear_cross_entropy"]


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: LinearCrossEntropyOptions | None = None,
) -> Tensor:
    """``cross_entropy(input @ linear_weight.T + linear_bias, target)``.

    Args:
        input: ``(N, in_features)`` or ``(in_features)``.
        linear_weight: ``(C, in_features)``, or ``(C, d_1, ..., in_features)`` for a loss of several
            dimensions.
        target: classes ``(N, d_1, ...)``, or probabilities ``(N, C, d_1, ...)``.
        linear_bias: ``(C, d_1, ...)``.
        weight: a factor for each class.
        reduction: ``'none'``, ``'mean'`` or ``'sum'``.
        ignore_index: targets of this index do not contribute; -100 for classes unless given.
        label_smoothing: in [0, 1]: how far targets are mixed with the uniform distribution.
        options: with it, rows are taken in chunks whose logits backward computes once more.

    Raises:
        RuntimeError: for shapes of input, weight and bias that do not fit, for a loss of several
            dimensions of input without a batch, and for ``ignore_index`` beside probabilities.
        RuntimeError, ValueError: as those of :func:`cross_entropy`.
    """
    _check(input, linear_weight, target, linear_bias, ignore_index)
    rest: dict[str, Any] = {"weight": weight, "label_smoothing": label_smoothing}
    if ignore_index is not None:
        rest["ignore_index"] = ignore_index
    rows = input.size(0) if input.dim() == 2 else 0
    step = rows
    if options is not None and linear_weight.dim() == 2:
        step = options._rows(rows, input.size(-1), linear_weight.size(0))
    if step >= rows:
        logits = _logits(input, linear_weight, linear_bias)
        return cross_entropy(logits, target, reduction=reduction, **rest)
    parts = _parts(input, linear_weight, linear_bias, target, step, reduction, rest)
    if reduction == "none":
        from .. import cat

        joined: Tensor = cat(parts)
        return joined
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total if reduction == "sum" else total / _divisor(target, weight, ignore_index, rows)


def _check(
    input: Tensor, weight: Tensor, target: Tensor, bias: Tensor | None, ignore_index: int | None
) -> None:
    """Refuses shapes that do not fit, before anything is computed."""
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if weight.dim() < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {weight.dim()}"
        )
    shape, features = tuple(weight.shape), input.shape[-1]
    if features != shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{features} and {shape[-1]}, respectively"
        )
    if input.dim() == 1 and len(shape) > 2:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {shape} requires batched input, "
            f"(N, {features}), got unbatched input with shape {tuple(input.shape)}"
        )
    if bias is not None and tuple(bias.shape) != shape[:-1]:
        raise RuntimeError(f"expected linear_bias shape {shape[:-1]}, got {tuple(bias.shape)}")
    if ignore_index is not None and target.is_floating_point():
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")


def _logits(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    classes, *sizes, features = weight.shape
    flat = _nn.linear(
        input, weight.reshape(-1, features), None if bias is None else bias.reshape(-1)
    )
    return flat.reshape(*input.shape[:-1], classes, *sizes)


def _parts(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    step: int,
    reduction: str,
    rest: dict[str, Any],
) -> list[Tensor]:
    """The losses of chunks of ``step`` rows: each on its own, or their sums."""
    from ..utils.checkpoint import checkpoint

    inner = "none" if reduction == "none" else "sum"

    def loss(rows: Tensor, classes: Tensor) -> Tensor:
        return cross_entropy(_logits(rows, weight, bias), classes, reduction=inner, **rest)

    chunks = zip(input.split(step), target.split(step), strict=True)
    return [checkpoint(loss, rows, classes, use_reentrant=False) for rows, classes in chunks]


def _divisor(target: Tensor, weight: Tensor | None, ignore_index: int | None, rows: int) -> Any:
    """What the mean divides by: rows of probabilities, or the weights of classes that count."""
    if target.is_floating_point():
        return rows
    counted = target != (-100 if ignore_index is None else ignore_index)
    if weight is None:
        return counted.sum()
    return weight[target.masked_fill(~counted, 0)].masked_fill(~counted, 0.0).sum()
