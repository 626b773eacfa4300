"""The README's programs in Python run and do what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pullback as torch
from pullback import _known
from pullback._gen import compatibility as names

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
    scope: dict[str, Any] = {}
    exec(compile(program, str(README), "exec"), scope)
    assert scope["accuracy"].item() > 0.95
    (second,) = torch.autograd.grad(
        torch.autograd.grad((scope["a"] ** 3).sum(), scope["a"], create_graph=True)[0].sum(),
        scope["a"],
    )
    assert second.tolist() == [6.0, 12.0, 18.0]


def numbers(text: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text)]


def test_the_readme_counts_the_ops_as_the_registry_does() -> None:
    ops = {op["op"]: op["differentiable"] for op in torch._C._describe_ops() if not op["internal"]}
    never = sum(not differentiable for differentiable in ops.values())
    (row,) = re.findall(r"^\| Ops \| (.*) \|$", README.read_text(), flags=re.MULTILINE)
    assert numbers(row) == [len(ops), len(ops) - never, never]


def test_the_readme_counts_the_names_that_are_here() -> None:
    known = _known.table()
    rows = re.findall(r"(\d+) of (\d+) names of `(torch[\w.]*)`( are missing)?", README.read_text())
    assert {space for _, _, space, _ in rows} == {"torch.nn", "torch.nn.functional", "torch.linalg"}
    for counted, total, space, is_missing in rows:
        here = sum(names.has(space, name) for name in known[space])
        expected = len(known[space]) - here if is_missing else here
        assert (int(counted), int(total)) == (expected, len(known[space])), space
    here = sum(names.has(space, name) for space, all_of in known.items() for name in all_of)
    counted = re.findall(
        r"Of PyTorch's (\S+) public names, more than (\S+) are", README.read_text()
    )
    all_of, fewer = numbers(" ".join(counted[0]))
    assert all_of == sum(map(len, known.values()))
    assert fewer < here < fewer + 500


def test_the_readme_says_what_is_missing() -> None:
    _, _, section = README.read_text().partition("## What is missing")
    section = section.partition("\n## ")[0]
    known = _known.table()
    # Packages of which there is no name.
    rows = re.findall(r"^\| (.*?) \| no name of them \|", section, flags=re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([\w.]+)`", row)}
    assert named == {space for space in known if names.find(space) is None}
    assert all(names.has("torch.linalg", name) for name in known["torch.linalg"])
    assert all(names.has("torch.optim", name) for name in known["torch.optim"])
    assert all(names.find(f"torch.nn.{name}") is not None for name in known["torch.nn"])
