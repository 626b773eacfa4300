"""All cases by name. Whether a library has what a case needs is seen when it is measured."""

from __future__ import annotations

import re
from functools import cache

from suite import bandwidth, compute, overhead, process, programs
from suite.case import Case

GROUPS = {
    "A": "overhead",
    "B": "bandwidth",
    "C": "compute",
    "D": "programs",
    "E": "process",
}


@cache
def cases() -> dict[str, Case]:
    """Every case by its name, in the order in which they are measured and shown."""
    of_all_groups = [
        *overhead.cases(),
        *bandwidth.cases(),
        *compute.cases(),
        *programs.cases(),
        *process.cases(),
    ]
    by_name = {case.name: case for case in of_all_groups}
    if len(by_name) < len(of_all_groups):
        raise ValueError("two cases have the same name")
    return by_name


def selected(only: str = "", skip: str = "") -> list[Case]:
    """The cases whose name matches `only` and not `skip`."""
    wanted, unwanted = re.compile(only), re.compile(skip)
    return [
        case
        for name, case in cases().items()
        if wanted.search(name) and not (skip and unwanted.search(name))
    ]
