"""Hooks on modules: where they are kept, and the handles that take them away again.

Not here: when hooks run (``module.py``) and how gradients reach them (``backward_hook.py``).
Invariant: while any call-time hook exists anywhere, ``active`` is not empty. A module call tests
that one dictionary, so programs without hooks pay nothing for them; a false positive is
harmless (the call looks at the module's own dictionaries), a false negative would lose a hook.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ... import _C
from ..._hooks import RemovableHandle

if TYPE_CHECKING:
    from .module import Module

__all__ = [
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

Hook = Callable[..., Any]

_holders: weakref.WeakValueDictionary[int, HookDict] = weakref.WeakValueDictionary()
# The dictionary inside: testing it is one C-level load, and dead holders leave it by themselves.
active: dict[int, Any] = _holders.data  # type: ignore[attr-defined]


class HookDict(dict[int, Hook]):
    """A dictionary of hooks that is listed in ``active`` while it is not empty."""

    __slots__ = ("__weakref__",)

    def __init__(self, hooks: Iterable[Any] = ()) -> None:
        super().__init__()
        self.update(hooks)

    def __setitem__(self, key: int, hook: Hook) -> None:
        super().__setitem__(key, hook)
        _holders[id(self)] = self

    def __delitem__(self, key: int) -> None:
        super().__delitem__(key)
        self._leave_if_empty()

    def clear(self) -> None:
        super().clear()
        self._leave_if_empty()

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Adds hooks, each through ``__setitem__``."""
        for key, hook in dict(*args, **kwargs).items():
            self[key] = hook

    def setdefault(self, key: int, default: Any = None) -> Any:
        """The hook of ``key``, which becomes ``default`` if it did not exist."""
        if key not in self:
            self[key] = default
        return self[key]

    def __ior__(self, other: Any) -> HookDict:  # type: ignore[override, misc]
        self.update(other)
        return self

    def move_to_end(self, key: int, last: bool = True) -> None:
        """Makes a hook the last one to run, or the first."""
        hook = super().pop(key)
        others = [] if last else list(self.items())
        if others:
            super().clear()
        super().__setitem__(key, hook)
        super().update(others)

    def _leave_if_empty(self) -> None:
        if not self:
            _holders.pop(id(self), None)


class BoundHook:
    """A hook with a weak reference to the module that it gets as argument."""

    def __init__(self, hook: Hook, module: Module | None = None) -> None:
        self.hook = hook
        self.with_module = module is not None
        self._module = None if module is None else weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._module is None:
            return self.hook(*args, **kwargs)
        module = self._module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        module = None if self._module is None else self._module()
        return {"hook": self.hook, "with_module": self.with_module, "module": module}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.hook = state["hook"]
        self.with_module = state["with_module"]
        # (PyTorch leaves it out where the hook is told no module.)
        module = state.get("module")
        if self.with_module and module is None:
            raise RuntimeError("You are trying to revive the hook of a dead Module!")
        self._module = None if module is None else weakref.ref(module)


forward_pre_hooks: HookDict = HookDict()
forward_hooks: HookDict = HookDict()
forward_hooks_with_kwargs: OrderedDict[int, bool] = OrderedDict()
forward_hooks_always_called: OrderedDict[int, bool] = OrderedDict()
backward_pre_hooks: HookDict = HookDict()
backward_hooks: HookDict = HookDict()
buffer_registration_hooks: OrderedDict[int, Hook] = OrderedDict()
module_registration_hooks: OrderedDict[int, Hook] = OrderedDict()
parameter_registration_hooks: OrderedDict[int, Hook] = OrderedDict()
# None until a global backward hook exists; then whether those are full ones (kinds do not mix).
is_full_backward: bool | None = None


# The native call of modules looks at these.
_C._set_hook_tables(active, [forward_hooks, forward_pre_hooks, backward_hooks, backward_pre_hooks])


def insert(hooks: dict[int, Hook], hook: Hook, *extras: Any) -> RemovableHandle:
    """Puts ``hook`` under a fresh id into ``hooks``; ``extras`` are cleaned with it."""
    handle = RemovableHandle(hooks, extra_dict=list(extras) if extras else None)
    hooks[handle.id] = hook
    return handle


def registered(hooks: dict[int, Hook], module: Module, name: str, value: Any) -> Any:
    """Passes a value about to be registered through the registration hooks."""
    for hook in hooks.values():
        replacement = hook(module, name, value)
        if replacement is not None:
            value = replacement
    return value


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """Calls ``hook(module, name, buffer)`` when any module registers a buffer.

    A return value other than ``None`` is registered in its place.
    """
    return insert(buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """Calls ``hook(module, name, submodule)`` when any module registers a submodule."""
    return insert(module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """Calls ``hook(module, name, param)`` when any module registers a parameter."""
    return insert(parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Calls ``hook(module, args)`` before the ``forward`` of every module."""
    return insert(forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Calls ``hook(module, args, output)`` after the ``forward`` of every module.

    Args:
        hook: may return a new output.
        with_kwargs: the hook is called as ``hook(module, args, kwargs, output)``.
        always_call: the hook runs even when ``forward`` raised.
    """
    extras = (forward_hooks_with_kwargs, forward_hooks_always_called)
    handle = insert(forward_hooks, hook, *extras)
    if with_kwargs:
        forward_hooks_with_kwargs[handle.id] = True
    if always_call:
        forward_hooks_always_called[handle.id] = True
    return handle


def _claim_backward(full: bool) -> None:
    global is_full_backward
    if is_full_backward is not None and is_full_backward is not full:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a "
            "global Module hook. Please use only one of them."
        )
    is_full_backward = full


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """The older form of :func:`register_module_full_backward_hook`; sees one node's gradients."""
    _claim_backward(False)
    return insert(backward_hooks, hook)


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Calls ``hook(module, grad_output)`` before the gradients of any module are computed."""
    return insert(backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Calls ``hook(module, grad_input, grad_output)`` for the gradients of every module."""
    _claim_backward(True)
    return insert(backward_hooks, hook)
