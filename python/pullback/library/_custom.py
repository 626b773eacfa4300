"""The result of :func:`torch.library.custom_op`: an op that is called as its function is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from ._overload import CustomOverload


class CustomOpDef:
    """An op and its function; further rules are registered by its methods."""

    def __init__(self, overload: CustomOverload, function: Callable[..., Any]) -> None:
        """Made by :func:`custom_op`."""
        self._opoverload = overload
        self._init_fn = function
        self._namespace = overload.namespace
        self._name = overload._opname
        self._qualname = f"{overload.namespace}::{overload._opname}"
        self.__name__ = getattr(function, "__name__", self._name)
        self.__doc__ = function.__doc__
        self._disabled: dict[str, Callable[..., Any]] = {}

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the op."""
        return self._opoverload(*args, **kwargs)

    def register_kernel(
        self, device_types: Any, fn: Callable[..., Any] | None = None, /
    ) -> Callable[..., Any]:
        """See :func:`torch.library.register_kernel`; replaces the kernel for such a device."""
        from . import _keys_of

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            for key in _keys_of("default" if device_types is None else device_types):
                self._opoverload.kernels[key] = function
            return function

        return register if fn is None else register(fn)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """See :func:`torch.library.register_fake`."""
        self._opoverload.fake = fn
        return fn

    def register_autograd(
        self,
        backward: Callable[..., Any],
        /,
        *,
        setup_context: Callable[..., Any] | None = None,
    ) -> None:
        """See :func:`torch.library.register_autograd`."""
        self._opoverload.register_autograd(backward, setup_context)

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """See :func:`torch.library.register_vmap`."""
        from . import register_vmap

        return register_vmap(self, func)

    def register_torch_dispatch(
        self, torch_dispatch_class: type, fn: Callable[..., Any] | None = None, /
    ) -> Any:
        """See :func:`torch.library.register_torch_dispatch`."""
        from . import register_torch_dispatch

        return register_torch_dispatch(self, torch_dispatch_class, fn)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """See :func:`torch.library.register_autocast`."""
        from . import register_autocast

        register_autocast(self, device_type, cast_inputs)

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """Lets calls inside do without the kernel for a type of device, or with it again."""
        from . import _keys_of

        (key,) = _keys_of(device_type)
        kernels = self._opoverload.kernels
        before = dict(kernels)
        if enabled and key in self._disabled:
            kernels[key] = self._disabled[key]
        elif not enabled and key in kernels:
            self._disabled[key] = kernels.pop(key)
        try:
            yield
        finally:
            kernels.clear()
            kernels.update(before)
