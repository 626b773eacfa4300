"""Runs a row in a library and says in which columns of the table it falls short of the reference.

A `Fault` names a column, the call and dtype, and what was seen. No column is believed: each one
that the table flags must be shown by a call that the reference passes; where there is no such
call, the column is faulty too (`untried`), unless the reference itself never shows it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from op_table.call import Call, Library, Op, shown
from op_table.difference import RELATIVE, differences, is_comparable, is_error
from op_table.observe import Observation, Run, attempt, observed
from op_table.record import FORMS, GOOD, form_outcome, recorded
from op_table.row import Row
from op_table.table import function_of

# Faults that count against a column of the table, and others that count against the row.
COLUMNS = (
    *("autograd", "double_backward", "forward_ad", "method", "inplace", "out"),
    *("dtypes", "backward_dtypes", "variants", "values", "memory", "errors"),
)
# What `differences` calls an aspect, and the column that it is about.
COLUMN_OF = {
    "refused": "dtypes",
    "accepted": "errors",
    "class of error": "errors",
    "kind": "values",
    "values": "values",
    "memory": "memory",
    "autograd": "autograd",
    "double_backward": "double_backward",
}
FORWARD_DTYPES = ("f64", "c128")


# What may differ for good without a test: no column of the table.
DESIGN_COLUMNS = ("memory", "errors")
DESIGN = "by design:"
FAILING = Path(__file__).with_name("failing.tsv")


@dataclass(frozen=True)
class Known:
    """A line of `failing.tsv`: why a row differs in a column, and what test shows ours right."""

    reason: str
    test: str

    @property
    def is_intended(self) -> bool:
        """Whether the difference is meant to stay, as the reason says."""
        return self.reason.startswith(DESIGN)


def known_faults() -> dict[str, dict[str, Known]]:
    """The lines of `failing.tsv`, by row and column."""
    known: dict[str, dict[str, Known]] = {}
    for line in FAILING.read_text().splitlines():
        name, column, reason, *test = line.split("\t")
        known.setdefault(name, {})[column] = Known(reason, "".join(test))
    return known


def is_intended(known: dict[str, Known], column: str) -> bool:
    """Whether a fault is a difference that is meant to stay."""
    return column in known and known[column].is_intended


@dataclass(frozen=True)
class Fault:
    """One way in which a row falls short."""

    column: str
    place: str
    dtypes: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        dtypes = f" {','.join(self.dtypes)}" if self.dtypes else ""
        return f"{self.column}: {self.place}{dtypes}: {self.reason}"


def exists(lib: Library, op: Op) -> bool:
    """Whether the library has the function of a row: by name, and in a dtype of the first call."""
    try:
        function_of(lib, op)
    except (AttributeError, ImportError):
        return False
    firsts = recorded()[op.name]["calls"][0]
    return any(
        observed_plain(lib, op, op.calls[0], dtype).get("error")
        not in ("AttributeError", "ImportError")
        for dtype in firsts
    )


def gathered(faults: Iterator[tuple[str, str, str, str]]) -> list[Fault]:
    """Faults of several dtypes that read the same as one."""
    dtypes: dict[tuple[str, str, str], list[str]] = {}
    for column, place, dtype, reason in faults:
        dtypes.setdefault((column, place, reason), []).append(dtype)
    return [Fault(c, p, tuple(d for d in many if d), r) for (c, p, r), many in dtypes.items()]


def result_faults(lib: Library, row: Row, op: Op) -> Iterator[tuple[str, str, str, str]]:
    """What differs in results, gradients and errors."""
    for call, expected in zip(op.calls, recorded()[row.name]["calls"], strict=True):
        for dtype, theirs in expected.items():
            if not is_comparable(op, row, call, dtype):
                continue
            ours = observed(lib, op, call, dtype)
            for aspect, reason in differences(ours, theirs, op.tolerance):
                column = COLUMN_OF[aspect]
                if column == "autograd" and dtype not in FORWARD_DTYPES:
                    column = "backward_dtypes"
                yield column, shown(call), dtype, reason


def form_faults(lib: Library, row: Row, op: Op) -> Iterator[tuple[str, str, str, str]]:
    """What methods, in-place and `out=` forms do not give, of what the reference's give."""
    for call, forms in zip(op.calls, recorded()[row.name]["forms"], strict=True):
        for dtype, good in forms.items():
            plain = observed_plain(lib, op, call, dtype)
            if is_error(plain):
                continue
            for form in (form for form in good if form in row.flags):
                outcome = form_outcome(lib, op, call, dtype, form, plain)
                if outcome != GOOD:
                    yield form, shown(call), dtype, outcome


def observed_plain(lib: Library, op: Op, call: Call, dtype: str) -> Observation:
    """The result alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return attempt(Run(lib, op, call, dtype).forward)  # type: ignore[no-any-return]


def forward_faults(lib: Library, row: Row, op: Op) -> Iterator[tuple[str, str, str, str]]:
    """Where forward mode does not agree with reverse mode."""
    if "forward_ad" not in row.flags:
        return
    for call, expected in zip(op.calls, recorded()[row.name]["calls"], strict=True):
        for dtype in FORWARD_DTYPES:
            theirs = expected.get(dtype, {}).get("gradients")
            if (
                dtype not in row.backward_dtypes
                or not theirs
                or is_error(theirs)
                or not call.second
            ):
                continue
            through = [
                seen["dtype"]
                for seen in expected[dtype]["results"]
                if seen.get("dtype") in RELATIVE
            ]
            coarsest = max(RELATIVE[name] for name in through)
            reason = forward_fault(lib, op, call, dtype, 50 * coarsest * op.tolerance)
            if reason:
                yield "forward_ad", shown(call), dtype, reason


def forward_fault(lib: Library, op: Op, call: Call, dtype: str, relative: float) -> str | None:
    """The difference of the two ways to the same number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        moved = attempt(Run(lib, op, call, dtype).pushed_forward)
    if isinstance(moved, dict):
        return f"{moved['error']}: {moved['message']}"
    forward, backward = moved
    if not all(math.isfinite(number) for number in (*forward, *backward)):
        return None
    sums = math.fsum(forward), math.fsum(backward)
    scale = max((abs(number) for number in (*forward, *backward)), default=0.0)
    if abs(sums[0] - sums[1]) <= relative * max(scale, 1e-5):
        return None
    return f"{sums[0]:.9g} forward, {sums[1]:.9g} backward"


def variant_faults(row: Row, op: Op, faulty: set[str]) -> Iterator[tuple[str, str, str, str]]:
    """Variants without a call that gives what the reference gives."""
    for variant in row.variants:
        calls = [shown(call) for call in op.calls if call.variant == variant]
        if not calls:
            yield "variants", variant, "", "no call in the table"
        elif all(call in faulty for call in calls):
            yield "variants", variant, "", "no call of it gives what is expected"


def untried(row: Row, op: Op) -> Iterator[tuple[str, str, str, str]]:
    """Flags of the table that no call shows, though the reference is said to have them."""
    record = recorded()[row.name]
    observations = [seen for call in record["calls"] for seen in call.values()]
    for dtype in sorted(row.dtypes):
        if not any(dtype in call and not is_error(call[dtype]) for call in record["calls"]):
            yield "dtypes", "no call of the table", dtype, "untried"
    has_gradient = any(
        "gradients" in seen and not is_error(seen["gradients"]) for seen in observations
    )
    if "autograd" in row.flags and not has_gradient:
        yield "autograd", "no call of the table", "", "untried"
    if "double_backward" in row.flags and not any("second" in seen for seen in observations):
        yield "double_backward", "no call of the table", "", "untried"


def unshown_forms(row: Row) -> list[str]:
    """Forms that the table flags and the reference gives in no call: they cannot be checked."""
    given = {
        form for call in recorded()[row.name]["forms"] for good in call.values() for form in good
    }
    return [form for form in FORMS if form in row.flags and form not in given]


def faults(lib: Library, row: Row, op: Op) -> list[Fault]:
    """All faults of a row that exists."""
    results = gathered(result_faults(lib, row, op))
    faulty = {fault.place for fault in results if fault.column in ("dtypes", "values")}
    others = [
        gathered(found)
        for found in (
            form_faults(lib, row, op),
            forward_faults(lib, row, op),
            variant_faults(row, op, faulty),
            untried(row, op),
        )
    ]
    return [*results, *(fault for found in others for fault in found)]
