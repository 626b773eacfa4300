"""Ops that programs define, under the private name of before :mod:`pullback.library`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from . import library
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
    """Defines an op by its signature, in text or as that of a function; a decorator without one."""
    if func_or_schema is None:
        return functools.partial(custom_op, qualname)
    if isinstance(func_or_schema, str):
        library.define(qualname, func_or_schema)
        return None
    library.define(qualname, library.infer_schema(func_or_schema, mutates_args=()))
    return func_or_schema


def impl(
    qualname: str, *, device_types: str | Sequence[str] = ("cpu", "cuda"), func: Any = None
) -> Any:
    """Registers the kernel of an op; a decorator without one."""
    if func is None:
        return functools.partial(_impl, qualname, device_types)
    return _impl(qualname, device_types, func)


def _impl(qualname: str, device_types: str | Sequence[str], func: Any) -> Any:
    library.register_kernel(qualname, device_types, func)
    return func


def impl_abstract(qualname: str, *, func: Any = None) -> Any:
    """Registers what gives shape and dtype of an op's results; a decorator without one."""
    return library.register_fake(qualname, func)


# What each op saves for its gradient, until its gradient is there.
_SAVING: dict[str, Callable[..., Any]] = {}


def impl_save_for_backward(qualname: str, *, func: Any = None) -> Any:
    """Registers ``func(inputs, output)``, what an op saves for backward."""
    if func is None:
        return lambda given: impl_save_for_backward(qualname, func=given)
    _SAVING[qualname] = func
    return func


def impl_backward(qualname: str, output_differentiability: Any = None, *, func: Any = None) -> Any:
    """Registers ``func(ctx, saved, *grads)``, which gives the gradients by name of input.

    Raises:
        RuntimeError: unless :func:`impl_save_for_backward` was called.
    """
    if func is None:
        return lambda given: impl_backward(qualname, output_differentiability, func=given)
    if qualname not in _SAVING:
        raise RuntimeError(f"{qualname}: impl_save_for_backward() has not been called")
    saving, op = _SAVING[qualname], library._find_op(qualname)
    names = [argument.name for argument in op._parsed.arguments]

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        import types

        given = types.SimpleNamespace(**dict(zip(names, inputs, strict=True)))
        ctx.saved = saving(given, output)

    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        found = func(ctx, ctx.saved, *grads)
        return tuple(found.get(name) for name in names)

    library.register_autograd(qualname, backward, setup_context=setup_context)
    return func
