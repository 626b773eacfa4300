"""The command: writes the generated files, or with ``--check`` says which of them are stale."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import compatibility, page, stub
from .op import described

PACKAGE = Path(__file__).resolve().parents[1]
ROOT = PACKAGE.parents[1]


def texts() -> dict[Path, str]:
    """The text of each generated file."""
    ops = described()
    made = {PACKAGE / name: text for name, text in stub.texts(ops).items()}
    made[ROOT / "docs" / "compatibility.md"] = compatibility.text()
    made[ROOT / "docs" / "ops.md"] = page.text(ops, ROOT / "crates" / "pullback" / "src" / "ops")
    return made


def stale(made: dict[Path, str]) -> list[Path]:
    """Those files that hold something else, or do not exist."""
    return [path for path, text in made.items() if not path.is_file() or path.read_text() != text]


def main(arguments: list[str]) -> int:
    """Runs the command and returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m pullback._gen", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if one is stale")
    only_check = parser.parse_args(arguments).check
    made = texts()
    changed = stale(made)
    for path in changed:
        name = path.relative_to(ROOT)
        if only_check:
            print(f"{name} is stale: run `cargo xtask gen` and commit it", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(made[path])
            print(f"    {name}: written")
    if not changed:
        print(f"    {len(made)} generated files are up to date")
    return 1 if changed and only_check else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
