"""The tensor of the jagged layout, and what makes one of packed values and leads back to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _C
from ..._symbol import SymInt
from ..._tensor import Tensor
from .._jagged import NestedTensor, check_structure, unwrap, view_of, wrap
from .._structure import of_offsets

__all__ = [
    "NestedTensor",
    "ViewBufferFromNested",
    "ViewNestedFromBuffer",
    "buffer_from_jagged",
    "get_tensor_symint",
    "jagged_from_list",
    "jagged_from_tensor_and_lengths",
    "nested_from_padded",
    "nested_view_from_values_offsets",
    "nested_view_from_values_offsets_lengths",
]

_VF = _C._VariableFunctions


def get_tensor_symint(tensor: Tensor, *, coeff: int = 1) -> SymInt:
    """The size of the ragged dimension of tensors that are cut by these offsets.

    Args:
        tensor: where each component begins, and the end.
        coeff: a factor.
    """
    size: SymInt = of_offsets(tensor).size * coeff
    return size


def nested_view_from_values_offsets(
    values: Tensor,
    offsets: Tensor,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
    ragged_idx: int = 1,
) -> NestedTensor:
    """A jagged tensor that is a view of packed values, with their history.

    Args:
        values: the components one after another.
        offsets: where each component begins, and the end.
        min_seqlen: a bound of the lengths from below, kept.
        max_seqlen: a bound from above, kept: what is padded is padded to it.
        ragged_idx: the ragged dimension, counted with that of the batch.

    Raises:
        RuntimeError: for offsets that do not lie within the values, and bounds that do not hold.
    """
    return nested_view_from_values_offsets_lengths(
        values, offsets, None, min_seqlen, max_seqlen, ragged_idx
    )


def nested_view_from_values_offsets_lengths(
    values: Tensor,
    offsets: Tensor,
    lengths: Tensor | None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
    ragged_idx: int = 1,
) -> NestedTensor:
    """The same for components that may end before the next one begins.

    Args:
        values: see :func:`nested_view_from_values_offsets`, like the rest.
        offsets: where each component begins, and the end.
        lengths: how long each is.
        min_seqlen: a bound of the lengths from below.
        max_seqlen: a bound from above.
        ragged_idx: the ragged dimension, counted with that of the batch.
    """
    check_structure(values, offsets, lengths, ragged_idx)
    structure = of_offsets(offsets, lengths)
    if min_seqlen is not None or max_seqlen is not None:
        structure = structure.bounded(min_seqlen, max_seqlen)
    return view_of(values, structure, ragged_idx)


def jagged_from_list(
    tensors: Sequence[Tensor], offsets: Tensor | None, dtype: Any = None, device: Any = None
) -> tuple[NestedTensor, Tensor]:
    """A jagged tensor of these components, with their history, and its offsets.

    Args:
        tensors: the components.
        offsets: the offsets of a tensor that is cut in the same way: the two can be combined.
        dtype: of the elements.
        device: of the elements.

    Raises:
        RuntimeError: for components that do not go together, and offsets of other components.
    """
    from .. import as_nested_tensor

    made: Any = as_nested_tensor(list(tensors), dtype, device, _jagged())
    if offsets is not None:
        if offsets.tolist() != made.offsets().tolist():
            raise RuntimeError(
                f"the components begin at {made.offsets().tolist()}, but the offsets say "
                f"{offsets.tolist()}"
            )
        cache = made._structure.cache
        structure = of_offsets(offsets).bounded(cache["min_seqlen"], cache["max_seqlen"])
        made = view_of(unwrap(made), structure, made._ragged_idx)
    return made, made.offsets()


def _jagged() -> Any:
    from ..._jagged_layout import jagged

    return jagged


def jagged_from_tensor_and_lengths(
    tensor: Tensor, starts: Tensor, lengths: Tensor
) -> tuple[NestedTensor, Tensor, Tensor | None]:
    """A jagged view of parts of the rows of a padded tensor; its offsets and lengths.

    Args:
        tensor: rows of one length.
        starts: where the part of each row begins, or one number for all.
        lengths: how long it is, likewise.

    Raises:
        RuntimeError: for parts that do not lie within the rows.
    """
    from .. import narrow

    made: Any = narrow(tensor, 1, starts, lengths, layout=_jagged())
    return made, made.offsets(), made.lengths()


def nested_from_padded(
    padded: Tensor,
    offsets: Tensor,
    ragged_idx: int = 1,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> NestedTensor:
    """A jagged tensor of the beginnings of the rows of a padded one, with its history.

    Args:
        padded: components of one length, of which each may be too long.
        offsets: where each component begins in packed values, and the end.
        ragged_idx: the dimension that becomes ragged: 1.
        min_seqlen: a bound of the lengths from below, kept.
        max_seqlen: a bound from above, kept.

    Raises:
        RuntimeError: for another ragged dimension, offsets of another number of components, and
            components that are longer than the rows.
    """
    if ragged_idx != 1:
        raise RuntimeError(f"nested_from_padded(): only ragged_idx=1 supported, got {ragged_idx}")
    structure = of_offsets(offsets)
    if structure.batch != padded.size(0) or max(structure.counts, default=0) > padded.size(1):
        raise RuntimeError(
            f"nested_from_padded(): components of lengths {structure.counts} do not lie within "
            f"rows of a padded tensor of size {tuple(padded.shape)}"
        )
    values = padded[structure.rows(), structure.positions()]
    if min_seqlen is not None or max_seqlen is not None:
        structure = structure.bounded(min_seqlen, max_seqlen)
    return wrap(values, structure, 1)


class ViewBufferFromNested:
    """The packed values of a jagged tensor, under the name of a function of PyTorch's graph."""

    @staticmethod
    def apply(x: NestedTensor) -> Tensor:
        """The values, with the history of the jagged tensor."""
        return unwrap(x)


class ViewNestedFromBuffer:
    """Packed values as a jagged tensor, under the name of a function of PyTorch's graph."""

    @staticmethod
    def apply(
        values: Tensor, offsets: Tensor, metadata_cache: dict[str, Any] | None = None
    ) -> NestedTensor:
        """The jagged tensor, with the history of the values; bounds as of :class:`NestedTensor`."""
        like = NestedTensor(values, offsets, _metadata_cache=metadata_cache)
        return wrap(values, like._structure, 1)


def buffer_from_jagged(jagged: NestedTensor) -> Tensor:
    """The packed values, with the history of the jagged tensor."""
    return unwrap(jagged)
