"""Errors for names that PyTorch has and this package does not have.

``from torch import fft`` and ``import torch.fft`` raise an ImportError that names what is missing,
for every public name of PyTorch (`_known`, read when something is missing for the first time).
Of attributes the extension says it (`crates/python/src/raw/missing.rs`): the main namespace has no
``__getattr__``, because a module with one loses the interpreter's short way to its names, for which
every ``torch.add`` would pay. Modules that call :func:`announce` have one: for placeholders
(`_placeholder`), which are not missing, they can be imported. Tensors lack no name.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from . import _placeholder

_OWN = __name__.rpartition(".")[0]
_PAGE = "docs/compatibility.md"


def message(space: str, name: str) -> str | None:
    """Why a namespace of this package lacks a name; None if PyTorch does not have it either.

    Args:
        space: the namespace's full name, as ``pullback.nn`` or ``torch.nn``.
        name: the name that is missing.
    """
    from ._known import table

    theirs = "torch" + space[space.index(".") :] if "." in space else "torch"
    names = table()
    full = f"{theirs}.{name}"
    is_space = any(space == full or space.startswith(full + ".") for space in names)
    if not is_space and name not in names.get(theirs, ()):
        return None
    from .version import pullback

    return (
        f"PyTorch has {theirs}.{name}, pullback {pullback} does not have it yet; "
        f"{_PAGE} of pullback lists what is missing"
    )


def announce(namespace: dict[str, Any]) -> None:
    """Gives a module a ``__getattr__`` that finds placeholders, and says which names PyTorch has.

    Args:
        namespace: the module's ``globals()``.
    """
    space = namespace["__name__"]

    def missing(name: str) -> Any:
        text = f"module {space!r} has no attribute {name!r}"
        reason = None
        if not name.startswith("__"):
            found = _placeholder.find(space, name)
            if found is not None:
                return namespace.setdefault(name, found)
            reason = message(space, name) or _placeholder.why(space)
        if reason is not None:
            text += f": {reason}"
        error = AttributeError(text)
        error.name, error.obj = name, sys.modules.get(space)
        raise error

    namespace["__getattr__"] = missing


def is_probe() -> bool:
    """Whether a finder is called by `importlib.util.find_spec`, which imports nothing."""
    caller = sys._getframe(2)
    while caller is not None and caller.f_code.co_name in ("_find_spec", "find_spec"):
        if caller.f_globals.get("__name__") == "importlib.util":
            return True
        caller = caller.f_back  # type: ignore[assignment]
    return False


class _Finder:
    """The last finder for modules of this package: placeholders, and errors for what is missing."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a placeholder module; None for a module that PyTorch does not have either."""
        package, _, rest = name.partition(".")
        if package != _OWN or not rest:
            return None
        found = _placeholder.spec_of(name)
        if found is not None or is_probe():
            return found
        space, _, last = name.rpartition(".")
        reason = None if last.startswith("__") else message(space, last)
        if reason is None:
            return None
        # (Not a ModuleNotFoundError: `from torch import x` would replace it by its own error.)
        raise ImportError(f"cannot import {last!r} from {space!r}: {reason}", name=name)


def install() -> None:
    """Adds the finder unless it is there already."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
