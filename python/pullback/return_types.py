"""The named tuples that ops with several results return, as ``return_types.max``."""

from __future__ import annotations

import sys
from typing import Any

from . import _C, _absent

# The fields of the results of Python functions, which no op's signature states.
_FIELDS = {"histogramdd": ["hist", "bin_edges"]}


def __getattr__(name: str) -> Any:
    """The type of the op called ``name``."""
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "all_return_types":
        return [getattr(sys.modules[__name__], each) for each in _names()]
    try:
        return _C._return_type(name, _FIELDS.get(name))
    except AttributeError as error:
        reason = _absent.message(__name__, name)
        if reason is None:
            raise
        text = f"{error}: {reason}"
    raise AttributeError(text, name=name, obj=sys.modules[__name__])


def _names() -> list[str]:
    """The names of all types."""
    named = [op for op in _C._describe_ops() if op["fields"]]
    out = {f"{op['name']}_out" for op in named if op["out"]}
    return sorted({op["name"] for op in named} | out | set(_FIELDS))


def pytree_register_structseq(cls: type[Any]) -> None:
    """Makes a type of named results, as ``os.stat_result``, a container of ``utils._pytree``.

    The types of this module are containers already.

    Args:
        cls: the type; its items are the children.
    """
    from .utils._pytree import SequenceKey, register_pytree_node

    def flatten(results: Any) -> tuple[list[Any], None]:
        return list(results), None

    def flatten_with_keys(results: Any) -> tuple[list[Any], None]:
        return [(SequenceKey(at), result) for at, result in enumerate(results)], None

    def unflatten(children: Any, context: None) -> Any:
        return cls(children)

    register_pytree_node(cls, flatten, unflatten, flatten_with_keys_fn=flatten_with_keys)
