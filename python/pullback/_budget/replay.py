"""Runs recipes again: with the arguments, the random numbers and the settings of the first time."""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _C
from .facts import SIZES
from .record import Recipe, Record, Ref

if TYPE_CHECKING:
    from .._tensor import Tensor
    from .store import Store


def whole(value: Any, dtype: Any = None) -> Tensor:
    """A tensor on all of the memory of a tensor or a storage; of bytes if no dtype is known."""
    if isinstance(value, _C.TensorBase):
        value, dtype = value.untyped_storage(), value.dtype
    dtype = _C.uint8 if dtype is None else dtype
    return _C._tensor_over(value, dtype, 0, [value.nbytes() // dtype.itemsize], [1])


def shown(value: Tensor, how: Any) -> Tensor:
    """The part of the memory of ``value`` that a handle or a reference is to."""
    storage = value.untyped_storage()
    return _C._tensor_over(storage, how.dtype, how.offset, list(how.size), list(how.stride))


def flat(result: Any) -> list[Any]:
    """The tensors of a result, with None for other values."""
    if isinstance(result, _C.TensorBase):
        return [result]
    if isinstance(result, (tuple, list)):
        return [tensor for item in result for tensor in flat(item)]
    return [None]


def tensors_of(args: Any, kwargs: Any) -> list[Any]:
    """The tensors among the arguments of a call."""
    found: list[Any] = []
    for value in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(value, _C.TensorBase):
            found.append(value)
        elif isinstance(value, (tuple, list)):
            found += [tensor for tensor in flat(value) if tensor is not None]
    return found


class View:
    """What is there at one moment, between two ops, and what the rest costs."""

    def __init__(self) -> None:
        self.seconds: dict[Record, float] = {}
        self._there: dict[Record, bool] = {}

    def has(self, record: Record) -> bool:
        """Whether a record's content is in memory."""
        found = self._there.get(record)
        if found is None:
            found = self._there[record] = record.own_storage() is not None
        return found


class Replay:
    """Computes records again."""

    def __init__(self, store: Store) -> None:
        self.store = store
        # The records that have recipes.
        self.made: weakref.WeakSet[Record] = weakref.WeakSet()

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Runs ops in isolation: nothing is recorded, cast, watched or overridden."""
        casts = _C.is_autocast_enabled("cpu")
        forward = _C._is_fwd_grad_enabled()
        recording = _C.is_grad_enabled()
        with _C._DisableTorchDispatch(), _C.DisableTorchFunction():
            _C._set_grad_enabled(False)
            _C._set_fwd_grad_enabled(False)
            if casts:
                _C.set_autocast_enabled("cpu", False)
            try:
                yield
            finally:
                if casts:
                    _C.set_autocast_enabled("cpu", True)
                _C._set_fwd_grad_enabled(forward)
                _C._set_grad_enabled(recording)

    def cost(self, wanted: Record, view: View) -> float | None:
        """Seconds to compute a record's content; None if it cannot be computed."""
        if not self._is_sound(wanted):
            return None
        known = view.seconds
        waiting = [wanted]
        while waiting:
            top = waiting[-1]
            if top in known:
                waiting.pop()
                continue
            assert top.recipe is not None
            total = top.recipe.seconds
            for source in top.recipe.sources:
                if source.recipe is None or source.stored or view.has(source):
                    continue
                if source not in known:
                    waiting.append(source)
                    break
                total += known[source]
            else:
                known[top] = total
        return known[wanted]

    def burdens(self, missed: Iterable[Record], view: View) -> dict[int, float]:
        """What values are worth to others: seconds of what was given up and begins with them."""
        found: dict[int, float] = {}
        for record in list(missed):
            if not record.live_handles():
                continue
            seconds = self.cost(record, view)
            if seconds is None:
                continue
            waiting, seen = [record], {record}
            while waiting:
                recipe = waiting.pop().recipe
                for source in recipe.sources if recipe is not None else ():
                    if source in seen:
                        continue
                    seen.add(source)
                    if source.recipe is None:
                        continue
                    if view.has(source):
                        found[id(source)] = found.get(id(source), 0.0) + seconds
                    else:
                        waiting.append(source)
        return found

    def _is_sound(self, wanted: Record) -> bool:
        """Whether everything that a record is computed from, however far away, is available."""
        now = self.store.losses
        if wanted.recipe is None:
            return False
        if wanted.sound_at == now:
            return True
        seen: list[Record] = []
        waiting = [wanted]
        while waiting:
            top = waiting.pop()
            if top.sound_at == now:
                continue
            if top.recipe is None and not top.is_anchored():
                for record in seen:
                    record.sound_at = -1
                return False
            if top.recipe is not None:
                top.sound_at = now
                seen.append(top)
                waiting += top.recipe.sources
        return True

    def pin(self, record: Record) -> None:
        """Notes that ``record`` was given up: the outside inputs of its recipe must be kept."""
        waiting = [record]
        while waiting:
            recipe = waiting.pop().recipe
            for source in recipe.sources if recipe is not None else ():
                if not source.is_pinned:
                    source.is_pinned = True
                    waiting.append(source)

    def compute(self, wanted: Record) -> Tensor:
        """Runs the recipes that lead to a record, and lets all their handles show values again.

        Raises:
            RuntimeError: if something that is needed was written to.
        """
        start = time.perf_counter()
        values: dict[int, Tensor] = {}
        order = self._order(wanted, values)
        uses: dict[int, int] = {}
        for recipe in order:
            for source in recipe.sources:
                uses[id(source)] = uses.get(id(source), 0) + 1
        uses[id(wanted)] = uses.get(id(wanted), 0) + 1
        self.store.busy, before = set(uses), self.store.busy
        # Values that no other recipe needs: the next op in place may write to them.
        fresh: set[int] = set()
        try:
            for recipe in order:
                self.store.clock += 1
                last = recipe.written is not None and uses[id(recipe.written)] == 1
                may_write = last and id(recipe.written) in fresh
                for record, value in self._run(recipe, values, may_write):
                    if record.is_given_up and record.live_handles():
                        self.store.put_back(record, value)
                    elif len(recipe.outs) == 1:
                        fresh.add(id(record))
                    if id(record) in uses:
                        values[id(record)] = value
                for source in recipe.sources:
                    uses[id(source)] -= 1
                    if not uses[id(source)]:
                        values.pop(id(source), None)
                        self.store.busy.discard(id(source))
        finally:
            self.store.busy = before
        self.store._tell("_recomputed", wanted, len(order), time.perf_counter() - start)
        return values[id(wanted)]

    def _order(self, wanted: Record, values: dict[int, Tensor]) -> list[Recipe]:
        """The recipes to run, in order; contents that are there are put into ``values``."""
        order: dict[int, Recipe] = {}
        done: set[int] = set()
        waiting: list[tuple[Record, bool]] = [(wanted, False)]
        while waiting:
            record, is_last = waiting.pop()
            if is_last:
                assert record.recipe is not None
                order.setdefault(id(record.recipe), record.recipe)
                continue
            if id(record) in done:
                continue
            done.add(id(record))
            found = self.store.available(record)
            if found is not None:
                values[id(record)] = found
                continue
            if record.recipe is None:
                raise RuntimeError(
                    f"memory_budget: a value that was given up, of {wanted.op} ({wanted.nbytes} "
                    f"bytes), cannot be computed again: a tensor of {record.nbytes} bytes that it "
                    "was computed from was modified by an inplace operation, or is gone"
                )
            waiting.append((record, True))
            waiting += [(source, False) for source in record.recipe.sources]
        return list(order.values())

    def _run(
        self, recipe: Recipe, values: dict[int, Tensor], may_write: bool
    ) -> list[tuple[Record, Tensor]]:
        copy: Tensor | None = None
        written = recipe.written
        if written is not None:
            copy = values[id(written)]
            if not may_write:
                self.store.make_room(written.nbytes, lambda: f"to copy for {recipe.facts.name}")
                copy = copy.clone()

        arguments = _Arguments(values, None if copy is None else written, copy)
        args = [arguments.of(value) for value in recipe.args]
        kwargs = {key: arguments.of(value) for key, value in recipe.kwargs.items()}
        need = SIZES.of(recipe.facts, args, kwargs)
        self.store.make_room(need[0] + need[1], lambda: f"to compute {recipe.facts.name} again")
        result = self._call(recipe, args, kwargs)
        found = []
        tensors = flat(result)
        for index, reference in recipe.outs:
            record = reference()
            if record is not None:
                value = copy if copy is not None else tensors[index]
                found.append((record, whole(value)))
        return found

    @staticmethod
    def _call(recipe: Recipe, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if recipe.random is None:
            return recipe.facts.func(*args, **kwargs)
        generator = kwargs.get("generator") or _C.default_generator
        now = generator.get_state()
        generator.set_state(recipe.random)
        try:
            return recipe.facts.func(*args, **kwargs)
        finally:
            generator.set_state(now)


class _Arguments(NamedTuple):
    """Turns a recipe's arguments into a call's.

    (No function inside of another that calls itself: the cycle would keep the values.)
    """

    values: dict[int, Tensor]
    written: Record | None
    copy: Tensor | None

    def of(self, value: Any) -> Any:
        """The argument with tensors in the place of references."""
        if isinstance(value, Ref):
            return self._of_reference(value)
        if type(value) in (tuple, list):
            return type(value)(map(self.of, value))
        return value

    def _of_reference(self, reference: Ref) -> Tensor:
        if reference.is_scratch:
            return _C._VariableFunctions.zeros(reference.size, dtype=reference.dtype)
        record = reference.record
        is_copied = self.copy is not None and record is self.written
        return shown(self.copy if is_copied else self.values[id(record)], reference)  # type: ignore[arg-type]
