"""Where two recorded runs part: ``python -m pullback diff a.pbt b.pbt``.

Records are walked side by side. Ops are paired by direction, name and shapes; where the next ones
do not pair, the nearest that do are looked for, so that an op which only one run has does not end
the comparison. Two answers are given: the first pair whose bits
differ, and the first whose numbers differ by more than a tolerance.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from .recorder import FORMAT, VERSION

# How far ahead a pair is searched for.
_AHEAD = 64
# Ops that compute nothing: one that only one side has is no difference.
_PLAIN = frozenset(
    [
        "alias",
        "as_strided",
        "clone",
        "contiguous",
        "copy",
        "copy_",
        "detach",
        "empty",
        "empty_like",
        "empty_strided",
        "expand",
        "new_empty",
        "permute",
        "reshape",
        "select",
        "slice",
        "squeeze",
        "t",
        "transpose",
        "unsqueeze",
        "view",
    ]
)
# The default tolerance for the numbers of each dtype.
_ROUNDING = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}


class Line(NamedTuple):
    """A line of a program."""

    file: str
    number: int
    function: str | None
    text: str | None

    def __str__(self) -> str:
        place = f'    File "{self.file}", line {self.number}'
        place += f", in {self.function}" if self.function else ""
        return place + (f"\n      {self.text.strip()}" if self.text else "")


class Result(NamedTuple):
    """A tensor that an op returned or wrote to; numbers are NaN where there are none."""

    shape: tuple[int, ...]
    dtype: str
    digest: str | None
    nonfinite: int
    min: float
    max: float
    mean: float


class Op(NamedTuple):
    """An op of a record.

    Args:
        name: as ``aten.mul.Tensor``.
        results: what it gave.
        node: the node that ran it; None in forward.
        line: of the program; in a backward the one that made the node.
    """

    name: str
    results: tuple[Result, ...]
    node: str | None
    line: Line | None

    @property
    def kind(self) -> str:
        """The name without namespace, overload and leading underscores."""
        parts = self.name.split(".")
        return (parts[1] if len(parts) > 1 else parts[0]).lstrip("_")

    @property
    def direction(self) -> str:
        return "forward" if self.node is None else f"backward, in {self.node}"


class Record(NamedTuple):
    """A record that was read."""

    path: str
    library: str
    threads: int
    ops: list[Op]

    @property
    def maker(self) -> str:
        """The library without its version."""
        return self.library.partition(" ")[0]


def read(path: str | os.PathLike[str]) -> Record:
    """Reads a record.

    Raises:
        ValueError: if it is none, or one of a later version.
        OSError: if the file cannot be read.
    """
    name = os.fspath(path)
    try:
        with open(path, encoding="utf-8") as file:
            rows = [json.loads(row) for row in file if row.endswith("\n")]
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{name} is no record of a run: {error}") from None
    head = rows[0] if rows and isinstance(rows[0], dict) else {}
    if head.get("format") != FORMAT:
        raise ValueError(f"{name} is no record of a run: its first line does not say that it is")
    if head.get("version", 0) > VERSION:
        raise ValueError(f"{name} is of version {head['version']}, which is later than {VERSION}")
    try:
        return Record(name, str(head["library"]), int(head["threads"]), list(_ops(rows[1:])))
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"{name} is damaged: {error!r}") from None


def _ops(rows: list[dict[str, Any]]) -> Iterator[Op]:
    lines: list[Line] = []
    for row in rows:
        if "line" in row:
            lines.append(Line(*row["line"]))
            continue
        line = lines[row["site"]] if "site" in row else None
        results = tuple(
            Result(
                tuple(r["shape"]),
                r["dtype"],
                r.get("digest"),
                r.get("nonfinite", 0),
                r.get("min", math.nan),
                r.get("max", math.nan),
                r.get("mean", math.nan),
            )
            for r in row["out"]
        )
        yield Op(row["op"], results, row.get("node"), line)


class Difference(NamedTuple):
    """The first pair of ops that differ in some way.

    Args:
        first: its number in the first record; None if only the second one has such an op.
        second: the same of the second record.
        result: which of its results differs.
    """

    first: int | None
    second: int | None
    result: int | None


class Comparison(NamedTuple):
    """What was found.

    Args:
        bits: the first pair whose bits differ.
        numbers: the first pair whose numbers differ by more than the tolerance.
        unpaired: the first op, other than views and copies, that only one record has.
        pairs: how many pairs there are.
        only: how many ops only the first and only the second record has.
    """

    bits: Difference | None
    numbers: Difference | None
    unpaired: Difference | None
    pairs: int
    only: tuple[int, int]


class _Step(NamedTuple):
    """An op as it is compared: its number in the record, and what it is paired by."""

    at: int
    key: Any


def _steps(record: Record, other: Record) -> list[_Step]:
    """The ops of a record that are compared with another one's.

    Within one library these are all. Two libraries compute the same in other steps: then ops that
    compute nothing are left out, and of the node of a backward only what it ends with is compared,
    the last result of each shape.
    """
    if record.maker == other.maker:
        return [
            _Step(at, (op.node is None, op.kind, _shapes(op))) for at, op in enumerate(record.ops)
        ]
    steps: list[_Step] = []
    last: dict[Any, int] = {}
    node: Any = None
    for at, op in enumerate(record.ops):
        if op.node is None or (op.node, op.line) != node:
            steps += [_Step(number, key) for key, number in last.items()]
            last, node = {}, (op.node, op.line)
        if op.kind in _PLAIN:
            continue
        if op.node is None:
            steps.append(_Step(at, (True, op.kind, _shapes(op))))
        else:
            key = (False, op.node, _shapes(op))
            last.pop(key, None)
            last[key] = at
    return steps + [_Step(number, key) for key, number in last.items()]


def _shapes(op: Op) -> tuple[tuple[int, ...], ...]:
    return tuple(result.shape for result in op.results)


def _pairs(a: list[_Step], b: list[_Step]) -> Iterator[tuple[_Step | None, _Step | None]]:
    """The steps that belong together; None on the side that has no such step."""
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i].key == b[j].key:
            yield a[i], b[j]
            i, j = i + 1, j + 1
            continue
        left, right = _next_pair(a, b, i, j)
        yield from ((step, None) for step in a[i : i + left])
        yield from ((None, step) for step in b[j : j + right])
        i, j = i + left, j + right
    yield from ((step, None) for step in a[i:])
    yield from ((None, step) for step in b[j:])


def _next_pair(a: list[_Step], b: list[_Step], i: int, j: int) -> tuple[int, int]:
    """The numbers of steps to skip on each side so that the next ones pair; as few as possible."""
    for total in range(1, 2 * _AHEAD):
        for skipped in range(max(0, total - _AHEAD), min(total, _AHEAD) + 1):
            left, right = i + skipped, j + total - skipped
            if left < len(a) and right < len(b) and a[left].key == b[right].key:
                return skipped, total - skipped
    return min(_AHEAD, len(a) - i), min(_AHEAD, len(b) - j)


def compare(a: Record, b: Record, tolerance: float | None = None) -> Comparison:
    """Walks two records side by side.

    Args:
        a: a record.
        b: another one.
        tolerance: by which numbers may differ, relative to the largest of their tensor; by default
            what rounding makes of the coarser of the two dtypes.
    """
    bits = numbers = unpaired = None
    pairs, only = 0, [0, 0]
    for left, right in _pairs(_steps(a, b), _steps(b, a)):
        if left is None or right is None:
            alone = a.ops[left.at] if left is not None else b.ops[right.at if right else 0]
            only[left is None] += 1
            if unpaired is None and alone.kind not in _PLAIN:
                unpaired = Difference(left and left.at, right and right.at, None)
            continue
        pairs += 1
        both = zip(a.ops[left.at].results, b.ops[right.at].results, strict=False)
        for at, (x, y) in enumerate(both):
            if bits is None and (x.dtype, x.digest) != (y.dtype, y.digest):
                bits = Difference(left.at, right.at, at)
            if numbers is None and not _is_close(x, y, tolerance):
                numbers = Difference(left.at, right.at, at)
    return Comparison(bits, numbers, unpaired, pairs, (only[0], only[1]))


def _is_close(x: Result, y: Result, tolerance: float | None) -> bool:
    if (x.dtype, x.digest) == (y.dtype, y.digest):
        return True
    if x.digest is None or y.digest is None:
        return x.digest is y.digest
    if x.nonfinite != y.nonfinite:
        return False
    if tolerance is None:
        tolerance = max(_ROUNDING.get(r.dtype, 0.0) for r in (x, y))
    ends = [abs(n) for r in (x, y) for n in (r.min, r.max) if not math.isnan(n)]
    allowed = tolerance * max(ends, default=0.0)
    both = ((x.min, y.min), (x.max, y.max), (x.mean, y.mean))
    return all((math.isnan(m) and math.isnan(n)) or abs(m - n) <= allowed for m, n in both)


def report(a: Record, b: Record, found: Comparison) -> str:
    """The result of the comparison as text."""
    lines = [_heading(a), _heading(b), ""]
    if found.bits is None and found.unpaired is None:
        lines.append(f"The runs are the same to the bit: {found.pairs} ops.")
        return "\n".join(lines)
    if found.unpaired is not None and a.maker == b.maker:
        lines += [_alone(a, b, found.unpaired), ""]
    if found.bits is not None:
        where = _where(a, b, found.bits)
        lines += [f"Bits part {where}", *_table(a, b, found.bits), ""]
    else:
        lines.append("All ops that both runs have gave the same bits.")
    if found.numbers is not None and found.numbers != found.bits:
        where = _where(a, b, found.numbers)
        lines += [f"Numbers part {where}", *_table(a, b, found.numbers), ""]
    elif found.numbers is None and found.bits is not None:
        lines.append("Numbers stay within the tolerance to the end.")
    if any(found.only):
        only = f"{found.only[0]} ops only the first run has, {found.only[1]} only the second"
        lines.append(f"{found.pairs} ops were compared; {only}.")
    return "\n".join(lines).rstrip()


def _heading(record: Record) -> str:
    backward = sum(op.node is not None for op in record.ops)
    forward = len(record.ops) - backward
    return (
        f"{record.path}: {record.library}, {record.threads} threads, "
        f"{forward} ops forward and {backward} backward"
    )


def _where(a: Record, b: Record, found: Difference) -> str:
    assert found.first is not None
    assert found.second is not None
    x, y = a.ops[found.first], b.ops[found.second]
    names = x.name if x.name == y.name else f"{x.name} ({y.name} in the second run)"
    text = f"first at op {found.first} ({found.second} of the second run), {x.direction}: {names}"
    lines = [text]
    lines += [str(x.line)] if x.line is not None else []
    if y.line is not None and (x.line is None or x.line[:2] != y.line[:2]):
        lines += ["  in the second run:", str(y.line)]
    return "\n".join(lines)


def _alone(a: Record, b: Record, found: Difference) -> str:
    record, at = (a, found.first) if found.second is None else (b, found.second)
    assert at is not None
    op = record.ops[at]
    text = f"The programs part first at op {at}, {op.direction}: only {record.path} has {op.name}"
    return text if op.line is None else f"{text}\n{op.line}"


def _table(a: Record, b: Record, found: Difference) -> list[str]:
    assert found.first is not None
    assert found.second is not None
    assert found.result is not None
    x = a.ops[found.first].results[found.result]
    y = b.ops[found.second].results[found.result]
    rows = [("", "first", "second")]
    if found.result:
        rows[0] = (f"result {found.result}", "first", "second")
    rows.append(("shape", str(x.shape), str(y.shape)))
    rows.append(("dtype", x.dtype, y.dtype))
    rows.append(("digest", str(x.digest), str(y.digest)))
    names = ("min", "max", "mean")
    rows += [(n, f"{getattr(x, n):.9g}", f"{getattr(y, n):.9g}") for n in names]
    rows.append(("not finite", str(x.nonfinite), str(y.nonfinite)))
    widths = [max(len(row[at]) for row in rows) for at in range(3)]
    return [
        "  " + "  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows
    ]


def main(arguments: list[str]) -> int:
    """The command; 0 if the runs are the same to the bit, 1 if not, 2 if that cannot be said."""
    parser = argparse.ArgumentParser(
        prog="python -m pullback diff", description="Says where two recorded runs part."
    )
    parser.add_argument("first", help="a record, as pullback.record writes them")
    parser.add_argument("second", help="another one")
    parser.add_argument(
        "--rtol",
        type=float,
        default=None,
        help="by which numbers may differ, relative to the largest of their tensor",
    )
    given = parser.parse_args(arguments)
    try:
        a, b = read(given.first), read(given.second)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    found = compare(a, b, given.rtol)
    print(report(a, b, found))
    return 0 if found.bits is None and found.unpaired is None else 1
