"""What stands for the script of a module: a module with the same parameters that runs as Python."""

from __future__ import annotations

from typing import Any, NoReturn

from .._script import refuse
from ..nn.modules.module import Module

__all__ = ["RecursiveScriptModule", "ScriptModule", "TopLevelTracedModule", "wrap"]


class ScriptModule(Module):
    """A module that would be a script; what only a script has is an error."""

    @property
    def graph(self) -> NoReturn:
        """There is none."""
        refuse("ScriptModule.graph")

    @property
    def code(self) -> NoReturn:
        """There is none but that of Python."""
        refuse("ScriptModule.code")

    def save(self, f: Any, _extra_files: Any = None) -> NoReturn:
        """Scripts are not saved."""
        refuse("ScriptModule.save")

    def save_to_buffer(self, _extra_files: Any = None) -> NoReturn:
        """Scripts are not saved."""
        refuse("ScriptModule.save_to_buffer")


class RecursiveScriptModule(ScriptModule):
    """The result of ``torch.jit.script`` for a module."""

    _original: type[Module]

    @property
    def original_name(self) -> str:
        """The name of the module's class."""
        return self._original.__name__

    def extra_repr(self) -> str:
        """The line of the module when it is printed."""
        return f"original_name={self.original_name}"


class TopLevelTracedModule(RecursiveScriptModule):
    """The result of ``torch.jit.trace`` for a module."""


def wrap(module: Module, kind: type[RecursiveScriptModule]) -> RecursiveScriptModule:
    """A module that shares the other's parameters, buffers, parts and hooks, and has its methods.

    Args:
        module: what is scripted.
        kind: the class of the result.
    """
    # (The module's own class comes second: its methods are called, those of scripts are refused.)
    original = type(module)
    made = type(kind.__name__, (kind, original), {"_original": original, "__module__": "torch.jit"})
    result: Any = object.__new__(made)
    vars(result).update(vars(module))
    scripted: RecursiveScriptModule = result
    return scripted
