"""Autocast as a context and a decorator, and what custom functions need to take part in it.

Which ops run in which dtypes is said in the definitions of the ops; here are only the settings of
the thread. Functions that are made of ops in Python and are one op in PyTorch say their policy by
:func:`casts`.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

from .. import _C

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

F = TypeVar("F", bound=Callable[..., Any])


def is_autocast_available(device_type: str) -> bool:
    """Whether a type of devices has autocast.

    Args:
        device_type: ``"cpu"``, ``"cuda"`` and so on, as ``tensor.device.type`` has it.

    Raises:
        RuntimeError: if there is no such type.
    """
    return _C._is_autocast_available(device_type)


def autocast_decorator(autocast_instance: autocast, func: F) -> F:
    """The function run inside of the context."""

    @functools.wraps(func)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with autocast_instance.again():
            return func(*args, **kwargs)

    return cast("F", inside)


def _check_device_type(device_type: object) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


class autocast:
    """Runs the ops inside of it in dtypes that suit them; tensors keep theirs.

    Matrix products, convolutions and recurrent layers run in the low dtype; losses, decompositions
    and other functions that suffer from it in ``float32``; where tensors are joined, in the widest
    of theirs. Casts are recorded: gradients have the dtypes of the tensors they are for. Ops that
    write into tensors (in place, ``out=``) are left alone, and so are ``float64``, complex numbers
    and integers. Backward is best run outside. The settings are the thread's own.

    Args:
        device_type: the type of devices whose tensors are meant.
        dtype: the low dtype, ``bfloat16`` or ``float16``; by default the one that
            ``torch.get_autocast_dtype`` gives.
        enabled: False makes a region without autocast inside of one with it.
        cache_enabled: whether a weight that several ops take in the low dtype is cast once (until
            the outermost region ends, or the weight changes); by default as around it.

    Raises:
        ValueError: if ``device_type`` is no string.
        RuntimeError: if there is no autocast for it.
    """

    def __init__(
        self,
        device_type: str,
        dtype: _C.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        _check_device_type(device_type)
        if not is_autocast_available(device_type):
            raise RuntimeError(
                f"User specified an unsupported autocast device_type '{device_type}'"
            )
        self.device = device_type
        self.fast_dtype = _C.get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = (
            _C.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        )
        self._enabled = enabled and self._is_possible()
        # A context may be entered again before it is left.
        self._previous: list[tuple[bool, _C.dtype, bool]] = []

    def _is_possible(self) -> bool:
        """Whether there is something to turn on; warns if there is not."""
        if self.device.partition(":")[0] == "cuda":
            # (This build has no CUDA backend.)
            reason = "CUDA is not available or torch_xla is imported. Disabling autocast."
        elif self.fast_dtype in (_C.bfloat16, _C.float16):
            return True
        else:
            name = self.device.upper()
            reason = (
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of torch.bfloat16, torch.float16 currently."
            )
        # (The older names are classes with a constructor of their own.)
        warnings.warn(reason, stacklevel=3 if type(self) is autocast else 4)
        return False

    def __enter__(self) -> autocast:
        previous = (
            _C.is_autocast_enabled(self.device),
            _C.get_autocast_dtype(self.device),
            _C.is_autocast_cache_enabled(),
        )
        _C.set_autocast_cache_enabled(self._cache_enabled)
        _C.set_autocast_enabled(self.device, self._enabled)
        _C.set_autocast_dtype(self.device, self.fast_dtype)
        _C.autocast_increment_nesting()
        self._previous.append(previous)
        return self

    def __exit__(self, *exception: object) -> None:
        enabled, dtype, cache_enabled = self._previous.pop()
        if _C.autocast_decrement_nesting() == 0:
            _C.clear_autocast_cache()
        _C.set_autocast_enabled(self.device, enabled)
        _C.set_autocast_dtype(self.device, dtype)
        _C.set_autocast_cache_enabled(cache_enabled)

    def again(self) -> autocast:
        """A context of the same settings, for another call, perhaps on another thread."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, _previous=[])
        return other

    def __call__(self, func: F) -> F:
        """Makes a function run inside of this context.

        Raises:
            TypeError: if it is no function.
        """
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. Did you "
                "mean to use autocast as a context manager? For example:\n"
                "    with torch.autocast(device_type=...):\n        output = model(input)"
            )
        return autocast_decorator(self, func)


def _cast(value: Any, device_type: str, dtype: _C.dtype) -> Any:
    """The value with the tensors in it that autocast may touch in ``dtype``."""
    if isinstance(value, _C.TensorBase):
        tensor: Any = value
        is_eligible = (
            tensor.is_floating_point()
            and tensor.device.type == device_type
            and tensor.dtype is not _C.float64
        )
        return tensor.to(dtype) if is_eligible else tensor
    numpy = sys.modules.get("numpy")
    if isinstance(value, (str, bytes)) or (numpy and isinstance(value, numpy.ndarray)):
        return value
    if isinstance(value, Mapping):
        return {
            _cast(key, device_type, dtype): _cast(item, device_type, dtype)
            for key, item in value.items()
        }
    if isinstance(value, Iterable):
        items = (_cast(item, device_type, dtype) for item in value)
        if not isinstance(value, (list, tuple)):
            return items
        # A named tuple takes its fields one by one.
        make = getattr(type(value), "_make", type(value))
        return make(items)
    return value


def casts(policy: str) -> Callable[[F], F]:
    """Makes a function take part in autocast on the CPU as one op.

    Args:
        policy: ``"lower"`` and ``"fp32"`` cast its tensors, ``"none"`` leaves them as they are;
            the ops inside run without autocast.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            if not _C._is_any_autocast_enabled() or not _C.is_autocast_enabled("cpu"):
                return function(*args, **kwargs)
            if policy != "none":
                dtype = _C.float32 if policy == "fp32" else _C.get_autocast_dtype("cpu")
                args, kwargs = _cast(args, "cpu", dtype), _cast(kwargs, "cpu", dtype)
            with autocast("cpu", enabled=False):
                return function(*args, **kwargs)

        return cast("F", inside)

    return decorate


def custom_fwd(
    fwd: Callable[..., Any] | None = None,
    *,
    device_type: str,
    cast_inputs: _C.dtype | None = None,
) -> Any:
    """Makes the ``forward`` of a custom function remember the state of autocast for its backward.

    Args:
        fwd: the ``forward``, whose first argument is the context; None gives a decorator.
        device_type: the type of devices whose autocast is meant.
        cast_inputs: if given, and autocast is on, floating-point tensors among the arguments
            (``float64`` aside) are cast to it, and ``forward`` runs with autocast off.

    Raises:
        ValueError: if ``device_type`` is no string.
    """
    _check_device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args: Any, **kwargs: Any) -> Any:
        context, is_enabled = args[0], _C.is_autocast_enabled(device_type)
        context._dtype = _C.get_autocast_dtype(device_type)
        context._fwd_used_autocast = is_enabled and cast_inputs is None
        if cast_inputs is None or not is_enabled:
            return fwd(*args, **kwargs)
        args = (context, *_cast(args[1:], device_type, cast_inputs))
        with autocast(device_type, enabled=False):
            return fwd(*args, **_cast(kwargs, device_type, cast_inputs))

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Makes the ``backward`` of a custom function run in the state of autocast of its forward.

    Args:
        bwd: the ``backward`` of a function whose ``forward`` has :func:`custom_fwd`; None gives a
            decorator.
        device_type: the type of devices whose autocast is meant.

    Raises:
        ValueError: if ``device_type`` is no string.
    """
    _check_device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args: Any, **kwargs: Any) -> Any:
        context = args[0]
        with autocast(device_type, context._dtype, enabled=context._fwd_used_autocast):
            return bwd(*args, **kwargs)

    return backward
