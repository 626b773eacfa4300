"""The notebooks are as their programs make them, and their cells run, without Jupyter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
STEPS = {"hessian_spectrum": 10, "pinn": 20, "vae_digits": 20}

# Runs the cells that it is given as Jupyter would, and prints what each shows of its last value.
RUNNER = """
import ast, json, sys

scope = {"__name__": "__main__"}
for source in json.load(sys.stdin):
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), scope)
    if last is None:
        continue
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), scope)
    if value is not None:
        shown = getattr(value, "_repr_html_", None) or getattr(value, "_repr_png_", None) or str
        print("SHOWN", type(value).__name__, len(shown(value) if shown is str else shown()))
"""


def cells(path: Path) -> list[Any]:
    content = json.loads(path.read_text())
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in content["cells"]}) == len(content["cells"])
    assert not any(cell.get("outputs") for cell in content["cells"])
    return content["cells"]


def test_notebooks_are_as_their_programs_make_them() -> None:
    assert {path.stem for path in NOTEBOOKS} == set(STEPS)
    command = [sys.executable, str(FOLDER / "make_notebooks.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_cells_of_a_notebook_run_and_show_something(path: Path, tmp_path: Path) -> None:
    sources = ["".join(cell["source"]) for cell in cells(path) if cell["cell_type"] == "code"]
    # The only thing that is changed: how long it learns, and where the picture goes.
    short = ["--steps", str(STEPS[path.stem]), "--out", str(tmp_path)]
    (at,) = [at for at, source in enumerate(sources) if "arguments=[]" in source]
    sources[at] = sources[at].replace("arguments=[]", f"arguments={short!r}")
    done = subprocess.run(
        [sys.executable, "-c", RUNNER], input=json.dumps(sources), cwd=FOLDER,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    shown = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("SHOWN")]
    assert shown[-1][0] == "Picture"
    assert len(shown) >= 3
    assert all(int(length) > 500 for _, length in shown)
    assert (tmp_path / f"{path.stem}.png").is_file()
