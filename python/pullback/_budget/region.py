"""``memory_budget`` itself: a region with a limit, and a report of what it did."""

from __future__ import annotations

import os
import re
import threading
from typing import TYPE_CHECKING, Any

from .. import _C
from .._blame import _size
from ..autograd.graph import saved_tensors_hooks
from ..memory import MemoryBudgetError
from .elsewhere import Elsewhere
from .store import Store
from .watch import Watch

if TYPE_CHECKING:
    from .record import Record

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_SHOWN = 20
_WAYS = ("recomputed", "bf16", "disk")


class _Current(threading.local):
    store: Store | None = None
    watch: Watch | None = None
    hooks: saved_tensors_hooks | None = None


_current = _Current()


def bytes_in(limit: Any) -> int:
    """The bytes of a limit: a number, or a text such as ``"300MB"`` or ``"1.5 GiB"``.

    Raises:
        TypeError: for anything else.
        ValueError: for a text that is no size, and for a size that is not positive.
    """
    if isinstance(limit, bool) or not isinstance(limit, (int, float, str)):
        raise TypeError(
            f"memory_budget(): limit must be bytes or a text such as '300MB', not "
            f"{type(limit).__name__}"
        )
    if isinstance(limit, str):
        found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([kmgt]i?)?b?\s*", limit.lower())
        if found is None:
            raise ValueError(
                f"memory_budget(): {limit!r} is no size; sizes are like '300MB', '1.5 GB', '2 GiB'"
            )
        unit = found[2] or ""
        limit = float(found[1]) * {**_UNITS, **_BINARY}[unit]
    if not 0 < limit < float(1 << 62):
        raise ValueError(f"memory_budget(): limit must be a positive number of bytes, got {limit}")
    return int(limit)


class Row:
    """The statistics of the values that one op made at one line."""

    def __init__(self, op: str, line: str) -> None:
        self.op, self.line = op, line
        #: Storages that were saved, and their bytes.
        self.count = self.bytes = 0
        #: Bytes that were given up at least once, by way.
        self.given_up = dict.fromkeys(_WAYS, 0)
        #: How often values were computed again or loaded, and the time that took.
        self.times = 0
        self.seconds = 0.0

    @property
    def kept(self) -> int:
        """Bytes that were never given up."""
        return max(self.bytes - sum(self.given_up.values()), 0)

    def to_dict(self) -> dict[str, Any]:
        """All counts by name."""
        return {
            "op": self.op,
            "line": self.line,
            "count": self.count,
            "bytes": self.bytes,
            "kept": self.kept,
            **self.given_up,
            "times": self.times,
            "seconds": self.seconds,
        }


class MemoryBudget:
    """See :func:`pullback.memory_budget`, which makes it; printed, a table of what was done."""

    def __init__(self, limit: Any, *, offload: Any = None) -> None:
        #: The limit in bytes.
        self.limit = bytes_in(limit)
        if offload is not None and not isinstance(offload, (str, os.PathLike)):
            raise TypeError(
                'memory_budget(): offload must be None, "bf16" or a folder, not '
                f"{type(offload).__name__}"
            )
        self._elsewhere = None if offload is None else Elsewhere(offload)
        #: The most bytes that the allocator held during the region.
        self.peak = 0
        #: The peak as it would have been without giving up values.
        self.estimated_peak = 0
        #: How often, and for how long, values were computed again or loaded.
        self.recomputed = 0
        self.seconds = 0.0
        self._rows: dict[tuple[str, Any], Row] = {}
        self._is_open = False
        self._is_outermost = False
        self._before: Elsewhere | None = None

    # ---- the region ----

    def __enter__(self) -> MemoryBudget:
        if self._is_open:
            raise RuntimeError("memory_budget(): this region is open already; make another one")
        store = _current.store
        self._is_outermost = store is None
        if store is None:
            store = Store(self._elsewhere)
            hooks = saved_tensors_hooks(store.pack, store.unpack)
            hooks.__enter__()
            try:
                watch = Watch(store)
                watch.__enter__()
            except BaseException:
                hooks.__exit__()
                raise
            _current.store, _current.watch, _current.hooks = store, watch, hooks
        for budget in store.budgets:
            budget._measured(_C._memory_live(), _C._memory_peak(), store.missing)
        _C._memory_reset_peak()
        self._before = store.elsewhere
        if self._elsewhere is not None:
            store.elsewhere = self._elsewhere
        self.peak = self.estimated_peak = _C._memory_live()
        self._is_open = True
        store.budgets.append(self)
        store.heed()
        store.told.append(self)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        store, watch, hooks = _current.store, _current.watch, _current.hooks
        assert store is not None
        assert watch is not None
        assert hooks is not None
        beyond = self._measured(_C._memory_live(), _C._memory_peak(), store.missing)
        self._is_open = False
        store.budgets.remove(self)
        store.heed()
        store.elsewhere = self._before
        if self._is_outermost:
            _current.store = _current.watch = _current.hooks = None
            watch.finish()
            watch.__exit__(kind, error, trace)
            hooks.__exit__()
            store.forget(store.clock + 1)
        else:
            store.told.remove(self)
        if beyond > 0 and kind is None:
            raise self._exceeded(self.peak, "the region")

    # ---- what the store reports ----

    def _row(self, record: Record) -> Row:
        line = record.line
        key = (record.op, None if line is None else line[:2])
        row = self._rows.get(key)
        if row is None:
            where = "" if line is None else f"{line[0]}:{line[1]}"
            row = self._rows[key] = Row(record.op, where)
        return row

    def _saved(self, record: Record) -> None:
        row = self._row(record)
        row.count += 1
        row.bytes += record.nbytes

    def _given_up(self, record: Record, way: str) -> None:
        self._row(record).given_up[way] += record.nbytes

    def _recomputed(self, record: Record, ops: int, seconds: float) -> None:
        self._again(record, ops, seconds)

    def _loaded(self, record: Record, seconds: float) -> None:
        self._again(record, 1, seconds)

    def _again(self, record: Record, count: int, seconds: float) -> None:
        row = self._row(record)
        row.times += 1
        row.seconds += seconds
        self.recomputed += count
        self.seconds += seconds

    def _measured(self, live: int, peak: int, missing: int) -> int:
        """Notes what is in use; returns by how much the limit is exceeded."""
        self.peak = max(self.peak, peak)
        self.estimated_peak = max(self.estimated_peak, live + missing, self.peak)
        return self.peak - self.limit

    def _exceeded(self, peak: int, what: str) -> MemoryBudgetError:
        return MemoryBudgetError(
            f"memory_budget: the limit of {_size(self.limit)} was exceeded: the peak was "
            f"{_size(peak)} ({peak} bytes) when {what} ended, as something took memory beside the "
            "results of this thread's ops"
        )

    # ---- what it says ----

    @property
    def rows(self) -> list[Row]:
        """The saved values, by op and line, largest first."""
        return sorted(self._rows.values(), key=lambda row: -row.bytes)

    def to_dict(self) -> dict[str, Any]:
        """The whole report as numbers, texts, lists and dictionaries (for JSON)."""
        return {
            "limit": self.limit,
            "peak": self.peak,
            "estimated_peak": self.estimated_peak,
            "recomputed": self.recomputed,
            "seconds": self.seconds,
            "rows": [row.to_dict() for row in self.rows],
        }

    def __str__(self) -> str:
        lines = [
            f"Memory budget: limit {_size(self.limit)}, peak {_size(self.peak)} "
            f"(without it about {_size(self.estimated_peak)})",
            f"Computed again or loaded: {self.recomputed} ops in {self.seconds:.3g} s",
        ]
        ways = [way for way in _WAYS if any(row.given_up[way] for row in self.rows)]
        head = "".join(f"{name:>12}" for name in ("saved", "kept", *ways))
        lines += ["", f"{head}  op"] if self._rows else []
        for row in self.rows[:_SHOWN]:
            sizes = (row.bytes, row.kept, *(row.given_up[way] for way in ways))
            text = "".join(f"{_size(size) if size else '-':>12}" for size in sizes)
            lines.append(f"{text}  {row.op}  {row.line}".rstrip())
        if len(self._rows) > _SHOWN:
            lines.append(f"... and {len(self._rows) - _SHOWN} more")
        return "\n".join(lines)

    __repr__ = __str__
