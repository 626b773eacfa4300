"""How values came to be: records of storages, recipes, and the handles that graphs keep.

A record is the content of one storage between two writes. References lead from handles and
recipes to records, never from a record to the memory itself, so that nothing lives longer for being
recorded; what a recipe reads from outside of the region is held by an anchor.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _C

if TYPE_CHECKING:
    from .._tensor import Tensor
    from .facts import OpFacts
    from .store import Store


def version_of(storage: Any) -> int:
    """How often a storage was written to."""
    return _C._tensor_over(storage, _C.uint8, 0, [0], [1])._version


class Ref(NamedTuple):
    """A tensor among the arguments of a recipe: which part of which record it shows."""

    record: Record
    dtype: Any
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    is_scratch: bool


#: The op that stands for values from before the region or from elsewhere.
NOT_MADE = "(not made here)"


class Anchor:
    """Holds a value from outside the region as long as something may be computed from it."""

    __slots__ = ("__weakref__", "tensor", "version")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor: Tensor | None = tensor
        self.version = tensor._version


class Recipe:
    """An op with its arguments: how some records are filled."""

    __slots__ = (
        "anchors",
        "args",
        "facts",
        "kwargs",
        "outs",
        "random",
        "seconds",
        "sources",
        "written",
    )

    def __init__(self, facts: OpFacts, args: Any, kwargs: Any, sources: list[Record]) -> None:
        self.facts, self.args, self.kwargs, self.sources = facts, args, kwargs, sources
        # (Those that have no recipe.)
        self.anchors: list[Anchor] = []
        # The record that the op writes to, for ops in place, and the state of its generator.
        self.written: Record | None = None
        self.random: Any = None
        self.seconds = 0.0
        # The index of the result that fills each record.
        self.outs: list[tuple[int, weakref.ref[Record]]] = []


class Record:
    """The content of a storage between two writes."""

    __slots__ = (
        "__weakref__",
        "anchor",
        "era",
        "handles",
        "is_counted",
        "is_given_up",
        "is_made",
        "is_pinned",
        "line",
        "nbytes",
        "op",
        "recipe",
        "sound_at",
        "storage",
        "store",
        "stored",
        "used",
        "version",
        "was_given_up",
    )

    def __init__(self, store: Store, storage: Any, op: str, line: Any) -> None:
        self.store = store
        self.storage: weakref.ref[Any] = weakref.ref(storage)
        self.nbytes: int = storage.nbytes()
        self.op, self.line = op, line
        self.version = 0
        self.recipe: Recipe | None = None
        self.anchor: weakref.ref[Anchor] | None = None
        self.handles: list[weakref.ref[Handle]] = []
        # A value that was given up and is kept elsewhere: as bfloat16, or in a file.
        self.stored: Any = None
        self.is_given_up = self.was_given_up = False
        # Whether a value that was given up is computed from it.
        self.is_pinned = False
        # Whether an op of the region made it, and whether reports have it.
        self.is_made = op != NOT_MADE
        self.is_counted = False
        self.used = self.era = store.clock
        # How many values from outside were lost when this was seen to depend on none of them.
        self.sound_at = -1
        storage._recorded = self

    def __del__(self) -> None:
        if self.is_given_up:
            self.store.missing -= self.nbytes

    def live_handles(self) -> list[Handle]:
        """The handles that graphs still keep."""
        if len(self.handles) == 1:
            handle = self.handles[0]()
            return [] if handle is None else [handle]
        found, alive = [], []
        for reference in self.handles:
            handle = reference()
            if handle is not None:
                found.append(handle)
                alive.append(reference)
        self.handles = alive
        return found

    def own_storage(self) -> Any:
        """The storage, if it is alive and was not written to since."""
        storage = self.storage()
        if storage is None or getattr(storage, "_recorded", None) is not self:
            return None
        # (Who wrote outside of the region changed the version, and nothing else that can be seen.)
        return storage if version_of(storage) == self.version else None

    def is_anchored(self) -> bool:
        """Whether an anchor has the value unchanged."""
        anchor = self.anchor() if self.anchor is not None else None
        if anchor is None or anchor.tensor is None:
            return False
        return anchor.tensor._version == anchor.version

    def anchor_for(self, tensor: Any) -> Anchor:
        """What keeps the value, which ``tensor`` shows, for recipes."""
        anchor = self.anchor() if self.anchor is not None else None
        if anchor is None:
            anchor = Anchor(tensor.detach())
            self.anchor = weakref.ref(anchor)
        return anchor


class Handle:
    """The object that a graph keeps in place of a saved tensor."""

    __slots__ = ("__weakref__", "alias", "dtype", "offset", "record", "size", "stride", "version")

    def __init__(self, record: Record | None, tensor: Tensor, alias: Tensor) -> None:
        self.record = record
        # None while the value is given up.
        self.alias: Tensor | None = alias
        self.version: int | None = alias._version
        if record is not None:
            self.dtype, self.offset = tensor.dtype, tensor.storage_offset()
            self.size, self.stride = tuple(tensor.shape), tensor.stride()
