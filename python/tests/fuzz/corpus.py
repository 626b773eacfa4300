"""Cases kept in the repository: one file for each target, one case a line."""

from __future__ import annotations

import json
from pathlib import Path

from fuzz.target import Case, Target

FOLDER = Path(__file__).with_name("corpus")


def cases(target: Target) -> list[Case]:
    """The kept cases of a target."""
    file = FOLDER / f"{target.name}.jsonl"
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines() if line]


def keep(target: Target, case: Case) -> bool:
    """Adds a case, if it is not there; says whether it did."""
    if case in cases(target):
        return False
    with (FOLDER / f"{target.name}.jsonl").open("a") as file:
        file.write(json.dumps(case) + "\n")
    return True
