"""Every op of the table beside PyTorch at ten and a million elements, for `cargo xtask bench ops`.

The calls are those that the table of the tests (`python/tests/op_table`) marks for timing, in the
first floating dtype of the row; measuring and pairing are those of `small.py`. An op whose time
does not depend on a size is timed once, by its first call. `measure` runs under the interpreter of
either library; `compare` prints the worst ratios of each size, and the ops that miss its goal.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

from small import Result, best_of, measure_case, skipped
from small_case import Case, Library

sys.path.insert(0, str(Path(__file__).parent.parent / "python" / "tests"))

from op_table.call import Call, Op
from op_table.observe import SEED, Run
from op_table.row import Row, rows
from op_table.table import function_of, table

# The ratio to PyTorch's time that an op may have, by number of elements.
GOALS = {1_000_000: 1.2, 10: 0.4}
WORST = 30
DTYPES = ("f32", "f64", "i64", "c64", "bool")


def timed(op: Op, count: int) -> Call | None:
    """The call of an op for a number of elements."""
    if op.scaled:
        return op.scaled(count)
    return op.calls[0] if count == min(GOALS) else None


def case(lib: Library, row: Row, op: Op, count: int) -> Case | None:
    """One op at one size, with its inputs made."""
    call = timed(op, count)
    dtype = next((dtype for dtype in DTYPES if dtype in row.dtypes), None)
    if call is None or dtype is None:
        return None
    run = Run(lib, op, call, dtype)
    tensors = run.build(gradient="autograd" in row.flags)
    args, kwargs = run.arguments(tensors)
    leaves = tuple(tensor for tensor in tensors if tensor.requires_grad)
    function = call.function(lib) if call.function else function_of(lib, op)
    return Case(f"{row.name} {count}", partial(function, *args, **kwargs), leaves)


def cases(lib: Library, only: re.Pattern[str], result: Result) -> Iterator[Case]:
    """The cases whose name matches; an op that the library lacks is noted."""
    ops = table()
    for name, row in rows().items():
        for count in GOALS:
            label = f"{name} {count}"
            if not only.search(label):
                continue
            try:
                made = case(lib, row, ops[name], count)
            except (AttributeError, ImportError):
                result.failures[f"{label}|f"] = "lacks"
                continue
            if made:
                yield made


def measure(library: str, only: str, output: Path) -> None:
    """Times every case whose name matches, and writes the result as JSON."""
    lib = importlib.import_module(library)
    lib.set_num_threads(1)
    lib.manual_seed(SEED)
    warnings.simplefilter("ignore")
    result = Result(library)
    for made in cases(lib, re.compile(only), result):
        measure_case(lib, made, result)
    if not result.times and not result.failures:
        raise SystemExit(f"no op's name matches {only!r}")
    output.write_text(json.dumps(asdict(result)))


def compare(ours: Result, theirs: Result) -> None:
    """Prints the worst ratios of each size, those that miss the goal, and the counts."""
    both = [name for name in ours.times if name in theirs.times]
    ratios = {name: ours.times[name] / theirs.times[name] for name in both}
    for count, goal in GOALS.items():
        names = [name for name in both if name.partition("|")[0].endswith(f" {count}")]
        worst = sorted(names, key=lambda name: -ratios[name])
        missed = [name for name in worst if ratios[name] > goal]
        print(f"at {count} elements: {len(missed)} of {len(names)} above {goal:g}")
        print(f"{'ratio':>6} {'case':50} {ours.library + ' us':>12} {theirs.library + ' us':>12}")
        for name in worst[:WORST]:
            times = f"{ours.times[name]:12.2f} {theirs.times[name]:12.2f}"
            print(f"{ratios[name]:6.2f} {name:50} {times}")
        print(
            f"above {goal:g}:", " ".join(f"{name} {ratios[name]:.2f}," for name in missed) or "none"
        )
    for reason, kinds in skipped(ours, theirs).items():
        print(f"skipped {kinds.total()}, {reason}: {' '.join(sorted(kinds))}")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure", help="time the ops with one library")
    measuring.add_argument("library", choices=["torch", "pullback"])
    measuring.add_argument("output", type=Path)
    measuring.add_argument("--only", default="", metavar="REGEX")
    comparing = commands.add_parser("compare", help="print the worst ops of each size")
    comparing.add_argument("--ours", type=Path, nargs="+", required=True, metavar="FILE")
    comparing.add_argument("--theirs", type=Path, nargs="+", required=True, metavar="FILE")
    options = parser.parse_args()
    if options.command == "measure":
        measure(options.library, options.only, options.output)
    else:
        compare(best_of(options.ours), best_of(options.theirs))


if __name__ == "__main__":
    main()
