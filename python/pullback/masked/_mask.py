"""What all masked operations share: which elements count, and what stands in for the others.

A mask is broadcast to the input and made boolean; then each element that does not count is replaced
by the operation's identity, the value that changes no result, and the ordinary operation runs.
Replacing is done by ``where``, whose gradient at a replaced element is zero whatever the element
was and whatever the operation sends back. Invariant: nothing after :func:`operand` sees a masked
tensor or a sparse layout. Start with :func:`filled`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from .. import _C
from .._info import iinfo
from .._tensor import Tensor
from ._tensor import MaskedTensor, unwrap

_VF = _C._VariableFunctions

# The operations that have sparse forms (`_sparse.py`), for some layouts.
_SPARSE = frozenset({"sum", "prod", "amax", "amin", "mean"})
_GREATEST = frozenset({"amin", "argmin"})
_LEAST = frozenset({"amax", "argmax", "logaddexp", "logsumexp"})
_CONSTANT = {"sum": 0, "cumsum": 0, "prod": 1, "cumprod": 1}
# Their value for no elements is nan, whatever the elements that are masked out are replaced by.
_WITHOUT = frozenset({"mean", "var", "std"})

_NORMALIZATIONS = frozenset({"softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod"})
_REDUCTIONS = _WITHOUT | {
    "amax",
    "amin",
    "argmax",
    "argmin",
    "logsumexp",
    "median",
    "norm",
    "prod",
    "sum",
}


def canonical_dim(dim: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """The dimensions to reduce, counted from the front, in ascending order.

    Args:
        dim: one dimension or several; None and ``()`` mean all of them.
        ndim: the number of dimensions there are; a tensor without any has one as far as ``dim``
            is concerned.

    Raises:
        IndexError: for a dimension out of range.
        RuntimeError: for one that is given twice.
        TypeError: for what is no int.
    """
    if dim is None or (not isinstance(dim, int) and len(given(dim)) == 0):
        return tuple(range(ndim))
    bound = max(ndim, 1)
    found: list[int] = []
    for d in given(dim):
        if not -bound <= d < bound:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], "
                f"but got {d})"
            )
        if d % bound in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        found.append(d % bound)
    return tuple(sorted(found))


def given(dim: Any) -> tuple[int, ...]:
    """``dim`` as a tuple of ints."""
    parts = (dim,) if not isinstance(dim, (tuple, list)) else tuple(dim)
    for part in parts:
        if not isinstance(part, int) or isinstance(part, bool):
            raise TypeError(
                f"argument 'dim' must be an int or a tuple of ints, not {dim!r} with a "
                f"{type(part).__name__}"
            )
    return parts


def single_dim(name: str, dim: Any, ndim: int) -> int:
    """The one dimension along which an operation works, counted from the front.

    Raises:
        IndexError: for a dimension out of range.
        TypeError: for anything but one int.
    """
    if dim is None or len(given(dim)) != 1:
        raise TypeError(f"{name}(): argument 'dim' must be one int, not {dim!r}")
    return canonical_dim(dim, ndim)[0]


def _refuse_layout(name: str, layout: Any) -> NoReturn:
    known = "strided, sparse_coo or sparse_csr" if name in _SPARSE else "strided"
    raise ValueError(f"masked {name} expects {known} tensor (got {layout} tensor)")


def _check_tensor(name: str, argument: str, value: object) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name}(): argument '{argument}' must be Tensor, not {type(value).__name__}"
        )


def _input_mask(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The mask as a boolean tensor of the input's shape.

    Args:
        input: the tensor whose elements are masked.
        args: further arguments of an operation; not looked at.
        kwargs: those given by name; ``mask`` is the one that is used.

    Raises:
        IndexError: for a mask with more dimensions than the input.
        NotImplementedError: for a sparse input. (The mask may be sparse.)
        RuntimeError: for a mask that cannot be broadcast to the input.
        TypeError: for a mask that is no tensor.
        ValueError: for no mask.
    """
    mask = kwargs.get("mask")
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    _check_tensor("_input_mask", "mask", mask)
    if input.layout is not _C.strided:
        raise NotImplementedError(
            f"_input_mask expects a strided tensor but got {input.layout}: a mask is not laid out "
            "as a sparse tensor yet"
        )
    return everywhere(mask, input)


def everywhere(mask: Tensor, input: Tensor) -> Tensor:
    """A mask of any layout as a strided boolean tensor of the input's shape.

    Raises:
        IndexError: for a mask with more dimensions than the input.
        RuntimeError: for a mask that cannot be broadcast to the input.
    """
    if mask.ndim > input.ndim:
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the "
            f"input): {mask.ndim} dimensions against {input.ndim}"
        )
    dense = mask if mask.layout is _C.strided else mask.to_dense()
    return _VF.broadcast_to(dense.to(_C.bool), list(input.shape))


def _output_mask(op: Callable[..., Any], input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Which elements of ``op(input, *args, **kwargs)`` come from at least one element that counts.

    Args:
        op: one of the functions of ``pullback.masked``.
        input: its first argument.
        args: its further arguments given by position.
        kwargs: those given by name, ``mask`` among them.

    Raises:
        ValueError: for another operation, or without a mask.
    """
    name = getattr(op, "__name__", None)
    if not callable(op) or name not in _REDUCTIONS | _NORMALIZATIONS:
        raise ValueError(f"_output_mask expected masked operation (got {op!r})")
    mask = _input_mask(input, mask=kwargs.get("mask"))
    if name in _NORMALIZATIONS:
        return mask
    position = 1 if name == "norm" else 0
    dim = args[position] if len(args) > position else kwargs.get("dim")
    dims = canonical_dim(dim, input.ndim)
    return any_of(mask, dims, bool(kwargs.get("keepdim", False)))


def any_of(mask: Tensor, dims: Sequence[int], keepdim: bool) -> Tensor:
    """Whether any element is true along ``dims``; without dimensions the mask itself."""
    for dim in reversed(dims):
        mask = mask.any(dim=dim, keepdim=keepdim)
    return mask


def _identity(name: str, dtype: _C.dtype, args: Sequence[Any]) -> float | complex:
    """The number behind :func:`_reduction_identity`."""
    if name in _CONSTANT:
        return _CONSTANT[name]
    if name == "norm":
        order = args[0] if args else 2
        return math.inf if isinstance(order, (int, float)) and order < 0 else 0
    if name == "median":
        return math.nan
    if name not in _LEAST | _GREATEST or dtype is _C.bool:
        raise NotImplementedError(f"identity of {name} on {dtype} input")
    if dtype.is_complex and name.startswith("log"):
        return complex(-math.inf, 0)
    if dtype.is_complex:
        raise TypeError(f"identity of {name} on {dtype} input: complex numbers have no order")
    if dtype.is_floating_point:
        return -math.inf if name in _LEAST else math.inf
    return iinfo(dtype).min if name in _LEAST else iinfo(dtype).max


def _reduction_identity(op_name: str, input: Tensor, *args: Any) -> Tensor | None:
    """The value that an operation can be given more of without a change of its result.

    It is 0 for ``sum``, 1 for ``prod``, the least value of the dtype for ``amax`` (``-inf``, if the
    dtype has one), the greatest for ``amin``, ``inf`` for a ``norm`` of negative order and 0 for
    the others, ``nan`` for ``median``, which passes it over.

    Args:
        op_name: the operation's name, with or without a module's before it.
        input: a tensor of the dtype, which is also that of the value (``float32`` for the median
            of integers).
        args: for ``norm`` its order.

    Returns:
        A tensor without dimensions; None for ``mean``, ``var`` and ``std``, which have none.

    Raises:
        NotImplementedError: for other operations, and ``bool`` where there is no sum or product.
        TypeError: for the greatest or least of complex numbers.
    """
    name = op_name.rpartition(".")[2]
    if name in _WITHOUT:
        return None
    dtype = input.dtype
    if name == "median" and not dtype.is_floating_point:
        dtype = _C.float32
    value = _identity(name, dtype, args)
    return _VF.full([], value, dtype=dtype, device=input.device)


def _where(mask: Tensor, input: Tensor, fill_value: Tensor) -> Tensor:
    """``input`` where ``mask`` is true, and ``fill_value`` elsewhere.

    Of sparse tensors what the mask does not choose is not specified, and stands for ``fill_value``;
    a chosen element that the input does not specify is zero.

    Raises:
        ValueError: for layouts other than ``strided``, ``sparse_coo`` and ``sparse_csr``, and for a
            mask whose layout is not the input's.
    """
    if mask.layout is _C.strided:
        return _VF.where(mask, input, fill_value)
    if mask.layout not in (_C.sparse_coo, _C.sparse_csr):
        raise ValueError(
            f"_where expects strided or sparse COO or sparse CSR tensor but got {mask.layout}"
        )
    if mask.layout is not input.layout:
        raise ValueError(f"_where expects a mask of layout {input.layout} but got {mask.layout}")
    from ._sparse import chosen

    return chosen(mask, input, fill_value)


def filled(name: str, input: Tensor, mask: Tensor | None, *args: Any) -> Tensor:
    """``input`` with the identity of an operation where the mask is false.

    Args:
        name: the operation's name.
        input: the data.
        mask: as :func:`operand` gives it; None leaves all as it is.
        args: for ``norm`` its order.
    """
    if mask is None:
        return input
    identity = _reduction_identity(name, input, *args)
    assert identity is not None
    return _VF.where(mask, input, identity)


def operand(
    name: str, input: Tensor, mask: Tensor | None, argument: str = "input"
) -> tuple[Tensor, Tensor | None]:
    """The data and the mask, of the data's shape, that an operation works on.

    Of a masked tensor what counts must do so by its own mask and by the one that is given.

    Args:
        name: the operation's name, for errors.
        input: what the operation was given.
        mask: the mask that it was given, or None.
        argument: the name of ``input`` among the operation's parameters.

    Raises:
        IndexError: for a mask with more dimensions than the input.
        RuntimeError: for a mask that cannot be broadcast to the input.
        TypeError: for what is no tensor.
        ValueError: for sparse layouts.
    """
    _check_tensor(name, argument, input)
    if input.layout is not _C.strided:
        _refuse_layout(name, input.layout)
    given = None if mask is None else _input_mask(input, mask=mask)
    if not isinstance(input, MaskedTensor):
        return input, given
    own = input._masked_mask
    return unwrap(input), own if given is None or given is own else own & given


def _combine_input_and_mask(
    op: Callable[..., Any], input: Tensor, mask: Tensor | None, *args: Any
) -> Tensor:
    """``input`` with the identity of ``op`` where the mask is false.

    Args:
        op: one of the functions of ``pullback.masked``.
        input: the data.
        mask: broadcast to the input; None leaves all as it is.
        args: for ``norm`` its order.

    Raises:
        ValueError: for what is no function, and without identity.
    """
    name = getattr(op, "__name__", None)
    if not callable(op) or not isinstance(name, str):
        raise ValueError(
            f"_combine_input_and_mask expected masked operation (got {type(op).__name__} object)"
        )
    if mask is not None and name in _WITHOUT:
        raise ValueError(f"_combine_input_and_mask: {name} has no identity")
    data, valid = operand(name, input, mask)
    return filled(name, data, valid, *args)
