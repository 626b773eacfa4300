"""The table of PyTorch's own test files: how many of their tests pass here.

The counts are recorded (``python/tests/recorded/pytorch_tests.tsv``), for PyTorch's files are no
part of this project.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

__all__ = ["RECORD", "Row", "read", "table"]

RECORD = Path(__file__).resolve().parents[2] / "tests" / "recorded" / "pytorch_tests.tsv"
_HEAD = ["file", "pullback", "pytorch", "why"]


class Row(NamedTuple):
    """A file, how many of its tests pass with each library, and what the others are about."""

    file: str
    pullback: int
    pytorch: int
    why: str


def read(path: Path = RECORD) -> list[Row]:
    """The rows; `ValueError` for a record that cannot be right."""
    lines = path.read_text().splitlines()
    head, *rest = [line.split("\t") for line in lines if line and not line.startswith("#")]
    if head != _HEAD:
        raise ValueError(f"{path.name}: the columns must be {_HEAD}, not {head}")
    rows = []
    for cells in rest:
        if len(cells) != len(_HEAD) or not (cells[1].isdigit() and cells[2].isdigit()):
            raise ValueError(f"{path.name}: {cells} is not a file, two counts and a reason")
        row = Row(cells[0], int(cells[1]), int(cells[2]), cells[3])
        if row.pullback < row.pytorch and not row.why:
            raise ValueError(f"{path.name}: {row.file} does not say why tests fail")
        rows.append(row)
    if len({row.file for row in rows}) < len(rows):
        raise ValueError(f"{path.name}: a file is there twice")
    return rows


def table(path: Path = RECORD) -> str:
    """A line for each file, and one for all."""
    rows = read(path)
    lines = ["| file | pullback | PyTorch | what the others are about |", "|---|---|---|---|"]
    lines += [f"| `{row.file}` | {row.pullback} | {row.pytorch} | {row.why} |" for row in rows]
    ours, theirs = sum(row.pullback for row in rows), sum(row.pytorch for row in rows)
    return "\n".join([*lines, f"| all | {ours} | {theirs} | |"]) + "\n"
