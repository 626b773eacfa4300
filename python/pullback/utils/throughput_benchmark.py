"""A benchmark of calls from several threads of native code, which is not here; and a format."""

from __future__ import annotations

from .. import _placeholder

__all__ = ["ExecutionStats", "ThroughputBenchmark", "format_time"]

ExecutionStats = _placeholder.made("torch.utils.throughput_benchmark.ExecutionStats", "class")
ThroughputBenchmark = _placeholder.made(
    "torch.utils.throughput_benchmark.ThroughputBenchmark", "class"
)


def format_time(
    time_us: float | None = None, time_ms: float | None = None, time_s: float | None = None
) -> str:
    """A time in the unit that suits it.

    Args:
        time_us: microseconds.
        time_ms: milliseconds, in their place.
        time_s: seconds, in their place.

    Raises:
        AssertionError: unless one is given.
    """
    given = [value for value in (time_us, time_ms, time_s) if value is not None]
    if len(given) != 1:
        raise AssertionError("exactly one of time_us, time_ms and time_s must be given")
    scale = 1.0 if time_us is not None else 1e3 if time_ms is not None else 1e6
    micro = given[0] * scale
    for limit, unit in ((1e6, "s"), (1e3, "ms")):
        if micro >= limit:
            return f"{micro / limit:.3f}{unit}"
    return f"{micro:.3f}us"
