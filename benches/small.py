"""Some 7000 small cases of pullback beside PyTorch: the program of `cargo xtask bench small`.

A case is one call on about 16,000 elements or fewer: short rows, narrow columns, small images and
matrices. It is timed forward (`NAME|f`, recording where an input needs a gradient) and forward with
the gradients of its leaves (`NAME|b`), on one thread. `measure` runs under the interpreter of
either library and writes the times to a file; `compare` reads those files. No absolute time is a
result here: only the ratio of two files made one after the other. The cases are in `small_case.py`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from small_case import FAMILIES, Case, Library, Tensor

# A call is repeated in batches of about this long, and the fastest batch counts.
BATCHES = 7
BATCH_SECONDS = 1.5e-3
MOST_CALLS = 1000


@dataclass
class Result:
    """What one library did: microseconds by name, and why the other names have none."""

    library: str
    times: dict[str, float] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


def best_microseconds(function: Callable[[], Any]) -> float:
    """The time of one call: the fastest of several batches, each long enough for the clock."""
    function()
    function()
    start = time.perf_counter()
    function()
    once = time.perf_counter() - start
    calls = max(1, min(MOST_CALLS, int(BATCH_SECONDS / max(once, 1e-7))))
    fastest = float("inf")
    for _ in range(BATCHES):
        start = time.perf_counter()
        for _ in range(calls):
            function()
        fastest = min(fastest, (time.perf_counter() - start) / calls)
    return fastest * 1e6


def differentiable(lib: Library, output: Any) -> Tensor:
    """The output itself, or the first of several that can have a gradient."""
    if isinstance(output, lib.Tensor):
        return output
    return next(tensor for tensor in output if tensor.is_floating_point())


def with_gradient(lib: Library, case: Case) -> Callable[[], Any] | None:
    """The case with its backward pass, unless its output has none."""
    output = differentiable(lib, case.forward())
    if not output.requires_grad:
        return None
    gradient = lib.randn_like(output)

    def forward_and_backward() -> Any:
        output = differentiable(lib, case.forward())
        return lib.autograd.grad(output, case.leaves, gradient, allow_unused=True)

    return forward_and_backward


def measure_case(lib: Library, case: Case, result: Result) -> None:
    """Times a case forward and with its gradients; what fails is noted with its reason."""
    name = f"{case.name}|f"
    try:
        result.times[name] = best_microseconds(case.forward)
        if case.leaves:
            name = f"{case.name}|b"
            function = with_gradient(lib, case)
            if function is not None:
                result.times[name] = best_microseconds(function)
    except AttributeError:
        result.failures[name] = "lacks"
    # Which errors a library raises for what it refuses is its own affair.
    except Exception as error:
        result.failures[name] = f"refuses ({type(error).__name__})"


def measure(library: str, only: str, output: Path) -> None:
    """Times every case whose name matches, and writes the result as JSON."""
    lib = importlib.import_module(library)
    lib.set_num_threads(1)
    lib.manual_seed(0)
    warnings.simplefilter("ignore")
    wanted = re.compile(only)
    result = Result(library)
    for family in FAMILIES:
        before = len(result.times)
        for case in family(lib):
            if wanted.search(case.name):
                measure_case(lib, case, result)
        if len(result.times) > before:
            print(f"    {family.__name__}: {len(result.times) - before} times", flush=True)
    if not result.times and not result.failures:
        raise SystemExit(f"no case's name matches {only!r}")
    output.write_text(json.dumps(asdict(result)))


def best_of(files: Iterable[Path]) -> Result:
    """The rounds of one library as one result: of each case the shortest time."""
    rounds = [Result(**json.loads(file.read_text())) for file in files]
    best = Result(rounds[0].library)
    for result in rounds:
        best.failures |= result.failures
        for name, elapsed in result.times.items():
            best.times[name] = min(elapsed, best.times.get(name, elapsed))
    return best


def skipped(ours: Result, theirs: Result) -> dict[str, Counter[str]]:
    """The cases without two times, counted by their first word, under who failed and how."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    names = ours.times | ours.failures | theirs.times | theirs.failures
    for name in names:
        lacking = [result for result in (ours, theirs) if name not in result.times]
        # What failed forward is counted there, and not a second time for its gradient.
        forward = name.removesuffix("|b") + "|f"
        if name != forward and any(forward in result.failures for result in lacking):
            continue
        reasons = [
            f"{result.library} {result.failures.get(name, 'has no gradient')}" for result in lacking
        ]
        if reasons:
            counts[", ".join(reasons)][name.split()[0]] += 1
    return counts


def compare(ours: Result, theirs: Result, limit: float) -> None:
    """Prints the cases whose ratio of times is above the limit, worst first, and the counts."""
    names = [name for name in ours.times if name in theirs.times]
    ratios = {name: ours.times[name] / theirs.times[name] for name in names}
    above = sorted((name for name in names if ratios[name] > limit), key=lambda name: -ratios[name])
    if above:
        print(f"{'ratio':>6} {'case':45} {ours.library + ' us':>12} {theirs.library + ' us':>12}")
    for name in above:
        times = f"{ours.times[name]:12.1f} {theirs.times[name]:12.1f}"
        print(f"{ratios[name]:6.2f} {name:45} {times}")
    without_ratio = skipped(ours, theirs)
    for reason, kinds in without_ratio.items():
        shown = ", ".join(f"{kind} {count}" for kind, count in kinds.items())
        print(f"skipped {kinds.total()}, {reason}: {shown}")
    slower = sum(ratio > 1.0 for ratio in ratios.values())
    skips = sum(kinds.total() for kinds in without_ratio.values())
    print(f"{len(above)} of {len(names)} above {limit:g}, {slower} above 1; {skips} skipped")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure", help="time the cases with one library")
    measuring.add_argument("library", choices=["torch", "pullback"])
    measuring.add_argument("output", type=Path)
    measuring.add_argument("--only", default="", metavar="REGEX")
    comparing = commands.add_parser("compare", help="print the cases above the limit")
    comparing.add_argument("--ours", type=Path, nargs="+", required=True, metavar="FILE")
    comparing.add_argument("--theirs", type=Path, nargs="+", required=True, metavar="FILE")
    comparing.add_argument("--limit", type=float, default=1.1)
    arguments = parser.parse_args()
    if arguments.command == "measure":
        measure(arguments.library, arguments.only, arguments.output)
    else:
        compare(best_of(arguments.ours), best_of(arguments.theirs), arguments.limit)


if __name__ == "__main__":
    main()
