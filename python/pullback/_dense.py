"""Functions of ``torch._utils`` that training code imports: tensors laid end to end, errors.

An error of another thread or process is kept as text and class, and raised again where its result
was wanted.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

from ._tensor import Tensor

__all__ = [
    "ExceptionWrapper",
    "KeyErrorMessage",
    "_flatten_dense_tensors",
    "_take_tensors",
    "_unflatten_dense_tensors",
]


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """The elements of all tensors, one after the other, in a new tensor.

    Raises:
        RuntimeError: for no tensors.
    """
    from . import cat

    if not tensors:
        raise RuntimeError("_flatten_dense_tensors: expected at least one tensor")
    return cat([tensor.contiguous().view(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Views of a flat tensor with the shapes of ``tensors``, one after the other."""
    views = []
    start = 0
    for tensor in tensors:
        count = tensor.numel()
        views.append(flat.narrow(0, start, count).view_as(tensor))
        start += count
    return tuple(views)


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Groups of tensors of one type that hold about ``size_limit`` bytes, the rests at the end."""
    groups: dict[str, tuple[list[Tensor], int]] = {}
    for tensor in tensors:
        kind = tensor.type()
        group, size = groups.get(kind, ([], 0))
        bytes_of = tensor.numel() * tensor.element_size()
        if group and size + bytes_of > size_limit:
            yield group
            group, size = [], 0
        group.append(tensor)
        groups[kind] = (group, size + bytes_of)
    for group, _ in groups.values():
        if group:
            yield group


class KeyErrorMessage(str):
    """``KeyError`` shows the repr of its argument; this keeps a traceback readable there."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception as text and class, to be raised again elsewhere.

    Args:
        exc_info: as ``sys.exc_info()`` gives it, which is asked if there is none.
        where: what the message names as the origin.
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind, error, trace = sys.exc_info() if exc_info is None else exc_info
        self.exc_type: Any = kind
        self.exc_msg = "".join(traceback.format_exception(kind, error, trace))
        self.where = where

    def reraise(self) -> NoReturn:
        """Raises the same class with the traceback as the message."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            raise KeyError(KeyErrorMessage(message))
        if getattr(self.exc_type, "message", None):
            raise self.exc_type(message=message)
        try:
            error = self.exc_type(message)
        except Exception:
            # The class wants other arguments than one text.
            raise RuntimeError(message) from None
        raise error
