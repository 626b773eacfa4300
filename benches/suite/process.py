"""Group E, the process: how long importing takes, and how large the installation is.

Each import is timed in a fresh interpreter. The size is that of the installed files, with those of
the distributions that it requires.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from suite.case import Action, Case, Manner
from suite.inputs import Inputs
from suite.result import Measurement, Status

IMPORT, SIZE = "E.import", "E.size"
FEWEST_IMPORTS = 5
MIB = 2.0**20
# Run with the name of a module.
IMPORTING = """
import json, sys, time, resource
start = time.perf_counter()
module = __import__(sys.argv[1])
taken = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
with open("/proc/self/statm") as pages:
    resident = int(pages.read().split()[1]) * resource.getpagesize()
version = str(getattr(module, "__version__", ""))
print(json.dumps({"import_s": taken, "resident": resident, "peak": peak, "version": version}))
"""
# A requirement that is for other systems than this, or for an extra.
ELSEWHERE = re.compile(
    r"extra\s*==|platform_system\s*==\s*[\"'](Windows|Darwin)|sys_platform\s*==\s*[\"'](win32|darwin)"
)


def cases() -> Iterator[Case]:
    """Every case of the group."""
    yield Case(IMPORT, nothing_to_prepare, "process", manner=Manner.OUTSIDE)
    yield Case(SIZE, nothing_to_prepare, "MB", manner=Manner.OUTSIDE)


def nothing_to_prepare(inputs: Inputs) -> Action:
    """These cases are about a library that has not been imported."""
    raise AssertionError("measured by `measure` of this module")


def measure(name: str, library: str, repeats: int) -> Measurement:
    """One of the two; a library that cannot be measured is noted with the reason."""
    try:
        if name == IMPORT:
            return measure_import(library, max(FEWEST_IMPORTS, repeats))
        return Measurement(details=installed_size(library))
    except (OSError, ValueError, importlib.metadata.PackageNotFoundError) as error:
        return Measurement(Status.MISSING, f"{type(error).__name__}: {error}")


def import_once(module: str) -> dict[str, Any]:
    """What an import takes in a fresh interpreter, and the process as a whole."""
    start = time.perf_counter()
    command = [sys.executable, "-c", IMPORTING, module]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - start
    if done.returncode:
        raise OSError(done.stderr[-300:])
    taken: dict[str, Any] = json.loads(done.stdout)
    return taken | {"process_wall_s": wall}


def measure_import(library: str, repeats: int) -> Measurement:
    """The time of importing; the first, which reads the files from the disk, does not count."""
    bare = import_once("sys")
    imports = [import_once(library) for _ in range(repeats + 1)][1:]
    times = sorted(one["import_s"] for one in imports)
    middle = statistics.median(times)
    details = {
        "version": imports[-1]["version"],
        "import_s": middle,
        "process_wall_s": statistics.median(one["process_wall_s"] for one in imports),
        "rss_MB": imports[-1]["resident"] / MIB,
        "peak_rss_MB": imports[-1]["peak"] / MIB,
        "bare_python_rss_MB": bare["resident"] / MIB,
    }
    return Measurement(
        shortest=times[0] * 1e9,
        median=middle * 1e9,
        longest=times[-1] * 1e9,
        repeats=repeats,
        details=details,
    )


def normalized(distribution: str) -> str:
    """A distribution's name in the one form that all its spellings have."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def installed_size(library: str) -> dict[str, Any]:
    """The size of the distribution that holds a module, and of everything that it requires."""
    distributions = importlib.metadata.packages_distributions().get(library)
    if not distributions:
        raise importlib.metadata.PackageNotFoundError(library)
    own = normalized(distributions[0])
    sizes: dict[str, int] = {}
    waiting = [own]
    while waiting:
        name = waiting.pop()
        if name in sizes:
            continue
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        sizes[name] = size_of(distribution)
        for requirement in distribution.requires or []:
            required = re.match(r"[A-Za-z0-9._-]+", requirement)
            if required and not ELSEWHERE.search(requirement):
                waiting.append(normalized(required.group()))
    largest = sorted(sizes, key=lambda name: -sizes[name])[:8]
    return {
        "own_MB": sizes.get(own, 0) / 1e6,
        "total_MB": sum(sizes.values()) / 1e6,
        "largest": {name: round(sizes[name] / 1e6, 1) for name in largest},
        "distributions": len(sizes),
    }


def size_of(distribution: importlib.metadata.Distribution) -> int:
    """The bytes of a distribution's files."""
    total = 0
    for file in distribution.files or []:
        try:
            total += os.lstat(str(distribution.locate_file(file))).st_size
        except OSError:
            # Listed, but not there: compiled files that nobody has compiled yet.
            continue
    return total
