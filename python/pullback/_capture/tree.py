"""Arguments and results of a captured step as lists of tensors and what is around them."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._tensor import Tensor
from ..nn.parameter import Parameter

__all__ = ["Refused", "flatten", "flatten_results", "rebuild"]

_TENSORS = (Tensor, Parameter)
PLAIN = (int, bool, str, bytes, complex, type(None), _C.dtype, _C.device, _C.Size)


class Refused(Exception):
    """Why a call cannot be recorded."""


def flatten(value: Any, tensors: list[Any], objects: list[Any]) -> Any:
    """The kind of a tree of arguments, to be looked up; its tensors and objects go into the lists.

    Raises:
        Refused: for tensors of classes of their own.
    """
    kind = type(value)
    if kind is Tensor or kind is Parameter:
        tensors.append(value)
        return Tensor
    if kind is tuple or kind is list:
        return (kind, *[flatten(item, tensors, objects) for item in value])
    if kind is dict:
        return (dict, *[(key, flatten(item, tensors, objects)) for key, item in value.items()])
    if kind in PLAIN:
        return (kind, value)
    if kind is float:
        # (Zeros have signs, and NaN is not itself.)
        return (float, value.hex())
    if isinstance(value, Tensor):
        raise Refused(
            f"an argument is of the class {kind.__qualname__}, which may compute otherwise"
        )
    objects.append(value)
    return (kind, id(value))


def flatten_results(value: Any, tensors: list[Any]) -> Any:
    """The structure around the tensors of a result, for `rebuild`.

    Raises:
        Refused: for objects that a replay could not make.
    """
    kind = type(value)
    if kind in _TENSORS:
        tensors.append(value)
        return (Tensor, len(tensors) - 1)
    if isinstance(value, (tuple, list)) and (kind in (tuple, list) or hasattr(kind, "_fields")):
        return (kind, [flatten_results(item, tensors) for item in value])
    if kind is dict:
        return (dict, {key: flatten_results(item, tensors) for key, item in value.items()})
    if kind in PLAIN or kind is float:
        return (None, value)
    raise Refused(f"the step returns a {kind.__qualname__}, which a replay could not make")


def rebuild(around: Any, tensors: list[Any]) -> Any:
    """The result with these tensors."""
    kind, inner = around
    if kind is Tensor:
        return tensors[inner]
    if kind is None:
        return inner
    if kind is dict:
        return {key: rebuild(item, tensors) for key, item in inner.items()}
    items = [rebuild(item, tensors) for item in inner]
    if kind is list:
        return items
    return tuple(items) if kind is tuple else kind(*items)
