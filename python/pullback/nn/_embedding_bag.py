"""``embedding_bag``: sums, means and maxima of rows of a table, bag by bag.

The op takes the entries of all bags end to end; here are the checks that come before it, and bags
of one length.
"""

from __future__ import annotations

import warnings
from typing import Any, cast

from .. import _C
from .._tensor import Tensor
from ._native import VF as _VF

__all__ = ["embedding_bag"]

_MODES = {"sum": 0, "mean": 1, "max": 2}


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Looks up rows of ``weight`` and sums, averages or takes the largest of those of each bag.

    A matrix ``(B, N)`` of indices has ``B`` bags of ``N``. A list of indices has bags that begin at
    ``offsets``, the first of them at 0. The result is ``(B, D)``; an empty bag gives zeros, and of
    equal maxima the first one has the gradient.

    Args:
        input: indices of rows, ``(B, N)`` or ``(N)``.
        weight: the table, ``(rows, D)``.
        offsets: where bags begin, if ``input`` is a list.
        max_norm: rows that are looked up and whose ``norm_type``-norm is greater are scaled down to
            it, in place.
        norm_type: of that norm.
        scale_grad_by_freq: whether gradients are divided by how often the row occurs.
        mode: ``"sum"``, ``"mean"`` or ``"max"``.
        sparse: whether the gradient of ``weight`` is sparse.
        per_sample_weights: factors of the rows, in the shape of ``input``; for sums.
        include_last_offset: whether ``offsets`` ends with the length of the input, which begins no
            bag.
        padding_idx: entries of this index are in no bag.

    Raises:
        ValueError: for shapes and modes that do not fit.
        RuntimeError: for indices, offsets and dtypes that do not fit.
        NotImplementedError: for ``per_sample_weights`` with another mode than ``"sum"``.
    """
    if weight.dtype == _C.int64 and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage"
            " `embedding_bag(weight, input, ...)` is deprecated, and should now be"
            " `embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        input, weight = weight, input
    _check_shapes(input, weight, offsets, per_sample_weights)
    _check_mode(mode, sparse, scale_grad_by_freq, per_sample_weights)
    if input.dim() == 2:
        bags, length = input.shape
        offsets = _VF.arange(bags, device=input.device, dtype=input.dtype) * length
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    if max_norm is not None:
        from .functional import _renormalise_rows

        _renormalise_rows(weight, input, max_norm, norm_type)
    result: tuple[Tensor, ...] = cast("Any", _VF.embedding_bag)(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        _MODES[mode],
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )
    return result[0]


def _check_shapes(
    input: Tensor, weight: Tensor, offsets: Tensor | None, factors: Tensor | None
) -> None:
    if factors is not None and factors.shape != input.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({factors.shape}) is not None, then it must have"
            f" the same shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}"
        )
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch"
                f" of fixed length sequences. However, found offsets of type {type(offsets)}"
            )
    elif input.dim() != 1:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}"
        )
    elif offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    elif offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")


def _check_mode(mode: str, sparse: bool, by_frequency: bool, factors: Tensor | None) -> None:
    if mode not in _MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and by_frequency:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if factors is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported"
            f" for mode='sum' (got mode='{mode}')"
        )
