"""Lists and dictionaries that refuse to be changed: the arguments of nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from ..utils import _pytree

__all__ = ["immutable_dict", "immutable_list"]


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    kind = type(self).__name__
    raise TypeError(
        f"{kind!r} object does not support mutation. If you are attempting to modify the kwargs or "
        "args of a torch.fx.Node object, assign new ones: `node.args = ...`"
    )


class immutable_list(list[Any]):
    """A list that cannot be changed."""

    __delitem__ = __iadd__ = __imul__ = __setitem__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return immutable_list, (tuple(self),)


class immutable_dict(dict[Any, Any]):
    """A dictionary that cannot be changed."""

    __delitem__ = __ior__ = __setitem__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return immutable_dict, (tuple(self.items()),)


def _list_of(items: Iterable[Any], context: Any) -> immutable_list:
    return immutable_list(items)


def _dict_of(items: Iterable[Any], context: Any) -> immutable_dict:
    return immutable_dict(zip(context, items, strict=True))


_pytree.register_pytree_node(
    immutable_list,
    _pytree._list_flatten,
    _list_of,
    flatten_with_keys_fn=_pytree._list_flatten_with_keys,
)
_pytree.register_pytree_node(
    immutable_dict,
    _pytree._dict_flatten,
    _dict_of,
    flatten_with_keys_fn=_pytree._dict_flatten_with_keys,
)
