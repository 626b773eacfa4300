"""Names of PyTorch's module for TorchScript that libraries annotate and decorate with.

Functions run as Python, so that the decorators give back what they are given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Dict, Final, List, Optional, Tuple, TypeVar, Union  # noqa: UP035

from .futures import Future

__all__ = [
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "Dict",
    "Final",
    "Future",
    "List",
    "Optional",
    "Tuple",
    "Union",
    "_copy_to_script_wrapper",
    "_overload",
    "_overload_method",
    "boolean_dispatch",
    "export",
    "ignore",
    "is_scripting",
    "unused",
]

_F = TypeVar("_F", bound=Callable[..., Any])


class _Broadcasting:
    """``BroadcastingListN[int]``: for annotations, a number or a list of N."""

    def __getitem__(self, types: Any) -> None:
        return None


BroadcastingList1: Any = _Broadcasting()
BroadcastingList2: Any = _Broadcasting()
BroadcastingList3: Any = _Broadcasting()


def is_scripting() -> bool:
    """Whether the code runs as a script: never."""
    return False


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """A decorator for what a script would leave to Python, as all is: gives the function itself.

    Raises:
        RuntimeError: if the argument is neither a bool nor a function.
    """
    if callable(drop):
        return drop
    if not isinstance(drop, bool):
        raise RuntimeError(
            f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}"
        )
    return lambda fn: fn


def unused(fn: _F) -> _F:
    """A decorator for what a script would replace by an error: gives the function itself."""
    return fn


def export(fn: _F) -> _F:
    """A decorator for a method that a script would have too: gives the function itself."""
    return fn


def _copy_to_script_wrapper(fn: _F) -> _F:
    """The function."""
    return fn


def _overload(func: _F) -> _F:
    """The function: only a compiler would take it for one of several."""
    return func


def _overload_method(func: _F) -> _F:
    """The method: only a compiler would take it for one of several."""
    return func


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    module_name: str,
    func_name: str,
) -> Callable[..., Any]:
    """A function that is one of two, as an argument says.

    Args:
        arg_name: the argument's name.
        arg_index: its position.
        default: what it is if it is not given.
        if_true: the function for True.
        if_false: the function for False.
        module_name: the module of the result.
        func_name: its name.
    """

    def chosen(*args: Any, **kwargs: Any) -> Any:
        found = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if found else if_false)(*args, **kwargs)

    chosen.__module__, chosen.__name__ = module_name, func_name
    chosen.__doc__ = if_true.__doc__ or if_false.__doc__
    return chosen
