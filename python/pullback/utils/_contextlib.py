"""The name that programs know for ``pullback._contextlib``: context managers as decorators."""

from .._contextlib import (
    _DecoratorContextManager,
    _NoParamDecoratorContextManager,
    context_decorator,
)

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager", "context_decorator"]
