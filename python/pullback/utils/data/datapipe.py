"""The base classes of data pipes: datasets that are made of each other by methods.

``functional_datapipe("name")`` makes a class of pipes a method of all others. The ready-made pipes
of PyTorch are not here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from .dataset import Dataset, IterableDataset

__all__ = ["IterDataPipe", "MapDataPipe", "functional_datapipe"]

_Class = TypeVar("_Class", bound=type)


class _Methods:
    """The methods of pipes that are classes of pipes."""

    functions: ClassVar[dict[str, Callable[..., Any]]]

    def __getattr__(self, name: str) -> Any:
        function = type(self).functions.get(name)
        if function is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}")
        return functools.partial(function, self)

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Makes a function of a pipe a method."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: type, enable_df_api_tracing: bool = False
    ) -> None:
        """Makes a class of pipes a method.

        Raises:
            Exception: for a name that is taken.
        """
        if function_name in cls.functions:
            raise Exception(
                f"Unable to add DataPipe function name {function_name} as it is already taken"
            )
        cls.functions[function_name] = cls_to_register

    def __repr__(self) -> str:
        return str(type(self).__qualname__)

    __str__ = __repr__


class IterDataPipe(_Methods, IterableDataset[Any]):
    """A pipe that is iterated."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}

    def reset(self) -> None:
        """Called before each iteration by programs that begin anew."""


class MapDataPipe(_Methods, Dataset[Any]):
    """A pipe whose items have keys."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}


class functional_datapipe:
    """A decorator that makes a class of pipes a method of the others.

    Args:
        name: the method's name.
        enable_df_api_tracing: for data frames, which are not here.
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name

    def __call__(self, cls: _Class) -> _Class:
        """Registers the class.

        Raises:
            TypeError: for a class that is no pipe.
            Exception: for a name that is taken.
        """
        for base in (IterDataPipe, MapDataPipe):
            if isinstance(cls, type) and issubclass(cls, base):
                base.register_datapipe_as_function(self.name, cls)
                return cls
        from ... import _placeholder

        # (Of a pipe that is not here, of which none can be made.)
        if isinstance(cls, type) and any(map(_placeholder.is_placeholder, cls.__mro__)):
            return cls
        raise TypeError("functional_datapipe can only decorate IterDataPipe or MapDataPipe")
