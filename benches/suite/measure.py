"""Measures cases with one library. What fails is noted with its reason, and the next case follows.

A repeated case is called often enough for the clock, and that several times over. Programs and
deep graphs run in processes of their own, so that a crash is a result too. Start at `measure`.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from small_case import Library

from suite import process
from suite.case import Action, Case, Manner, Statement
from suite.inputs import Inputs
from suite.result import Check, Measurement, Run, Status

# Seconds of one repeat, by group.
SECONDS = {"A": 0.05, "B": 0.1, "C": 0.1, "D": 0.7}
# A case that takes longer than this many seconds is repeated less often.
LONG, FEWER_REPEATS = 2.0, 3
# Losses that are kept of a program.
LOSSES = 10
# Seconds that a process of its own may take beyond the limit of its case.
GRACE = 60
# Values of a result that has several parts.
PARTS = 6


@dataclass(frozen=True)
class Effort:
    """How long and how often to measure."""

    threads: int = 1
    repeats: int = 5
    # Seconds of a repeat; 0 leaves it to the group.
    seconds: float = 0.0
    # Seconds after which a case is given up.
    timeout: int = 60

    def options(self) -> list[str]:
        """The same as words of the command line."""
        return [
            f"--threads={self.threads}",
            f"--repeats={self.repeats}",
            f"--min-time={self.seconds}",
            f"--timeout={self.timeout}",
        ]

    def seconds_for(self, case: Case) -> float:
        """Seconds of a repeat of one case."""
        return self.seconds or SECONDS[case.group]


class CaseTimeoutError(Exception):
    """A case took too long."""


def measure(
    library: str,
    cases: list[Case],
    effort: Effort,
    output: Path,
    in_this_process: bool = False,
    show: Callable[[Case, Measurement], None] = lambda case, measurement: None,
) -> Run:
    """Measures cases and writes the run after each, so that one broken off keeps what it had."""
    run = Run(library, "", effort.threads, platform.python_version())
    module: Library = None
    for case in cases:
        if case.manner is Manner.OUTSIDE:
            measurement = process.measure(case.name, library, effort.repeats)
            run.version = run.version or measurement.details.get("version", "")
        elif case.manner is Manner.REPEATED or in_this_process:
            module = module or load(library, effort.threads)
            run.version = str(module.__version__)
            measurement = measure_here(module, case, effort)
        else:
            run.version, measurement = measure_apart(library, case, effort, run.version)
        run.measurements[case.name] = measurement
        show(case, measurement)
        run.write(output)
    return run


def load(name: str, threads: int) -> Library:
    """Imports a library, with the number of threads that it is to use."""
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(threads)
    library = importlib.import_module(name)
    for part in ("nn.functional", "autograd", "optim", "linalg", "fft"):
        # What is not there is noted by the cases that need it.
        with contextlib.suppress(ImportError):
            importlib.import_module(f"{name}.{part}")
    library.set_num_threads(threads)
    return library


def measure_apart(
    library: str, case: Case, effort: Effort, version: str
) -> tuple[str, Measurement]:
    """Measures one case in a process of its own; also the library's version, if it told it."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "run.json"
        script = Path(__file__).parent.parent / "groups.py"
        command = [sys.executable, str(script), "measure", library, str(output)]
        command += ["--here", f"--only=^{re.escape(case.name)}$", *effort.options()]
        limit = effort.timeout + GRACE
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=limit
            )
        except subprocess.TimeoutExpired:
            return version, Measurement(Status.TIMEOUT, f"{limit} s")
        if done.returncode or not output.exists():
            why = f"exit status {done.returncode}: {done.stderr[-200:]}"
            return version, Measurement(Status.CRASH, why)
        run = Run.read(output)
        return run.version or version, run.measurements[case.name]


def give_up(number: int, frame: FrameType | None) -> None:
    """Ends a case whose time is over."""
    raise CaseTimeoutError


def measure_here(library: Library, case: Case, effort: Effort) -> Measurement:
    """Measures one case in this process."""
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(effort.timeout)
    try:
        action = case.prepare(Inputs(library))
        if isinstance(action, Statement) or case.manner is Manner.REPEATED:
            return measure_repeated(library, case, action, effort)
        if case.manner is Manner.PROGRAM:
            return measure_program(action, effort.seconds_for(case), effort.repeats)
        return measure_once(action, case.units)
    except CaseTimeoutError:
        return Measurement(Status.TIMEOUT, f"{effort.timeout} s")
    # Which errors a library raises for what it refuses is its own affair.
    except Exception as error:
        return Measurement(Status.MISSING, f"{type(error).__name__}: {error}"[:300])
    finally:
        signal.alarm(0)
        gc.collect()


def measure_repeated(
    library: Library, case: Case, action: Action | Statement, effort: Effort
) -> Measurement:
    """Calls a case again and again."""
    if isinstance(action, Statement):
        timer = timeit.Timer(action.text, globals=action.names)
    else:
        timer = timeit.Timer(action)
    # The first call prepares, and fails where the library lacks something.
    timer.timeit(1)
    calls, taken = enough_calls(timer.timeit, effort.seconds_for(case))
    repeats = effort.repeats if taken < LONG else min(FEWER_REPEATS, effort.repeats)
    measurement = repeated(timer.timeit, calls, repeats, case.units)
    if not isinstance(action, Statement):
        measurement.check = summary(library, action())
    return measurement


def measure_program(step: Action, seconds: float, repeats: int) -> Measurement:
    """Calls a program's step again and again; tells its first losses and its memory."""
    forget_peak()
    before = memory("VmRSS")
    start = time.perf_counter()
    losses = [float(step())]
    first = time.perf_counter() - start
    losses += [float(step()) for _ in range(LOSSES - 1)]

    def timed(calls: int) -> float:
        start = time.perf_counter()
        for _ in range(calls):
            step()
        return time.perf_counter() - start

    calls, _ = enough_calls(timed, seconds / 2)
    measurement = repeated(timed, calls, repeats, 1)
    measurement.check = losses
    measurement.details = {"first_step_s": first}
    peak = memory("VmHWM")
    if peak is not None and before is not None:
        measurement.details |= {"peak_rss_MB": peak, "rss_above_start_MB": peak - before}
    return measurement


def measure_once(action: Action, units: int) -> Measurement:
    """Calls a case one time; it returns its own details."""
    start = time.perf_counter()
    details = action()
    taken = (time.perf_counter() - start) / units * 1e9
    return Measurement(shortest=taken, median=taken, longest=taken, repeats=1, details=details)


def enough_calls(timed: Callable[[int], float], seconds: float) -> tuple[int, float]:
    """How many calls take so many seconds, and how long they took."""
    calls, taken = 1, timed(1)
    while taken < seconds:
        growth = min(10.0, 1.3 * seconds / max(taken, 1e-9))
        calls = max(calls + 1, int(calls * growth))
        taken = timed(calls)
    return calls, taken


def repeated(timed: Callable[[int], float], calls: int, repeats: int, units: int) -> Measurement:
    """The times of several repeats of so many calls, per unit."""
    others = Others()
    times, of_processor = [], []
    for _ in range(repeats):
        start = time.process_time()
        times.append(timed(calls))
        of_processor.append(time.process_time() - start)
    per_unit = 1e9 / calls / units
    return Measurement(
        shortest=min(times) * per_unit,
        median=statistics.median(times) * per_unit,
        longest=max(times) * per_unit,
        processor=min(of_processor) * per_unit,
        repeats=repeats,
        others=round(others.processors(), 2),
    )


class Others:
    """Processors that other programs kept busy since this was made.

    Several threads that wait for each other lose more than that share: the slowest sets the pace.
    """

    def __init__(self) -> None:
        self.start, self.own, self.all = time.perf_counter(), time.process_time(), busy_seconds()

    def processors(self) -> float:
        """Their average number; 0 where the system does not tell."""
        elapsed = time.perf_counter() - self.start
        own = time.process_time() - self.own
        return max(0.0, (busy_seconds() - self.all - own) / max(elapsed, 1e-9))


def busy_seconds() -> float:
    """Seconds that all processors together have worked; 0 where the system does not tell."""
    try:
        first = Path("/proc/stat").read_text().partition("\n")[0]
    except OSError:
        return 0.0
    user, nice, system, _, _, *rest = (int(word) for word in first.split()[1:9])
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")


def forget_peak() -> None:
    """Sets the peak of memory back, so that it is not that of importing."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def memory(key: str) -> float | None:
    """A line of the process's status in MB, where the system tells it."""
    try:
        found = re.search(rf"{key}:\s+(\d+)", Path("/proc/self/status").read_text())
    except OSError:
        return None
    return int(found.group(1)) / 1024 if found else None


def summary(library: Library, output: Any) -> Check:
    """The mean size of a tensor's values; of several tensors, of the first ones each."""
    if isinstance(output, (tuple, list)):
        return summaries(library, output)
    if getattr(output, "dtype", None) is None:
        return None
    if "complex" in str(output.dtype):
        output = output.abs()
    return float(output.detach().to(library.float64).abs().mean())


def summaries(library: Library, outputs: Iterable[Any]) -> list[Any]:
    """One value for each of the first parts."""
    return [summary(library, output) for output in list(outputs)[:PARTS]]
