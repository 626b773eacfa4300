"""Walking over a module's tree: parameters, buffers, children, and names with dots.

Part of ``Module`` (``module.py``), which inherits it. Invariant: walks are lazy, depth first and
in order of registration, and by default yield a shared object once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

from ..._tensor import Tensor
from ..parameter import Parameter
from ._base import ModuleState

if TYPE_CHECKING:
    from .module import Module

__all__: list[str] = []


class Traversal(ModuleState):
    """Iteration over, and access by name to, what a module contains."""

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen: set[Any] = set()
        itself = cast("Module", self)
        owners: Iterable[tuple[str, Module]] = [(prefix, itself)]
        if recurse:
            owners = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, owner in owners:
            for name, member in get_members_fn(owner):
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield (f"{path}.{name}" if path else name), member

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Iterates over the parameters, of submodules too unless ``recurse`` is false."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Iterates over ``(name, parameter)``.

        Args:
            prefix: put before every name, followed by a dot.
            recurse: whether to descend into submodules.
            remove_duplicate: whether a shared parameter is yielded once only.
        """
        yield from self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterates over the buffers, of submodules too unless ``recurse`` is false."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Iterates over ``(name, buffer)``; arguments as in :meth:`named_parameters`."""
        yield from self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def children(self) -> Iterator[Module]:
        """Iterates over the direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Iterates over ``(name, submodule)`` for the direct submodules, each once."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Iterates over the module itself and all submodules, depth first."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self,
        memo: set[Module] | None = None,
        prefix: str = "",
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Module]]:
        """Iterates over ``(name, module)`` for the module itself and all submodules.

        Args:
            memo: the modules that were yielded already.
            prefix: the name of this module; the root's is ``""``.
            remove_duplicate: whether a shared module is yielded once only.
        """
        memo = set() if memo is None else memo
        itself = cast("Module", self)
        if itself in memo:
            return
        if remove_duplicate:
            memo.add(itself)
        yield prefix, itself
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)

    def get_submodule(self, target: str) -> Module:
        """The submodule that the dotted name ``target`` leads to; ``""`` is the module itself.

        Raises:
            AttributeError: a part of the name does not exist, or is not a module.
        """
        module: Any = self
        if target == "":
            return cast("Module", module)
        for name in target.split("."):
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Traversal):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return cast("Module", module)

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts ``module`` at the dotted name ``target``.

        Args:
            target: the place; all but its last part must exist.
            module: what to put there.
            strict: whether the last part must exist, too.

        Raises:
            ValueError: the name is empty, or ``module`` is not a module.
            AttributeError: the path does not exist, or what is there is not a module.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Traversal):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if hasattr(parent, name):
            if not isinstance(getattr(parent, name), Traversal):
                raise AttributeError(f"`{name}` is not an nn.Module")
        elif strict:
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at the dotted name ``target``.

        Raises:
            AttributeError: there is nothing of that name, or it is not a parameter.
        """
        _, name, param = self._get_member(target)
        if not isinstance(param, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return param

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at the dotted name ``target``.

        Raises:
            AttributeError: there is nothing of that name, or it is not a buffer.
        """
        module, name, buffer = self._get_member(target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return cast(Tensor, buffer)

    def _get_member(self, target: str) -> tuple[Module, str, Any]:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        return module, name, getattr(module, name)
