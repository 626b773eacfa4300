"""``import torch`` meaning this package: an importer for the name ``torch`` and what lies below."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType

from . import _absent, _lazy

_OLD, _NEW = "torch", __name__.rpartition(".")[0]


class _Importer(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ``torch.x`` as this package's ``x``; both names mean one module object."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of ``torch`` and everything below it."""
        if name != _OLD and not name.startswith(_OLD + "."):
            return None
        if importlib.util.find_spec(_NEW + name[len(_OLD) :]) is None:
            # Those who ask get no for an answer, those who import it an error that may say more.
            if _absent.is_question():
                return None
            importlib.import_module(_NEW + name[len(_OLD) :])
        return importlib.machinery.ModuleSpec(name, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """This package's own module, loaded: its code is not to see the other spec."""
        module = importlib.import_module(_NEW + spec.name[len(_OLD) :])
        _lazy.load(module)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Puts back the spec that the import system wrote over."""
        spec = importlib.machinery.PathFinder.find_spec
        own = module.__name__
        if module.__spec__ is not None and module.__spec__.name != own:
            parent = sys.modules.get(own.rpartition(".")[0])
            found = spec(own, getattr(parent, "__path__", None))
            if found is not None:
                module.__spec__ = found


def install() -> None:
    """Adds the importer once."""
    if not any(isinstance(finder, _Importer) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Importer())
    sys.modules[_OLD] = sys.modules[_NEW]
    # What is loaded is known by both names: an import would put modules in the place of functions
    # that have their name.
    for name, module in list(sys.modules.items()):
        if name.startswith(_NEW + "."):
            sys.modules.setdefault(_OLD + name[len(_NEW) :], module)
