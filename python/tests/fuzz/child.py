"""Cases in a forked child: limits of memory and time, and what became of each.

The parent imports the library and never calls it, so that a child starts as a fresh process with
one thread. The number of the case that runs lies in memory that both see: when a child dies or
stands still, the parent knows at which case.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import json
import mmap
import os
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from fuzz.target import Case, Target, Wrong

SIGNS = ("panicked at", "bug in pullback", "PanicException", "double free", "AddressSanitizer")
"""What the library, the allocator or a sanitizer writes when something went wrong within."""


@dataclass
class Finding:
    """A case that broke the rule of its target; ``kind`` tells defects apart."""

    case: Case
    kind: str
    message: str


@dataclass
class Outcome:
    """What became of the cases of one child."""

    count: int = 0
    findings: list[Finding] = field(default_factory=list)
    new: list[tuple[str, Case]] = field(default_factory=list)
    """Cases whose way is not among those that were known, each with it."""
    died_at: int | None = None


def run(target: Target, cases: Iterable[Case], known: frozenset[str] = frozenset()) -> Outcome:
    """Runs cases in a child, one after the other, until the end or the first that kills it."""
    place = mmap.mmap(-1, 8)
    with tempfile.TemporaryFile("w+") as answers, tempfile.TemporaryFile("w+") as words:
        sys.stdout.flush()
        sys.stderr.flush()
        process = os.fork()
        if process == 0:
            code = 1
            try:
                _limit(target)
                os.dup2(words.fileno(), 2)
                faulthandler.enable(words, all_threads=True)
                faulthandler.register(signal.SIGUSR1, words, all_threads=True)
                _work(target, cases, known, place, answers)
                code = 0
            except BaseException:
                traceback.print_exc(file=words)
                words.flush()
            finally:
                # Nothing of the parent's is to be flushed or closed here.
                os._exit(code)
        status, hangs = _watch(process, place, target.patience)
        outcome = _read(answers)
        outcome.count = _at(place)
        words.seek(0)
        said = words.read()[-6000:]
    if hangs or status != 0:
        outcome.died_at = outcome.count
        kind = "hang" if hangs else _death(status)
        outcome.findings.append(Finding({}, kind, said))
    elif any(sign in said for sign in SIGNS):
        outcome.findings.append(Finding({}, "panic", said))
    place.close()
    return outcome


def _limit(target: Target) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if _has_proc() else 1 << 19
    most = pages * resource.getpagesize() + target.memory
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _has_proc() -> bool:
    return Path("/proc/self/statm").exists()


def _work(
    target: Target,
    cases: Iterable[Case],
    known: frozenset[str],
    place: mmap.mmap,
    answers: IO[str],
) -> None:
    seen = set(known)
    for number, case in enumerate(cases):
        place[:8] = struct.pack("Q", number)
        way = None
        try:
            way = target.run(case)
        except Wrong as wrong:
            _write(answers, {"case": case, "kind": wrong.kind, "message": str(wrong)})
        except MemoryError as error:
            # The limit is this child's: what is asked for more must be refused in good order.
            way = f"memory: {error}"[:40]
        except BaseException as error:
            text = "".join(traceback.format_exception(error)[-4:])
            _write(answers, {"case": case, "kind": type(error).__name__, "message": text})
        if way is not None and way not in seen:
            seen.add(way)
            _write(answers, {"case": case, "way": way})
        place[:8] = struct.pack("Q", number + 1)
    # Whatever the cases left behind is freed in this process, under the same eyes.
    gc.collect()


def _write(answers: IO[str], answer: dict[str, object]) -> None:
    answers.write(json.dumps(answer) + "\n")
    # The next case may kill the process.
    answers.flush()


def _read(answers: IO[str]) -> Outcome:
    outcome = Outcome()
    answers.seek(0)
    for line in answers:
        answer = json.loads(line)
        if "way" in answer:
            outcome.new.append((answer["way"], answer["case"]))
        else:
            outcome.findings.append(Finding(answer["case"], answer["kind"], answer["message"]))
    return outcome


def _at(place: mmap.mmap) -> int:
    number: int = struct.unpack("Q", place[:8])[0]
    return number


def _watch(process: int, place: mmap.mmap, patience: float) -> tuple[int, bool]:
    """The status with which the child ended, and whether it stood still."""
    last, since, pause = -1, time.monotonic(), 0.0005
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return status, False
        now = _at(place)
        if now != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > patience:
            with contextlib.suppress(ProcessLookupError):
                # Where it stands is written down before it goes.
                os.kill(process, signal.SIGUSR1)
                time.sleep(0.3)
                os.kill(process, signal.SIGKILL)
            return os.waitpid(process, 0)[1], True
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


def _death(status: int) -> str:
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"exit {os.waitstatus_to_exitcode(status)}"
