"""Switches and decorators of the transforms, under the name of PyTorch's module."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar

from .._levels import (
    get_single_level_autograd_function_allowed,
    set_single_level_autograd_function_allowed,
    unwrap_dead_wrappers,
)

__all__ = [
    "argnums_t",
    "enable_single_level_autograd_function",
    "exposed_in",
    "unwrap_dead_wrappers",
]

F = TypeVar("F", bound=Callable[..., object])

argnums_t = int | tuple[int, ...]


@contextlib.contextmanager
def enable_single_level_autograd_function() -> Iterator[None]:
    """Within it functions without ``setup_context`` may be applied within transforms."""
    before = get_single_level_autograd_function_allowed()
    set_single_level_autograd_function_allowed(True)
    try:
        yield
    finally:
        set_single_level_autograd_function_allowed(before)


def exposed_in(module: str) -> Callable[[F], F]:
    """A decorator that says in which module a function is public.

    Args:
        module: the module's name, as its ``__module__`` is to be.
    """

    def expose(function: F) -> F:
        function.__module__ = module
        return function

    return expose
