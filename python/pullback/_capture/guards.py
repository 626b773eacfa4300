"""The state that a captured step reads besides its arguments, and whether it is unchanged.

Looked through are the closure's cells, the globals that the code names, defaults, `self` and
objects among the arguments; from there modules (all of them), optimisers (groups, options, state),
lists, tuples and dicts, the attributes of other objects that some code of the step names, and
functions that the step calls. Everything found is compared by identity, numbers and strings by
value. Tensors are left to the core, which sees that they show the same memory.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator
from operator import is_
from typing import Any

from .._tensor import Tensor
from ..nn.modules import hook as _hook
from ..nn.modules.module import Module
from ..optim import optimizer as _optimizer
from ..optim.optimizer import Optimizer
from .tree import PLAIN

__all__ = ["Guards"]

_MISSING = object()
_NUMBERS = (int, float, bool, complex, str)
_HOOKS = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
)
_GLOBAL_HOOKS = (
    _hook.forward_hooks,
    _hook.forward_pre_hooks,
    _hook.backward_hooks,
    _hook.backward_pre_hooks,
    _optimizer._global_optimizer_pre_hooks,
    _optimizer._global_optimizer_post_hooks,
)
# Longer lists are compared as a whole only: they are data, not parts of a model.
_LONGEST = 4096
_OWN = __name__.partition(".")[0]


def _is_same(a: Any, b: Any) -> bool:
    """Whether two values are the same object, or equal numbers."""
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is float:
        return bool(a.hex() == b.hex())
    return kind in PLAIN and bool(a == b)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A function's code and those of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


class Guards:
    """The guards of one recording."""

    def __init__(self, fn: Any, objects: list[Any]) -> None:
        #: The condition that did not hold the last time, in words.
        self.why = ""
        #: Whether that was a number.
        self.is_number = False
        #: The tensors that were found.
        self.tensors: list[Tensor] = []
        self._dicts: list[tuple[dict[Any, Any], list[Any], str]] = []
        self._lists: list[tuple[list[Any], list[Any], str]] = []
        self._items: list[tuple[dict[Any, Any], Any, Any, str]] = []
        self._cells: list[tuple[Any, Any, str]] = []
        self._empty: list[Any] = list(_GLOBAL_HOOKS)
        self._kept = objects
        self._seen: set[int] = set()
        self._names: set[str] = set()
        self._instances: list[Any] = []
        self._visit(fn, "the step")
        for value in objects:
            self._visit(value, f"an argument of the class {type(value).__qualname__}")
        self._visit_attributes()
        self._seen.clear()

    def hold(self) -> bool:
        """Whether everything is as it was."""
        self.why = ""
        if any(self._empty):
            return self._fail("there are hooks")
        for values, expected, name in self._dicts:
            if len(values) != len(expected):
                return self._fail(f"{name} has other entries")
            if not all(map(is_, values.values(), expected)) and not self._equal(
                values, expected, name
            ):
                return False
        for list_, items, name in self._lists:
            if len(list_) != len(items) or not all(map(_is_same, list_, items)):
                return self._fail(f"{name} has other items")
        for values, key, expected, name in self._items:
            now = values.get(key, _MISSING)
            if now is not expected and not _is_same(now, expected):
                return self._fail(f"{name} changed", expected)
        for cell, expected, name in self._cells:
            now = cell.cell_contents
            if now is not expected and not _is_same(now, expected):
                return self._fail(f"{name} changed", expected)
        return True

    def _equal(self, values: dict[Any, Any], expected: list[Any], name: str) -> bool:
        for at, (key, value) in enumerate(values.items()):
            if value is not expected[at]:
                if not _is_same(value, expected[at]):
                    return self._fail(f"{name}[{key!r}] changed", expected[at])
                expected[at] = value
        return True

    def _fail(self, why: str, expected: Any = None) -> bool:
        self.why = why
        self.is_number = type(expected) in _NUMBERS
        return False

    # --- finding ---------------------------------------------------------------------------

    def _visit(self, value: Any, name: str) -> None:
        kind = type(value)
        if kind in PLAIN or kind is float or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, Tensor):
            self.tensors.append(value)
        elif isinstance(value, Module):
            self._visit_module(value, name)
        elif isinstance(value, Optimizer):
            self._visit_optimizer(value, name)
        elif kind is dict or kind is tuple or kind is list:
            self._visit_container(value, name)
        elif isinstance(value, types.FunctionType):
            self._visit_function(value, name)
        elif isinstance(value, types.MethodType):
            self._visit(value.__self__, f"{name}.__self__")
            self._visit(value.__func__, name)
        elif isinstance(value, functools.partial):
            self._visit(value.func, name)
            self._visit(value.args, name)
            self._visit(value.keywords, name)
        elif "__wrapped__" in getattr(value, "__dict__", {}):
            self._visit(value.__wrapped__, name)
        elif not isinstance(value, (type, types.ModuleType)) and hasattr(value, "__dict__"):
            self._instances.append(value)

    def _visit_container(self, value: Any, name: str) -> None:
        if len(value) > _LONGEST:
            return
        if type(value) is dict:
            self._dicts.append((value, list(value.values()), name))
            items = [(f"{name}[{key!r}]", item) for key, item in value.items()]
        else:
            if type(value) is list:
                self._lists.append((value, list(value), name))
            items = [(f"{name}[{at}]", item) for at, item in enumerate(value)]
        for inner, item in items:
            self._visit(item, inner)

    def _visit_function(self, value: types.FunctionType, name: str) -> None:
        if (value.__module__ or "").partition(".")[0] == _OWN:
            inner = getattr(value, "__wrapped__", None)
            if inner is not None:
                self._visit(inner, name)
            return
        own = value.__qualname__
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        for free, cell in cells:
            try:
                content = cell.cell_contents
            except ValueError:
                continue
            self._cells.append((cell, content, f"{free!r} of {own}"))
            self._visit(content, free)
        for code in _codes(value.__code__):
            self._names.update(code.co_names)
            for used in code.co_names:
                content = value.__globals__.get(used, _MISSING)
                if content is not _MISSING:
                    self._items.append((value.__globals__, used, content, f"the global {used!r}"))
                    self._visit(content, used)
        self._visit(value.__defaults__, f"the defaults of {own}")
        self._visit(value.__kwdefaults__, f"the defaults of {own}")

    def _visit_module(self, module: Module, name: str) -> None:
        if type(module).__module__.partition(".")[0] != _OWN:
            self._visit(type(module).forward, f"{name}.forward")
        own = module.__dict__
        self._dicts.append((own, list(own.values()), f"{name}.__dict__"))
        for table in ("_parameters", "_buffers", "_modules"):
            entries = own.get(table, {})
            self._dicts.append((entries, list(entries.values()), f"{name}.{table}"))
            for key, entry in entries.items():
                self._visit(entry, f"{name}.{key}")
        self._empty += [own[table] for table in _HOOKS if table in own]
        for key, value in own.items():
            if not key.startswith("_"):
                self._visit(value, f"{name}.{key}")

    def _visit_optimizer(self, optimizer: Optimizer, name: str) -> None:
        own = optimizer.__dict__
        self._items += [
            (own, key, own[key], f"{name}.{key}") for key in ("param_groups", "state") if key in own
        ]
        self._empty += [optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks]
        self._visit(optimizer.param_groups, f"{name}.param_groups")
        state = optimizer.state
        self._dicts.append((state, list(state.values()), f"{name}.state"))
        for entry in state.values():
            self._visit(entry, f"{name}.state[...]")

    def _visit_attributes(self) -> None:
        """Looks at the attributes of objects that some code names, until there are no more."""
        done: set[tuple[int, str]] = set()
        before = -1
        while before != len(done):
            before = len(done)
            for instance in list(self._instances):
                for name in list(self._names):
                    if (id(instance), name) not in done:
                        done.add((id(instance), name))
                        self._visit_attribute(instance, name)

    def _visit_attribute(self, instance: Any, name: str) -> None:
        own = instance.__dict__
        spelled = f"{type(instance).__qualname__}.{name}"
        if name in own:
            self._items.append((own, name, own[name], spelled))
            self._visit(own[name], spelled)
            return
        of_class = getattr(type(instance), name, None)
        if isinstance(of_class, types.FunctionType):
            self._visit(of_class, spelled)
