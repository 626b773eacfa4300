"""How packed values are cut into components, and the symbol of the ragged size."""

from __future__ import annotations

import copy
import itertools
import operator
import weakref
from collections.abc import Sequence
from typing import Any

from .. import _C
from .._symbol import SymInt
from .._tensor import Tensor
from ._internal.nested_int import NestedIntNode

_VF = _C._VariableFunctions
_COUNT = itertools.count(1)


class NestedSize(tuple[Any, ...]):
    """The size of a jagged tensor: numbers, and one ``SymInt``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(repr, self))}])"

    def numel(self) -> Any:
        """The product of the sizes; a multiple of the ragged one."""
        product: Any = 1
        for size in self:
            product = size * product
        return product


class Structure:
    """Where each component begins and how long it is.

    ``offsets`` has one more element than there are components. With ``lengths`` a component may
    end before the next one begins. Two are equal if components of both may be combined: of those
    that were made from one tensor of offsets, one may have other bounds (`bounded`).
    """

    def __init__(self, offsets: Tensor, lengths: Tensor | None) -> None:
        self.offsets, self.lengths = offsets, lengths
        self.size = SymInt(NestedIntNode(next(_COUNT), 1))
        self.cache: dict[str, int] = {}
        self._unbounded: Structure | None = None
        starts = offsets.tolist()
        self.starts: list[int] = starts[:-1]
        self.counts: list[int] = (
            [end - start for start, end in itertools.pairwise(starts)]
            if lengths is None
            else lengths.tolist()
        )
        self._without_gaps: Structure | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self.size == other.size

    def __hash__(self) -> int:
        return hash(self.size)

    def bounded(self, shortest: int | None, longest: int | None) -> Structure:
        """The same structure with these bounds, which are kept and used for padding.

        Raises:
            RuntimeError: for a bound that a component exceeds.
        """
        for name, given, found, fits in (
            ("min_seqlen", shortest, min(self.counts, default=0), operator.le),
            ("max_seqlen", longest, max(self.counts, default=0), operator.ge),
        ):
            if given is not None and self.counts and not fits(given, found):
                raise RuntimeError(f"{name} is {given}, but a component has the length {found}")
        cache = {"min_seqlen": shortest, "max_seqlen": longest}
        made = copy.copy(self)
        made.cache = {name: int(one) for name, one in cache.items() if one is not None}
        # (It holds the structure that is found by these offsets, whose size it has.)
        made._unbounded = self._unbounded or self
        return made

    @property
    def batch(self) -> int:
        """The number of components."""
        return len(self.counts)

    @property
    def longest(self) -> int:
        """The greatest length of a component, or a given bound of it."""
        return self.cache.get("max_seqlen", max(self.counts, default=0))

    @property
    def shortest(self) -> int:
        """The least length of a component, or a given bound of it."""
        return self.cache.get("min_seqlen", min(self.counts, default=0))

    def rows(self) -> Tensor:
        """For each packed place of a tensor without holes, the component that it belongs to."""
        return _VF.repeat_interleave(_VF.arange(self.batch), _C.tensor(self.counts))

    def positions(self) -> Tensor:
        """For each packed place of a tensor without holes, its place in its component."""
        starts = _C.tensor(self.starts, dtype=_C.int64)
        return _VF.arange(sum(self.counts)) - starts[self.rows()]

    def without_gaps(self) -> Structure:
        """The structure of the same components one right after another: always the same one."""
        if self._without_gaps is None:
            self._without_gaps = of_counts(self.counts)
        return self._without_gaps

    def packed_indices(self) -> Tensor:
        """The positions of the elements of the components in values with holes."""
        dense = self.without_gaps()
        return _C.tensor(self.starts, dtype=_C.int64)[dense.rows()] + dense.positions()


_KNOWN: weakref.WeakValueDictionary[tuple[int, int | None], Structure] = (
    weakref.WeakValueDictionary()
)


def of_offsets(offsets: Tensor, lengths: Tensor | None = None) -> Structure:
    """The structure of these tensors: the same one as long as it is in use."""
    key = id(offsets), None if lengths is None else id(lengths)
    # (A structure holds its tensors: while it is found, the identities are theirs.)
    found = _KNOWN.get(key)
    if found is None:
        found = _KNOWN[key] = Structure(offsets, lengths)
    return found


def of_counts(counts: Sequence[int]) -> Structure:
    """The structure of components of these lengths, one after another."""
    made = of_offsets(_C.tensor([0, *itertools.accumulate(counts)], dtype=_C.int64))
    made.cache = {"min_seqlen": min(counts, default=0), "max_seqlen": max(counts, default=0)}
    return made
