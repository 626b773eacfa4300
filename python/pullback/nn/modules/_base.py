"""The state that every module carries, declared once for the classes that ``Module`` is made of.

No behaviour lives here. Invariant: all of these are in the instance's ``__dict__`` after
``Module.__init__`` and stay there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..._tensor import Tensor
from ..parameter import Parameter
from .hook import HookDict

if TYPE_CHECKING:
    from .module import Module

__all__: list[str] = []


class ModuleState:
    """The attributes of a module that the parts of its implementation share."""

    dump_patches: bool = False
    # The version of the class's saved form; ``state_dict`` records it in its metadata.
    _version: int = 1

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Module | None]
    _forward_hooks: HookDict
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: HookDict
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    _backward_hooks: HookDict
    _backward_pre_hooks: HookDict
    _is_full_backward_hook: bool | None
    _state_dict_hooks: OrderedDict[int, Callable[..., Any]]
    _state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _load_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _load_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]]

    def _get_name(self) -> str:
        return type(self).__name__


def typename(value: object) -> str:
    """The name of a value's type as error messages spell it, with its module."""
    if isinstance(value, Tensor):
        return str(value.type())
    source: Any = value if hasattr(value, "__qualname__") else type(value)
    module = source.__module__
    name = source.__qualname__
    return str(name) if module in ("", "builtins", None) else f"{module}.{name}"
