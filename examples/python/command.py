"""The options that all examples take, and the line they end with.

Every program answers to `--steps`, `--seed` and `--out`, and says at its end what it measured
before and after learning, so that a person and a test can see whether it learned.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

_STARTED = time.perf_counter()


class Options(argparse.Namespace):
    """What was asked for: how many steps, the seed, and the picture's place."""

    steps: int
    seed: int
    out: Path

    def picture(self, name: str) -> Path:
        """The path of a picture in the output folder, which is made."""
        self.out.mkdir(parents=True, exist_ok=True)
        return self.out / name


def parse(doc: str | None, steps: int, arguments: Sequence[str] | None = None) -> Options:
    """Reads the options from the command line, or from `arguments`.

    Args:
        doc: the program's docstring; its first line is the help.
        steps: how many steps are made unless others are asked for.
        arguments: words in the place of those of the command line.
    """
    parser = argparse.ArgumentParser(description=(doc or "").strip().partition("\n")[0])
    parser.add_argument("--steps", type=int, default=steps, help=f"steps of training ({steps})")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random numbers (0)")
    parser.add_argument(
        "--out", type=Path, default=Path("demo-out"), help="folder for the picture (demo-out)"
    )
    options = parser.parse_args(arguments, namespace=Options())
    if options.steps < 1:
        parser.error(f"--steps: at least one step is needed, not {options.steps}")
    return options


class Picture:
    """A PNG file that a notebook shows where it is the last value of a cell."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"Picture({str(self.path)!r})"

    def _repr_png_(self) -> bytes:
        return self.path.read_bytes()


def report(what: str, before: float, after: float, picture: Path) -> None:
    """Prints the last lines: a measure before and after learning, the picture, the time."""
    print(f"{what}: {before:.4g} before, {after:.4g} after")
    print(f"{picture} written, {time.perf_counter() - _STARTED:.1f} s in all")
    sys.stdout.flush()
