"""Masked reductions that add and multiply: sums, products, means, norms, variances, logsumexp.

Floating-point numbers of 16 bits are added up as ``float32`` in what consists of several steps, so
that no step in between overflows; the result is rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _C
from .._info import iinfo
from .._tensor import Tensor
from ._mask import canonical_dim, filled, operand
from ._sparse import is_reduced, reduced

_VF = _C._VariableFunctions
_NARROW = frozenset({_C.bool, _C.uint8, _C.int8, _C.int16, _C.int32})


def _total_dtype(data: Tensor, dtype: _C.dtype | None) -> _C.dtype:
    """The dtype of sums and products: integers of few bits give ``int64``."""
    return _result_dtype("sum", dtype, _C.int64 if data.dtype in _NARROW else data.dtype)


def _result_dtype(name: str, dtype: _C.dtype | None, default: _C.dtype) -> _C.dtype:
    """The requested dtype.

    Raises:
        TypeError: if the value is not a dtype.
    """
    if dtype is None:
        return default
    if not isinstance(dtype, _C.dtype):
        given = type(dtype).__name__
        raise TypeError(f"{name}(): argument 'dtype' must be torch.dtype, not {given}")
    return dtype


def wide(dtype: _C.dtype) -> _C.dtype:
    """The dtype to compute in: ``float32`` for 16 bits."""
    return _C.float32 if dtype in (_C.float16, _C.bfloat16) else dtype


def sum(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool | None = False,
    dtype: _C.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The sum of the elements that count, along ``dim``.

    Args:
        input: a tensor of any shape.
        dim: the dimension or dimensions to reduce; None and ``()`` mean all.
        keepdim: keep the reduced dimensions with size 1.
        dtype: of the result, to which the elements are converted before; defaults to the input's,
            and to ``int64`` for integers of fewer bits and ``bool``.
        mask: false where an element does not count; broadcast to the input.

    Returns:
        A line without elements that count gives 0. Of a sparse tensor the result is sparse, and
        specifies no such line; without mask its specified elements count.

    Raises:
        IndexError: for a dimension out of range or a mask of more dimensions than the input.
        RuntimeError: for a dimension given twice or a mask that cannot be broadcast, and for
            ``sparse_csr`` without ``keepdim``.
        ValueError: for sparse layouts other than ``sparse_coo`` and ``sparse_csr``.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([[1.0, 9.0], [3.0, 4.0]])
        >>> torch.masked.sum(x, 1, mask=x < 5)
        tensor([1., 7.])
    """
    if is_reduced(input):
        dims = canonical_dim(dim, input.ndim)
        return reduced("sum", input, dims, bool(keepdim), _total_dtype(input, dtype), mask)
    data, valid = operand("sum", input, mask)
    dims = canonical_dim(dim, data.ndim)
    kind = _total_dtype(data, dtype)
    return _VF.sum(filled("sum", data, valid), dims, bool(keepdim), dtype=kind)


def prod(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool | None = False,
    dtype: _C.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The product of the elements that count, along ``dim``.

    The gradient is right also where factors are zero.

    Args:
        input: a tensor of any shape.
        dim: the dimension or dimensions to reduce; None and ``()`` mean all.
        keepdim: keep the reduced dimensions with size 1.
        dtype: of the result, to which the elements are converted before; defaults to the input's,
            and to ``int64`` for integers of fewer bits and ``bool``.
        mask: false where an element does not count; broadcast to the input.

    Returns:
        A line without elements that count gives 1. Of a sparse tensor the result is sparse, and
        specifies no such line.

    Raises:
        IndexError: for a dimension out of range or a mask of more dimensions than the input.
        RuntimeError: for a dimension given twice or a mask that cannot be broadcast, and for
            ``sparse_csr`` without ``keepdim``.
        ValueError: for sparse layouts other than ``sparse_coo`` and ``sparse_csr``, or without
            mask.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([[1.0, 9.0], [3.0, 4.0]])
        >>> torch.masked.prod(x, 1, mask=x < 5)
        tensor([ 1., 12.])
    """
    if is_reduced(input):
        dims = canonical_dim(dim, input.ndim)
        return reduced("prod", input, dims, bool(keepdim), _total_dtype(input, dtype), mask)
    data, valid = operand("prod", input, mask)
    dims = canonical_dim(dim, data.ndim)
    kind = _total_dtype(data, dtype)
    result = filled("prod", data, valid).to(kind)
    for one in reversed(dims):
        result = result.prod(one, bool(keepdim))
    return result.to(kind)


def logsumexp(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool = False,
    dtype: _C.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """``log(sum(exp(x)))`` of the elements that count, along ``dim``, without overflow.

    Args:
        input: a tensor of any shape. Integers are computed in the default dtype.
        dim: the dimension or dimensions to reduce; None and ``()`` mean all.
        keepdim: keep the reduced dimensions with size 1.
        dtype: of the result; defaults to the input's, so that integers give integers.
        mask: false where an element does not count; broadcast to the input.

    Returns:
        A line without elements that count gives ``-inf``, or the least value of an integer dtype.

    Raises:
        IndexError: for a dimension out of range or a mask of more dimensions than the input.
        NotImplementedError: for ``bool`` with a mask.
        RuntimeError: for a dimension given twice or a mask that cannot be broadcast.
        ValueError: for sparse layouts.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([[0.0, 9.0], [0.0, 0.0]])
        >>> torch.masked.logsumexp(x, 1, mask=x < 5)
        tensor([0.0000, 0.6931])
    """
    data, valid = operand("logsumexp", input, mask)
    dims = canonical_dim(dim, data.ndim)
    kind = _result_dtype("logsumexp", dtype, data.dtype)
    if not (data.is_floating_point() or data.is_complex() or data.dtype is _C.bool):
        # The least integer of few bits is no identity: exp(0) is 1.
        data = data.to(_C.get_default_dtype())
    result = _VF.logsumexp(filled("logsumexp", data, valid), dims, keepdim=bool(keepdim))
    is_integer = not (kind.is_floating_point or kind.is_complex or kind is _C.bool)
    if is_integer and not result.is_complex():
        result = result.clamp(min=iinfo(kind).min)
    return result.to(kind)


def _count(
    data: Tensor, valid: Tensor | None, dims: tuple[int, ...], keepdim: bool
) -> Tensor | int:
    """The number of elements that count in each line: one number if it is the same for all."""
    if valid is not None:
        return _VF.sum(valid, dims, keepdim)
    number = 1
    for dim in dims:
        number *= data.shape[dim] if data.ndim else 1
    return number


def mean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool | None = False,
    dtype: _C.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The mean of the elements that count, along ``dim``: their sum divided by their number.

    Args:
        input: a tensor of any shape.
        dim: the dimension or dimensions to reduce; None and ``()`` mean all.
        keepdim: keep the reduced dimensions with size 1.
        dtype: of the result, to which the elements are converted before; defaults to the input's.
        mask: false where an element does not count; broadcast to the input.

    Returns:
        A line without elements that count gives ``nan``.

    Raises:
        IndexError: for a dimension out of range or a mask of more dimensions than the input.
        RuntimeError: for a dimension given twice or a mask that cannot be broadcast, and for
            ``sparse_csr`` without ``keepdim``.
        ValueError: for sparse layouts other than ``sparse_coo`` and ``sparse_csr``, or without
            mask, and for a dtype that is neither floating-point nor complex.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([[1.0, 9.0], [3.0, 4.0]])
        >>> torch.masked.mean(x, 1, mask=x < 5)
        tensor([1.0000, 3.5000])
    """
    is_sparse = is_reduced(input)
    data, valid = (input, mask) if is_sparse else operand("mean", input, mask)
    kind = _result_dtype("mean", dtype, data.dtype)
    if not (kind.is_floating_point or kind.is_complex):
        source = "Input" if dtype is None else "Optional"
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either a floating point "
            f"or complex dtype. Got: {kind}"
        )
    dims = canonical_dim(dim, data.ndim)
    if is_sparse:
        return reduced("mean", input, dims, bool(keepdim), kind, mask)
    total = _VF.sum(filled("sum", data, valid), dims, bool(keepdim), dtype=wide(kind))
    return (total / _count(data, valid, dims, bool(keepdim))).to(kind)


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: int | Sequence[int] | None = None,
    *,
    keepdim: bool | None = False,
    dtype: _C.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The norm ``sum(abs(x)**ord)**(1/ord)`` of the elements that count, along ``dim``.

    ``ord`` of ``inf`` gives the greatest absolute value, ``-inf`` the least, 0 the number of
    elements that are not zero.

    Args:
        input: floating-point or complex numbers of any shape.
        ord: the order, any number.
        dim: the dimension or dimensions to reduce; None and ``()`` mean all.
        keepdim: keep the reduced dimensions with size 1.
        dtype: to which the elements are converted before; defaults to the input's.
        mask: false where an element does not count; broadcast to the input.

    Returns:
        Real numbers. A line without elements that count gives 0, for a negative order ``inf``.

    Raises:
        IndexError: for a dimension out of range or a mask of more dimensions than the input.
        NotImplementedError: for integers.
        RuntimeError: for a dimension given twice, a mask that cannot be broadcast, or no elements
            where the order gives no value to that.
        TypeError: for an order that is no number.
        ValueError: for sparse layouts.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([[1.0, 9.0], [3.0, 4.0]])
        >>> torch.masked.norm(x, 2, 1, mask=x < 5)
        tensor([1., 5.])
    """
    data, valid = operand("norm", input, mask)
    dims = canonical_dim(dim, data.ndim)
    if not (data.is_floating_point() or data.is_complex()):
        raise NotImplementedError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. "
            f"Got {data.dtype}"
        )
    values = filled("norm", data, valid, ord)
    order: Any = ord
    return _C._linalg.linalg_vector_norm(values, order, dims, bool(keepdim), dtype=dtype)


def var(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: _C.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance of the ``n`` elements that count, along ``dim``.

    It is ``sum(abs(x - mean)**2) / max(n - correction, 0)``.

    Args:
        input: numbers of any shape. Integers are computed in ``float32``.
        dim: the dimension or dimensions to reduce; None and ``()`` mean all.
        unbiased: true means a correction of 1, false one of 0.
        correction: what is taken off the number of elements; defaults to 1.
        keepdim: keep the reduced dimensions with size 1.
        dtype: of the result; defaults to the input's (also for complex numbers, whose variance is
            real), and to ``float32`` for integers.
        mask: false where an element does not count; broadcast to the input.

    Returns:
        A line without elements that count gives ``nan``; so does one with a single element if the
        correction is 1.

    Raises:
        AssertionError: for both of ``unbiased`` and ``correction``.
        IndexError: for a dimension out of range or a mask of more dimensions than the input.
        NotImplementedError: for ``bool``.
        RuntimeError: for a dimension given twice or a mask that cannot be broadcast.
        ValueError: for sparse layouts.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [1.0, 9.0, 5.0]])
        >>> torch.masked.var(x, 1, mask=x < 6)
        tensor([1., 8.])
    """
    divisor = _correction(unbiased, correction)
    kind = _moment_dtype(input, dtype)
    return _variance(input, dim, divisor, bool(keepdim), kind, mask).to(kind)


def std(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: _C.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The standard deviation of the elements that count, along ``dim``: the root of :func:`var`.

    Where all elements of a line are equal, the root has no derivative and the gradient of the
    elements that count is ``nan``.

    Args:
        input: numbers of any shape. Integers are computed in ``float32``.
        dim: the dimension or dimensions to reduce; None and ``()`` mean all.
        unbiased: true means a correction of 1, false one of 0.
        correction: what is taken off the number of elements; defaults to 1.
        keepdim: keep the reduced dimensions with size 1.
        dtype: of the result; defaults to the input's, and to ``float32`` for integers. For an
            integer dtype it is that of the variance, and the root of it is of the default dtype.
        mask: false where an element does not count; broadcast to the input.

    Returns:
        A line without elements that count gives ``nan``; so does one with a single element if the
        correction is 1.

    Raises:
        AssertionError: for both of ``unbiased`` and ``correction``.
        IndexError: for a dimension out of range or a mask of more dimensions than the input.
        NotImplementedError: for ``bool``.
        RuntimeError: for a dimension given twice or a mask that cannot be broadcast.
        ValueError: for sparse layouts.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [1.0, 9.0, 9.0]])
        >>> torch.masked.std(x, 1, False, mask=x > 1)
        tensor([0.5000, 0.0000])
    """
    divisor = _correction(unbiased, correction)
    kind = _moment_dtype(input, dtype)
    variance = _variance(input, dim, divisor, bool(keepdim), kind, mask)
    if not (kind.is_floating_point or kind.is_complex):
        return variance.to(kind).sqrt()
    return variance.sqrt().to(kind)


def _correction(unbiased: bool | None, correction: float | None) -> float:
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is not None:
        return float(correction)
    return 1.0 if unbiased is None or unbiased else 0.0


def _moment_dtype(input: Tensor, dtype: _C.dtype | None) -> _C.dtype:
    is_inexact = isinstance(input, Tensor) and (input.is_floating_point() or input.is_complex())
    return _result_dtype("var", dtype, input.dtype if is_inexact else _C.float32)


def _variance(
    input: Tensor,
    dim: int | Sequence[int] | None,
    correction: float,
    keepdim: bool,
    dtype: _C.dtype,
    mask: Tensor | None,
) -> Tensor:
    """The variance, not yet rounded to ``dtype``."""
    data, valid = operand("std/var", input, mask)
    dims = canonical_dim(dim, data.ndim)
    kind = wide(dtype) if dtype.is_floating_point or dtype.is_complex else _C.float32
    count = _count(data, valid, dims, True)
    average = _VF.sum(filled("sum", data, valid), dims, True, dtype=kind) / count
    # Masked out before it is squared: what is nan there would spoil the gradient.
    deviation = filled("sum", data - average, valid)
    total = _VF.sum(deviation * deviation.conj(), dims, keepdim, dtype=kind)
    if isinstance(count, int):
        return total / max(count - correction, 0)
    real = kind.to_real() if kind.is_complex else kind
    return total / (count.to(real) - correction).clamp(min=0).reshape(total.shape)
