"""Context managers as decorators of functions and generators.

Each call of a decorated function enters a fresh context. A decorated generator is inside of the
context only while its own body runs; the consumer never sees it.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from typing_extensions import Self

F = TypeVar("F", bound=Callable[..., Any])


def _wrap_generator(make: Callable[[], Any], function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        generator = function(*args, **kwargs)
        try:
            with make():
                response = generator.send(None)
            while True:
                try:
                    request = yield response
                except GeneratorExit:
                    with make():
                        generator.close()
                    raise
                except BaseException as error:
                    with make():
                        response = generator.throw(error)
                else:
                    with make():
                        response = generator.send(request)
        except StopIteration as stop:
            return stop.value

    return wrapper


def _wrap(make: Callable[[], Any], function: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.isgeneratorfunction(function):
        return _wrap_generator(make, function)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with make():
            return function(*args, **kwargs)

    return wrapper


def context_decorator(ctx: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """The function, run inside of a context.

    Args:
        ctx: a context that can be entered again and again, or what makes one.
        func: a function, or a generator function.

    Raises:
        AssertionError: if ``ctx`` could be either, as a class of contexts is.
        RuntimeError: if ``func`` is a class.
    """
    if callable(ctx) and hasattr(ctx, "__enter__"):
        raise AssertionError(
            f"Passed in {ctx} is both callable and also a valid context manager (has __enter__): "
            "pass a function without arguments that gives the one to enter"
        )
    if inspect.isclass(func):
        raise RuntimeError(
            "Cannot decorate classes: it would be the constructor that runs inside of the context, "
            "and the name would no longer be a type. Decorate the methods that are meant."
        )
    return _wrap(ctx if callable(ctx) else lambda: ctx, func)


def _decorate(make: Callable[[], Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Contexts as decorators; old programs decorate classes too."""
    if not inspect.isclass(function):
        return _wrap(make, function)
    warnings.warn(
        "Decorating classes is deprecated and will be disabled in future versions. You "
        "should only decorate functions or methods. To preserve the current behavior of "
        "class decoration, you can directly decorate the `__init__` method and nothing else.",
        FutureWarning,
        stacklevel=3,
    )

    def construct(*args: Any, **kwargs: Any) -> Any:
        with make():
            return function(*args, **kwargs)

    return construct


class _DecoratorContextManager:
    """The base of context managers that decorate functions too."""

    def __call__(self, orig_func: F) -> F:
        """The function, run inside of a fresh context each time."""
        return cast("F", _decorate(self.clone, orig_func))

    def __enter__(self) -> None:
        """To be overridden.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        """To be overridden.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError

    def clone(self) -> _DecoratorContextManager:
        """A fresh context of the same setting; overridden where ``__init__`` takes arguments."""
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """A context manager without arguments, which is also a decorator without brackets."""

    def __new__(cls, orig_func: Any = None) -> Any:
        """A context, or the function that is given run inside of one."""
        return super().__new__(cls) if orig_func is None else cls()(orig_func)


class StackedMode:
    """A mode that is on a stack of the thread for as long as a ``with`` statement runs."""

    _push: Callable[[Any], object]
    _pop: Callable[[], object]

    def __enter__(self) -> Self:
        type(self)._push(self)
        return self

    def __exit__(self, *error: object) -> None:
        type(self)._pop()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Self:
        """An older spelling of making the mode."""
        warnings.warn(
            "`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`",
            stacklevel=2,
        )
        return cls(*args, **kwargs)
