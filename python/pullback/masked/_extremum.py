"""Masked reductions that pick elements: maxima, minima, where these are, and medians.

What is masked out is replaced by the least or greatest value of the dtype; where an element that
counts has that very value, :func:`argmax` and :func:`argmin` still point to one that counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _C
from .._tensor import Tensor
from ._mask import canonical_dim, filled, operand, single_dim
from ._sparse import is_reduced, reduced

_VF = _C._VariableFunctions


def amax(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool | None = False,
    dtype: _C.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The greatest of the elements that count, along ``dim``.

    The gradient is divided evenly among equal greatest elements. A ``nan`` that counts is the
    greatest.

    Args:
        input: real numbers of any shape.
        dim: the dimension or dimensions to reduce; None and ``()`` mean all.
        keepdim: keep the reduced dimensions with size 1.
        dtype: of the result; defaults to the input's.
        mask: false where an element does not count; broadcast to the input.

    Returns:
        A line without elements that count gives the least value of the input's dtype, ``-inf`` if
        the dtype has it.

    Raises:
        IndexError: for a dimension out of range, one without elements, or a mask of more
            dimensions than the input.
        NotImplementedError: for complex numbers, and ``bool`` with a mask.
        RuntimeError: for a dimension given twice or a mask that cannot be broadcast, and for
            ``sparse_csr`` without ``keepdim``.
        ValueError: for sparse layouts other than ``sparse_coo`` and ``sparse_csr``, or without
            mask. (Of a sparse tensor the result is sparse.)
        TypeError: for complex numbers with a mask.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([[1.0, 9.0], [3.0, 4.0]])
        >>> torch.masked.amax(x, 1, mask=x < 5)
        tensor([1., 4.])
    """
    return _extreme(_VF.amax, "amax", input, dim, keepdim, dtype, mask)


def amin(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool | None = False,
    dtype: _C.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The least of the elements that count, along ``dim``.

    The gradient is divided evenly among equal least elements. A ``nan`` that counts is the least.

    Args:
        input: real numbers of any shape.
        dim: the dimension or dimensions to reduce; None and ``()`` mean all.
        keepdim: keep the reduced dimensions with size 1.
        dtype: of the result; defaults to the input's.
        mask: false where an element does not count; broadcast to the input.

    Returns:
        A line without elements that count gives the greatest value of the input's dtype, ``inf``
        if the dtype has it.

    Raises:
        IndexError: for a dimension out of range, one without elements, or a mask of more
            dimensions than the input.
        NotImplementedError: for complex numbers, and ``bool`` with a mask.
        RuntimeError: for a dimension given twice or a mask that cannot be broadcast, and for
            ``sparse_csr`` without ``keepdim``.
        ValueError: for sparse layouts other than ``sparse_coo`` and ``sparse_csr``, or without
            mask. (Of a sparse tensor the result is sparse.)
        TypeError: for complex numbers with a mask.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([[1.0, 9.0], [3.0, 4.0]])
        >>> torch.masked.amin(x, 1, mask=x > 2)
        tensor([9., 3.])
    """
    return _extreme(_VF.amin, "amin", input, dim, keepdim, dtype, mask)


def _extreme(
    op: Callable[..., Tensor],
    name: str,
    input: Tensor,
    dim: int | Sequence[int] | None,
    keepdim: bool | None,
    dtype: _C.dtype | None,
    mask: Tensor | None,
) -> Tensor:
    if is_reduced(input):
        dims = canonical_dim(dim, input.ndim)
        return reduced(name, input, dims, bool(keepdim), dtype or input.dtype, mask)
    data, valid = operand(name, input, mask)
    dims = canonical_dim(dim, data.ndim)
    return op(filled(name, data, valid), dims, bool(keepdim)).to(dtype or data.dtype)


def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool | None = False,
    dtype: _C.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The index of the greatest of the elements that count, along ``dim``; of equal ones the first.

    A ``nan`` that counts is the greatest. There is no gradient.

    Args:
        input: real numbers of any shape.
        dim: the dimension; None looks at all elements in order, as ``input.flatten()`` has them.
        keepdim: keep the dimension, or all if ``dim`` is None, with size 1.
        dtype: of the result; defaults to the input's, as in PyTorch: a dtype of few bits rounds
            great indices.
        mask: false where an element does not count; broadcast to the input.

    Returns:
        Indices. A line without elements that count gives 0.

    Raises:
        IndexError: for a dimension out of range, nothing to look at, or a mask of more dimensions
            than the input.
        NotImplementedError: for ``bool`` and complex numbers.
        RuntimeError: for a mask that cannot be broadcast.
        TypeError: for a ``dim`` that is no int, and complex numbers with a mask.
        ValueError: for sparse layouts.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([[1, 9, 4], [3, 4, 0]])
        >>> torch.masked.argmax(x, 1, mask=x < 5)
        tensor([2, 1])
    """
    return _index(_VF.argmax, "argmax", input, dim, keepdim, dtype, mask)


def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool | None = False,
    dtype: _C.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The index of the least of the elements that count, along ``dim``; of equal ones the first.

    A ``nan`` that counts is the least. There is no gradient.

    Args:
        input: real numbers of any shape.
        dim: the dimension; None looks at all elements in order, as ``input.flatten()`` has them.
        keepdim: keep the dimension, or all if ``dim`` is None, with size 1.
        dtype: of the result; defaults to the input's, as in PyTorch: a dtype of few bits rounds
            great indices.
        mask: false where an element does not count; broadcast to the input.

    Returns:
        Indices. A line without elements that count gives 0.

    Raises:
        IndexError: for a dimension out of range, nothing to look at, or a mask of more dimensions
            than the input.
        NotImplementedError: for ``bool`` and complex numbers.
        RuntimeError: for a mask that cannot be broadcast.
        TypeError: for a ``dim`` that is no int, and complex numbers with a mask.
        ValueError: for sparse layouts.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([[1, 9, 4], [3, 4, 0]])
        >>> torch.masked.argmin(x, 1, mask=x > 2)
        tensor([2, 0])
    """
    return _index(_VF.argmin, "argmin", input, dim, keepdim, dtype, mask)


def _index(
    op: Callable[..., Tensor],
    name: str,
    input: Tensor,
    dim: Any,
    keepdim: bool | None,
    dtype: _C.dtype | None,
    mask: Tensor | None,
) -> Tensor:
    data, valid = operand(name, input, mask)
    values = filled(name, data, valid).detach()
    if valid is None or data.ndim == 0 or data.numel() == 0:
        found = op(values, dim, bool(keepdim))
    else:
        found = _counted(op, values, valid, dim, bool(keepdim))
    return found.to(dtype or data.dtype)


def _counted(
    op: Callable[..., Tensor], values: Tensor, valid: Tensor, dim: Any, keepdim: bool
) -> Tensor:
    """The first index of an element that counts and has the value that ``op`` finds."""
    line, along = (values.reshape(-1), 0) if dim is None else (values, dim)
    best = _VF.take_along_dim(line, op(line, along, True), along)
    # (A nan equals nothing, and where there is one, the best is one.)
    is_best = values == best
    if values.is_floating_point():
        is_best |= values != values
    return _VF.argmax((is_best & valid).to(_C.uint8), dim, keepdim)


def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: _C.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The median of the elements that count, along ``dim``; of an even number the lower one.

    Elements that are ``nan`` are passed over as if they were masked out. The gradient goes to the
    element that was picked.

    Args:
        input: real numbers of any shape. Integers are compared as ``float64``.
        dim: the dimension.
        keepdim: keep the dimension with size 1.
        dtype: of the result; defaults to the input's.
        mask: false where an element does not count; broadcast to the input.

    Returns:
        A line without elements that count gives ``nan``.

    Raises:
        IndexError: for a dimension out of range, one without elements, or a mask of more
            dimensions than the input.
        NotImplementedError: for complex numbers.
        RuntimeError: for a mask that cannot be broadcast.
        TypeError: for a ``dim`` that is no int.
        ValueError: for sparse layouts, and for integers if a line has no element that counts.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([[1.0, 9.0, 4.0], [3.0, 4.0, 0.0]])
        >>> torch.masked.median(x, 1, mask=x < 5)
        tensor([1., 3.])
    """
    data, valid = operand("median", input, mask)
    dim = single_dim("median", dim, data.ndim)
    if data.is_complex():
        raise NotImplementedError(f"masked median is not implemented for {data.dtype}")
    is_float = data.is_floating_point()
    values = filled("median", data if is_float else data.to(_C.float64), valid)
    found = _VF.nanmedian(values, dim, bool(keepdim)).values
    if not is_float and bool(found.isnan().any()):
        raise ValueError(
            "masked median expects no fully masked out rows if dtype is not floating point: "
            f"{data.dtype} has no nan"
        )
    return found.to(dtype or data.dtype)
