"""How a tensor lies on one dimension of a mesh of processes: values without behaviour."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from ... import _absent

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """The base class of the placements below."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether the tensor is cut up, along ``dim`` if that is given."""
        return isinstance(self, (Shard, _StridedShard)) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each process has the whole tensor."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether each process has a part of each element, to be joined by ``reduce_op``."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """The tensor is cut up along a dimension.

    Args:
        dim: the dimension.
    """

    dim: int

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class _StridedShard(Placement):
    """The tensor is cut up along a dimension, after another cut of it.

    Args:
        dim: the dimension.
        split_factor: into how many shards the other cut was.
    """

    dim: int
    _: KW_ONLY
    split_factor: int


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process has the whole tensor."""

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """Each process has a part of each element.

    Args:
        reduce_op: how the parts are joined.
    """

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


_absent.announce(globals())
