"""The table of programs on libraries that were written for PyTorch (`examples/ecosystem`).

A program's file says all of it: what it shows in the first line of its documentation, its libraries
by its imports. Their versions are those of `libraries.txt`.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

__all__ = ["FOLDER", "imported", "table", "versions"]

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "ecosystem"
# The modules that every program may import.
_OWN = {"__future__", "numpy", "torch", *sys.stdlib_module_names}


def versions(folder: Path = FOLDER) -> dict[str, str]:
    """The pinned version of each library, by the name of its distribution."""
    lines = (folder / "libraries.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def _documented(program: Path) -> tuple[ast.Module, str]:
    tree = ast.parse(program.read_text())
    (first, *_) = (ast.get_docstring(tree) or "").splitlines() or [""]
    return tree, first.partition(": ")[2]


def imported(program: Path) -> set[str]:
    """The packages that a program imports, beside the standard library, NumPy and PyTorch."""
    found = set()
    for node in ast.walk(_documented(program)[0]):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found - _OWN


def _libraries(program: Path, known: dict[str, str]) -> str:
    packages = {re.sub("[-.]", "_", name).removesuffix("_ppl"): name for name in known}
    names = sorted(packages[package] for package in imported(program) if package in packages)
    if not names:
        raise ValueError(f"{program.name} imports no library of libraries.txt")
    return ", ".join(f"{name} {known[name]}" for name in names)


def table(folder: Path = FOLDER) -> str:
    """A row for each program; `ValueError` for one without a library or without documentation."""
    rows = ["| program | libraries | what it shows |", "|---|---|---|"]
    known = versions(folder)
    for program in sorted(folder.glob("*.py")):
        _, shows = _documented(program)
        if not shows:
            raise ValueError(f'{program.name} is not documented as `"""library: what it shows`')
        rows.append(f"| `{program.name}` | {_libraries(program, known)} | {shows} |")
    return "\n".join(rows) + "\n"
