"""The bytes that tensors hold over time, by what they are for, from what a profile noted of memory.

`timeline` pairs each block's allocation with its end and says by these what it was for; the three
writers have PyTorch's formats. What a block was for is read from when it lived: a block that a
backward pass frees and a forward op made was kept for it. Memory that was there before is seen if
it is of a leaf that requires grad, of its gradient, or freed meanwhile. Start with `timeline`.
"""

from __future__ import annotations

import gzip
import json
import math
from typing import Any, NamedTuple

from .._html.page import bytes_text, escape

CATEGORIES = (
    "PARAMETER",
    "OPTIMIZER_STATE",
    "INPUT",
    "TEMPORARY",
    "ACTIVATION",
    "GRADIENT",
    "AUTOGRAD_DETAIL",
    "UNKNOWN",
)
_COLORS = (
    "#166534", "#ca8a04", "#171717", "#a855f7", "#dc2626", "#2563eb", "#0ea5e9", "#9ca3af",
)  # fmt: skip
_PREEXISTING, _CREATE, _DESTROY = 1, 2, 4
_FORMATS = (".raw.json.gz", ".json.gz", ".json", ".html")
_MOST_STEPS = 2000
# Address and bytes of parameters, and of their gradients.
Leaves = tuple[dict[int, int], dict[int, int]]


class Change(NamedTuple):
    """The allocation or release of a block.

    Args:
        time: nanoseconds since 1970; -1 for what was there before.
        action: 1 for what was there before, 2 for what came, 4 for what went.
        bytes: less than zero for what went.
        category: the place of what it was for in ``CATEGORIES``.
    """

    time: int
    action: int
    bytes: int
    category: int


def check_path(path: str) -> None:
    """Raises ValueError for a name that implies no format."""
    if not path.endswith(_FORMATS):
        raise ValueError(
            f"export_memory_timeline(): the name must end in one of {', '.join(_FORMATS)}, "
            f"got '{path}'"
        )


def export(results: Any, held: Leaves, path: str) -> None:
    """Writes a timeline in the format that the name of the file implies."""
    check_path(path)
    changes = timeline(results, held)
    if path.endswith(".html"):
        _write(path, _page(*_sums(changes, results.trace_start_ns())))
    elif path.endswith(".raw.json.gz"):
        _write(path, json.dumps(changes))
    else:
        _write(path, json.dumps(_sums(changes, results.trace_start_ns())))


def _write(path: str, text: str) -> None:
    if path.endswith(".gz"):
        with gzip.open(path, "wt", encoding="utf-8") as file:
            file.write(text)
    else:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


# ---- what happened ----


def timeline(results: Any, held: Leaves) -> list[Change]:
    """All changes of a profile in order, preceded by the memory from before it."""
    start = results.trace_start_ns()
    events = results.events()
    records = sorted(results.memory())
    ends = _ends(records)
    parameters, gradients = held
    before: dict[int, tuple[int, int]] = {}
    changes: list[Change] = []
    open_: dict[int, int] = {}
    known: set[int] = set()
    for number, (time, address, size, _, event) in enumerate(records):
        if size > 0:
            end = ends.get(number)
            category = _category(events, event, None if end is None else records[end][4], end)
            if end is None and address in parameters:
                category = "PARAMETER"
            elif end is None and address in gradients:
                category = "GRADIENT"
            index = open_[address] = CATEGORIES.index(category)
            known.add(address)
            changes.append(Change(start + time, _CREATE, size, index))
            continue
        if address not in open_:
            known.add(address)
            before[address] = -size, CATEGORIES.index("UNKNOWN")
        index = open_.pop(address, CATEGORIES.index("UNKNOWN"))
        changes.append(Change(start + time, _DESTROY, size, index))
    for there, category in ((parameters, "PARAMETER"), (gradients, "GRADIENT")):
        for address, size in there.items():
            if address not in known:
                before.setdefault(address, (size, CATEGORIES.index(category)))
    first = [Change(-1, _PREEXISTING, *block) for block in before.values() if block[0]]
    return first + changes


def _ends(records: list[tuple[int, ...]]) -> dict[int, int]:
    """For each record of an allocated block, the record of its end."""
    open_: dict[int, int] = {}
    ends = {}
    for number, record in enumerate(records):
        if record[2] > 0:
            open_[record[1]] = number
        elif record[1] in open_:
            ends[open_.pop(record[1])] = number
    return ends


def leaves() -> tuple[dict[int, int], dict[int, int]]:
    """Address and bytes of the leaves that require grad, and of their gradients."""
    from .._holders import held_tensors

    parameters: dict[int, int] = {}
    gradients: dict[int, int] = {}
    for tensor in held_tensors():
        if not (tensor.is_leaf and tensor.requires_grad):
            continue
        for held, of in ((parameters, tensor), (gradients, tensor.grad)):
            if of is not None and of.device.type == "cpu":
                try:
                    storage = of.untyped_storage()
                    held[storage._const_data_ptr()] = storage.nbytes()
                except (RuntimeError, NotImplementedError):
                    continue  # (Sparse ones have no memory of their own.)
    gradients = {key: size for key, size in gradients.items() if key not in parameters}
    return parameters, gradients


def _category(events: Any, made: int, freed: int | None, end: int | None) -> str:
    """What a block was for, from the events in which it came and went."""
    came = _outermost(events, made)
    went = None if freed is None else _outermost(events, freed)
    if came is not None and _is_backward(events, came):
        if end is None:
            return "GRADIENT" if _accumulates(events, came) else "UNKNOWN"
        return "TEMPORARY" if came == went else "AUTOGRAD_DETAIL"
    if end is None:
        return "UNKNOWN"
    if went is not None and _is_backward(events, went):
        return "ACTIVATION"
    return "TEMPORARY"


def _outermost(events: Any, number: int) -> int | None:
    """The outermost event around one that is no module's and no range of the program's."""
    found = None
    while number >= 0:
        if events[number][9] in ("Op", "Evaluation", "Backward"):
            found = number
            if events[number][9] == "Evaluation":
                break
        number = events[number][7]
    return found


def _is_backward(events: Any, number: int) -> bool:
    return events[number][9] in ("Evaluation", "Backward")


def _accumulates(events: Any, number: int) -> bool:
    return str(events[number][0]).endswith("AccumulateGrad")


def _sums(changes: list[Change], start: int) -> tuple[list[int], list[list[int]]]:
    """Times in microseconds, and for each a zero and the bytes of each category."""
    sizes = [0] * len(CATEGORIES)
    times: list[int] = []
    rows: list[list[int]] = []
    for change in changes:
        if change.action == _PREEXISTING:
            sizes[change.category] += change.bytes
    times.append(start // 1000)
    rows.append([0, *sizes])
    for change in changes:
        if change.action == _PREEXISTING:
            continue
        sizes[change.category] += change.bytes
        times.append(change.time // 1000)
        rows.append([0, *sizes])
    return times, rows


# ---- the picture ----


def _page(times: list[int], rows: list[list[int]]) -> str:
    width, height = 1000, 320
    step = math.ceil(len(rows) / _MOST_STEPS)
    # (Of steps that fall together the highest one is drawn: peaks stay.)
    groups = [range(at, min(at + step, len(rows))) for at in range(0, len(rows), step)]
    shown = [max(group, key=lambda at: sum(rows[at])) for group in groups]
    span = max(times[-1] - times[0], 1)
    top = max(max(map(sum, rows)), 1)
    xs = [width * (times[at] - times[0]) / span for at in shown]
    below = [0.0] * len(shown)
    areas, key = [], []
    for index, (name, color) in enumerate(zip(CATEGORIES, _COLORS, strict=True)):
        values = [rows[at][index + 1] for at in shown]
        if not any(values):
            continue
        above = [low + value for low, value in zip(below, values, strict=True)]
        points = _stairs(xs, above) + _stairs(xs, below)[::-1]
        path = " ".join(f"{x:.1f},{height * (1 - y / top):.1f}" for x, y in points)
        areas.append(f'<polygon fill="{color}" points="{path}"/>')
        key.append(
            f'<span style="color:{color}">&#9632;</span> {name.lower()} '
            f"(at most {escape(bytes_text(max(values)))}) &nbsp;"
        )
        below = above
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Memory timeline</title>'
        '</head><body style="font:13px system-ui,sans-serif">'
        f"<div>At most {escape(bytes_text(top))} in {span / 1000:.3f} ms</div>"
        f'<svg xmlns="http://www.w3.org/2000/svg" width="100%" viewBox="0 0 {width} {height}">'
        f"{''.join(areas)}</svg><div>{''.join(key)}</div></body></html>\n"
    )


def _stairs(xs: list[float], ys: list[float]) -> list[tuple[float, float]]:
    points: list[tuple[float, float]] = []
    for x, y in zip(xs, ys, strict=True):
        if points:
            points.append((x, points[-1][1]))
        points.append((x, y))
    return points
