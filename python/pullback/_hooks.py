"""Hooks in dictionaries, and the handles that take them away again.

Whatever can have hooks (tensors, nodes, modules, optimisers) keeps them in a dictionary, by the
number of their handle. Public as :mod:`pullback.utils.hooks`.
"""

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

__all__ = ["RemovableHandle", "add", "unserializable_hook", "warn_if_has_hooks"]


def add(hooks: dict[int, Any], hook: Any) -> RemovableHandle:
    """Puts a hook behind the others; its handle."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def unserializable_hook(f: Any) -> Any:
    """Marks a hook of tensors that is known not to be pickled: then no warning says so."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warns of each hook of a tensor that a pickle of it will not have."""
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized. If this is expected, "
                "mark it with torch.utils.hooks.unserializable_hook (as a decorator) to silence "
                "this warning",
                stacklevel=3,
            )


def _remove(hooks: Any, number: int) -> None:
    if hooks is not None and number in hooks:
        del hooks[number]


class RemovableHandle:
    """Removes a hook from the dictionary it was put into; also a context manager that does so.

    Args:
        hooks_dict: the dictionary of hooks, indexed by handle ``id``; held weakly.
        extra_dict: one dictionary or a list of them whose entry of the same ``id`` goes too.
    """

    id: int
    next_id: int = 0

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref: Callable[[], Any] = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        self.extra_dict_ref: tuple[Callable[[], Any], ...] = ()
        if extra_dict is not None:
            extras = extra_dict if isinstance(extra_dict, list) else [extra_dict]
            self.extra_dict_ref = tuple(weakref.ref(extra) for extra in extras)

    def remove(self) -> None:
        """Takes the hook away; does nothing when it is gone already."""
        _remove(self.hooks_dict_ref(), self.id)
        for ref in self.extra_dict_ref:
            _remove(ref(), self.id)

    def __getstate__(self) -> tuple[Any, ...]:
        return self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        hooks = state[0]
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        self.id = state[1]
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)
        extras = state[2] if len(state) > 2 and state[2] else ()
        self.extra_dict_ref = tuple(weakref.ref(extra) for extra in extras if extra is not None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()
