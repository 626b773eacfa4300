"""The program of `cargo xtask bench`: the suite's groups on pullback beside PyTorch.

`measure` runs under the interpreter of either library, which needs only that library and NumPy,
and writes what it measured to a file; `compare` reads those files, a pair for each round, prints
the ratios, keeps them (`--record`) and judges them (`--against`). The cases are in `suite/`.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path

from suite import catalogue, compare, limit, record
from suite.case import Case
from suite.measure import Effort, measure
from suite.processor import this_processor
from suite.result import Measurement, Run, Status

DEFAULT_EFFORT = Effort()


def show_progress(case: Case, measurement: Measurement) -> None:
    """Prints a case that has been measured."""
    result = measurement.why
    if measurement.status is Status.OK:
        result = f"{compare.duration(measurement.shortest)} min"
        result += f"  {compare.duration(measurement.median)} median /{case.unit}"
    print(f"    {case.name:32} {measurement.status.value:8} {result[:100]}", flush=True)


def run_list(options: argparse.Namespace) -> None:
    """Prints the names of the cases."""
    print("\n".join(case.name for case in catalogue.selected(options.only, options.skip)))


def run_measure(options: argparse.Namespace) -> None:
    """Measures the cases with one library."""
    cases = catalogue.selected(options.only, options.skip)
    if not cases:
        raise SystemExit(f"no case's name matches {options.only!r}")
    warnings.simplefilter("ignore")
    effort = Effort(options.threads, options.repeats, options.min_time, options.timeout)
    measure(options.library, cases, effort, options.output, options.here, show_progress)


def run_find(options: argparse.Namespace) -> None:
    """Says which record is meant, before anything is measured."""
    found = record.to_judge_by(options.record, options.threads)
    print(f"    record: {found.kind}, {len(found.cases)} cases, {found.machine}")


def run_compare(options: argparse.Namespace) -> None:
    """Prints the comparison, keeps it and judges it, as far as that is asked for."""
    ours = [Run.read(path) for path in options.ours]
    theirs = [Run.read(path) for path in options.theirs]
    rates: limit.Rates = json.loads(options.limits.read_text()) if options.limits else {}
    # The time of all threads together says nothing about several.
    of_processor = options.cpu_time and ours[0].threads == 1
    table = compare.rows(ours, theirs, rates, of_processor)
    compare.show(table, ours[0].library, theirs[0].library, options.rtol)
    clock = "processor" if of_processor else "wall"
    new = record.of_rows(table, ours[0], theirs[0], rates, clock, this_processor())
    if options.json:
        options.json.write_text(new.text())
    old = None
    if options.against:
        old = record.to_judge_by(options.against, ours[0].threads)
    if options.record:
        busy = sum(row.is_busy for row in table)
        keep(new, is_whole=len(table) == len(catalogue.cases()))
        print(f"{busy} of {len(table)} cases were measured while other programs ran")
    if old:
        judge(old, new, table, options)


def keep(new: record.Record, is_whole: bool) -> None:
    """Writes the record of this kind of processor; cases that were not measured stay in it."""
    path = record.FOLDER / f"{new.kind}-t{new.threads}.json"
    is_whole = len(new.cases) >= len(catalogue.cases()) - len(["E.size"])
    if path.exists() and not is_whole:
        new = record.updated(record.Record.read(path), new)
    path.write_text(new.text())
    print(f"wrote {path.relative_to(record.ROOT)}: {len(new.cases)} cases")


def judge(
    old: record.Record,
    new: record.Record,
    table: list[compare.Row],
    options: argparse.Namespace,
) -> None:
    """Prints what differs from a record, and fails if a group became worse."""
    print(f"\nagainst the record of {old.kind}, threads: {old.threads}")
    for line in record.mismatches(old, new):
        print(f"note: {line}")
    found = record.changes(old, table, options.tolerance, options.group_tolerance, options.rtol)
    print("\n".join(found.lines) or "no case in both")
    if found.is_worse:
        raise SystemExit("worse than the record")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = top.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="print the names of the cases")
    listing.set_defaults(run=run_list)
    measuring = commands.add_parser("measure", help="time the cases with one library")
    measuring.set_defaults(run=run_measure)
    measuring.add_argument("library", choices=["torch", "pullback"])
    measuring.add_argument("output", type=Path)
    for command in (listing, measuring):
        command.add_argument("--only", default="", metavar="REGEX")
        command.add_argument("--skip", default="", metavar="REGEX")
    effort = DEFAULT_EFFORT
    measuring.add_argument("--threads", type=int, default=effort.threads)
    measuring.add_argument("--repeats", type=int, default=effort.repeats)
    measuring.add_argument("--min-time", type=float, default=effort.seconds, metavar="SECONDS")
    measuring.add_argument("--timeout", type=int, default=effort.timeout, metavar="SECONDS")
    measuring.add_argument("--here", action="store_true", help="no case in a process of its own")
    finding = commands.add_parser("find", help="say which record is meant, or that there is none")
    finding.set_defaults(run=run_find)
    finding.add_argument("record")
    finding.add_argument("--threads", type=int, default=effort.threads)
    add_compare(commands.add_parser("compare", help="print ratios, and keep or judge them"))
    return top


def add_compare(comparing: argparse.ArgumentParser) -> None:
    """The options of `compare`."""
    comparing.set_defaults(run=run_compare)
    comparing.add_argument("--ours", type=Path, nargs="+", required=True, metavar="FILE")
    comparing.add_argument("--theirs", type=Path, nargs="+", required=True, metavar="FILE")
    comparing.add_argument("--limits", type=Path, metavar="FILE", help="rates of this machine")
    comparing.add_argument("--rtol", type=float, default=2e-3, help="how far results may differ")
    comparing.add_argument("--cpu-time", action="store_true", help="of one thread: processor time")
    comparing.add_argument("--json", type=Path, metavar="FILE", help="write the comparison")
    comparing.add_argument("--record", action="store_true", help="keep it in benches/record")
    comparing.add_argument("--against", metavar="RECORD", help="a path, or auto: of this kind")
    comparing.add_argument("--tolerance", type=float, default=1.1, metavar="RATIO")
    comparing.add_argument("--group-tolerance", type=float, default=1.05, metavar="RATIO")


def main() -> None:
    """Reads the command line."""
    options = parser().parse_args()
    try:
        options.run(options)
    except record.RecordError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
