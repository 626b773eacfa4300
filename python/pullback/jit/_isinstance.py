"""``torch.jit.isinstance``: whether an object, and what it contains, has a type."""

from __future__ import annotations

import builtins
import types
import typing
from typing import Any

_BARE = (list, dict, tuple, typing.List, typing.Dict, typing.Tuple, typing.Optional)  # noqa: UP006


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether an object has one of some types; containers are looked into.

    Args:
        obj: anything.
        target_type: a type as ``list[int]``, or a tuple of such types.

    Raises:
        RuntimeError: for a container that does not say what it contains.
    """
    wanted = target_type if builtins.isinstance(target_type, tuple) else (target_type,)
    return any(_has_type(obj, one) for one in wanted)


def _has_type(obj: Any, wanted: Any) -> bool:
    for bare in _BARE:
        if wanted is bare:
            name = getattr(bare, "__name__", str(bare))
            raise RuntimeError(
                f"Attempted to use {name} without a contained type. Please add a contained type, "
                f"e.g. {name}[int]"
            )
    origin, inner = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        return any(_has_type(obj, one) for one in inner)
    if origin is None:
        return obj is None if wanted is None else builtins.isinstance(obj, wanted)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is dict:
        key, value = inner
        return all(_has_type(k, key) and _has_type(v, value) for k, v in obj.items())
    if origin is tuple and not (len(inner) == 2 and inner[1] is Ellipsis):
        return len(obj) == len(inner) and all(map(_has_type, obj, inner))
    return all(_has_type(one, inner[0]) for one in obj)
