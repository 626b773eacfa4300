"""Records: the ratios of one kind of processor, kept in `benches/record/`, and what has changed.

A record holds a line per case, so that a new one differs in the lines that changed. Ratios are
compared with ratios only: a time says nothing about another day. Start at `updated` and `changes`.
"""

from __future__ import annotations

import datetime
import json
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from suite.catalogue import GROUPS
from suite.compare import Row, by_group, geometric_mean, is_close
from suite.limit import Rates
from suite.processor import Processor, this_processor
from suite.result import Check, Run

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benches" / "record"
# The word for the record of this machine's kind.
AUTO = "auto"
DIGITS = 6
# The mean of fewer cases than these is as uncertain as a case.
FEW = 5


class RecordError(Exception):
    """A record that cannot be used; the message says why."""


@dataclass(frozen=True)
class Entry:
    """One case: nanoseconds per unit of both libraries, their ratio, our result, when and what."""

    ratio: float
    ours: float
    theirs: float
    check: Check
    date: str
    commit: str


@dataclass
class Record:
    """The entries of one kind of processor and number of threads."""

    kind: str
    machine: str
    threads: int
    # What the ratios are of: wall or processor time.
    clock: str
    versions: dict[str, str]
    limits: Rates = field(default_factory=dict)
    cases: dict[str, Entry] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Record:
        """A record that was written."""
        try:
            fields = json.loads(path.read_text())
            entries = {name: Entry(**entry) for name, entry in fields.pop("cases").items()}
            return cls(**fields, cases=entries)
        except OSError as error:
            raise RecordError(f"there is no record {path.name}: {error.strerror}") from error
        except (ValueError, TypeError, KeyError) as error:
            raise RecordError(f"{path.name} is no record: {error}") from error

    def text(self) -> str:
        """The record as JSON, a line per case."""
        fields = {**asdict(self), "cases": {}}
        head = json.dumps(fields, indent=2).removesuffix("{}\n}")
        lines = ",\n".join(
            f"    {json.dumps(name)}: {json.dumps(asdict(entry))}"
            for name, entry in self.cases.items()
        )
        return f"{head}{{\n{lines}\n  }}\n}}\n"


def path_of(name: str, threads: int) -> Path:
    """The record that is meant: a path, or that of this machine's kind of processor."""
    if name != AUTO:
        return Path(name)
    path = FOLDER / f"{this_processor().kind}-t{threads}.json"
    if path.exists():
        return path
    there = ", ".join(sorted(other.stem for other in FOLDER.glob("*.json"))) or "none"
    raise RecordError(f"there is no record {path.stem}; there are: {there}")


def to_judge_by(name: str, threads: int) -> Record:
    """The record that is meant, if it is of this kind of processor and so many threads."""
    path = path_of(name, threads)
    found, here = Record.read(path), this_processor().kind
    if found.kind != here:
        raise RecordError(
            f"{path.name} is of {found.kind}, this processor is {here}: "
            "ratios of different processors are not compared"
        )
    if found.threads != threads:
        raise RecordError(f"{path.name} is of {found.threads} threads, not of {threads}")
    return found


def commit() -> str:
    """The commit that was measured, `-dirty` where files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def rounded(value: Any) -> Any:
    """Numbers with the digits that mean something."""
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def of_rows(
    table: Sequence[Row], ours: Run, theirs: Run, rates: Rates, clock: str, processor: Processor
) -> Record:
    """The record of a comparison."""
    versions = {ours.library: ours.version, theirs.library: theirs.version, "python": ours.python}
    kind, machine = processor.kind, processor.words
    record = Record(kind, machine, ours.threads, clock, versions, rates)
    date, of_commit = datetime.date.today().isoformat(), commit()
    for row in table:
        if row.ratio is not None:
            times = rounded(row.ratio), rounded(row.our_time), rounded(row.their_time)
            check = rounded(row.ours[0].check)
            record.cases[row.name] = Entry(*times, check, date, of_commit)
    return record


def updated(old: Record, new: Record) -> Record:
    """The old record with the cases measured now, where only some were."""
    for name in ("kind", "threads", "clock"):
        if getattr(old, name) != getattr(new, name):
            raise RecordError(f"the record's {name} is {getattr(old, name)}: measure every case")
    if old.versions.get("torch") != new.versions.get("torch"):
        raise RecordError("the record is of another version of PyTorch: measure every case")
    return Record(**{**vars(new), "cases": old.cases | new.cases})


@dataclass(frozen=True)
class Changes:
    """What differs from a record, and whether that is a failure."""

    lines: list[str]
    is_worse: bool


def changes(
    record: Record, table: Sequence[Row], tolerance: float, group_tolerance: float, rtol: float
) -> Changes:
    """What became slower, faster or different, and the mean of each group then and now.

    A single case may differ by the load of a machine: judged are the mean of a group (that of a few
    cases as a single one) and what can no longer be measured.
    """
    now = {row.name: row for row in table if row.name in record.cases}
    ratios = {name: row.ratio for name, row in now.items()}
    lost = [name for name, ratio in ratios.items() if ratio is None]
    lines = [f"no longer measured: {name}" for name in lost]
    growth = {
        name: ratio / record.cases[name].ratio
        for name, ratio in ratios.items()
        if ratio is not None
    }
    slower = sorted((n for n in growth if growth[n] > tolerance), key=lambda n: -growth[n])
    faster = sorted((n for n in growth if growth[n] < 1 / tolerance), key=lambda n: growth[n])
    for word, names in (("slower", slower), ("faster", faster)):
        for name in names:
            then = record.cases[name].ratio
            busy = "  !busy" if now[name].is_busy else ""
            change = f"ratio {then:.3g} -> {ratios[name]:.3g} ({growth[name]:.2f}x)"
            lines.append(f"{word}: {name:32} {change}{busy}")
    for name in growth:
        row = now[name]
        check = record.cases[name].check
        if row.case.has_comparable_result and not is_close(row.ours[0].check, check, rtol):
            lines.append(f"another result: {name}: {check} -> {row.ours[0].check}")
    group_lines, worse = group_changes(record, ratios, growth, (tolerance, group_tolerance))
    return Changes(lines + group_lines, bool(worse or lost))


def group_changes(
    record: Record,
    ratios: dict[str, float | None],
    growth: dict[str, float],
    tolerances: tuple[float, float],
) -> tuple[list[str], bool]:
    """A line for each group that has a case in both, and whether one became worse.

    The tolerances are that of a few cases and that of a group.
    """
    lines, is_worse = [], False
    then = by_group(growth, lambda name: record.cases[name].ratio)
    now = by_group(growth, ratios.get)
    for group, before in then.items():
        old, new = geometric_mean(before), geometric_mean(now[group])
        worse = new > old * tolerances[len(before) >= FEW]
        is_worse |= worse
        verdict = "  WORSE" if worse else ""
        lines.append(
            f"group {group} ({GROUPS[group]}): geometric mean of {len(before)}: "
            f"{old:.3f} -> {new:.3f} ({new / old:.3f}x){verdict}"
        )
    return lines, is_worse


def mismatches(record: Record, new: Record) -> list[str]:
    """In what the conditions of a record differ from those of a comparison."""
    lines = []
    if record.clock != new.clock:
        lines.append(f"the record's clock is {record.clock}, here it is {new.clock}")
    for name, version in record.versions.items():
        current = new.versions.get(name)
        if name != "pullback" and current != version:
            lines.append(f"the record is of {name} {version}, here it is {current}")
    return lines
