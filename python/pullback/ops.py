"""Ops by namespace, name and overload: ``torch.ops.aten.mul.Tensor``.

Beside ``aten``, the namespace ``profiler`` has the functions by which ranges are opened and closed;
others hold the ops that a program defines (:mod:`torch.library`).
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ._ops import aten as aten

__all__ = ["aten", "profiler"]


class _Namespace:
    """Ops that a program defines: ``torch.ops.mylib``."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if self.__dict__.get("_name") == "prim" and not name.startswith("__"):
            from . import _composite_ops

            if found := _composite_ops.find(name, namespace="prim"):
                return found
        raise AttributeError(
            f"'_OpNamespace' '{self.__dict__.get('_name')}' object has no attribute '{name}'"
        )

    def __repr__(self) -> str:
        return f"<torch.ops.{self._name}>"


def __getattr__(name: str) -> Any:
    """A namespace, which is made when it is first asked for; nothing is in it yet."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, _Namespace(name))


def load_library(path: str) -> None:
    """Defines the ops of a library: one of the crate ``pullback-extension``, or a known one.

    What was compiled for PyTorch cannot be loaded; the ops of torchvision and torchaudio are
    written in Python here.

    Raises:
        OSError: for every other library, as for those that cannot be loaded for other reasons.
        RuntimeError: for one that was built for another version of the border.
    """
    from . import _compiled, _extension_ops

    if _compiled.define(path) or _extension_ops.define(path):
        loaded_libraries.add(str(path))
        return
    raise OSError(
        f"torch.ops.load_library({str(path)!r}): libraries that were compiled for PyTorch cannot "
        "be loaded; torch.library.custom_op() makes an op of a Python function"
    )


loaded_libraries: set[str] = set()


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
