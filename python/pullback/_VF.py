"""Functions under the names by which code written against PyTorch's internals calls them."""

from __future__ import annotations

from typing import Any

from . import _C
from ._function import unique


def unique_dim(
    input: Any,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Any, Any, Any]:
    """The slices along ``dim`` that differ; inverse and counts are empty unless requested."""
    values, inverse, counts = unique(input, sorted, True, True, dim)
    empty = inverse.new_empty(0)
    return values, inverse if return_inverse else empty, counts if return_counts else empty


def __getattr__(name: str) -> Any:
    return getattr(_C._VariableFunctions, name)
