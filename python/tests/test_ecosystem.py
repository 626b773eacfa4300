"""Programs on libraries that were written for PyTorch, where these are installed."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "ecosystem"
PROGRAMS = sorted(FOLDER.glob("*.py"))
# What the programs import besides the standard library and PyTorch.
OWN = {"__future__", "torch", *sys.stdlib_module_names}


def imported(program: Path) -> set[str]:
    """The packages that a program imports."""
    found = set()
    for node in ast.walk(ast.parse(program.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def test_every_program_is_in_the_table_with_its_libraries() -> None:
    table = (FOLDER / "README.md").read_text()
    for program in PROGRAMS:
        (row,) = [line for line in table.splitlines() if f"`{program.name}`" in line]
        assert all(name in row.replace("-ppl", "") for name in imported(program) - OWN)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_on_a_library_runs(program: Path) -> None:
    for name in imported(program) - OWN:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    command = [sys.executable, "-m", "pullback", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
