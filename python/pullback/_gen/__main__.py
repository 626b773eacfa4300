"""The command: writes the generated files, or with ``--check`` says which of them are stale."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import chart, compatibility, ecosystem, families, page, part, picture, stub
from .op import described

PACKAGE = Path(__file__).resolve().parents[1]
ROOT = PACKAGE.parents[1]
DOCS = ROOT / "docs"
# The record that the page of performance shows: the newest with every group.
RECORD = ROOT / "benches" / "record" / "2026-11-22.md"


def texts() -> dict[Path, str]:
    """The text of each generated file."""
    ops = described()
    made = {PACKAGE / name: text for name, text in stub.texts(ops).items()}
    made[DOCS / "compatibility.md"] = compatibility.text()
    sources = ROOT / "crates" / "pullback" / "src" / "ops"
    made[DOCS / "ops.md"] = page.text(ops, sources)
    made[sources / "methods.md"] = families.text(sources)
    made.update(pages())
    return made


def pages() -> dict[Path, str]:
    """The pictures of the pages, and the pages with parts that are filled in."""
    groups = chart.read(RECORD)
    pictures = picture.texts()
    pictures["times.svg"] = chart.overview(groups)
    for group in groups:
        if len(group.cases) > 1:
            pictures[f"times-{group.letter.lower()}.svg"] = chart.bars(group)
    made = {DOCS / "pictures" / name: text for name, text in pictures.items()}
    parts = {
        "from_pytorch.md": {"areas": part.areas(), "missing": part.missing()},
        "performance.md": {"groups": part.recorded(groups)},
    }
    for name, texts_of in parts.items():
        made[DOCS / name] = part.filled(DOCS / name, texts_of)
    programs = ecosystem.FOLDER / "README.md"
    made[programs] = part.filled(programs, {"programs": ecosystem.table()})
    return made


def stale(made: dict[Path, str]) -> list[Path]:
    """The generated files whose content differs, or that do not exist."""
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
