"""Writes the tags of PyTorch's ops to `python/pullback/_op_tags.tsv`.

Run with an interpreter that has PyTorch, after `names` was written by one that has pullback::

    .venv/bin/python python/tests/recorded/record_tags.py names > names.txt
    python python/tests/recorded/record_tags.py tags < names.txt
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

TABLE = Path(__file__).parents[2] / "pullback" / "_op_tags.tsv"
HEAD = "# Tags of PyTorch's ops, recorded: the tag; the ops that have it, without `aten::`.\n"


def names() -> None:
    """Prints the names of the ops of pullback."""
    import pullback as torch

    print("\n".join(sorted(torch._C._dispatch_get_all_op_names())))


def tags() -> None:
    """Writes the tags that PyTorch gives to ops of these names."""
    import torch

    found: dict[str, list[str]] = defaultdict(list)
    for line in sys.stdin:
        name = line.strip().removeprefix("aten::")
        op, _, overload = name.partition(".")
        packet = getattr(torch.ops.aten, op, None)
        for tag in getattr(getattr(packet, overload or "default", None), "tags", ()):
            found[tag.name].append(name)
    lines = [f"{tag}\t{' '.join(found[tag])}\n" for tag in sorted(found)]
    TABLE.write_text(HEAD + "".join(lines), encoding="ascii")


if __name__ == "__main__":
    {"names": names, "tags": tags}[sys.argv[1]]()
