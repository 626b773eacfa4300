"""Masked operations whose result has the shape of the input: softmax and its like, running sums.

Elements of the result that are masked out have no defined value; what they are here is said of each
operation. ``logaddexp``, the one operation on two tensors, is here as well.
"""

from __future__ import annotations

from .. import _C
from .._tensor import Tensor
from ._mask import filled, operand, single_dim
from ._reduction import norm, wide

_VF = _C._VariableFunctions


def _scores(
    name: str, input: Tensor, dim: int, dtype: _C.dtype | None, mask: Tensor | None
) -> tuple[Tensor, int]:
    """The argument of the exponential, of the dtype of the result, and the dimension."""
    data, valid = operand(name, input, mask)
    one = single_dim(name, dim, data.ndim)
    if dtype is not None:
        # Before it is filled: no integer is as far away as an infinity.
        data = data.to(dtype)
    return filled("amin" if name == "softmin" else "amax", data, valid), one


def softmax(
    input: Tensor, dim: int, *, dtype: _C.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """``exp(x) / sum(exp(x))`` of the elements that count, along ``dim``.

    Args:
        input: a tensor of any shape.
        dim: the dimension in which the results add up to one.
        dtype: to which the input is converted before; needed for integers.
        mask: false where an element does not count; broadcast to the input.

    Returns:
        A tensor of the input's shape, 0 where masked out. A line without elements that count is
        ``nan``.

    Raises:
        IndexError: for a dimension out of range or a mask of more dimensions than the input.
        NotImplementedError: for integers.
        RuntimeError: for a mask that cannot be broadcast.
        TypeError: for a ``dim`` that is no int.
        ValueError: for sparse layouts.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([1.0, 9.0, 1.0])
        >>> torch.masked.softmax(x, 0, mask=x < 5)
        tensor([0.5000, 0.0000, 0.5000])
    """
    values, one = _scores("softmax", input, dim, dtype, mask)
    return _VF.softmax(values, one)


def log_softmax(
    input: Tensor, dim: int, *, dtype: _C.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """``x - log(sum(exp(x)))`` of the elements that count, along ``dim``.

    Args:
        input: a tensor of any shape.
        dim: the dimension in which the exponentials of the results add up to one.
        dtype: to which the input is converted before; needed for integers.
        mask: false where an element does not count; broadcast to the input.

    Returns:
        A tensor of the input's shape, ``-inf`` where masked out. A line without elements that
        count is ``nan``.

    Raises:
        IndexError: for a dimension out of range or a mask of more dimensions than the input.
        NotImplementedError: for integers.
        RuntimeError: for a mask that cannot be broadcast.
        TypeError: for a ``dim`` that is no int.
        ValueError: for sparse layouts.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([1.0, 9.0, 1.0])
        >>> torch.masked.log_softmax(x, 0, mask=x < 5)
        tensor([-0.6931,    -inf, -0.6931])
    """
    values, one = _scores("log_softmax", input, dim, dtype, mask)
    return _VF.log_softmax(values, one)


def softmin(
    input: Tensor, dim: int, *, dtype: _C.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """``exp(-x) / sum(exp(-x))`` of the elements that count, along ``dim``.

    Args:
        input: a tensor of any shape.
        dim: the dimension in which the results add up to one.
        dtype: to which the input is converted before; needed for integers.
        mask: false where an element does not count; broadcast to the input.

    Returns:
        A tensor of the input's shape, 0 where masked out. A line without elements that count is
        ``nan``.

    Raises:
        IndexError: for a dimension out of range or a mask of more dimensions than the input.
        NotImplementedError: for integers.
        RuntimeError: for a mask that cannot be broadcast.
        TypeError: for a ``dim`` that is no int.
        ValueError: for sparse layouts.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([1.0, -9.0, 1.0])
        >>> torch.masked.softmin(x, 0, mask=x > 0)
        tensor([0.5000, 0.0000, 0.5000])
    """
    values, one = _scores("softmin", input, dim, dtype, mask)
    return _VF.softmax(-values, one)


def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: _C.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """``x / max(norm(x, ord), eps)`` of the elements that count, along ``dim``.

    Args:
        input: floating-point or complex numbers of any shape.
        ord: the order of the norm, see :func:`norm`.
        dim: the dimension along which the norm is taken.
        eps: the least that is divided by.
        dtype: of the norm; the result's is the wider of it and the input's.
        mask: false where an element does not count; broadcast to the input.

    Returns:
        A tensor of the input's shape, 0 where masked out.

    Raises:
        IndexError: for a dimension out of range or a mask of more dimensions than the input.
        NotImplementedError: for integers.
        RuntimeError: for a mask that cannot be broadcast.
        TypeError: for a ``dim`` that is no int or an order that is no number.
        ValueError: for sparse layouts.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([3.0, 9.0, 4.0])
        >>> torch.masked.normalize(x, 2, 0, mask=x < 5)
        tensor([0.6000, 0.0000, 0.8000])
    """
    data, valid = operand("normalize", input, mask)
    one = single_dim("normalize", dim, data.ndim)
    kind = dtype or data.dtype
    # In 16 bits the usual ``eps`` is zero.
    length = norm(data, ord, one, keepdim=True, dtype=wide(kind), mask=valid)
    result = filled("sum", data, valid) / _VF.maximum(length, length.new_full([], eps))
    return result.to(_C.promote_types(data.dtype, kind))


def cumsum(
    input: Tensor, dim: int, *, dtype: _C.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """Sums of the elements that count, from the first of a line up to each: ``sum(x[: i + 1])``.

    Args:
        input: a tensor of any shape.
        dim: the dimension along which is added.
        dtype: of the result, to which the elements are converted before; defaults to the input's.
        mask: false where an element does not count; broadcast to the input.

    Returns:
        A tensor of the input's shape; where masked out, the sum so far, which is 0 at first.

    Raises:
        IndexError: for a dimension out of range or a mask of more dimensions than the input.
        RuntimeError: for a mask that cannot be broadcast.
        TypeError: for a ``dim`` that is no int.
        ValueError: for sparse layouts.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([3, 9, 4])
        >>> torch.masked.cumsum(x, 0, mask=x < 5)
        tensor([3, 3, 7])
    """
    data, valid = operand("cumsum", input, mask)
    one = single_dim("cumsum", dim, data.ndim)
    return _VF.cumsum(filled("cumsum", data, valid), one, dtype=dtype or data.dtype)


def cumprod(
    input: Tensor, dim: int, *, dtype: _C.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """Products of the elements that count, from the first of a line up to each.

    The gradient is right also where factors are zero.

    Args:
        input: a tensor of any shape.
        dim: the dimension along which is multiplied.
        dtype: of the result, to which the elements are converted before; defaults to the input's.
        mask: false where an element does not count; broadcast to the input.

    Returns:
        A tensor of the input's shape; where masked out, the product so far, which is 1 at first.

    Raises:
        IndexError: for a dimension out of range or a mask of more dimensions than the input.
        RuntimeError: for a mask that cannot be broadcast.
        TypeError: for a ``dim`` that is no int.
        ValueError: for sparse layouts.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([3, 9, 4])
        >>> torch.masked.cumprod(x, 0, mask=x < 5)
        tensor([ 3,  3, 12])
    """
    data, valid = operand("cumprod", input, mask)
    one = single_dim("cumprod", dim, data.ndim)
    return _VF.cumprod(filled("cumprod", data, valid), one, dtype=dtype or data.dtype)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: _C.dtype | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """``log(exp(input) + exp(other))`` without what is masked out, element by element.

    Args:
        input: floating-point numbers of any shape.
        other: the same; the two are broadcast to each other.
        dtype: of the result; defaults to that of ``input``.
        input_mask: false where an element of ``input`` does not count; broadcast to it.
        other_mask: the same for ``other``.

    Returns:
        Where only one of the two counts, its value; where none does, ``-inf``.

    Raises:
        IndexError: for a mask of more dimensions than what it masks.
        NotImplementedError: for integers.
        RuntimeError: for shapes that cannot be broadcast.
        ValueError: for sparse layouts.

    Example:
        >>> import pullback as torch
        >>> x = torch.tensor([0.0, 1.0])
        >>> torch.masked.logaddexp(x, x, input_mask=x == 0)
        tensor([0.6931, 1.0000])
    """
    data, valid = operand("logaddexp", input, input_mask)
    second, second_valid = operand("logaddexp", other, other_mask, "other")
    values = filled("logaddexp", data, valid)
    result = _VF.logaddexp(values, filled("logaddexp", second, second_valid))
    return result.to(dtype or data.dtype)
