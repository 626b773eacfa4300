"""The public ``vmap``; its implementation is in ``func``, which is loaded at the first call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

__all__ = ["vmap"]

P = ParamSpec("P")
R = TypeVar("R")


def vmap(
    func: Callable[P, R],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[P, R]:
    """The function ``g`` with ``g(xs)[i] = func(xs[i])`` for every example ``i`` of a batch.

    ``func`` runs once; every op in it computes all examples. It must not look at single elements
    (``item()``, ``if x > 0``), for they differ between examples, nor write batched values into
    tensors that are not batched.

    Args:
        func: takes tensors and other things, in trees, and returns tensors, in trees.
        in_dims: which dimension counts examples, for each positional input: an int for all of
            them, or a tuple with an int, a tree of ints or None (the same for all examples) for
            each. Arguments by keyword are the same for all examples.
        out_dims: where that dimension goes, for each output: an int for all, or a tree of ints.
            None is for outputs that are the same for all examples and stay as they are.
        randomness: what random ops do: ``"error"`` refuses them, ``"different"`` draws for each
            example, ``"same"`` once for all.
        chunk_size: compute so many examples at a time, to save memory; None computes all at once.

    Returns:
        A function of the same arguments, each with its batch dimension.

    Raises:
        RuntimeError: for another ``randomness``.
        ValueError: for a ``chunk_size`` below 1. The function returned raises it for inputs and
            outputs that ``in_dims`` and ``out_dims`` do not fit, for batches of different sizes
            and for outputs that are no tensors; RuntimeError for what ``func`` must not do.

    Example:
        >>> import pullback as torch
        >>> x, y = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 10.0])
        >>> torch.vmap(torch.dot, in_dims=(0, None))(x, y)
        tensor([21., 43.])
    """
    # (With the package come trees and all other transforms.)
    from .func._vmap import batched_function

    return batched_function(func, in_dims, out_dims, randomness, chunk_size)
