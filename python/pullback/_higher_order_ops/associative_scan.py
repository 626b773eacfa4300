"""Running results of an associative function along a dimension, as ``cumsum`` is of addition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C
from ..utils import _pytree

__all__ = ["associative_scan"]

_F: Any = _C._VariableFunctions


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """``y[0] = x[0]``, ``y[i] = combine_fn(y[i - 1], x[i])`` along a dimension.

    Gradients flow through the calls, of which there are as many as elements along ``dim``.

    Args:
        combine_fn: gives for two trees of slices, without ``dim``, a tree of the same form.
        xs: a tensor, or a tree of tensors with one size along ``dim``.
        dim: the dimension.
        reverse: begins with the last slice.
        combine_mode: ``pointwise`` or ``generic``; both do the same here.

    Returns:
        A tree of the form of ``xs``, with its shapes.

    Raises:
        ValueError: for arguments of another kind, and trees that do not fit.
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise ValueError(f"Dim must be an int, but got {type(dim)}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(
            f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}"
        )
    leaves, spec = _pytree.tree_flatten(xs)
    if not leaves or not all(isinstance(leaf, _C.TensorBase) for leaf in leaves):
        raise ValueError(f"xs leaves must be tensors, and at least one, but got {xs}")
    lengths = {leaf.shape[dim] for leaf in leaves}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(
            "All xs leaves must have the same number of slices along dim, and at least one, but "
            f"got {sorted(lengths)}"
        )
    slices = list(zip(*(leaf.unbind(dim) for leaf in leaves), strict=True))
    results = _scanned(combine_fn, slices[::-1] if reverse else slices, spec)
    columns = zip(*(results[::-1] if reverse else results), strict=True)
    stacked = [
        _F.stack(list(column), dim % leaf.dim())
        for column, leaf in zip(columns, leaves, strict=True)
    ]
    return _pytree.tree_unflatten(stacked, spec)


def _scanned(combine_fn: Callable[[Any, Any], Any], slices: list[Any], spec: Any) -> list[Any]:
    """The running results, as lists of leaves."""
    results = [list(slices[0])]
    for after in slices[1:]:
        before = _pytree.tree_unflatten(results[-1], spec)
        found, form = _pytree.tree_flatten(
            combine_fn(before, _pytree.tree_unflatten(list(after), spec))
        )
        if form != spec:
            raise ValueError(f"combine_fn must give the form of xs, {spec}, but gave {form}")
        results.append(found)
    return results
