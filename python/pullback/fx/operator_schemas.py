"""Arguments of calls by the names of a signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import nn

__all__ = ["ArgsKwargsPair", "normalize_function", "normalize_module"]


class ArgsKwargsPair(NamedTuple):
    """Arguments by position and by name."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _normalized(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], only_names: bool
) -> ArgsKwargsPair | None:
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    if not only_names:
        return ArgsKwargsPair(bound.args, bound.kwargs)
    kinds = inspect.Parameter
    names: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind in (kinds.VAR_POSITIONAL, kinds.POSITIONAL_ONLY):
            if kind is kinds.POSITIONAL_ONLY or value:
                return None
        elif kind is kinds.VAR_KEYWORD:
            names.update(value)
        else:
            names[name] = value
    return ArgsKwargsPair((), names)


def normalize_function(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: Any = None,
    kwarg_types: Any = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a function by its signature, with defaults; None if it has none."""
    signature = _signature(target)
    if signature is None:
        return None
    return _normalized(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


def normalize_module(
    root: nn.Module,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a submodule as the signature of its forward names them.

    Raises:
        RuntimeError: if there is no such submodule.
    """
    try:
        module = root.get_submodule(target)
    except AttributeError:
        raise RuntimeError(
            f"Tried to normalize arguments for module target {target} but root did not have that "
            "target!"
        ) from None
    signature = _signature(module.forward)
    if signature is None:
        return None
    return _normalized(signature, args, kwargs or {}, normalize_to_only_use_kwargs)
