"""``vmap`` and the sizes of its chunks, under the names of PyTorch's module."""

from __future__ import annotations

from .._vmap import vmap

__all__ = ["get_chunk_sizes", "vmap"]


def get_chunk_sizes(total_elems: int, chunk_size: int) -> list[int]:
    """How ``total_elems`` are cut into chunks of ``chunk_size``; the last one takes the rest."""
    whole, rest = divmod(total_elems, chunk_size)
    return [chunk_size] * whole + ([rest] if rest else [])
