"""Grad mode and inference mode as contexts and decorators.

How they decorate is in ``pullback._contextlib``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .. import _C
from .._contextlib import _decorate

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = [
    "enable_grad",
    "inference_mode",
    "is_multithreading_enabled",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

F = TypeVar("F", bound=Callable[..., Any])


class _Mode(_C._ModeContext):
    """A mode that can be entered, and used as a decorator."""

    def clone(self) -> _Mode:
        """A fresh context of the same setting."""
        return type(self)()

    def __call__(self, function: F) -> F:
        return cast("F", _decorate(self.clone, function))


# The two that programs enter most are made natively, without a Python frame; also as decorators
# without brackets.


class no_grad(_C._NoGrad, _Mode):
    """Within it nothing is recorded: results do not require grad."""


class enable_grad(_C._EnableGrad, _Mode):
    """Within it ops are recorded, also inside of :class:`no_grad`."""


class set_grad_enabled(_Mode):
    """Sets grad mode at once; as a context it also puts the old one back."""

    def __init__(self, mode: bool) -> None:
        self.prev = _C.is_grad_enabled()
        self.mode = mode
        _C._set_grad_enabled(mode)
        self._configure("grad", mode)

    def __enter__(self) -> None:
        _C._set_grad_enabled(self.mode)

    def __exit__(self, *exception: object) -> None:
        _C._set_grad_enabled(self.prev)

    def __call__(self, function: F) -> F:
        """Makes the function run in this mode."""
        # Decorating undoes what the constructor did.
        _C._set_grad_enabled(self.prev)
        return super().__call__(function)

    def clone(self) -> set_grad_enabled:
        """A fresh context of the same setting."""
        return type(self)(self.mode)

    def __str__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    __repr__ = __str__


class inference_mode(_Mode):
    """Within it nothing is recorded, and new tensors can never take part in recording."""

    def __new__(cls, mode: Any = True) -> Any:
        """A mode, or a function that runs in it (the form without brackets)."""
        if isinstance(mode, bool):
            return super().__new__(cls)
        return _decorate(cls, mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode
        self._configure("inference", mode)

    def clone(self) -> inference_mode:
        """A fresh context of the same setting."""
        return type(self)(self.mode)


class _Threading(threading.local):
    enabled = True


_threading = _Threading()


def is_multithreading_enabled() -> bool:
    """What :class:`set_multithreading_enabled` set on this thread; True at first."""
    return _threading.enabled


class set_multithreading_enabled(_Mode):
    """Accepted for compatibility: gradients are the same bits with any number of threads.

    Takes effect at once; as a context it also puts the old setting back.
    """

    def __init__(self, mode: bool) -> None:
        self.prev = _threading.enabled
        self.mode = mode
        _threading.enabled = mode

    def __enter__(self) -> None:
        _threading.enabled = self.mode

    def __exit__(self, *exception: object) -> None:
        _threading.enabled = self.prev

    def __call__(self, function: F) -> F:
        """Makes the function run with this setting."""
        _threading.enabled = self.prev
        return super().__call__(function)

    def clone(self) -> set_multithreading_enabled:
        """A fresh context of the same setting."""
        return type(self)(self.mode)


class _unsafe_preserve_version_counter(_Mode):
    """Writes within it are not counted: the tensors' versions are put back at its end.

    Backward cannot tell then that a saved value was overwritten.
    """

    def __init__(self, tensors: Tensor | tuple[Tensor, ...]) -> None:
        self.tensors = tensors if isinstance(tensors, tuple) else (tensors,)
        if not all(isinstance(tensor, _C.TensorBase) for tensor in self.tensors):
            raise AssertionError("Expected tensors to be a tensor or a tuple of tensors")
        self.versions = [tensor._version for tensor in self.tensors]

    def __enter__(self) -> None:
        """Changes nothing."""

    def __exit__(self, *exception: object) -> None:
        _C._unsafe_set_version_counter(self.tensors, self.versions)
