"""Makes the notebooks of this folder from programs of `examples/python`, so that they never drift.

    python examples/notebooks/make_notebooks.py [--check]

A program's docstring becomes the opening text, its imports and each of its definitions a cell, the
body of `main` the cells of the end: a loop has one of its own. `SHOWN` adds what a notebook shows
in between. No output is kept; with `--check` the files are compared and nothing is written.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent
PROGRAMS = FOLDER.parent / "python"
SETUP = """\
# What the examples share (pictures, progress) lies beside the programs.
import sys

sys.path.insert(0, "../python")"""


class Shown(NamedTuple):
    """A cell after the one that has the line `after`: text, and an expression to look at."""

    after: str
    text: str
    code: str


SHOWN = {
    "vae_digits": [
        Shown("train, test = load()", "The images as a tensor: shape, statistics and a heat map.",
              "train.images"),
        Shown("model = VAE()", "The module as a tree that folds, with parameters and memory.",
              "model"),
        Shown("before = evaluate(model, test)", "The graph of one step, as autograd recorded it.",
              "model(train.images[:4]).mean().grad_fn"),
    ],
    "pinn": [
        Shown("model = Solution()", "The network.", "model"),
        Shown("before = relative_error(model)",
              "The solution before training is the start, carried along: rows are times.",
              "on_grid(model, *grid())"),
    ],
    "hessian_spectrum": [
        Shown("model = make_model().double()", "The network.", "model"),
        Shown("first = nn.utils.parameters_to_vector(model.parameters()).detach()",
              "The whole Hessian at the start: 610 rows and columns.", "hessian(loss)(first)"),
    ],
}  # fmt: skip

Cell = dict[str, Any]


def code_cell(source: str) -> Cell:
    """A cell of code without output."""
    return {
        "cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [],
        "source": source.strip("\n").splitlines(keepends=True),
    }  # fmt: skip


def text_cell(source: str) -> Cell:
    """A cell of text."""
    lines = source.strip("\n").splitlines(keepends=True)
    return {"cell_type": "markdown", "metadata": {}, "source": lines}


def opening(doc: str, name: str) -> str:
    """The docstring as text: its first line a title, without the command."""
    title, _, rest = doc.partition("\n")
    kept = [line for line in rest.splitlines() if "python examples/" not in line]
    text = textwrap.dedent("\n".join(kept)).strip()
    made = f"Made from `examples/python/{name}.py` by `make_notebooks.py`."
    return f"# {title.rstrip('.')}\n\n{text}\n\n{made}"


def pieces(lines: list[str], nodes: list[ast.stmt], after: int) -> list[tuple[ast.stmt, str]]:
    """The text of each statement with the comments and decorators above it."""
    found = []
    for node in nodes:
        end = node.end_lineno or node.lineno
        text = textwrap.dedent("\n".join(lines[after:end])).rstrip()
        # (One empty line stays, between groups of imports.)
        found.append((node, re.sub(r"^\n+", "\n", text)))
        after = end
    return found


def is_definition(node: ast.stmt) -> bool:
    """Whether it is a function or a class."""
    return isinstance(node, (ast.FunctionDef, ast.ClassDef))


def main_cells(lines: list[str], main: ast.FunctionDef, name: str) -> list[Cell]:
    """The body of `main`: loops and what is to be shown end a cell."""
    start = main.body[0].end_lineno or main.body[0].lineno
    waiting: list[str] = []
    cells: list[Cell] = []
    shown = {entry.after: entry for entry in SHOWN[name]}

    def flush() -> None:
        if waiting:
            cells.append(code_cell("\n".join(waiting)))
            waiting.clear()

    for node, text in pieces(lines, main.body[1:], start):
        if text.strip().startswith("options = parse(__doc__, "):
            text = text.replace("__doc__, ", '"", ').removesuffix(")") + ", arguments=[])"
        waiting.append(text)
        entry = shown.pop(text.strip(), None)
        if isinstance(node, ast.For) or entry is not None:
            flush()
        if entry is not None:
            cells += [text_cell(entry.text), code_cell(entry.code)]
    flush()
    if shown:
        raise SystemExit(f"{name}.py has no line {next(iter(shown))!r}")
    return [*cells, code_cell("Picture(path)")]


def cells_of(name: str) -> list[Cell]:
    """All cells of one program's notebook."""
    text = (PROGRAMS / f"{name}.py").read_text()
    lines = text.splitlines()
    tree = ast.parse(text)
    doc = ast.get_docstring(tree) or ""
    cells = [text_cell(opening(doc, name)), code_cell(SETUP)]
    waiting: list[str] = []
    main = None
    start = tree.body[0].end_lineno or 0
    for node, piece in pieces(lines, tree.body[1:], start):
        if isinstance(node, ast.FunctionDef) and node.name == "main":
            main = node
        elif is_definition(node):
            if waiting:
                cells.append(code_cell("\n".join(waiting)))
                waiting = []
            cells.append(code_cell(piece))
        elif not isinstance(node, ast.If):
            waiting.append(piece.replace("import parse, report", "import Picture, parse, report"))
    if main is None:
        raise SystemExit(f"{name}.py has no function main")
    return [*cells, *main_cells(lines, main, name)]


def notebook(name: str) -> str:
    """The text of one notebook's file."""
    cells = [{**cell, "id": f"cell-{at}"} for at, cell in enumerate(cells_of(name))]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    content = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def main() -> int:
    """Writes all notebooks, or says which ones are not as they would be written."""
    is_check = sys.argv[1:] == ["--check"]
    stale = 0
    for name in SHOWN:
        path = FOLDER / f"{name}.ipynb"
        text = notebook(name)
        if not path.exists() or path.read_text() != text:
            stale += 1
            print(f"{path.name}: {'not as make_notebooks.py makes it' if is_check else 'written'}")
            if not is_check:
                path.write_text(text)
    return 1 if is_check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
