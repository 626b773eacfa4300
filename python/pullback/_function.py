"""Functions whose arguments PyTorch sorts in Python before an op sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from . import _C
from ._overridable import make_overridable as _make_overridable
from ._question import expect_tensor
from ._tensor import Tensor

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_tensors",
    "einsum",
    "meshgrid",
    "nonzero",
    "tensordot",
    "unique",
    "unique_consecutive",
]

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _unpacked(tensors: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """The tensors of ``f(a, b)`` or ``f([a, b])``."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return tuple(tensors[0])
    return tensors


def atleast_1d(*tensors: Any) -> Tensor | tuple[Tensor, ...]:
    """The tensor with at least one dimension: a number becomes ``(1,)``.

    Several tensors, or a list or tuple of them, give a tuple.
    """
    given = tensors[0] if len(tensors) == 1 else tensors
    return _C._VariableFunctions.atleast_1d(given)


def atleast_2d(*tensors: Any) -> Tensor | tuple[Tensor, ...]:
    """The tensor with at least two dimensions: a vector becomes a row.

    Several tensors, or a list or tuple of them, give a tuple.
    """
    given = tensors[0] if len(tensors) == 1 else tensors
    return _C._VariableFunctions.atleast_2d(given)


def atleast_3d(*tensors: Any) -> Tensor | tuple[Tensor, ...]:
    """The tensor with at least three dimensions.

    ``(n,)`` becomes ``(1, n, 1)``, ``(m, n)`` becomes ``(m, n, 1)``. Several tensors, or a list or
    tuple of them, give a tuple.
    """
    given = tensors[0] if len(tensors) == 1 else tensors
    return _C._VariableFunctions.atleast_3d(given)


def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The tensors expanded to their common shape, as views.

    Raises:
        RuntimeError: if the shapes do not broadcast.
    """
    return tuple(_C._VariableFunctions.broadcast_tensors(_unpacked(tensors)))


def meshgrid(
    *tensors: Tensor | Sequence[Tensor], indexing: str | None = None
) -> tuple[Tensor, ...]:
    """Coordinates of the grid that vectors span, one tensor of the grid's shape per vector.

    Args:
        tensors: vectors or numbers of one dtype.
        indexing: ``"ij"`` (the default) for dimensions in the vectors' order, ``"xy"`` for the
            first two exchanged.

    Raises:
        RuntimeError: for tensors of two or more dimensions, or another word.
    """
    vectors = _unpacked(tensors)
    if indexing is None:
        return tuple(_C._VariableFunctions.meshgrid(vectors))
    return tuple(_C._VariableFunctions.meshgrid(vectors, indexing=indexing))


def nonzero(
    input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False
) -> Tensor | tuple[Tensor, ...]:
    """The indices of the elements that are not zero, in row-major order.

    Returns:
        A matrix of shape (count, dimensions), or with ``as_tuple`` one vector per dimension.
    """
    if as_tuple:
        return tuple(_C._VariableFunctions.nonzero_numpy(input))
    if out is None:
        return _C._VariableFunctions.nonzero(input)
    return _C._VariableFunctions.nonzero(input, out=out)


def tensordot(
    a: Tensor,
    b: Tensor,
    dims: int | Tensor | Sequence[int] | Sequence[Sequence[int]] = 2,
    out: Tensor | None = None,
) -> Tensor:
    """Sums of products over dimensions of both tensors, which leave the result.

    Args:
        a: the left tensor.
        b: the right tensor.
        dims: how many of the last dimensions of ``a`` meet the first of ``b``, or the two lists of
            dimensions that meet.
        out: where the result goes.

    Raises:
        TypeError: if ``a`` or ``b`` is no tensor.
        RuntimeError: if sizes of dimensions that meet differ, or ``dims`` is out of range.
    """
    expect_tensor("tensordot", "a", 1, a)
    expect_tensor("tensordot", "b", 2, b)
    if isinstance(dims, Tensor):
        dims = cast("Any", dims.tolist())
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        left, right = list(range(-dims, 0)), list(range(dims))
    else:
        first, second = cast("Sequence[Any]", dims)
        left = [first] if isinstance(first, int) else list(first)
        right = [second] if isinstance(second, int) else list(second)
    if out is None:
        return _C._VariableFunctions.tensordot(a, b, left, right)
    return _C._VariableFunctions.tensordot(a, b, left, right, out=out)


def einsum(*args: Any) -> Tensor:
    """Sums of products written with one letter per dimension: ``einsum("ij,jk->ik", a, b)``.

    The operands may also come as one list, or each followed by the numbers of its dimensions
    (and last those of the result): ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.

    Raises:
        RuntimeError: for an equation that does not fit the operands.
        ValueError: for fewer than two arguments, or numbers outside 0 to 51.
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, "
            "or at least one operand and its subscripts list"
        )
    if isinstance(args[0], Tensor):
        equation, operands = _equation_of_lists(args)
    else:
        equation, *operands = args
        operands = list(_unpacked(tuple(operands)))
    # (An override is given the operands one by one, however they came.)
    if _C._has_torch_function(operands):
        result: Tensor = _C._handle_torch_function(
            einsum, "torch.functional.einsum", operands, (equation, *operands), {}
        )
        return result
    return _C._VariableFunctions.einsum(equation, operands)


einsum._asks_overrides = True  # type: ignore[attr-defined]


def _equation_of_lists(args: tuple[Any, ...]) -> tuple[str, list[Tensor]]:
    """The equation and operands of operands that alternate with lists of dimension numbers."""
    pairs, rest = divmod(len(args), 2)
    terms = [_letters(args[2 * i + 1]) for i in range(pairs)]
    equation = ",".join(terms)
    if rest:
        equation += "->" + _letters(args[-1])
    return equation, list(args[: 2 * pairs : 2])


def _letters(numbers: Sequence[Any]) -> str:
    letters = []
    for number in numbers:
        if number is Ellipsis:
            letters.append("...")
        elif 0 <= number < len(_LETTERS):
            letters.append(_LETTERS[number])
        else:
            raise ValueError(
                "einsum(): subscript in subscript list is not within the valid range [0, 52)"
            )
    return "".join(letters)


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The distinct elements, or the distinct slices along ``dim``, in ascending order.

    Args:
        input: the tensor; without ``dim`` it is flattened.
        sorted: whether the result must be in order; it always is.
        return_inverse: give for each element (or slice) the index of its like in the result too.
        return_counts: give how often each occurs too.
        dim: the dimension whose slices are compared.

    Returns:
        The tensor, or a tuple of it and what else was requested.

    Raises:
        RuntimeError: for slices without elements.
    """
    requested = {"return_inverse": return_inverse, "return_counts": return_counts}
    if dim is None:
        values, inverse, counts = _C._VariableFunctions._unique2(input, sorted, **requested)
    else:
        values, inverse, counts = _C._VariableFunctions.unique_dim(input, dim, sorted, **requested)
    return _with_requested(values, inverse, counts, requested)


def _with_requested(
    values: Tensor, inverse: Tensor, counts: Tensor, requested: dict[str, bool]
) -> Tensor | tuple[Tensor, ...]:
    more = [inverse] if requested["return_inverse"] else []
    if requested["return_counts"]:
        more.append(counts)
    return (values, *more) if more else values


def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The elements, or the slices along ``dim``, without those that equal their predecessor.

    Args:
        input: the tensor; without ``dim`` it is flattened.
        return_inverse: give for each element (or slice) the number of its run too.
        return_counts: give the length of each run too.
        dim: the dimension whose slices are compared.

    Returns:
        The tensor, or a tuple of it and what else was requested.

    Raises:
        RuntimeError: for slices without elements.
    """
    requested = {"return_inverse": return_inverse, "return_counts": return_counts}
    found = _C._VariableFunctions.unique_consecutive(input, dim=dim, **requested)
    return _with_requested(*found, requested)


_make_overridable(globals(), [name for name in __all__ if name != "einsum"])
