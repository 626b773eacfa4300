"""Puts the times of two libraries side by side, round by round.

A ratio is ours over theirs, below 1 where we are faster: the median of the ratios of the rounds,
since what disturbs a machine disturbs both runs of a round. Start at `rows` and `show`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from suite.case import Case
from suite.catalogue import GROUPS, cases
from suite.limit import Rates, least_nanoseconds
from suite.result import Check, Measurement, Run, Status

# Other programs on the machine, in processors, from which on a time is marked.
BUSY = 0.15
# Groups whose details are shown.
DETAILED = "DE"
NOTE_LENGTH = 120


@dataclass(frozen=True)
class Row:
    """One case of two libraries. Times are nanoseconds per unit, medians of the rounds."""

    case: Case
    ours: Sequence[Measurement]
    theirs: Sequence[Measurement]
    our_time: float | None
    their_time: float | None
    ratio: float | None
    limit: float | None

    @property
    def name(self) -> str:
        """The name of the case."""
        return self.case.name

    @property
    def is_busy(self) -> bool:
        """Whether other programs ran beside it."""
        return any(one.others > BUSY for one in (*self.ours, *self.theirs))

    def differs(self, tolerance: float) -> bool:
        """Whether the libraries' results are not the same."""
        if not self.case.has_comparable_result or self.ratio is None:
            return False
        return not is_close(self.ours[0].check, self.theirs[0].check, tolerance)


def rows(
    ours: Sequence[Run], theirs: Sequence[Run], rates: Rates, of_processor: bool = False
) -> list[Row]:
    """A row for each case that either library was asked for."""
    measured = {name for run in (*ours, *theirs) for name in run.measurements}
    return [
        row(case, ours, theirs, rates, of_processor)
        for name, case in cases().items()
        if name in measured
    ]


def row(
    case: Case, ours: Sequence[Run], theirs: Sequence[Run], rates: Rates, of_processor: bool
) -> Row:
    """One case in all rounds."""

    def of(runs: Sequence[Run]) -> list[Measurement]:
        lacking = Measurement(Status.MISSING, "not measured")
        return [run.measurements.get(case.name, lacking) for run in runs]

    our, their = of(ours), of(theirs)
    our_times = [one.time(of_processor) for one in our]
    their_times = [one.time(of_processor) for one in their]
    ratios = [a / b for a, b in zip(our_times, their_times, strict=False) if a and b]
    limit = least_nanoseconds(case, rates)
    ratio = middle(ratios)
    return Row(case, our, their, middle(our_times), middle(their_times), ratio, limit)


def middle(values: Iterable[float | None]) -> float | None:
    """The median of the values that there are."""
    there = [value for value in values if value is not None]
    return statistics.median(there) if there else None


def is_close(a: Check, b: Check, tolerance: float) -> bool:
    """Whether two results are the same but for rounding; what is not there differs from nothing."""
    if isinstance(a, list) and isinstance(b, list):
        return all(is_close(x, y, tolerance) for x, y in zip(a, b, strict=False))
    if not isinstance(a, (int, float)) or not isinstance(b, (int, float)):
        return True
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b or abs(a - b) <= tolerance * max(abs(a), abs(b), 1e-6)


def geometric_mean(ratios: Iterable[float]) -> float:
    """The mean under which a half and a double cancel."""
    return math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))


def by_group(
    names: Iterable[str], ratio_of: Callable[[str], float | None]
) -> dict[str, list[float]]:
    """The ratios of each group that has any."""
    groups: dict[str, list[float]] = {group: [] for group in GROUPS}
    for name in names:
        ratio = ratio_of(name)
        if ratio is not None:
            groups[name[0]].append(ratio)
    return {group: ratios for group, ratios in groups.items() if ratios}


def duration(nanoseconds: float | None) -> str:
    """A time in the unit that suits it."""
    if nanoseconds is None:
        return "-"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def shown_details(measurement: Measurement) -> str:
    """A measurement's details in a line."""
    return " ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in measurement.details.items()
    )


def show(table: Sequence[Row], ours: str, theirs: str, tolerance: float) -> None:
    """Prints the table, what failed with its reason, and the mean of each group."""
    print(
        f"{'benchmark':32} {theirs:>11} {ours:>11} {'ratio':>7} {'limit':>10} "
        f"{theirs[:6] + '%':>7} {ours[:8] + '%':>9} /unit"
    )
    for row in table:
        show_row(row, tolerance)
        if row.case.group in DETAILED:
            for library, ones in ((theirs, row.theirs), (ours, row.ours)):
                if ones and ones[0].details:
                    print(f"{'':34}{library}: {shown_details(ones[0])}")
    for row in table:
        for library, ones in ((theirs, row.theirs), (ours, row.ours)):
            failed = next((one for one in ones if one.status is not Status.OK), None)
            if failed:
                print(f"{row.name}: {library}: {failed.status.value}: {failed.why}")
    show_means(table, ours, theirs)


def show_row(row: Row, tolerance: float) -> None:
    """Prints one row."""

    def time(ones: Sequence[Measurement], nanoseconds: float | None) -> str:
        if nanoseconds is None and ones:
            return "-" if ones[0].status is Status.OK else ones[0].status.value
        return duration(nanoseconds)

    def share(nanoseconds: float | None) -> str:
        return f"{100 * row.limit / nanoseconds:.0f}%" if row.limit and nanoseconds else "-"

    ratio = "-" if row.ratio is None else f"{row.ratio:.2f}"
    print(
        f"{row.name:32} {time(row.theirs, row.their_time):>11} {time(row.ours, row.our_time):>11} "
        f"{ratio:>7} {duration(row.limit):>10} {share(row.their_time):>7} "
        f"{share(row.our_time):>9} /{row.case.unit}{note(row, tolerance)}"
    )


def note(row: Row, tolerance: float) -> str:
    """What a reader of a row must know."""
    busy = "  !busy" if row.is_busy else ""
    if not row.differs(tolerance):
        return busy
    results = f"  differs: {row.theirs[0].check} {row.ours[0].check}"
    return busy + results[:NOTE_LENGTH]


def show_means(table: Sequence[Row], ours: str, theirs: str) -> None:
    """Prints the geometric mean of each group."""
    ratio_of = {row.name: row.ratio for row in table}
    for group, ratios in by_group(ratio_of, ratio_of.get).items():
        faster = sum(ratio < 1 for ratio in ratios)
        twice, slower = sum(ratio <= 0.5 for ratio in ratios), sum(ratio >= 1.5 for ratio in ratios)
        print(
            f"geometric mean {ours}/{theirs}, group {group} ({GROUPS[group]}): "
            f"{geometric_mean(ratios):.3f} over {len(ratios)}; {ours} faster in {faster}, "
            f"at least 2x faster in {twice}, at least 1.5x slower in {slower}"
        )
