"""The least time that a machine needs for what a case must do at the least.

The machine's rates come from the program `limits.rs` of `crates/kernels`: GB/s of a loop over
arrays like those of the cases, 10^9 operations per second of a dtype, at one number of threads.
A rate that is not there gives no limit.
"""

from __future__ import annotations

from suite.case import Case

# GB/s (which are bytes per nanosecond) by loop, 10^9 operations per second by dtype.
Rates = dict[str, float]


def least_nanoseconds(case: Case, rates: Rates) -> float | None:
    """The time of a unit that memory or arithmetic allows, whichever is longer."""
    cost, times = case.cost, []
    if cost.bytes_per_unit and cost.loop in rates:
        times.append(cost.bytes_per_unit / rates[cost.loop])
    if cost.operations and cost.dtype in rates:
        times.append(cost.operations / rates[cost.dtype] / case.units)
    return max(times, default=None)
