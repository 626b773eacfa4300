"""The page of PyTorch's public names: how many are here, and which are missing."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from .._absent import pytorch_names

_HEAD = """\
# PyTorch's public names

Written by `cargo xtask gen`. The names are those of PyTorch 2.15, each where its documentation has
it (`python/pullback/_pytorch_names.txt`). A name that is here does what PyTorch's does, unless its
documentation says otherwise; one that is missing is an `ImportError` or an `AttributeError`, which
in most places names this page.

"""


def _own(space: str) -> str:
    return "pullback" + space[len("torch") :]


def find(space: str) -> Any:
    """What stands for a namespace of PyTorch, a module or a class; None if nothing does."""
    name = _own(space)
    try:
        if importlib.util.find_spec(name) is not None:
            return importlib.import_module(name)
    except ImportError:
        pass
    outer, _, last = space.rpartition(".")
    holder = find(outer) if outer else None
    return None if holder is None else getattr(holder, last, None)


def has(space: str, name: str) -> bool:
    """Whether a namespace has a name, a submodule among them."""
    holder = find(space)
    return holder is not None and (hasattr(holder, name) or find(f"{space}.{name}") is not None)


def text() -> str:
    """The page."""
    rows, lists = [], []
    for space, names in sorted(pytorch_names().items()):
        missing = sorted(name for name in names if not has(space, name))
        rows.append(f"| `{space}` | {len(names) - len(missing)} | {len(missing)} |\n")
        if find(space) is None:
            lists.append(f"- `{space}`: all {len(names)}\n")
        elif missing:
            lists.append(f"- `{space}`: {', '.join(missing)}\n")
    table = "| namespace | here | missing |\n|---|---|---|\n" + "".join(rows)
    return f"{_HEAD}{table}\n## Missing\n\n{''.join(lists)}"
