"""PyTorch's public names: where each is, what it is, and how often programs use it.

The table is `_pytorch_names.tsv`; it is read when something is missing for the first time, when a
placeholder module is loaded, and by tools.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple


class Known(NamedTuple):
    """A public name of PyTorch.

    Args:
        space: the namespace where its documentation has it, as ``torch.nn``.
        name: the name in it.
        kind: ``"class"``, ``"function"``, ``"module"`` or ``"value"``.
        wanted: ``"work"`` where it is to do what PyTorch's does, ``"answer"`` where a placeholder
            is enough, ``"later"`` for training on several processes.
        uses: how often a sample of public projects uses it.
    """

    space: str
    name: str
    kind: str
    wanted: str
    uses: int


@lru_cache(maxsize=1)
def table() -> dict[str, dict[str, Known]]:
    """All names by namespace and name, in the order of the file."""
    text = Path(__file__).with_name("_pytorch_names.tsv").read_text(encoding="ascii")
    spaces: dict[str, dict[str, Known]] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        full, kind, wanted, uses = line.split("\t")
        space, _, name = full.rpartition(".")
        spaces.setdefault(space, {})[name] = Known(space, name, kind, wanted, int(uses))
    return spaces
