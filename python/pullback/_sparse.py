"""Constructors of sparse tensors: ``torch.sparse_coo_tensor`` and those of compressed layouts.

They take tensors or data, and hand tensors on to the ops, which check how the parts fit. What is a
tensor is taken as it is: its gradient flows through.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _C

if TYPE_CHECKING:
    from ._tensor import Tensor

__all__ = [
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
]

_F = _C._VariableFunctions


def _as_tensor(data: Any, dtype: Any = None) -> Any:
    if isinstance(data, _C.TensorBase):
        return data if dtype is None else data.to(dtype)
    return _C.tensor(data, dtype=dtype)


def _as_indices(data: Any) -> Any:
    indices = data if isinstance(data, _C.TensorBase) else _C.tensor(data)
    return indices if indices.dtype in (_C.int64, _C.int32) else indices.to(_C.int64)


def _finish(tensor: Tensor, device: Any, pin_memory: bool, requires_grad: bool) -> Tensor:
    if device is not None and _C.device(device).type != "cpu":
        if _C.device(device).type != "cuda":
            _C._check_device(device)
        raise RuntimeError(f"device '{device}' is not available: this build has only cpu")
    if pin_memory:
        raise RuntimeError(
            "Cannot access accelerator device when none is available (pin_memory needs one)."
        )
    if requires_grad:
        tensor.requires_grad = True
    return tensor


def _is_sizes(value: Any) -> bool:
    return isinstance(value, (tuple, list, _C.Size))


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """A tensor of coordinate lists: all elements zero but those at the given coordinates.

    ``sparse_coo_tensor(size)`` specifies none.

    Args:
        indices: the coordinates, ``(sparse_dim, n)``; those of an element are a column.
        values: the elements, ``(n, *dense_sizes)``; those of equal coordinates add up.
        size: the sizes; by default the smallest that hold all indices.
        dtype: that of the values; by default their own.
        device: ``cpu`` or None.
        pin_memory: must be False.
        requires_grad: whether the tensor is a leaf that requires grad.
        check_invariants: True refuses columns that are not in order; the rest is always checked.
        is_coalesced: True promises that the coordinates are in order, each once.

    Raises:
        RuntimeError: if sizes, indices and values do not fit each other.
    """
    if values is None and size is None and _is_sizes(indices):
        made = _F.sparse_coo_tensor(list(indices), dtype=dtype)
        return _finish(made, device, pin_memory, requires_grad)
    if indices is None and values is None and size is not None:
        made = _F.sparse_coo_tensor(list(size), dtype=dtype)
        return _finish(made, device, pin_memory, requires_grad)
    if indices is None or values is None:
        raise TypeError("sparse_coo_tensor() needs indices and values, or a size alone")
    given = (_as_indices(indices), _as_tensor(values, dtype))
    sizes = () if size is None else (list(size),)
    made = _F.sparse_coo_tensor(*given, *sizes, is_coalesced=is_coalesced)
    return _finish(made, device, pin_memory, requires_grad)


def _least_size(compressed: Any, plain: Any, values: Any, layout: Any) -> list[int]:
    """The smallest sizes that hold all indices."""
    batch = compressed.dim() - 1
    blocks = (1, 1)
    dense_at = batch + 1
    if layout in (_C.sparse_bsr, _C.sparse_bsc):
        blocks = (values.shape[batch + 1], values.shape[batch + 2])
        dense_at += 2
    lines = compressed.shape[-1] - 1
    across = int(plain.max()) + 1 if plain.numel() else 0
    by_rows = layout in (_C.sparse_csr, _C.sparse_bsr)
    rows, columns = (lines, across) if by_rows else (across, lines)
    matrix = [rows * blocks[0], columns * blocks[1]]
    return [*compressed.shape[:batch], *matrix, *values.shape[dense_at:]]


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """A tensor of compressed rows or columns.

    Args:
        compressed_indices: where each row (or column, as the layout says) begins, and how many
            values there are: ``(*batch, rows + 1)``, int64 or int32.
        plain_indices: the column (row) of each value: ``(*batch, n)``. Within a row each is there
            once; of a single matrix whose columns are not in order, they and the values are sorted.
        values: the elements, or blocks of them: ``(*batch, n, *block, *dense_sizes)``.
        size: the sizes ``(*batch, rows, columns, *dense_sizes)``; by default the smallest that fit.
        dtype: that of the values; by default their own.
        layout: ``sparse_csr``, ``sparse_csc``, ``sparse_bsr`` or ``sparse_bsc``.
        device: ``cpu`` or None.
        pin_memory: must be False.
        requires_grad: whether the tensor is a leaf that requires grad.
        check_invariants: without effect: what is given is always checked.

    Raises:
        RuntimeError: if sizes, indices and values do not fit each other.
    """
    starts, plain = _as_indices(compressed_indices), _as_indices(plain_indices)
    elements = _as_tensor(values, dtype)
    if size is None:
        size = _least_size(starts, plain, elements, layout)
    make = functools.partial(_F._sparse_compressed_tensor_unsafe, layout=layout)
    try:
        made = make(starts, plain, elements, list(size))
    except RuntimeError as error:
        is_strict = _checks_invariants() if check_invariants is None else check_invariants
        if is_strict or starts.dim() != 1 or "are sorted and distinct" not in str(error):
            raise
        made = make(starts, *_in_order(starts, plain, elements), list(size))
    return _finish(made, device, pin_memory, requires_grad)


def _checks_invariants() -> bool:
    from .sparse import check_sparse_tensor_invariants

    return check_sparse_tensor_invariants.is_enabled()


def _in_order(starts: Any, plain: Any, elements: Any) -> tuple[Any, Any]:
    """Columns and values sorted by column within each row."""
    lines = _F.arange(starts.shape[0] - 1).repeat_interleave(starts.diff().to(_C.int64))
    order = (lines * (int(plain.max()) + 1) + plain).argsort(stable=True)
    return plain[order], elements[order]


def _validate_sparse_coo_tensor_args(
    indices: Any, values: Any, size: Sequence[int], is_coalesced: bool | None = None
) -> None:
    """Raises what the constructor raises of parts that do not fit each other.

    Args:
        indices: the coordinates.
        values: the elements.
        size: the sizes.
        is_coalesced: whether the coordinates are said to be in order, each once.

    Raises:
        RuntimeError: for such parts.
    """
    given = sparse_coo_tensor(indices, values.detach(), size)
    if is_coalesced and not _F.equal(given.coalesce().indices(), given._indices()):
        raise RuntimeError(
            "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor: they "
            "are not in order, each once"
        )


def _validate_sparse_compressed_tensor_args(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Sequence[int], layout: Any
) -> None:
    """Raises what the constructor raises of parts that do not fit each other.

    Args:
        compressed_indices: where each row or column begins.
        plain_indices: the columns or rows.
        values: the elements, or blocks of them.
        size: the sizes.
        layout: a compressed one.

    Raises:
        RuntimeError: for such parts.
    """
    lists = (compressed_indices, plain_indices, values.detach())
    sparse_compressed_tensor(*lists, size, layout=layout)


def _validation(layout: Any, name: str, first: str, second: str) -> Any:
    def validate(compressed: Any, plain: Any, values: Any, size: Sequence[int]) -> None:
        _validate_sparse_compressed_tensor_args(compressed, plain, values, size, layout)

    validate.__name__ = validate.__qualname__ = name
    validate.__doc__ = (
        f"Checks ``{first}``, ``{second}``, values and size of a ``{layout}`` tensor."
    )
    return validate


_ROWS = ("crow_indices", "col_indices")
_COLUMNS = ("ccol_indices", "row_indices")
_validate_sparse_csr_tensor_args = _validation(
    _C.sparse_csr, "_validate_sparse_csr_tensor_args", *_ROWS
)
_validate_sparse_csc_tensor_args = _validation(
    _C.sparse_csc, "_validate_sparse_csc_tensor_args", *_COLUMNS
)
_validate_sparse_bsr_tensor_args = _validation(
    _C.sparse_bsr, "_validate_sparse_bsr_tensor_args", *_ROWS
)
_validate_sparse_bsc_tensor_args = _validation(
    _C.sparse_bsc, "_validate_sparse_bsc_tensor_args", *_COLUMNS
)


def _check_layout(name: str, layout: Any, own: Any) -> Any:
    if layout is not None and layout is not own:
        raise RuntimeError(f"{name}: expected layout {own} but got {layout}")
    return own


def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """A tensor of compressed rows: :func:`sparse_compressed_tensor`."""
    layout = _check_layout("sparse_csr_tensor", layout, _C.sparse_csr)
    return sparse_compressed_tensor(
        crow_indices,
        col_indices,
        values,
        size,
        dtype=dtype,
        layout=layout,
        device=device,
        pin_memory=pin_memory,
        requires_grad=requires_grad,
        check_invariants=check_invariants,
    )


def sparse_csc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """A tensor of compressed columns: :func:`sparse_compressed_tensor`."""
    layout = _check_layout("sparse_csc_tensor", layout, _C.sparse_csc)
    return sparse_compressed_tensor(
        ccol_indices,
        row_indices,
        values,
        size,
        dtype=dtype,
        layout=layout,
        device=device,
        pin_memory=pin_memory,
        requires_grad=requires_grad,
        check_invariants=check_invariants,
    )


def sparse_bsr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """A tensor of compressed rows of blocks: :func:`sparse_compressed_tensor`."""
    layout = _check_layout("sparse_bsr_tensor", layout, _C.sparse_bsr)
    return sparse_compressed_tensor(
        crow_indices,
        col_indices,
        values,
        size,
        dtype=dtype,
        layout=layout,
        device=device,
        pin_memory=pin_memory,
        requires_grad=requires_grad,
        check_invariants=check_invariants,
    )


def sparse_bsc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """A tensor of compressed columns of blocks: :func:`sparse_compressed_tensor`."""
    layout = _check_layout("sparse_bsc_tensor", layout, _C.sparse_bsc)
    return sparse_compressed_tensor(
        ccol_indices,
        row_indices,
        values,
        size,
        dtype=dtype,
        layout=layout,
        device=device,
        pin_memory=pin_memory,
        requires_grad=requires_grad,
        check_invariants=check_invariants,
    )


def parts_of(tensor: Tensor) -> tuple[Any, ...]:
    """What a sparse tensor is made of.

    Layout, sizes, two lists: indices and values, and whether coordinates are in order; or, of
    compressed layouts, both lists of indices, and values.
    """
    if tensor.layout is _C.sparse_coo:
        lists = (tensor._indices(), tensor._values())
        return (tensor.layout, tuple(tensor.shape), *lists, tensor.is_coalesced())
    by_rows = tensor.layout in (_C.sparse_csr, _C.sparse_bsr)
    if by_rows:
        lists = (tensor.crow_indices(), tensor.col_indices())
    else:
        lists = (tensor.ccol_indices(), tensor.row_indices())
    return (tensor.layout, tuple(tensor.shape), *lists, tensor.detach().values())


def of_parts(layout: Any, shape: Sequence[int], first: Any, second: Any, third: Any) -> Tensor:
    """The tensor that :func:`parts_of` took apart."""
    if layout is _C.sparse_coo:
        return sparse_coo_tensor(first, second, shape, is_coalesced=third)
    return sparse_compressed_tensor(first, second, third, shape, layout=layout)
