"""The native functions as ``pullback.nn`` uses them: typed, and under three short names.

``nn`` are those of PyTorch's ``_C._nn``, ``linalg`` those of ``_C._linalg``, ``VF`` the rest. A
name that does not exist is an ``AttributeError`` where it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast

from .. import _C

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["VF", "linalg", "nn"]


class Natives(Protocol):
    """A namespace of functions that return a tensor (a cast marks those that return more)."""

    def __getattr__(self, name: str) -> Callable[..., Tensor]: ...


VF = cast("Natives", _C._VariableFunctions)
nn = cast("Natives", _C._nn)
linalg = cast("Natives", _C._linalg)
