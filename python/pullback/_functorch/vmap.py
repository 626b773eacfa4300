"""``vmap`` and the sizes of its chunks, under the names of PyTorch's module."""

from __future__ import annotations

from typing import Any

from .. import Tensor as Tensor
from .._levels import _add_batch_dim as _add_batch_dim
from .._levels import _remove_batch_dim, is_batchedtensor
from .._vmap import vmap
from ..utils._pytree import _broadcast_to_and_flatten as _broadcast_to_and_flatten
from ..utils._pytree import tree_flatten as tree_flatten
from ..utils._pytree import tree_unflatten as tree_unflatten

__all__ = ["get_chunk_sizes", "vmap"]


def get_chunk_sizes(total_elems: int, chunk_size: int) -> list[int]:
    """How ``total_elems`` are cut into chunks of ``chunk_size``; the last one takes the rest."""
    whole, rest = divmod(total_elems, chunk_size)
    return [chunk_size] * whole + ([rest] if rest else [])


def _get_name(func: Any) -> str:
    """What a function is called in errors."""
    return getattr(func, "__name__", None) or repr(func)


def _maybe_remove_batch_dim(
    name: str, batched_output: Any, vmap_level: int, batch_size: int, out_dim: int | None
) -> Any:
    """An output with the dimension of its examples, or as it is where ``out_dim`` is None."""
    if out_dim is None:
        if isinstance(batched_output, Tensor) and is_batchedtensor(batched_output):
            raise ValueError(
                f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None"
            )
        return batched_output
    if not isinstance(batched_output, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type "
            f"{type(batched_output)}. Did you mean to set out_dims= to None for output?"
        )
    return _remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)
