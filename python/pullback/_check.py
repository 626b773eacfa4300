"""``torch._check`` and related functions: conditions that raise a chosen class of error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _C

__all__ = [
    "_assert",
    "_assert_async",
    "_check",
    "_check_index",
    "_check_is_size",
    "_check_not_implemented",
    "_check_tensor_all",
    "_check_tensor_all_with",
    "_check_type",
    "_check_value",
    "_check_with",
]

Message = Callable[[], Any] | str | None
_DEFAULT = "Expected cond to be True, but got False: give `message` to say what was expected."


def _check_with(error_type: type[Exception], cond: Any, message: Message = None) -> None:
    """Raises an error of a class unless a condition holds.

    Args:
        error_type: the class.
        cond: a bool; tensors are for :func:`_check_tensor_all`.
        message: the text, or a function without arguments that gives it.

    Raises:
        TypeError: for another condition.
    """
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        raise error_type(_text(message))


def _text(message: Message) -> str:
    if message is None:
        return _DEFAULT
    return str(message() if callable(message) else message)


def _check(cond: Any, message: Message = None) -> None:
    """Raises a RuntimeError unless the condition holds: see :func:`_check_with`."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: Message = None) -> None:
    """Raises an IndexError unless the condition holds: see :func:`_check_with`."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Message = None) -> None:
    """Raises a ValueError unless the condition holds: see :func:`_check_with`."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Message = None) -> None:
    """Raises a TypeError unless the condition holds: see :func:`_check_with`."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Message = None) -> None:
    """Raises a NotImplementedError unless the condition holds: see :func:`_check_with`."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: int, message: Message = None, *, max: int | None = None) -> None:
    """Raises a RuntimeError unless a number may be a size, and is at most ``max``."""
    _check_with(RuntimeError, i >= 0, message)
    if max is not None:
        _check_with(RuntimeError, i <= max, message)


def _check_tensor_all(cond: Any, message: Message = None) -> None:
    """Raises a RuntimeError unless all elements of a tensor of bools hold.

    Raises:
        TypeError: for what is no such tensor.
    """
    _check_tensor_all_with(RuntimeError, cond, message)


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: Message = None) -> None:
    """Raises an error of a class unless all elements of a tensor of bools hold.

    Raises:
        TypeError: for what is no such tensor.
    """
    if not isinstance(cond, _C.TensorBase):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != _C.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _assert(condition: Any, message: str) -> None:
    """Raises an AssertionError with a message unless a condition holds."""
    if type(condition) is not bool and _C._has_torch_function((condition,)):
        _C._handle_torch_function(_assert, "torch._assert", (condition,), (condition, message), {})
        return
    assert condition, message


def _assert_async(
    input: Any, assert_msg: str = "Expected Tensor with single nonzero value, but got zero"
) -> None:
    """Raises a RuntimeError unless the only element of a tensor is not zero.

    There are no devices on which that would be found out later.
    """
    if not bool(input):
        raise RuntimeError(assert_msg)
