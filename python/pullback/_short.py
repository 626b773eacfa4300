"""Namespaces of the registry under short names: ``special.erf`` is the function ``special_erf``.

The stubs of the modules that are made so come from the registry too (``_gen/stub.py``).
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

__all__ = ["short_names"]


def short_names(natives: ModuleType) -> dict[str, Any]:
    """The functions of ``_C._special`` and its like by their names without ``special_``."""
    prefix = natives.__name__.rpartition("._")[2] + "_"
    found = {name: value for name, value in vars(natives).items() if name.startswith(prefix)}
    return {name.removeprefix(prefix): found[name] for name in sorted(found)}
