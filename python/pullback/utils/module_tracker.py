"""The modules that a program is in, in forward and backward."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._tensor import Tensor
from ..autograd.graph import register_multi_grad_hook
from ..nn.modules.module import (
    Module,
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from ._pytree import tree_leaves
from .weak import WeakIdKeyDictionary

__all__ = ["ModuleTracker"]

_ROOT = "Global"


class ModuleTracker:
    """A context that knows at each moment which modules are at work.

    ``parents`` has their names, beginning with the class of the outermost one, and ``"Global"``.
    """

    def __init__(self) -> None:
        self.parents: set[str] = {_ROOT}
        self._names: WeakIdKeyDictionary = WeakIdKeyDictionary()
        self._handles: list[Any] = []
        self._is_end_known = False

    @property
    def is_bw(self) -> bool:
        """Whether this is a backward pass."""
        return _C._current_graph_task_id() != -1

    def __enter__(self) -> ModuleTracker:
        self._handles = [
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after),
        ]
        return self

    def __exit__(self, *error: Any) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _name(self, module: Module) -> str:
        if module not in self._names:
            root = type(module).__name__
            for name, part in module.named_modules():
                if part not in self._names:
                    self._names[part] = f"{root}.{name}" if name else root
        found: str = self._names[module]
        return found

    @staticmethod
    def _differentiable(values: Any) -> list[Tensor]:
        leaves = tree_leaves(values)
        return [leaf for leaf in leaves if isinstance(leaf, Tensor) and leaf.requires_grad]

    def _before(self, module: Module, inputs: Any) -> None:
        name = self._name(module)
        self.parents.add(name)
        tensors = self._differentiable(inputs)
        if tensors:
            # (When the gradients of the inputs are computed, the module's backward is complete.)
            leave = register_multi_grad_hook(tensors, lambda _: self.parents.discard(name))
            self._handles.append(leave)

    def _after(self, module: Module, inputs: Any, output: Any) -> None:
        name = self._name(module)
        self.parents.discard(name)
        tensors = self._differentiable(output)
        if tensors:
            self._handles.append(register_multi_grad_hook(tensors, lambda _: self._enter(name)))

    def _enter(self, name: str) -> None:
        if not self._is_end_known:
            self._is_end_known = True
            _C._queue_callback(self._end)
        self.parents.add(name)

    def _end(self) -> None:
        self._is_end_known = False
        self.parents = {_ROOT}
