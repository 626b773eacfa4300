"""Prints which rows of the op table are complete: the program of `cargo xtask coverage`.

Every column is checked by running calls and comparing with what was recorded of the reference;
nothing is asked of the library's own declarations. A row is complete when no call shows a fault.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from op_table.call import Library, Op
from op_table.judge import COLUMNS, Fault, exists, faults, is_intended, known_faults, unshown_forms
from op_table.record import needs_gpu, recorded
from op_table.row import FAMILIES, Row, rows
from op_table.table import table


@dataclass
class Verdict:
    """What was found of one row."""

    row: Row
    state: str
    faults: list[Fault]

    @property
    def columns(self) -> list[str]:
        """The columns with a fault, in the table's order."""
        return sorted({fault.column for fault in self.faults}, key=COLUMNS.index)


def verdict(lib: Library, row: Row, op: Op | None) -> Verdict:
    """Judges a row."""
    if op is None or row.name not in recorded():
        return Verdict(row, "unrecorded", [])
    if needs_gpu(row.name):
        return Verdict(row, "gpu", [])
    if not exists(lib, op):
        return Verdict(row, "missing", [])
    known = known_faults().get(row.name, {})
    found = [f for f in faults(lib, row, op) if not is_intended(known, f.column)]
    return Verdict(row, "incomplete" if found else "complete", found)


def print_family(family: str, verdicts: list[Verdict]) -> None:
    """How many rows of a family are complete, and which columns fail how often."""
    states = Counter(verdict.state for verdict in verdicts)
    countable = len(verdicts) - states["gpu"]
    share = 100 * states["complete"] / countable if countable else 100.0
    print(f"{family}: {states['complete']} of {countable} complete ({share:.1f} %)", end="")
    rest = {
        state: states[state]
        for state in ("incomplete", "missing", "unrecorded", "gpu")
        if states[state]
    }
    print("".join(f", {number} {LABELS[state]}" for state, number in rest.items()))
    columns = Counter(column for verdict in verdicts for column in verdict.columns)
    if columns:
        print(
            "    faults by column:", ", ".join(f"{c} {columns[c]}" for c in COLUMNS if columns[c])
        )


LABELS = {
    "incomplete": "incomplete",
    "missing": "missing",
    "unrecorded": "not recorded",
    "gpu": "need a GPU",
}


def print_names(label: str, names: list[str]) -> None:
    """A list of names, if there is one."""
    if names:
        print(f"{label} ({len(names)}): {' '.join(names)}")


def print_incomplete(verdicts: list[Verdict], every: bool) -> None:
    """The incomplete rows, with their first faults or all of them."""
    for found in verdicts:
        if found.state != "incomplete":
            continue
        print(f"{found.row.name}: {', '.join(found.columns)}")
        firsts = {fault.column: fault for fault in reversed(found.faults)}
        shown = found.faults if every else [firsts[column] for column in found.columns]
        for fault in shown:
            print(f"    {fault if every else str(fault)[:160]}")


def report(verdicts: list[Verdict], families: list[str], every: bool) -> None:
    """Everything that is printed."""
    print_incomplete(verdicts, every)
    for state, label in (
        ("missing", "no such function"),
        ("unrecorded", "not recorded yet"),
        ("gpu", "need a GPU: the reference on a CPU refuses every call"),
    ):
        print_names(label, [found.row.name for found in verdicts if found.state == state])
    unchecked = [
        f"{found.row.name} ({', '.join(forms)})"
        for found in verdicts
        if found.state in ("complete", "incomplete") and (forms := unshown_forms(found.row))
    ]
    print_names("in the table, but shown by no call of the reference", unchecked)
    intended = [
        f"{name} ({column})"
        for name, known in known_faults().items()
        for column in known
        if is_intended(known, column)
    ]
    print_names("differ by design, and are not counted as faults", intended)
    for family in families:
        of_family = [found for found in verdicts if found.row.family == family]
        if of_family:
            print_family(family, of_family)


def wanted(names: str | None, known: list[str], what: str) -> list[str]:
    """The names of a list with commas; all known ones if none is given."""
    if names is None:
        return known
    chosen = names.split(",")
    for name in chosen:
        if name not in known:
            raise SystemExit(f"there is no {what} `{name}`; there are: {', '.join(known)}")
    return chosen


def arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--family", metavar="LIST", help="only these families, with commas")
    parser.add_argument(
        "--op", metavar="LIST", help="only these rows, with commas, and all their faults"
    )
    parser.add_argument("--require", metavar="LIST", help="fail unless these families are complete")
    parser.add_argument(
        "--all", action="store_true", help="every fault, not the first of each column"
    )
    return parser.parse_args()


def main() -> int:
    """Judges the rows that are asked for."""
    options = arguments()
    families = wanted(options.family, list(FAMILIES), "family")
    required = wanted(options.require, list(FAMILIES), "family") if options.require else []
    if options.op and required:
        raise SystemExit("--require is about whole families: it does not go with --op")
    families = [*families, *(family for family in required if family not in families)]
    every = rows(tuple(families))
    chosen = wanted(options.op, list(every), "row") if options.op else list(every)
    ops, lib = table(), importlib.import_module("pullback")
    lib.set_num_threads(1)
    verdicts = [verdict(lib, every[name], ops.get(name)) for name in chosen]
    report(verdicts, families, options.all or bool(options.op))
    lacking = [
        v for v in verdicts if v.row.family in required and v.state not in ("complete", "gpu")
    ]
    if lacking:
        print(f"error: {len(lacking)} rows of {', '.join(required)} are not complete")
    return int(bool(lacking))


if __name__ == "__main__":
    sys.exit(main())
