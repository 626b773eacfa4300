"""A run of one target: kept cases first, then drawn ones, until the time is over."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from random import Random

from fuzz import child, corpus
from fuzz.child import Finding, Outcome
from fuzz.minimise import fails, minimise
from fuzz.target import Case, Target


@dataclass
class Session:
    """What a run of a target has done so far."""

    target: Target
    seed: int
    count: int = 0
    ways: set[str] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)
    reported: set[tuple[str, str, str]] = field(default_factory=set)

    def run_for(self, seconds: float) -> None:
        """Runs the kept cases, and drawn ones until the time is over."""
        end = time.monotonic() + seconds
        self._run(corpus.cases(self.target))
        batch = 0
        while time.monotonic() < end:
            self._run_batch(batch, self.target.batch, end)
            batch += 1

    def run_count(self, count: int) -> None:
        """Runs the kept cases and so many drawn ones: the same on every machine."""
        self._run(corpus.cases(self.target))
        size = self.target.batch
        for batch in range(-(-count // size)):
            self._run_batch(batch, min(size, count - batch * size), None)

    def drawn(self, batch: int, count: int) -> list[Case]:
        """The cases of one batch."""
        return list(self._draw(batch, count))

    def _draw(self, batch: int, count: int) -> Iterator[Case]:
        for number in range(count):
            choose = Random(f"{self.target.name} {self.seed} {batch} {number}")
            yield self.target.draw(choose)

    def _run_batch(self, batch: int, count: int, end: float | None) -> None:
        start = 0
        while start < count and (end is None or time.monotonic() < end):
            cases = islice(self._draw(batch, count), start, None)
            outcome = child.run(self.target, _until(cases, end), frozenset(self.ways))
            self._take(outcome, batch, start)
            if outcome.died_at is None:
                return
            self.count += 1
            start += outcome.died_at + 1

    def _run(self, cases: list[Case]) -> None:
        while cases:
            outcome = child.run(self.target, cases, frozenset(self.ways))
            if outcome.died_at is not None and outcome.died_at < len(cases):
                outcome.findings[-1].case = cases[outcome.died_at]
            self._take(outcome, None, 0)
            if outcome.died_at is None:
                return
            self.count += 1
            cases = cases[outcome.died_at + 1 :]

    def _take(self, outcome: Outcome, batch: int | None, start: int) -> None:
        self.count += outcome.count
        self.ways.update(way for way, _ in outcome.new)
        for finding in outcome.findings:
            if not finding.case and batch is not None:
                count = start + outcome.count + 1
                cases = self.drawn(batch, count)
                # A child that dies dies at the case it is at; words tell only that one spoke.
                suspects = [cases[-1]] if outcome.died_at is not None else cases
                finding = _located(self.target, suspects, finding)
            self._report(finding)

    def _report(self, finding: Finding) -> None:
        message = re.sub(r"[0-9.e+-]+|0x\w+", "#", finding.message.strip())[:60]
        key = (finding.kind, self.target.group(finding.case), message)
        if key in self.reported:
            return
        self.reported.add(key)
        again = fails(self.target, finding.case) if finding.case else None
        if again == finding.kind:
            finding.case = minimise(self.target, finding.case, finding.kind)
        self.findings.append(finding)
        print(f"\n--- {self.target.name}: {finding.kind}", flush=True)
        if again != finding.kind:
            print(f"(not repeated by the case alone: seed {self.seed}, {again})")
        print(finding.message.strip()[-1500:])
        if finding.case:
            print(f"\n{self.target.program(finding.case)}", flush=True)


def _until(cases: Iterator[Case], end: float | None) -> Iterator[Case]:
    for case in cases:
        if end is not None and time.monotonic() > end:
            return
        yield case


def _located(target: Target, cases: list[Case], finding: Finding) -> Finding:
    """The finding with the case that makes it: the first of which the same comes."""
    while len(cases) > 1:
        half = cases[: len(cases) // 2]
        outcome = child.run(target, half)
        found = any(f.kind == finding.kind for f in outcome.findings)
        cases = half if found else cases[len(cases) // 2 :]
    return Finding(cases[0], finding.kind, finding.message) if cases else finding
