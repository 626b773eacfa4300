"""Programs on libraries that were written for PyTorch, where these are installed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from pullback._gen import ecosystem

PROGRAMS = sorted(ecosystem.FOLDER.glob("*.py"))


def test_every_program_is_in_the_table_with_its_libraries() -> None:
    rows = ecosystem.table().splitlines()[2:]
    assert len(rows) == len(PROGRAMS) >= 17
    for program, row in zip(PROGRAMS, rows, strict=True):
        assert f"`{program.name}`" in row
        assert all(name in row.replace("-ppl", "") for name in ecosystem.imported(program))


def test_a_program_that_uses_no_library_or_says_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "libraries.txt").write_text("einops==0.8.2\n")
    program = tmp_path / "a.py"
    program.write_text('"""einops: patches."""\nimport einops\n')
    assert ecosystem.table(tmp_path).endswith("| `a.py` | einops 0.8.2 | patches. |\n")
    program.write_text('"""einops: patches."""\nimport torch\n')
    with pytest.raises(ValueError, match="imports no library"):
        ecosystem.table(tmp_path)
    program.write_text("import einops\n")
    with pytest.raises(ValueError, match="is not documented as"):
        ecosystem.table(tmp_path)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_on_a_library_runs(program: Path) -> None:
    for name in ecosystem.imported(program):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    command = [sys.executable, "-m", "pullback", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
