"""How packed values are cut into components, and the symbol of the ragged size."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from typing import Any

from .. import _C
from .._tensor import Tensor

_VF = _C._VariableFunctions
_COUNT = itertools.count(1)


class RaggedSize:
    """The size of a ragged dimension: equal only to that of tensors cut in the same way.

    It is shown as ``j1``, ``j2``, ... and, in strides, with a factor: ``5*j1``.
    """

    __slots__ = ("factor", "identity")

    def __init__(self, identity: int, factor: int = 1) -> None:
        self.identity, self.factor = identity, factor

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RaggedSize):
            return False
        return (self.identity, self.factor) == (other.identity, other.factor)

    def __hash__(self) -> int:
        return hash((RaggedSize, self.identity, self.factor))

    def __mul__(self, factor: int) -> RaggedSize:
        if not isinstance(factor, int):
            return NotImplemented
        return RaggedSize(self.identity, self.factor * factor)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        prefix = "" if self.factor == 1 else f"{self.factor}*"
        return f"{prefix}j{self.identity}"

    def __int__(self) -> int:
        raise TypeError(f"the ragged size {self!r} is no single number")


class NestedSize(tuple[Any, ...]):
    """The size of a jagged tensor: numbers, and one ``RaggedSize``."""

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
    end before the next one begins.
    """

    def __init__(self, offsets: Tensor, lengths: Tensor | None) -> None:
        self.offsets, self.lengths = offsets, lengths
        self.size = RaggedSize(next(_COUNT))
        starts = offsets.tolist()
        self.starts: list[int] = starts[:-1]
        self.counts: list[int] = (
            [end - start for start, end in itertools.pairwise(starts)]
            if lengths is None
            else lengths.tolist()
        )
        self._without_gaps: Structure | None = None

    @property
    def batch(self) -> int:
        """How many components there are."""
        return len(self.counts)

    @property
    def longest(self) -> int:
        """The greatest length of a component."""
        return max(self.counts, default=0)

    @property
    def shortest(self) -> int:
        """The least length of a component."""
        return min(self.counts, default=0)

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
        """Where the elements of the components are in values with holes."""
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
    return of_offsets(_C.tensor([0, *itertools.accumulate(counts)], dtype=_C.int64))
