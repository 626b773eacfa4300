"""What a region keeps, gives up and computes again.

One store serves a thread's outermost region and those inside of it. ``pack`` and ``unpack`` are its
hooks on saved tensors, ``make_room`` gives up, ``value_of`` gets a record's content back by
whatever way is left. Invariant: whoever reads a record's content holds a tensor on it, so that what
is in use is never freed; to give up what somebody else holds frees nothing, and is undone.
"""

from __future__ import annotations

import gc
import threading
import time
import weakref
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

from .. import _C
from .._blame import _size
from ..memory import MemoryBudgetError
from .record import NOT_MADE, Handle, Record
from .replay import Replay, View, shown, whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._tensor import Tensor
    from .elsewhere import Elsewhere
    from .region import MemoryBudget

_PLAIN: set[type] = set()
# Values smaller than this are not worth the time.
_LEAST = 4096
# The allocator counts small blocks in steps of this.
_STEP = 1 << 16
# Programs whose backward passes are known.
_PROGRAMS = 256
# Time that running an op takes beside its own.
_OVERHEAD = 20e-6


def is_plain(tensor: Any) -> bool:
    """Whether a tensor is strided memory on the CPU, and nothing more."""
    if not _PLAIN:
        from .._tensor import Tensor
        from ..nn.parameter import Buffer, Parameter

        _PLAIN.update((Tensor, Parameter, Buffer))
    return (
        type(tensor) in _PLAIN
        and tensor.layout is _C.strided
        and tensor.device.type == "cpu"
        and not (tensor.is_conj() or tensor.is_neg() or tensor.is_inference())
        and _C._vmap_level(tensor) < 0
    )


class Unseen:
    """What a backward pass takes without an op, as gradients that the engine copies.

    The first backward of a program leaves room for as much as its largest op needs, and sees how
    much it was. Later ones leave room for that.
    """

    # By the largest need of an op and the number of ops before the backward, which tell programs
    # apart well enough: to be wrong is an error, no wrong value.
    _known: ClassVar[dict[tuple[int, int], int]] = {}

    def __init__(self) -> None:
        self._program = (0, 0)
        self._most: int | None = None
        self._taken = self._live = 0

    def begin(self, largest: int, ops: int) -> None:
        """Called when a backward pass begins."""
        self._program = (largest, ops)
        self._most = self._known.get(self._program)
        self._taken, self._live = 0, _C._memory_live()

    def look(self) -> None:
        """Called before an op: notes changes since the last one."""
        if self._most is None:
            self._taken = max(self._taken, _C._memory_live() - self._live)

    def note(self) -> None:
        """Called after an op."""
        if self._most is None:
            self._live = _C._memory_live()

    def end(self) -> None:
        """Called when a backward pass has ended."""
        if self._most is None:
            if len(self._known) >= _PROGRAMS:
                self._known.clear()
            self._known[self._program] = self._taken

    def spare(self, largest: int) -> int:
        """The spare room to leave for the op."""
        return largest if self._most is None else self._most + _STEP


class Store:
    """The state of the regions of one thread."""

    def __init__(self, elsewhere: Elsewhere | None) -> None:
        self.budgets: list[MemoryBudget] = []
        # The regions that are notified: the open ones, and after their end the outermost.
        self.told: list[MemoryBudget] = []
        self.elsewhere = elsewhere
        self.lock = threading.RLock()
        # Counts the ops.
        self.clock = 0
        # The least limit of the open regions.
        self.limit = 1 << 62
        # Bytes of values that graphs need, but that are given up.
        self.missing = 0
        # How many values from outside of the region were written to that recipes read.
        self.losses = 0
        # The most that an op was seen to need, and the needs of a backward beside its ops.
        self.largest = 0
        self.unseen = Unseen()
        # Records with handles, in the order in which they were saved.
        self.kept: weakref.WeakSet[Record] = weakref.WeakSet()
        # Those of them that were given up, and are not back.
        self.missed: weakref.WeakSet[Record] = weakref.WeakSet()
        self.busy: set[int] = set()
        self.replay = Replay(self)

    # ---- saving ----

    def record_of(self, tensor: Any, *, makes: bool = True) -> Record | None:
        """The record of a plain tensor's memory; if there is none, a new one without recipe."""
        storage = tensor.untyped_storage()
        found: Record | None = getattr(storage, "_recorded", None)
        if found is not None and found.store is self and found.version == tensor._version:
            return found
        if not makes:
            return None
        # A value from before the region, from another thread, or one with an unnoticed write.
        made = Record(self, storage, NOT_MADE, None)
        made.version = tensor._version
        return made

    def pack(self, tensor: Tensor) -> Any:
        """Takes a handle for what an op saves."""
        if not is_plain(tensor):
            return Handle(None, tensor, tensor.detach())
        with self.lock, _C._DisableTorchDispatch():
            if tensor.is_leaf and tensor.requires_grad:
                return Handle(None, tensor, tensor)
            alias = tensor.detach() if tensor.requires_grad else tensor
            record = self.record_of(tensor)
            assert record is not None
            handle = Handle(record, tensor, alias)
            record.handles.append(weakref.ref(handle))
            record.used = self.clock
            self.kept.add(record)
            if not record.is_counted:
                record.is_counted = True
                self._tell("_saved", record)
            return handle

    def unpack(self, handle: Handle) -> Tensor:
        """The tensor that a handle represents.

        Raises:
            RuntimeError: if it was written to, or cannot be computed again.
        """
        alias = handle.alias
        if alias is None:
            with self.lock:
                alias = handle.alias
                if alias is None:
                    alias = self._restored(handle)
        if handle.version is not None and alias._version != handle.version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an "
                f"inplace operation: [{tuple(alias.shape)}, {alias.dtype}] is at version "
                f"{alias._version}; expected version {handle.version} instead."
            )
        if handle.record is not None:
            handle.record.used = self.clock
        return alias

    def _restored(self, handle: Handle) -> Tensor:
        record = handle.record
        assert record is not None
        self.unseen.look()
        with self.replay.aside():
            self.put_back(record, self.value_of(record))
        self.unseen.note()
        alias = handle.alias
        assert alias is not None
        return alias

    def put_back(self, record: Record, value: Tensor) -> None:
        """Lets the handles of a record show its content again."""
        storage: Any = value.untyped_storage()
        if record.is_given_up:
            record.is_given_up = False
            self.missed.discard(record)
            self.missing -= record.nbytes
        if getattr(storage, "_recorded", None) is not record:
            storage._recorded = record
            record.storage = weakref.ref(storage)
            record.version = value._version
        record.stored = None
        record.used = self.clock
        for handle in record.live_handles():
            if handle.alias is None:
                handle.alias = shown(value, handle)
                handle.version = handle.alias._version

    def value_of(self, record: Record) -> Tensor:
        """A tensor on all of a record's content, computed again if there is none.

        Raises:
            RuntimeError: if it cannot be computed again.
        """
        found = self.available(record)
        return self.replay.compute(record) if found is None else found

    def available(self, record: Record) -> Tensor | None:
        """A tensor on all of a record's content, if that is there."""
        storage = record.own_storage()
        if storage is not None:
            for handle in record.live_handles():
                if handle.alias is not None:
                    return whole(handle.alias)
            return whole(storage)
        if record.anchor is not None:
            anchor = record.anchor()
            if anchor is not None and anchor.tensor is not None and record.is_anchored():
                return whole(anchor.tensor)
        if record.stored is not None:
            self.make_room(record.nbytes, lambda: f"to load what {record.op} made")
            start = time.perf_counter()
            value: Tensor = record.stored.load()
            self._tell("_loaded", record, time.perf_counter() - start)
            return value
        return None

    # ---- giving up ----

    def heed(self) -> None:
        """Notes which limit holds: the least of the regions that are open."""
        self.limit = min((budget.limit for budget in self.budgets), default=1 << 62)

    def make_room(self, need: int, what: Callable[[], str]) -> None:
        """Gives up until ``need`` bytes more stay below the limit.

        Raises:
            MemoryBudgetError: if that is not enough.
        """
        limit = self.limit
        if need > self.largest:
            self.largest = need
        is_backward = _C._current_graph_task_id() >= 0
        spare = min(self.unseen.spare(self.largest) if is_backward else _STEP, limit // 8)
        if _C._memory_live() + need + spare <= limit:
            return
        with self.lock, self.replay.aside():
            wanted = limit - need
            self._give_up(wanted - max(spare, limit // 50), is_backward)
            if _C._memory_live() > wanted:
                # (The values that the program's cycles hold.)
                gc.collect()
                self._give_up(wanted, is_backward)
            live = _C._memory_live()
            if live <= wanted:
                return
        raise MemoryBudgetError(self._refusal(limit, live, need, what()))

    def _give_up(self, wanted: int, is_backward: bool) -> None:
        if _C._memory_live() <= wanted:
            return
        view = View()
        burdens = self.replay.burdens(self.missed, view)
        # In a forward all values are wanted later than what is computed now; in a backward those
        # that were used longest ago are wanted last, which counts more than what they cost.
        power = 0.5 if is_backward else 0.25
        found = []
        for record in list(self.kept):
            if id(record) in self.busy or record.nbytes < _LEAST or record.is_given_up:
                continue
            way = self._way(record, view)
            if way is not None:
                age = (self.clock - record.used + 1) ** power
                seconds = way[0] + burdens.get(id(record), 0.0)
                found.append((seconds / (way[1] * age), record.era, id(record), record, way[2]))
        found.sort(key=itemgetter(0, 1, 2))
        for _, _, _, record, chosen in found:
            if self._drop(record, chosen) and _C._memory_live() <= wanted:
                return

    def _way(self, record: Record, view: View) -> tuple[float, int, str] | None:
        """How a record's content is best given up: seconds, bytes freed, the way; None for none."""
        handles = record.live_handles()
        if not handles:
            self.kept.discard(record)
            return None
        for handle in handles:
            alias = handle.alias
            if alias is None or alias._version != handle.version:
                return None
        assert alias is not None
        storage = alias.untyped_storage()
        if (
            alias._version != record.version
            or getattr(storage, "_recorded", None) is not record
            or not storage.resizable()
        ):
            # (Not there, or an array shows it and may write to it.)
            return None
        best = None
        seconds = self.replay.cost(record, view)
        if seconds is not None:
            best = (seconds + _OVERHEAD, record.nbytes, "recomputed")
        if self.elsewhere is not None and record.is_made:
            other = self.elsewhere.cost(record.nbytes, handles)
            if other is not None and (best is None or other[0] / other[1] < best[0] / best[1]):
                best = other
        return best

    def _drop(self, record: Record, way: str) -> bool:
        """Gives up a record's content; False if that would free nothing."""
        handles = record.live_handles()
        stored = None
        if way != "recomputed":
            assert self.elsewhere is not None
            assert handles[0].alias is not None
            stored = self.elsewhere.keep(handles[0].alias)
        aliases = [handle.alias for handle in handles]
        storage = record.storage
        shared = aliases[0].untyped_storage() if aliases[0] is not None else None
        for handle in handles:
            handle.alias = None
        aliases.clear()
        del shared
        kept = storage()
        if kept is not None:
            # The program, or an op that is running, holds it: nothing was freed.
            value = whole(kept)
            for handle in handles:
                handle.alias = shown(value, handle)
            return False
        record.stored = stored
        record.is_given_up = True
        self.missed.add(record)
        self.missing += record.nbytes
        if stored is None:
            self.replay.pin(record)
        if not record.was_given_up:
            record.was_given_up = True
            self._tell("_given_up", record, way)
        return True

    def _tell(self, what: str, *values: Any) -> None:
        for budget in self.told:
            getattr(budget, what)(*values)

    def _refusal(self, limit: int, live: int, need: int, what: str) -> str:
        from .._holders import largest

        held = largest(6)
        lines = [
            f"memory_budget: the limit of {_size(limit)} cannot be held: {what} takes "
            f"{_size(need)} where {_size(live)} are in use that cannot be given up. The least "
            f"peak here is {_size(live + need)} ({live + need} bytes). What holds the most:"
        ]
        lines += [f"  {_size(size):>9}  {where}" for size, where in held.shown]
        return "\n".join(lines)

    # ---- the end of a graph ----

    def forget(self, before: int) -> None:
        """Drops recipes of records older than ``before`` that no handle may need.

        What a program keeps of an old step, a loss say, does not keep what it was computed from.
        """
        with self.lock:
            needed: set[int] = set()
            made = list(self.replay.made)
            waiting = [record for record in list(self.kept) if record.live_handles()]
            waiting += [record for record in made if record.era >= before]
            while waiting:
                record = waiting.pop()
                if id(record) not in needed:
                    needed.add(id(record))
                    if record.recipe is not None:
                        waiting += record.recipe.sources
            for record in made:
                if id(record) not in needed:
                    record.recipe = None
                    self.replay.made.discard(record)


__all__ = ["Store", "is_plain"]
