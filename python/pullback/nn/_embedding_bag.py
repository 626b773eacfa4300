"""``embedding_bag``: sums, means and maxima of rows of a table, bag by bag.

It is made of other ops, so it has all their derivatives. Each entry of the input gets the number of
its bag; entries of ``padding_idx`` are left out before the table is looked at.
"""

from __future__ import annotations

import warnings
from typing import Any

from .. import _C
from .._tensor import Tensor
from ._native import VF as _VF

__all__ = ["embedding_bag"]

_FLOATS = (_C.float16, _C.bfloat16, _C.float32, _C.float64)


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
    _check_dtypes(input, weight, offsets, per_sample_weights)
    if input.dim() == 2:
        bags, length = input.shape
        numbers = _VF.arange(bags, device=input.device).repeat_interleave(length)
    else:
        assert offsets is not None
        starts = _starts(offsets, input.numel(), include_last_offset)
        bags = starts.numel() - include_last_offset
        positions = _VF.arange(input.numel(), device=input.device)
        numbers = _VF.searchsorted(starts, positions, right=True) - 1
    indices = input.reshape(-1)
    factors = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    _check_indices(indices, weight.size(0), mode == "max" or padding_idx is not None)
    kept = None if padding_idx is None else indices != _row(padding_idx, weight.size(0))
    if include_last_offset or bags == 0:
        # What lies behind the last offset is in no bag.
        inside = (numbers >= 0) & (numbers < bags)
        kept = inside if kept is None else kept & inside
    if kept is not None:
        indices, numbers = indices[kept], numbers[kept]
        factors = None if factors is None else factors[kept]
    from .functional import embedding

    rows = embedding(indices, weight, None, max_norm, norm_type, scale_grad_by_freq, sparse)
    if mode == "max":
        return _largest(rows, numbers, bags)
    if factors is not None:
        rows = rows * factors.unsqueeze(1)
    total = rows.new_zeros(bags, rows.size(1)).index_add(0, numbers, rows)
    if mode == "sum":
        return total
    return total / _VF.bincount(numbers, minlength=bags).clamp(min=1).unsqueeze(1)


def _largest(rows: Tensor, numbers: Tensor, bags: int) -> Tensor:
    """The largest of the rows of each bag, column by column; gradients go to the first of them."""
    count, width = rows.shape
    if count == 0:
        return rows.new_zeros(bags, width) + rows.sum(0)
    values = rows.detach()
    where = numbers.unsqueeze(1).expand(count, width)
    most = values.new_zeros(bags, width).scatter_reduce(
        0, where, values, "amax", include_self=False
    )
    positions = _VF.arange(count, device=rows.device).unsqueeze(1).expand(count, width)
    reached = most.gather(0, where)
    # A row with nan is the largest of its bag: nothing equals it.
    is_largest = (values == reached) | (values != values)
    behind = positions.masked_fill(~is_largest, count)
    first = behind.new_full((bags, width), count).scatter_reduce(0, where, behind, "amin")
    is_empty = first == count
    return rows.gather(0, first.masked_fill(is_empty, 0)).masked_fill(is_empty, 0)


def _starts(offsets: Tensor, length: int, include_last: bool) -> Tensor:
    """Where bags begin, and the last one ends if ``include_last``; checked."""
    if include_last and offsets.numel() == 0:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    starts = offsets.long()
    if starts.numel() == 0:
        return starts
    if (first := int(starts[0])) != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from"
            f" position 0. However, got {first}"
        )
    if (last := int(starts[-1])) > length:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {length} but got offsets[-1]"
            f" of {last}"
        )
    if bool((starts[1:] < starts[:-1]).any()):
        raise RuntimeError("embedding_bag: offsets have to be in ascending order")
    return starts


def _row(padding_idx: int, rows: int) -> int:
    if not -rows <= padding_idx < rows:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, {-rows} through {rows - 1},"
            f" but got {padding_idx}"
        )
    return padding_idx % rows


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
    if mode not in ("sum", "mean", "max"):
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


def _check_dtypes(
    input: Tensor, weight: Tensor, offsets: Tensor | None, factors: Tensor | None
) -> None:
    def check(name: str, tensor: Tensor, dtypes: tuple[Any, ...], names: str) -> None:
        if tensor.dtype not in dtypes:
            raise RuntimeError(
                f"Expected tensor for argument '{name}' to have one of the following scalar types:"
                f" {names}; but got {tensor.type()} instead (while checking arguments for"
                " embedding_bag)"
            )

    for name, tensor in (("indices", input), ("offsets", offsets)):
        if tensor is not None:
            check(name, tensor, (_C.int64, _C.int32), "Long, Int")
    check("weight", weight, _FLOATS, "Half, BFloat16, Float, Double")
    if factors is not None and factors.dtype != weight.dtype:
        raise RuntimeError(
            "Expected tensor for argument 'weight' to have the same type as tensor for argument"
            f" 'per_sample_weights'; but type {weight.type()} does not equal {factors.type()}"
            " (while checking arguments for embedding_bag)"
        )


def _check_indices(indices: Tensor, rows: int, one_by_one: bool) -> None:
    """Refuses what is no row, with PyTorch's words for bags that it walks one entry at a time."""
    bad: Tensor = ((indices < 0) | (indices >= rows)).int()
    if bad.numel() > 0 and bool(bad.any()):
        position = int(bad.argmax())
        if one_by_one:
            raise RuntimeError(
                "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be "
                f"{int(indices[position])}, with {rows} embeddings"
            )
        raise RuntimeError(
            f"Index {position} of input takes value {int(indices[position])} which is not in the "
            f"valid range [0, {rows})"
        )
