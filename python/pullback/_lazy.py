"""Submodules that are loaded when something is first asked of them.

A package with a ``__getattr__`` would do as well, but the interpreter's short way to a module's
names (CPython 3.11 and later) is closed to such packages: every ``torch.add`` would pay for it.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_PREFIX = __name__.rpartition(".")[0] + "."
# One lock for all modules, because loading one may load others.
_LOCK = threading.RLock()
_LOADING: set[str] = set()
# How to load those that are not yet: their ``__spec__`` may be another's by then (``_alias``).
_SPECS: dict[str, Any] = {}
# Names that tools read from a module without using it; other names with underscores do load it.
_MEANT = frozenset({"__all__", "__dict__", "__doc__", "__path__", "__version__"})


class _Lazy(ModuleType):
    """A module before its first use; afterwards it is an ordinary module."""

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("__") or name in _MEANT:
            load(self)
        return ModuleType.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("__"):
            load(self)
        ModuleType.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        load(self)
        ModuleType.__delattr__(self, name)


def load(module: ModuleType) -> None:
    """Runs the module's code once; other threads wait, this one sees the names defined so far."""
    with _LOCK:
        name = ModuleType.__getattribute__(module, "__name__")
        if type(module) is not _Lazy or name in _LOADING:
            return
        _LOADING.add(name)
        try:
            _SPECS[name].loader.exec_module(module)
            # (A module may have given itself a class with properties.)
            if type(module) is _Lazy:
                module.__class__ = ModuleType  # type: ignore[assignment]
            del _SPECS[name]
        finally:
            _LOADING.discard(name)


class _Present:
    """Finds modules that the loading of their package has imported meanwhile.

    ``from pullback.optim.sgd import SGD`` looks for the module first, then asks the package for its
    path, which loads the package and all that it imports: without this, the module would be made a
    second time, with classes of its own.
    """

    def find_spec(
        self, name: str, path: Any = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A spec that returns the existing module; none when the module is to be loaded anew."""
        is_own = name.startswith(_PREFIX) and target is None
        return ModuleSpec(name, self) if is_own and name in sys.modules else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The existing module, loaded: its code must not see the other spec."""
        module = sys.modules[spec.name]
        load(module)
        spec.loader_state = ModuleType.__getattribute__(module, "__spec__")
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Puts back the spec that the import system wrote over."""
        spec = ModuleType.__getattribute__(module, "__spec__")
        ModuleType.__setattr__(module, "__spec__", spec.loader_state)


def install() -> None:
    """Adds the finder unless it is there already."""
    if not any(isinstance(finder, _Present) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Present())


def submodules(package: dict[str, Any], *names: str) -> None:
    """Puts submodules into the namespace of a package, to be loaded at first use."""
    for name in names:
        full = f"{package['__name__']}.{name}"
        if full in sys.modules:
            package[name] = sys.modules[full]
            continue
        spec = importlib.util.find_spec(full)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {full!r}", name=full)
        module = importlib.util.module_from_spec(spec)
        module.__class__ = _Lazy
        _SPECS[full] = spec
        sys.modules[full] = package[name] = module
