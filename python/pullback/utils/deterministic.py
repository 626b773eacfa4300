"""How uninitialized memory is filled while algorithms must be deterministic."""

from __future__ import annotations

import sys
from types import ModuleType

from .. import _deterministic

__all__ = ["fill_uninitialized_memory"]

fill_uninitialized_memory: bool


class _Deterministic(ModuleType):
    """The module, whose setting reaches those who fill the memory."""

    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether ``torch.empty``, ``resize_`` and their like fill it.

        With NaN, the largest number of an integer dtype, or True; only while
        :func:`torch.use_deterministic_algorithms` asks for deterministic algorithms.
        """
        return _deterministic._fills_uninitialized_memory()

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, fills: bool) -> None:
        _deterministic._set_fill_uninitialized_memory(fills)


sys.modules[__name__].__class__ = _Deterministic
