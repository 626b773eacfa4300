"""``import torch`` meaning this package: an importer for the name ``torch`` and what lies below.

``functorch`` is one more name for a part of it, and tools that ask which distributions are
installed (``importlib.metadata``) are told of one named ``torch``. Processes that this one starts
find the same by the folder ``_children`` on their search path, whose modules do no more than to
call :func:`install` there.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from . import _absent, _lazy

_NEW = __name__.rpartition(".")[0]
# Names that are not this package's, and what they mean.
_NAMES = {"torch": _NEW, "functorch": f"{_NEW}.functorch"}
_CHILDREN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_children")


def _own(name: str) -> str | None:
    """The name in this package of a module under another name; None for modules of others."""
    first, dot, rest = name.partition(".")
    return None if first not in _NAMES else _NAMES[first] + dot + rest


class _Importer(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ``torch.x`` as this package's ``x``; both names mean one module object."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of ``torch`` and everything below it."""
        own = _own(name)
        if own is None:
            return None
        if importlib.util.find_spec(own) is None:
            # `find_spec` gets None, an import the error of the package's own finder.
            if _absent.is_probe():
                return None
            importlib.import_module(own)
        return importlib.machinery.ModuleSpec(name, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """This package's own module, loaded: its code is not to see the other spec."""
        own = _own(spec.name)
        assert own is not None
        module = importlib.import_module(own)
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

    def find_distributions(self, context: Any = None) -> Iterator[Any]:
        """The distribution ``torch``, for a search by its name or for all distributions."""
        import importlib.metadata

        name = getattr(context, "name", None)
        # (A search for all finds those on the search path as well: not twice.)
        if name is None and _CHILDREN in sys.path:
            return
        if name is None or name.lower() == "torch":
            own = importlib.metadata.DistributionFinder.Context(name="torch", path=[_CHILDREN])
            yield from importlib.metadata.MetadataPathFinder.find_distributions(own)


def install() -> None:
    """Adds the importer unless it is there already."""
    if not any(isinstance(finder, _Importer) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Importer())
    sys.modules["torch"] = sys.modules[_NEW]
    # (The package imports itself there, and some programs use ``torch.torch.Tensor``.)
    sys.modules[_NEW].torch = sys.modules[_NEW]  # type: ignore[attr-defined]
    # (And some programs look for a class's library in the name of its module.)
    sys.modules[_NEW].Tensor.__module__ = "torch"
    # (Some libraries check that the module that they change has the name that they know.)
    sys.modules[_NEW].__name__ = "torch"
    # What is loaded is known by both names: an import would put modules in the place of functions
    # that have their name.
    for name, module in list(sys.modules.items()):
        if name.startswith(_NEW + "."):
            sys.modules.setdefault("torch" + name[len(_NEW) :], module)


def install_in_children() -> None:
    """Makes processes that start from now on find ``torch`` as this one does.

    Their search path begins with a folder that has it: a variable of the environment says so. An
    interpreter that does not have this package goes on to the ``torch`` that it has.
    """
    before = os.environ.get("PYTHONPATH")
    folders = [_CHILDREN, *(before.split(os.pathsep) if before else ())]
    # (A clone is found by its folder, which the program may have put on the path by itself.)
    package = os.path.dirname(os.path.dirname(_CHILDREN))
    if package in map(os.path.abspath, sys.path) and not _is_found_anyway(package):
        folders.append(package)
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(folders))
    # (Workers of `multiprocessing` inherit the search path itself.)
    if _CHILDREN not in sys.path:
        sys.path.insert(1, _CHILDREN)


def _is_found_anyway(folder: str) -> bool:
    """Whether a new interpreter has the folder on its path without being told."""
    import site

    folders = [*site.getsitepackages(), site.getusersitepackages()]
    return folder in map(os.path.abspath, folders)
