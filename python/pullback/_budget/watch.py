"""The mode that sees a region's ops: makes room before them, and records how values came to be."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from .. import _C
from ..utils._python_dispatch import _WatchingMode
from .facts import SIZES, OpFacts, facts_of
from .record import Recipe, Record, Ref
from .replay import flat, tensors_of
from .store import is_plain

if TYPE_CHECKING:
    from .store import Store


class Watch(_WatchingMode):
    """Runs every op unchanged."""

    #: Ops that make views are not shown to it.
    _passes_views = True

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store
        # Whether the last op was one of a backward pass, and at which op it began.
        self._is_backward = False
        self._began = self._ended = 0

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Makes room for the op's results, runs it and records it.

        Raises:
            MemoryBudgetError: if there is no room.
        """
        kwargs = kwargs or {}
        facts = facts_of(func)
        if facts.is_view:
            return func(*args, **kwargs)
        store = self.store
        store.clock += 1
        is_backward = _C._current_graph_task_id() >= 0
        if is_backward != self._is_backward:
            self._note(is_backward)
        elif is_backward:
            store.unseen.look()
        sizes = SIZES.of(facts, args, kwargs)
        need = sizes[0] + sizes[1]
        if need:
            store.make_room(need, lambda: self._text(facts))
        if not is_backward or _C.is_grad_enabled():
            result = self._recorded(facts, args, kwargs, sizes)
        else:
            if facts.writes:
                self._before_write(facts, args, kwargs, tensors_of(args, kwargs))
            result = func(*args, **kwargs)
        self._measure(facts, sizes)
        if is_backward:
            store.unseen.note()
        return result

    def _note(self, is_backward: bool) -> None:
        """Called where a backward begins or ends: after it old records are not needed any more."""
        self._is_backward = is_backward
        store = self.store
        if is_backward:
            store.unseen.begin(store.largest, store.clock - self._ended)
            self._began = store.clock
        else:
            store.unseen.end()
            self._ended = store.clock
            store.forget(self._began)

    def finish(self) -> None:
        """Called where the region ends."""
        if self._is_backward:
            self.store.unseen.end()

    def _measure(self, facts: OpFacts, sizes: list[Any]) -> None:
        store = self.store
        live, peak = _C._memory_live(), _C._memory_peak()
        for budget in store.budgets:
            beyond = budget._measured(live, peak, store.missing)
            if beyond > 0:
                # The op needs more than its results: the next op like it gets that much room.
                sizes[1] = max(sizes[1], beyond)
                raise budget._exceeded(peak, self._text(facts))

    @staticmethod
    def _text(facts: OpFacts) -> str:
        line = _C._program_line()
        where = "" if line is None else f" at {line[0]}:{line[1]}"
        return f"{facts.name}{where}"

    def _before_write(
        self, facts: OpFacts, args: Any, kwargs: Any, tensors: list[Any]
    ) -> list[tuple[Any, Record | None]]:
        """The tensors that are about to be written to, with the records of what they show."""
        found = []
        for tensor in facts.written_tensors(args, kwargs, tensors):
            if not is_plain(tensor):
                continue
            record = self.store.record_of(tensor, makes=False)
            if record is not None:
                self._save_from_write(record)
            found.append((tensor, record))
        for tensor, _ in found:
            # A later value belongs to the program, until something is recorded of it.
            storage = tensor.untyped_storage()
            if hasattr(storage, "_recorded"):
                del storage._recorded
        return found

    def _save_from_write(self, record: Record) -> None:
        """Copies a value from outside that something given up is computed from."""
        anchor = record.anchor() if record.anchor is not None else None
        if record.recipe is not None or anchor is None or anchor.tensor is None:
            return
        if record.is_pinned:
            store = self.store
            store.make_room(record.nbytes, lambda: "a copy of what is about to be written to")
            with store.replay.aside():
                anchor.tensor = anchor.tensor.clone()
                anchor.version = anchor.tensor._version
        else:
            anchor.tensor = None
            self.store.losses += 1

    def _recorded(self, facts: OpFacts, args: Any, kwargs: Any, sizes: list[Any]) -> Any:
        recipe = random = None
        tensors = tensors_of(args, kwargs)
        makes = not facts.writes or facts.is_batch_norm
        # (What writes to lists, as optimizers do, is not run again: values are copied before it.)
        is_wanted = facts.is_tracked and (makes or _writes_to_one(facts, args))
        if is_wanted and all(map(is_plain, tensors)):
            recipe = self._recipe(facts, args, kwargs)
        if facts.is_random:
            random = (kwargs.get("generator") or _C.default_generator).get_state()
        written = self._before_write(facts, args, kwargs, tensors) if facts.writes else []
        start = perf_counter()
        result = facts.func(*args, **kwargs)
        seconds = perf_counter() - start
        # (The minimum over all calls: other calls had to wait for the machine.)
        sizes[2] = min(sizes[2] or seconds, seconds)
        if recipe is not None:
            recipe.seconds, recipe.random = sizes[2], random
        if facts.is_tracked:
            line = _C._program_line()
            for tensor, before in written:
                self._record_write(facts, recipe, tensor, before, line)
            if makes or not written:
                known = {id(t.untyped_storage()) for t in tensors if is_plain(t)}
                self._record_results(facts, recipe, result, known, line)
        return result

    def _record_results(
        self, facts: OpFacts, recipe: Recipe | None, result: Any, known: set[int], line: Any
    ) -> None:
        """Records the new memory that an op made, none of which is its arguments'."""
        for index, tensor in enumerate(flat(result)):
            if tensor is None or not is_plain(tensor):
                continue
            storage = tensor.untyped_storage()
            if id(storage) in known or getattr(storage, "_recorded", None) is not None:
                continue
            record = Record(self.store, storage, facts.name, line)
            record.version = tensor._version
            if recipe is not None:
                self._fill(recipe, record, index)

    def _fill(self, recipe: Recipe, record: Record, index: int) -> None:
        record.recipe = recipe
        recipe.outs.append((index, weakref.ref(record)))
        self.store.replay.made.add(record)

    def _record_write(
        self, facts: OpFacts, recipe: Recipe | None, tensor: Any, before: Record | None, line: Any
    ) -> None:
        """Records the memory that an in-place op wrote, if its previous content can be computed."""
        record = Record(self.store, tensor.untyped_storage(), facts.name, line)
        record.version = tensor._version if facts.is_batch_norm else tensor._version + 1
        if recipe is None or not facts.is_inplace or not isinstance(recipe.args[0], Ref):
            return
        if before is not None and before.recipe is not None:
            recipe.written = before
            self._fill(recipe, record, 0)

    def _recipe(self, facts: OpFacts, args: Any, kwargs: Any) -> Recipe:
        recipe = Recipe(facts, None, None, [])
        scratch = facts.written_tensors(args, kwargs, []) if facts.is_batch_norm else []
        references = _References(self.store, recipe, {id(tensor) for tensor in scratch})
        recipe.args = [references.to(value) for value in args]
        recipe.kwargs = {key: references.to(value) for key, value in kwargs.items()}
        recipe.sources = list(references.sources.values())
        return recipe


def _writes_to_one(facts: OpFacts, args: Any) -> bool:
    return facts.is_inplace and len(args) > 0 and isinstance(args[0], _C.TensorBase)


class _References:
    """Turns a call's arguments into a recipe's.

    (A function inside of a function that calls itself is a cycle, which would keep what it sees,
    recipes and all that they lead to, until the garbage collector runs.)
    """

    def __init__(self, store: Store, recipe: Recipe, scratch: set[int]) -> None:
        self.store, self.recipe, self.scratch = store, recipe, scratch
        self.sources: dict[int, Record] = {}

    def to(self, value: Any) -> Any:
        """The argument with references in the place of tensors."""
        if isinstance(value, _C.TensorBase):
            return self._to_tensor(value)
        if type(value) in (tuple, list):
            return type(value)(map(self.to, value))
        return value

    def _to_tensor(self, tensor: Any) -> Ref:
        record = self.store.record_of(tensor)
        assert record is not None
        is_scratch = id(tensor) in self.scratch
        if not is_scratch and id(record) not in self.sources:
            self.sources[id(record)] = record
            if record.recipe is None:
                self.recipe.anchors.append(record.anchor_for(tensor))
        record.used = self.store.clock
        shape, stride = tensor.shape, tensor.stride()
        return Ref(record, tensor.dtype, shape, stride, tensor.storage_offset(), is_scratch)
