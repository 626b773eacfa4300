"""Forward mode: dual tensors carry a tangent through every op, the derivative in its direction.

Within a level, ``make_dual(x, v)`` is ``x`` with the tangent ``v``; for ``y = f(make_dual(x, v))``
the tangent of ``y`` is the Jacobian of ``f`` times ``v``, computed along with ``y``. There is one
level at a time. The work is native: see ``crates/pullback/src/autograd/forward/dual.rs``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _C
from .._contextlib import _decorate
from .._tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

# The level that was entered last; -1 without level.
_current_level = -1


def enter_dual_level() -> int:
    """Opens a level and makes it the current one.

    Returns:
        Its number, 0.

    Raises:
        RuntimeError: if a level is open already.
    """
    global _current_level
    number = _C._enter_dual_level()
    if number != _current_level + 1:
        raise RuntimeError(
            f"Entered forward AD level {number}, but the current level is {_current_level}: was "
            "`_current_level` changed by hand?"
        )
    _current_level = number
    return number


def exit_dual_level(*, level: int | None = None) -> None:
    """Ends a level; all its tangents are gone.

    Args:
        level: its number; the current one if left out.

    Raises:
        RuntimeError: unless it is the current level.
    """
    global _current_level
    if level is None:
        level = _current_level
    if level != _current_level:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This "
            "is not supported."
        )
    _C._exit_dual_level(level)
    _current_level = level - 1


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A tensor that shares memory with ``tensor`` and has the tangent ``tangent``.

    The tangent is kept as it is if it lies in its memory as the tensor does, and not in the same
    memory, else as a copy.
    Gradients flow through both.

    Args:
        tensor: the value, of a real or complex floating dtype.
        tangent: of the same shape.
        level: the number of the level; the current one if left out.

    Raises:
        RuntimeError: without level, for tensors that have a tangent already, for another shape.
        ValueError: for dtypes without derivative.
    """
    if level is None:
        level = _current_level
    if level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    for value, role in ((tensor, "primal"), (tangent, "tangent")):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(
                f"Expected {role} to be floating point or complex, but got: {value.dtype}"
            )
    dual: Tensor = _call_or_override(_C._make_dual, tensor, tangent, level)
    return dual


def _call_or_override(function: Callable[..., Any], *args: Any) -> Any:
    """Calls a function, or the ``__torch_function__`` of the first argument whose class has one."""
    from .._tensor import Tensor

    kinds = (type(value) for value in args if isinstance(value, _C.TensorBase))
    for kind in kinds:
        override = getattr(kind, "__torch_function__", None)
        is_default = kind is Tensor or override is _C._disabled_torch_function_impl
        if override is not None and not is_default and _C._is_torch_function_enabled():
            return override(function, (kind,), args, {})
    return function(*args)


class UnpackedDualTensor(NamedTuple):
    """The result of :func:`unpack_dual`: the value without tangent, and the tangent or None."""

    primal: Tensor
    tangent: Tensor | None


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value of a tensor without its tangent, and the tangent if it has one.

    The value shares memory with ``tensor``; gradients flow through both. Without level it is the
    tensor itself.

    Args:
        tensor: any tensor.
        level: the number of the level; the current one if left out.

    Raises:
        RuntimeError: for numbers that no level can have.
    """
    if level is None:
        level = _current_level
    if level < 0:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*_call_or_override(_C._unpack_dual, tensor, level))


class dual_level:
    """A level, as a context or around every call of a function.

    As a context it gives the number of the level.
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exception: object) -> None:
        exit_dual_level()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Makes the function run in a level of its own."""
        return _decorate(type(self), function)


_is_fwd_grad_enabled = _C._is_fwd_grad_enabled


class _set_fwd_grad_enabled:
    """Turns forward mode on or off on this thread, at once; as a context it undoes that."""

    def __init__(self, mode: bool) -> None:
        self.prev = _C._is_fwd_grad_enabled()
        self.mode = mode
        _C._set_fwd_grad_enabled(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        _C._set_fwd_grad_enabled(self.prev)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Makes the function run in this mode."""
        # Decorating undoes what the constructor did.
        _C._set_fwd_grad_enabled(self.prev)
        mode = self.mode
        return _decorate(lambda: _set_fwd_grad_enabled(mode), function)
