"""The rows of `ops.tsv`: which ops there are and what each must support."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).with_name("ops.tsv")
# The families whose calls are in this table; the others follow.
FAMILIES = ("core", "masked", "special", "internal", "sparse", "linalg", "fft", "signal")
FLAGS = ("autograd", "double_backward", "forward_ad", "method", "inplace", "out")


@dataclass(frozen=True)
class Row:
    """One line of the table; `flags` are the columns that say yes."""

    name: str
    family: str
    flags: frozenset[str]
    dtypes: frozenset[str]
    backward_dtypes: frozenset[str]
    variants: tuple[str, ...]


def words(field: str) -> list[str]:
    """The words of a field; a dash stands for none."""
    return [word for word in field.split(",") if word not in ("", "-")]


def parsed(line: str) -> Row:
    """A row of a line of the table."""
    name, family, *flags, dtypes, backward, variants = line.rstrip("\n").split("\t")
    yes = frozenset(flag for flag, mark in zip(FLAGS, flags, strict=True) if mark == "y")
    supported = frozenset(words(dtypes)), frozenset(words(backward))
    return Row(name, family, yes, *supported, tuple(words(variants)))


def rows(families: tuple[str, ...] = FAMILIES) -> dict[str, Row]:
    """The rows of some families by name, in the order of the file."""
    lines = TABLE.read_text().splitlines()
    every = [parsed(line) for line in lines if not line.startswith("#")]
    return {row.name: row for row in every if row.family in families}
