"""Functions of the main namespace whose names begin with an underscore, which libraries call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _C

if TYPE_CHECKING:
    from ._tensor import Tensor

__all__ = [
    "_convert_indices_from_coo_to_csr",
    "_convert_indices_from_csr_to_coo",
    "_grouped_mm",
    "_assert_tensor_metadata",
    "_is_all_true",
    "_is_any_true",
    "_native_multi_head_attention",
    "_nested_from_padded",
    "_nested_from_padded_and_nested_example",
    "_nested_tensor_from_mask",
    "_nested_tensor_from_mask_left_aligned",
    "_segment_reduce",
    "_shape_as_tensor",
    "_transform_bias_rescale_qkv",
]

_F: Any = _C._VariableFunctions


def _shape_as_tensor(self: Tensor) -> Tensor:
    """The shape as a tensor of integers."""
    shape: Tensor = _C.tensor(list(self.shape), dtype=_C.int64)
    return shape


def _convert_indices_from_coo_to_csr(self: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Where each row begins among the elements of a matrix, from the rows of the elements.

    Args:
        self: the rows, sorted.
        size: how many rows there are.
        out_int32: whether the result is of int32.

    Raises:
        RuntimeError: for rows that are not in one dimension.
    """
    if self.dim() != 1:
        raise RuntimeError(f"Input is supposed to be a vector, got {self.dim()} dimensions.")
    rows = _F.arange(size + 1, dtype=self.dtype)
    starts: Tensor = _F.searchsorted(self.contiguous(), rows, out_int32=out_int32)
    return starts


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """Rows and columns of the elements of a matrix, from where each row begins.

    Args:
        crow_indices: where each row begins, and where the last one ends.
        col_indices: the columns of the elements.
        out_int32: whether the result is of int32, else of int64.
        transpose: whether columns come first.

    Raises:
        RuntimeError: for indices that are not in one dimension.
    """
    if crow_indices.dim() != 1 or col_indices.dim() != 1:
        raise RuntimeError(
            "crow_indices and col_indices are supposed to be vectors, got "
            f"{crow_indices.dim()} and {col_indices.dim()} dimensions."
        )
    dtype = _C.int32 if out_int32 else _C.int64
    rows = _F.arange(crow_indices.size(0) - 1, dtype=dtype)
    rows = rows.repeat_interleave(crow_indices.diff().to(_C.int64))
    pair = [col_indices.to(dtype), rows] if transpose else [rows, col_indices.to(dtype)]
    both: Tensor = _F.stack(pair)
    return both


def _segment_reduce(data: Tensor, reduce: str, **kwargs: Any) -> Tensor:
    """See ``torch.segment_reduce``."""
    result: Tensor = _F.segment_reduce(data, reduce, **kwargs)
    return result


def _grouped_mm(
    self: Tensor,
    mat2: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: Any = None,
) -> Tensor:
    """See :func:`pullback.nn.functional.grouped_mm`."""
    from .nn.functional import grouped_mm

    return grouped_mm(self, mat2, offs=offs, bias=bias, out_dtype=out_dtype)


def _assert_tensor_metadata(*args: Any, **kwargs: Any) -> None:
    """Raises unless a tensor has the sizes, strides, dtype, device and layout that are given."""
    from . import ops

    ops.aten._assert_tensor_metadata(*args, **kwargs)


def _is_all_true(self: Tensor) -> Tensor:
    """Whether all elements of a boolean tensor are true."""
    from . import ops

    result: Tensor = ops.aten._is_all_true(self)
    return result


def _is_any_true(self: Tensor) -> Tensor:
    """Whether an element of a boolean tensor is true."""
    from . import ops

    result: Tensor = ops.aten._is_any_true(self)
    return result


def _native_multi_head_attention(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor | None]:
    """Attention with projections, of one call: see ``_native_attention``."""
    from ._native_attention import native_multi_head_attention

    return native_multi_head_attention(*args, **kwargs)


def _transform_bias_rescale_qkv(
    qkv: Tensor, qkv_bias: Tensor, num_heads: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values by heads: see ``_native_attention``."""
    from ._native_attention import transform_bias_rescale_qkv

    return transform_bias_rescale_qkv(qkv, qkv_bias, num_heads)


def _nested_tensor_from_mask(t: Tensor, mask: Tensor, mask_check: bool = True) -> Tensor:
    """A nested tensor of the strided layout with the beginnings of rows that a mask selects.

    Args:
        t: rows of one length, ``(N, L, D)``.
        mask: booleans of size ``(N, L)``.
        mask_check: whether a mask with gaps is refused; else its places are counted.

    Raises:
        RuntimeError: for another mask.
    """
    from .nested._padded import from_mask

    return from_mask(t, mask, mask_check)


def _nested_tensor_from_mask_left_aligned(t: Tensor, mask: Tensor) -> bool:
    """Whether a mask selects the beginning of each row, alone."""
    from .nested._padded import is_left_aligned

    return is_left_aligned(t, mask)


def _nested_from_padded(
    padded: Tensor, cpu_nested_shape_example: Tensor, fuse_transform_0213: bool = False
) -> Tensor:
    """A nested tensor of the strided layout with parts of the rows of a padded tensor.

    Args:
        padded: the rows.
        cpu_nested_shape_example: the size of each component, a row for each.
        fuse_transform_0213: whether ``(N, H, L, D)`` is read as ``(N, L, H * D)``.

    Raises:
        RuntimeError: for sizes that do not lie within the rows.
    """
    from .nested._padded import from_padded

    return from_padded(padded, cpu_nested_shape_example, fuse_transform_0213)


def _nested_from_padded_and_nested_example(padded: Tensor, nt_example: Tensor) -> Tensor:
    """As the previous function, with the sizes of the components of a nested tensor."""
    from .nested._padded import from_padded_and_example

    return from_padded_and_example(padded, nt_example)
