"""Functions of several tensors at once, and of shapes, that PyTorch has in Python.

Blocks and products of any number of tensors, histograms in grids, coordinates, and shapes that
broadcast. The ops do the work; here arguments are sorted, and results get their names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _C
from ._overridable import make_overridable as _make_overridable
from ._question import expect_tensor
from ._tensor import Tensor

__all__ = [
    "block_diag",
    "broadcast_shapes",
    "cartesian_prod",
    "cdist",
    "histogramdd",
    "unravel_index",
]


def _tensors(tensors: tuple[Any, ...]) -> tuple[Tensor, ...]:
    for position, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"expected Tensor as element {position} in argument 0, "
                f"but got {type(tensor).__name__}"
            )
    return tensors


def block_diag(*tensors: Tensor) -> Tensor:
    """The matrices along a diagonal, zeros elsewhere; numbers and vectors are rows.

    Raises:
        RuntimeError: for a tensor of more than two dimensions.
    """
    return _C._VariableFunctions.block_diag(_tensors(tensors))


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All tuples of one element of each vector, a row each; a single vector as it is.

    Raises:
        RuntimeError: for tensors that are not vectors of one dtype, or none at all.
    """
    return _C._VariableFunctions.cartesian_prod(_tensors(tensors))


def broadcast_shapes(*shapes: int | Sequence[int] | None) -> _C.Size:
    """The shape that tensors of these shapes broadcast to; a number is a shape of one dimension.

    Raises:
        RuntimeError: if they do not broadcast, or one is no shape.
        ValueError: for a negative size.
    """
    result: list[int] = []
    for position, shape in enumerate(shapes):
        sizes = _sizes(shape)
        result = [1] * (len(sizes) - len(result)) + result
        for dim in range(-1, -len(sizes) - 1, -1):
            size = sizes[dim]
            if size < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if result[dim] == 1:
                result[dim] = size
            elif size not in (1, result[dim]):
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {size} at {dim}! "
                    f"Mismatching argument at index {position} had {shape}; but expected shape "
                    f"should be broadcastable to {result}"
                )
    return _C.Size(result)


def _sizes(shape: Any) -> tuple[int, ...]:
    if shape is None:
        return ()
    if isinstance(shape, int):
        return (shape,)
    if isinstance(shape, (tuple, list)):
        return tuple(_C.Size(shape))
    raise RuntimeError(
        f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {shape}"
    )


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The coordinates of linear indices into a tensor of ``shape``, one per dimension.

    Args:
        indices: integers; those outside of the shape wrap around.
        shape: the sizes, or one of them.

    Raises:
        TypeError: for indices or sizes that are not integers.
        ValueError: for a negative size.
    """
    if isinstance(shape, int):
        shape = (shape,)
    elif not isinstance(shape, (tuple, list)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    for size in shape:
        if not isinstance(size, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(size)}")
    return tuple(_C._VariableFunctions._unravel_index(indices, tuple(shape)))


def histogramdd(
    input: Tensor,
    bins: int | Sequence[int] | Sequence[Tensor],
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """How many points, rows of the last dimension, lie in each box of a grid.

    Args:
        input: the points, of float or double.
        bins: how many bins of equal width each dimension has, one number for all, or the edges of
            each dimension in ascending order.
        range: the first and last edge of each dimension in turn; from the smallest to the largest
            coordinate if it is ``None``.
        weight: what each point counts.
        density: whether the volumes over the boxes add up to 1.

    Returns:
        A named tuple ``(hist, bin_edges)``.

    Raises:
        TypeError: ``input`` is no tensor, or ``bins`` neither a number nor a sequence.
        RuntimeError: for bins, ranges or weights that do not fit.
    """
    functions = _C._VariableFunctions
    expect_tensor("histogramdd", "input", 1, input)
    options: dict[str, Any] = {"weight": weight, "density": density}
    if isinstance(bins, int):
        bins = [bins] * (input.shape[-1] if input.dim() else 0)
    if not isinstance(bins, Sequence):
        kind = type(bins).__name__
        raise TypeError(f"histogramdd(): argument 'bins' (position 2) must be int, not {kind}")
    edges: Sequence[Tensor]
    if len(bins) > 0 and all(isinstance(edge, Tensor) for edge in bins):
        edges = tuple(bins)  # type: ignore[arg-type]
        counts = functions._histogramdd_from_bin_tensors(input, edges, **options)
    else:
        counted: Any = bins
        edges = functions._histogramdd_bin_edges(input, counted, range=range, **options)
        counts = functions._histogramdd_from_bin_cts(input, counted, range=range, **options)
    named = _C._return_type("histogramdd", ["hist", "bin_edges"])
    return named((counts, tuple(edges)))


# In PyTorch these choose whether distances are made of a product of the matrices.
_DISTANCE_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}


def cdist(
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """The ``p``-norms of the differences of each row of ``x1`` and each of ``x2``.

    Args:
        x1: ``(*, P, M)``.
        x2: ``(*, R, M)``; leading dimensions broadcast.
        p: not negative; infinity is the largest difference, 0 counts those that are not zero.
        compute_mode: one of PyTorch's three words. All give the same here: differences are never
            made of products, which lose digits where rows are close.

    Returns:
        ``(*, P, R)``.

    Raises:
        ValueError: another ``compute_mode``.
        RuntimeError: shapes, dtypes or a ``p`` that do not fit.
    """
    if compute_mode not in _DISTANCE_MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return _C._VariableFunctions.cdist(x1, x2, p, _DISTANCE_MODES[compute_mode])


_make_overridable(globals(), __all__)
