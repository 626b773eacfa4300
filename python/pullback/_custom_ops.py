"""Ops that programs define, under the private name of before :mod:`pullback.library`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ._custom_op import impl as _made
from .library import get_ctx

__all__ = [
    "custom_op",
    "get_ctx",
    "impl",
    "impl_abstract",
    "impl_backward",
    "impl_save_for_backward",
]


def custom_op(qualname: str, func_or_schema: Callable[..., Any] | str | None = None) -> Any:
    """Defines an op by its signature, in text or as that of a function; a decorator without one.

    Args:
        qualname: the op's name with namespace.
        func_or_schema: the function, or the part of a schema that follows the name.

    Raises:
        ValueError: for names and signatures that ops of this kind do not have.
        RuntimeError: if there is one already.
    """
    if func_or_schema is None:
        return functools.partial(custom_op, qualname)
    if isinstance(func_or_schema, str):
        _made.define(qualname, func_or_schema)
        return None
    _made.custom_op(qualname)(func_or_schema)
    return func_or_schema


def _registered(decorator: Callable[..., Any], func: Any) -> Any:
    return decorator if func is None else decorator(func)


def impl(
    qualname: str, *, device_types: str | Sequence[str] = ("cpu", "cuda"), func: Any = None
) -> Any:
    """Registers the kernel of an op; a decorator without one."""
    return _registered(_made.find(qualname).impl(device_types), func)


def impl_abstract(qualname: str, *, func: Any = None) -> Any:
    """Registers the function of shape and dtype of an op's results; a decorator without one."""
    return _registered(_made.find(qualname).impl_abstract(), func)


def impl_save_for_backward(qualname: str, *, func: Any = None) -> Any:
    """Registers ``func(inputs, output)``, what an op saves for backward."""
    return _registered(_made.find(qualname).impl_save_for_backward(), func)


def impl_backward(qualname: str, output_differentiability: Any = None, *, func: Any = None) -> Any:
    """Registers ``func(ctx, saved, *grads)``, which gives the gradients by name of input."""
    return _registered(_made.find(qualname).impl_backward(output_differentiability), func)


def _destroy(qualname: str) -> None:
    """Takes an op and everything that was registered for it away."""
    _made.find(qualname)._destroy()
