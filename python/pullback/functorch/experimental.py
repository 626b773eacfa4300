"""The names that ``functorch.experimental`` re-exports."""

from __future__ import annotations

from .._functorch.apis import chunk_vmap
from .._functorch.batch_norm_replacement import replace_all_batch_norm_modules_
from ..func import functionalize, hessian, jacfwd, jvp

__all__ = [
    "chunk_vmap",
    "functionalize",
    "hessian",
    "jacfwd",
    "jvp",
    "replace_all_batch_norm_modules_",
]
