"""The README's programs in Python run and do what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pullback as torch

README = Path(__file__).parents[2] / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(), flags=re.DOTALL)


def test_the_broken_program_of_the_readme_ends_as_shown(tmp_path: Path) -> None:
    _, program = blocks("python")
    (shown,) = blocks("text")
    (tmp_path / "train.py").write_text(program)
    command = [sys.executable, "-m", "pullback", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    if sys.version_info < (3, 11):
        # Without positions of expressions there are no marks.
        shown = re.sub(r"^ +\^+\n", "", shown, flags=re.MULTILINE)
    assert done.stderr.endswith(shown)


def test_the_program_of_the_readme_learns() -> None:
    program, _ = blocks("python")
    names: dict[str, Any] = {}
    exec(compile(program, str(README), "exec"), names)
    assert names["accuracy"].item() > 0.95
    (second,) = torch.autograd.grad(
        torch.autograd.grad((names["a"] ** 3).sum(), names["a"], create_graph=True)[0].sum(),
        names["a"],
    )
    assert second.tolist() == [6.0, 12.0, 18.0]
