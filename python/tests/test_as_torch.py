"""Programs written for PyTorch run on this package, with all processes that they start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pullback


def run(*arguments: str, folder: Path | None = None, **variables: str) -> str:
    """What a program that runs by ``python -m pullback`` prints."""
    done = subprocess.run(
        [sys.executable, "-m", "pullback", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, **variables},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_version_is_the_one_that_the_package_stands_for() -> None:
    program = (
        "import importlib.metadata as m, torch\n"
        "names = [d.metadata['Name'] for d in m.distributions()]\n"
        "print(m.version('torch'), torch.__version__.startswith(m.version('torch')),\n"
        "      names.count('torch'), m.packages_distributions()['torch'])"
    )
    assert run("-c", program) == "2.15.0 True 1 ['torch']"


def test_without_children_the_environment_stays_as_it_is() -> None:
    program = (
        "import os, pullback; before = dict(os.environ); pullback.as_torch(children=False)\n"
        "import importlib.metadata as m\n"
        "names = [d.metadata['Name'] for d in m.distributions()]\n"
        "print(dict(os.environ) == before, m.version('torch'), names.count('torch'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["True", "2.15.0", "1"], done.stderr


def test_the_version_is_the_recorded_one() -> None:
    assert pullback.__version__.partition("+")[0] == "2.15.0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import torch.nn as nn; print(nn.Linear.__module__)", "pullback.nn.modules.linear"),
        ("from torch import nn; print(nn.__name__)", "pullback.nn"),
        ("import torch; print(torch.__name__)", "torch"),
        ("import functorch; print(functorch.vmap.__module__)", "pullback._vmap"),
        ("from functorch.einops import rearrange as r; print(r.__module__)", None),
        (
            "import importlib.util as u; print(u.find_spec('torch') is not None)",
            "True",
        ),
        ("import importlib.metadata as m; print(m.version('torch'))", "2.15.0"),
    ],
)
def test_a_process_of_the_program_finds_the_same(text: str, expected: str | None) -> None:
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {text!r}], check=True)"
    assert run("-c", child) == (expected or "pullback.func._rearrange")


def test_another_interpreter_goes_on_to_its_own_torch(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("origin = 'its own'\n")
    # An interpreter without this package: the finder says so.
    blocked = (
        "import sys\n"
        "class Blocked:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'pullback': raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Blocked())\n"
        f"sys.path.append({str(tmp_path)!r})\n"
        "import torch; print(torch.origin)"
    )
    child = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {blocked!r}], check=True)"
    )
    assert run("-c", child) == "its own"


LOADER = """
import sys
import torch
from torch.utils.data import DataLoader
from items import Items

def double(batch):
    return torch.stack(batch) * 2

if __name__ == "__main__":
    loader = DataLoader(Items(), batch_size=2, num_workers=2, collate_fn=double,
                        multiprocessing_context=sys.argv[1])
    print([batch.tolist() for batch in loader])
"""
ITEMS = """
import torch

class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.tensor(float(index))
"""


@pytest.mark.parametrize("way", ["fork", "spawn", "forkserver"])
def test_workers_of_a_loader_find_torch(way: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(LOADER)
    (tmp_path / "items.py").write_text(ITEMS)
    assert run("program.py", way, folder=tmp_path) == "[[0.0, 2.0], [4.0, 6.0]]"


def test_modules_run_as_programs(tmp_path: Path) -> None:
    (tmp_path / "tool.py").write_text(
        "import sys, torch\nprint(torch.__name__, __name__, sys.argv[1:])\n"
    )
    assert run("-m", "tool", "--flag", "x", folder=tmp_path) == ("torch __main__ ['--flag', 'x']")


def test_pytest_runs_tests_that_import_torch(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(
        "import torch\n"
        "def test_sum():\n"
        "    x = torch.ones(3, requires_grad=True)\n"
        "    x.sum().backward()\n"
        "    assert x.grad.tolist() == [1, 1, 1]\n"
    )
    printed = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_one.py", folder=tmp_path)
    assert "1 passed" in printed


def test_texts_have_their_arguments() -> None:
    assert run("-c", "import sys, torch; print(sys.argv)", "a", "b") == "['-c', 'a', 'b']"


@pytest.mark.parametrize("arguments", [(), ("-m",), ("-c",), ("no_such_file.py",)])
def test_what_is_no_program_is_said(arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pullback", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert ("no such file" if arguments[-1:] == ("no_such_file.py",) else "usage") in done.stderr
