"""The name that programs know for ``pullback._contextlib``: context managers as decorators."""

from collections.abc import Callable
from typing import Any, TypeVar

from .._contextlib import (
    _DecoratorContextManager,
    _NoParamDecoratorContextManager,
    context_decorator,
)

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager", "context_decorator"]

# (Decorators are annotated by it.)
F = TypeVar("F", bound=Callable[..., Any])
