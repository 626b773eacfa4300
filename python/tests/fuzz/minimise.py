"""Making a finding small: whatever can be left out while the same goes wrong is left out."""

from __future__ import annotations

import time
from itertools import islice

from fuzz import child
from fuzz.target import Case, Target

SECONDS = 20.0
"""After so long what was reached is small enough."""
MOST = 300
"""Smaller cases that are tried of one case."""


def minimise(target: Target, case: Case, kind: str) -> Case:
    """The smallest case that was found to go wrong in the same way."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        candidates = [c for c in islice(target.smaller(case), MOST) if c != case]
        found = _first(target, candidates, kind, end)
        if found is None:
            break
        case = found
    return case


def _first(target: Target, cases: list[Case], kind: str, end: float) -> Case | None:
    """The first of the cases that goes wrong in the same way, also in a process of its own."""
    while cases and time.monotonic() < end:
        # One child for all of them, and another only where one of them kills it.
        outcome = child.run(target, cases)
        for finding in outcome.findings:
            case = finding.case or cases[min(outcome.count, len(cases) - 1)]
            if finding.kind == kind and fails(target, case) == kind:
                return case
        if outcome.died_at is None:
            return None
        cases = cases[outcome.died_at + 1 :]
    return None


def fails(target: Target, case: Case) -> str | None:
    """In which way the case goes wrong in a process of its own."""
    findings = child.run(target, [case]).findings
    return findings[0].kind if findings else None
