"""Ops by namespace, name and overload: ``torch.ops.aten.mul.Tensor``.

Beside ``aten``, the namespace ``profiler`` has the functions by which ranges are opened and closed.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ._ops import aten as aten

__all__ = ["aten", "profiler"]


def _enter(name: str, args: str | None = None) -> Any:
    from .autograd.profiler import _enter as enter

    return enter(name, args)


def _exit(handle: Any) -> None:
    handle.close()


profiler = SimpleNamespace(
    _record_function_enter=_enter,
    _record_function_enter_new=_enter,
    _record_function_exit=_exit,
)
