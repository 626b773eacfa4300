"""Padded tensors as tensors of components, and back, by masks, sizes or offsets."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from .. import _C
from .._tensor import Tensor
from ._strided import StridedNestedTensor, copied
from ._structure import Structure, of_offsets

_VF = _C._VariableFunctions


def _is_left_aligned(mask: Tensor) -> bool:
    """Whether in each row nothing is selected after the first place that is not."""
    return bool((mask.to(_C.int64).diff(dim=1) <= 0).all())


def _check_mask(source: Tensor, mask: Tensor) -> None:
    if mask.dtype is not _C.bool:
        raise RuntimeError(f"Expected mask to be of ScalarType Bool, but got {mask.dtype} instead.")
    if mask.dim() != 2:
        raise RuntimeError(f"Padding mask should be 2D, got {mask.dim()} dimensions")
    if source.dim() != 3:
        raise RuntimeError(f"Input should be a 3D tensor, N * L * D, got {source.dim()} dimensions")
    if mask.size() != source.size()[:2]:
        raise RuntimeError(
            f"Mask size should match input size, got {list(mask.size())} and {list(source.size())}"
        )


def is_left_aligned(source: Tensor, mask: Tensor) -> bool:
    """Whether a mask selects the beginning of each row of ``source``, alone."""
    _check_mask(source, mask)
    return _is_left_aligned(mask)


def from_mask(source: Tensor, mask: Tensor, mask_check: bool) -> Tensor:
    """The beginnings of rows, as long as their masks have places, as a strided nested tensor."""
    _check_mask(source, mask)
    if mask_check and not _is_left_aligned(mask):
        raise RuntimeError("Mask must be left-aligned without gaps")
    rows = zip(source.unbind(0), mask.sum(1).tolist(), strict=True)
    return copied([row.narrow(0, 0, count) for row, count in rows])


def from_padded(padded: Tensor, sizes: Tensor, fuse_transform_0213: bool) -> Tensor:
    """The first places of each row in every dimension, as a strided nested tensor.

    Args:
        padded: components of one size, of which each may be too large.
        sizes: the size of each component, a row for each.
        fuse_transform_0213: ``(N, H, L, D)`` is read as ``(N, L, H * D)``.
    """
    if fuse_transform_0213:
        if padded.dim() != 4:
            raise RuntimeError(f"expected (N, H, L, D), got {padded.dim()} dimensions")
        padded = padded.transpose(1, 2).flatten(2)
    if sizes.dim() != 2 or sizes.size(0) != padded.size(0) or sizes.size(1) != padded.dim() - 1:
        raise RuntimeError(
            f"expected sizes of {padded.size(0)} components of {padded.dim() - 1} dimensions, got "
            f"a tensor of size {list(sizes.size())}"
        )
    parts = []
    for row, size in zip(padded.unbind(0), sizes.tolist(), strict=True):
        if any(not 0 <= one <= whole for one, whole in zip(size, row.size(), strict=True)):
            raise RuntimeError(
                f"a component of size {size} is not part of padded ones of size {list(row.size())}"
            )
        parts.append(row[tuple(slice(one) for one in size)])
    return copied(parts)


def from_padded_and_example(padded: Tensor, example: Any) -> Tensor:
    """A nested tensor of the strided layout with the sizes of another, of parts of padded rows."""
    if not isinstance(example, StridedNestedTensor):
        raise RuntimeError("expected a nested tensor of the strided layout, whose sizes to take")
    return from_padded(padded, example._nested_tensor_size(), False)


def _single(offsets: Sequence[Tensor]) -> Structure:
    if len(offsets) != 1:
        raise RuntimeError(f"only a single jagged dim is supported, got {len(offsets)} offsets")
    if offsets[0].dim() != 1:
        raise RuntimeError(f"expected 1D offsets, got {offsets[0].dim()} dimensions")
    if offsets[0].is_floating_point() or offsets[0].is_complex():
        raise RuntimeError(f"expected offsets that are integers, got {offsets[0].dtype}")
    ends = offsets[0].tolist()
    for begin, end in itertools.pairwise([0, *ends]):
        if end < begin:
            raise RuntimeError(f"expected offsets of at least 0 in order, got {end} after {begin}")
    return of_offsets(offsets[0])


def jagged_to_padded(
    values: Tensor, offsets: Sequence[Tensor], max_lengths: Sequence[int], padding_value: float
) -> Tensor:
    """Packed values with all components of one length, cut off or filled up with a value."""
    structure = _single(offsets)
    if len(max_lengths) != 1 or max_lengths[0] < 0:
        raise RuntimeError(f"expected one length of at least 0, got {list(max_lengths)}")
    longest = max_lengths[0]
    rows, places = structure.rows(), structure.positions()
    kept = (places < longest).nonzero().squeeze(1)
    first = structure.starts[0] if structure.batch else 0
    whole = values.new_full([structure.batch, longest, *values.shape[1:]], padding_value)
    return whole.index_put((rows[kept], places[kept]), values.index_select(0, kept + first))


def padded_to_jagged(dense: Tensor, offsets: Sequence[Tensor], total_L: int | None) -> Tensor:
    """The packed values of which the components are the beginnings of rows."""
    structure = _single(offsets)
    if dense.dim() < 2:
        raise RuntimeError(f"expected padded dim >= 2, got {dense.dim()}")
    counts = structure.counts
    end = structure.starts[-1] + counts[-1] if counts else 0
    if total_L is not None and end != total_L:
        raise RuntimeError(f"final offset should match total_L value, got {end} and {total_L}")
    if len(counts) != dense.size(0):
        raise RuntimeError(f"expected offsets of {dense.size(0)} components, got {len(counts)}")
    if max(counts, default=0) > dense.size(1):
        raise RuntimeError(
            f"found batch item of length {max(counts)} when max length specified by padded input "
            f"is {dense.size(1)}"
        )
    return dense[structure.rows(), structure.positions()]
