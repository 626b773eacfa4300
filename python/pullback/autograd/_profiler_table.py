"""Events of a profile as a table of text.

Which columns there are depends on what was recorded; a column's width depends on what is in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

# The width of columns of numbers.
_NUMBER = 12
# Between columns.
_GAP = "  "
# The number of lines of an event's stack that are shown.
_MOST_LINES = 5
_TIMES = {"us": 1.0, "ms": 1e3, "s": 1e6}
_FLOPS = ["FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"]


class Widths(NamedTuple):
    """The largest number of characters shown in each column."""

    name: int
    source: int
    shapes: int


def _format_time(time_us: float, unit: str | None = None) -> str:
    """Microseconds as text: in ``us``, ``ms`` or ``s``."""
    if unit is None:
        unit = next((unit for unit in ("s", "ms") if time_us >= _TIMES[unit]), "us")
    if unit not in _TIMES:
        raise ValueError(f"time_unit should be one of: {list(_TIMES)}, but got {unit!r}")
    return f"{time_us / _TIMES[unit]:.3f}{unit}"


def _format_time_share(time_us: float, total_time_us: float) -> str:
    """A share in percent; of a total of zero there is none."""
    return "NaN" if total_time_us == 0 else f"{time_us * 100.0 / total_time_us:.2f}%"


def _format_memory(nbytes: float) -> str:
    """Bytes as text: in ``B``, ``KB``, ``MB`` or ``GB``."""
    for power, unit in ((30, "GB"), (20, "MB"), (10, "KB")):
        if abs(nbytes) >= 1 << power:
            return f"{nbytes / (1 << power):.2f} {unit}"
    return f"{nbytes} B"


def _shortened(text: str, width: int) -> str:
    """The beginning of a text that is too long."""
    return text if len(text) <= width else text[: max(width - 3, 0)] + "..."


def _tail(text: str, width: int) -> str:
    """The end of a text that is too long: of a program's line, file and function."""
    return text if len(text) <= width else "..." + text[len(text) - max(width - 3, 0) :]


class _Column(NamedTuple):
    title: str
    # The content of a column: a text for each line of an event.
    cells: Callable[[Any], list[str]]
    width: int
    is_left: bool = False

    def pad(self, text: str) -> str:
        return text.ljust(self.width) if self.is_left else text.rjust(self.width)


def _fitted(title: str, texts: Sequence[str], most: int) -> int:
    """The width of a column of texts."""
    return max(min(max(map(len, texts), default=0), most), len(title))


def _flops_scale(events: Sequence[Any]) -> int:
    """The power of 1000 that the smallest number of operations is at least once."""
    counts = [event.flops for event in events if event.flops]
    if not counts:
        return 0
    return max(0, min(int(math.log10(min(counts)) / 3), len(_FLOPS) - 1))


def table(
    events: Sequence[Any],
    everything: Sequence[Any],
    widths: Widths,
    *,
    header: str | None,
    time_unit: str | None,
    with_memory: bool,
    with_flops: bool,
) -> str:
    """The events as a table, with shares of the time of ``everything``; nothing of nothing."""
    if not everything:
        return ""
    cpu = sum(event.self_cpu_time_total for event in everything)
    device = sum(event.self_device_time_total for event in everything)

    def time(value: float) -> str:
        return _format_time(value, time_unit)

    def number(title: str, show: Callable[[Any], str]) -> _Column:
        return _Column(title, lambda event: [show(event)], max(_NUMBER, len(title)))

    names = [event.key for event in everything]
    columns = [
        _Column(
            "Name",
            lambda e: [_shortened(e.key, widths.name)],
            _fitted("Name", names, widths.name),
        ),
        number("Self CPU %", lambda e: _format_time_share(e.self_cpu_time_total, cpu)),
        number("Self CPU", lambda e: time(e.self_cpu_time_total)),
        number(
            "CPU total %",
            # What goes on beside the rest is no part of it.
            lambda e: "0.00%" if e.is_async else _format_time_share(e.cpu_time_total, cpu),
        ),
        number("CPU total", lambda e: time(e.cpu_time_total)),
        number("CPU time avg", lambda e: time(e.cpu_time)),
    ]
    on = next((event.use_device for event in everything if event.use_device), None)
    if device > 0:
        on = (on or "device").upper()
        columns += [
            number(f"Self {on}", lambda e: time(e.self_device_time_total)),
            number(f"Self {on} %", lambda e: _format_time_share(e.self_device_time_total, device)),
            number(f"{on} total", lambda e: time(e.device_time_total)),
            number(f"{on} time avg", lambda e: time(e.device_time)),
        ]
    if with_memory:
        columns += [
            number("CPU Mem", lambda e: _format_memory(e.cpu_memory_usage)),
            number("Self CPU Mem", lambda e: _format_memory(e.self_cpu_memory_usage)),
        ]
        if device > 0:
            columns += [
                number(f"{on} Mem", lambda e: _format_memory(e.device_memory_usage)),
                number(f"Self {on} Mem", lambda e: _format_memory(e.self_device_memory_usage)),
            ]
    columns.append(number("# of Calls", lambda e: str(e.count)))
    if any(event.node_id != -1 for event in everything):
        columns.append(number("Node ID", lambda e: str(e.node_id)))
    shapes = [str(event.input_shapes) for event in everything if event.input_shapes]
    if shapes:
        columns.append(
            _Column(
                "Input Shapes",
                lambda e: [_shortened(str(e.input_shapes or ""), widths.shapes)],
                _fitted("Input Shapes", shapes, widths.shapes),
            )
        )
    lines = [line for event in everything for line in event.stack]
    if lines:
        columns.append(
            _Column(
                "Source Location",
                lambda e: [_tail(line, widths.source) for line in e.stack[:_MOST_LINES]],
                _fitted("Source Location", lines, widths.source),
                is_left=True,
            )
        )
    if with_flops:
        scale = _flops_scale(everything)
        columns.append(
            number(
                f"Total {_FLOPS[scale]}",
                lambda e: f"{e.flops / 1000.0**scale:.3f}" if e.flops else "--",
            )
        )
    text = _rows(columns, events, header, bool(lines))
    text += f"Self CPU time total: {time(cpu)}\n"
    if device > 0:
        text += f"Self {on} time total: {time(device)}\n"
    return text


def _rows(
    columns: list[_Column], events: Sequence[Any], header: str | None, is_spaced: bool
) -> str:
    """The rows between rules; with lines of the program, an empty one behind each event."""
    rule = _GAP.join("-" * column.width for column in columns) + _GAP
    out = [] if header is None else ["=" * len(rule), header]
    out += [rule, _GAP.join(column.pad(column.title) for column in columns) + _GAP, rule]
    for event in events:
        cells = [column.cells(event) for column in columns]
        for at in range(max(map(len, cells)) + is_spaced):
            row = (
                column.pad(texts[at] if at < len(texts) else "")
                for column, texts in zip(columns, cells, strict=True)
            )
            out.append(_GAP.join(row) + _GAP)
    out.append(rule)
    return "\n".join(out) + "\n"
