"""Ranges for modules that run, as long as somebody profiles with ``with_modules``.

Hooks on all modules open and close them: a program that is not profiled has none.
"""

from __future__ import annotations

import threading
from typing import Any

from .. import _C


class ModuleRanges:
    """Opens a range around each call of a module on the thread that made this."""

    def __init__(self) -> None:
        from ..nn.modules.module import (
            register_module_forward_hook,
            register_module_forward_pre_hook,
        )

        self._thread = threading.get_ident()
        self._open: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._counts: dict[str, int] = {}
        # (Modules that are numbered stay alive: another one must not get their address.)
        self._known: list[Any] = []
        self._handles = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._exit, always_call=True),
        ]

    def _enter(self, module: Any, args: Any) -> None:
        if threading.get_ident() != self._thread:
            return
        name = type(module).__name__
        if id(module) not in self._numbers:
            self._numbers[id(module)] = self._counts.get(name, 0)
            self._counts[name] = self._counts.get(name, 0) + 1
            self._known.append(module)
        label = f"nn.Module: {name}_{self._numbers[id(module)]}"
        self._open.append(_C._record_function_enter(label, None, "module"))

    def _exit(self, module: Any, args: Any, output: Any) -> None:
        if threading.get_ident() == self._thread and self._open:
            self._open.pop().close()

    def close(self) -> None:
        """Removes the hooks, and closes open ranges."""
        for handle in self._handles:
            handle.remove()
        while self._open:
            self._open.pop().close()
