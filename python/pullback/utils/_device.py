"""``with torch.device("cpu"):`` and ``set_default_device``: where new tensors are made.

CUDA devices that are not there are refused at once, those of other backends when something is made.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import _C
from ..overrides import (
    TorchFunctionMode,
    _get_current_function_mode_stack,
    _pop_mode,
    _push_mode,
)

if TYPE_CHECKING:
    from typing_extensions import Self

CURRENT_DEVICE: Any = None


@functools.cache
def _device_constructors() -> frozenset[Callable[..., Any]]:
    """The functions that make tensors on a device that may be named."""
    names = (
        "arange bartlett_window blackman_window empty empty_permuted empty_strided eye full "
        "hamming_window hann_window kaiser_window linspace logspace ones rand randint randn "
        "randperm range scalar_tensor tril_indices triu_indices zeros"
    )
    found = [getattr(_C._VariableFunctions, name, None) for name in names.split()]
    return frozenset(filter(None, (*found, _C.asarray, _C.as_tensor, _C.tensor)))


class DeviceContext(TorchFunctionMode):
    """New tensors are made on this device if none is named.

    It is the outermost mode, whenever it is entered, so that entering and leaving other modes in
    between keeps their order. Invariant: there is one of them at most.
    """

    def __init__(self, device: Any) -> None:
        """Takes the device.

        Raises:
            RuntimeError: for a CUDA device that is not there; what needs another backend is refused
                where it is made.
        """
        super().__init__()
        self.device = _C.device(device)
        if self.device.type == "cuda":
            _C._check_device(self.device)
        self._before: list[tuple[DeviceContext | None, Any]] = []

    def __enter__(self) -> Self:
        global CURRENT_DEVICE
        self._before.append((_replace_outermost(self), CURRENT_DEVICE))
        CURRENT_DEVICE = self.device
        return self

    def __exit__(self, *error: object) -> None:
        global CURRENT_DEVICE
        outer, CURRENT_DEVICE = self._before.pop()
        _replace_outermost(outer)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Makes the call, with the device if none is given."""
        kwargs = kwargs or {}
        if func in _device_constructors() and kwargs.get("device") is None:
            kwargs = {**kwargs, "device": self.device}
        return func(*args, **kwargs)


class _Entered(threading.local):
    """The contexts of the devices that were entered, innermost last, and of the default."""

    def __init__(self) -> None:
        self.contexts: list[DeviceContext] = []
        self.default: DeviceContext | None = None


_entered = _Entered()


def _enter(device: Any) -> Any:
    """Runs when a device is entered."""
    _entered.contexts.append(DeviceContext(device).__enter__())
    return device


def _leave() -> None:
    """Runs when a device is left."""
    _entered.contexts.pop().__exit__()


def set_default(device: Any) -> None:
    """Does the work of ``set_default_device``.

    Raises:
        RuntimeError: for a device that this build has not.
    """
    context = None if device is None else DeviceContext(device)
    if _entered.default is not None:
        _entered.default.__exit__()
    _entered.default = None if context is None else context.__enter__()


def default() -> Any:
    """The device of new tensors if none is named, with its number if it has one."""
    stack = _get_current_function_mode_stack()
    context = stack[0] if stack and isinstance(stack[0], DeviceContext) else _entered.default
    if context is None:
        return _C.device("cpu")
    if context.device.index is not None:
        return context.device
    return _C._VariableFunctions.empty((0,), device=context.device).device


def _replace_outermost(context: DeviceContext | None) -> DeviceContext | None:
    """Puts a context below all other modes, in place of the previous one; returns that."""
    modes = [_pop_mode() for _ in range(_C._len_torch_function_stack())]
    outermost = modes[-1] if modes else None
    replaced = outermost if isinstance(outermost, DeviceContext) else None
    if replaced is not None:
        modes.pop()
    if context is not None:
        _push_mode(context)
    for mode in reversed(modes):
        _push_mode(mode)
    return replaced


def set_device(device: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: what the function makes is on this device if none is named.

    Args:
        device: the device.
    """
    from ._contextlib import context_decorator

    return lambda function: context_decorator(lambda: DeviceContext(device), function)
