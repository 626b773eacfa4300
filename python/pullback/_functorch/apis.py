"""The transforms, and ``chunk_vmap``, which is ``vmap`` with a number of chunks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._vmap import vmap
from ..func import grad, grad_and_value
from ..func._vmap import Inputs

__all__ = ["chunk_vmap", "grad", "grad_and_value", "vmap"]


def chunk_vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    chunks: int = 2,
) -> Callable[..., Any]:
    """``vmap`` in so many chunks, one after the other, to save memory.

    Args:
        func: as for :func:`pullback.vmap`.
        in_dims: as there.
        out_dims: as there.
        randomness: as there.
        chunks: how many there are at most; the last one may be shorter than the others.

    Raises:
        ValueError: for fewer than one chunk; the function returned raises what
            :func:`pullback.vmap` does.

    Example:
        >>> import pullback as torch
        >>> from pullback._functorch.apis import chunk_vmap
        >>> chunk_vmap(torch.sin, chunks=3)(torch.zeros(7)).shape
        torch.Size([7])
    """
    if chunks < 1:
        raise ValueError(f"vmap: chunks should be greater than 0. (got {chunks})")

    @functools.wraps(func)
    def chunked(*args: Any, **kwargs: Any) -> Any:
        size = Inputs.of(func, in_dims, args).size
        # (An empty batch has no chunks.)
        length = -(-size // chunks) if size else None
        return vmap(func, in_dims, out_dims, randomness, chunk_size=length)(*args, **kwargs)

    return chunked
