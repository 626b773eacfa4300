"""Which lines a message names: how the tests of the search for a line ask for one."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from blame.program import Named, read_report

import pullback as torch
from pullback.autograd import grad

# (`test_frames.py` runs these tests with the ways to read frames that other interpreters have.)
HAS_COLUMNS = sys.version_info >= (3, 11) and os.environ.get("PULLBACK_FRAMES") != "lines"


def leaf() -> Any:
    return torch.ones(3, requires_grad=True)


def line_of(t: Any) -> Named:
    """Where the node of a tensor was made, as the error says that nothing leads to it."""
    with pytest.raises(RuntimeError, match="not have been used in the graph") as caught:
        grad(torch.zeros((), requires_grad=True).exp(), t)
    line = read_report(str(caught.value)).lines[-1]
    assert "of input 0, which it does not lead to" in line.heading
    return line


def lines_of_stale(y: Any) -> list[Named]:
    """What the error of a stale value names."""
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
        y.sum().backward()
    return read_report(str(caught.value)).lines


def load(path: Path, source: str) -> dict[str, Any]:
    """The names that a file of this source has."""
    path.write_text(source, encoding="utf-8")
    names: dict[str, Any] = {"torch": torch, "leaf": leaf}
    exec(compile(source, str(path), "exec"), names)
    return names


def run_python(*arguments: str) -> str:
    """What another interpreter printed."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


SCRIPT = textwrap.dedent(
    """\
    import torch


    def layer(x):
        y = torch.sigmoid(x); z = 1
        y.add_(z); return y


    try:
        layer(torch.ones(3, requires_grad=True)).sum().backward()
    except RuntimeError as error:
        print(error, end="")
    """
)
"""A script that ends with the error of a stale value, of its lines 5 and 6."""
