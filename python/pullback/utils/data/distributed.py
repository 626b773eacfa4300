"""Indices of a data set, divided among processes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeVar

from ... import _C
from .sampler import Sampler

__all__ = ["DistributedSampler"]

T_co = TypeVar("T_co", covariant=True)


class DistributedSampler(Sampler[T_co]):
    """Every ``num_replicas``-th index of a data set, beginning with the ``rank``-th.

    All processes get the same number: at the end indices from the beginning follow, or with
    ``drop_last`` the rest is left out. :meth:`set_epoch` gives another order.

    Args:
        dataset: what is divided; its length counts.
        num_replicas: among how many processes; those of the group unless given.
        rank: the number of this one; that in the group unless given.
        shuffle: whether the order is random, from ``seed`` and the epoch.
        seed: the same in all processes.
        drop_last: whether the rest is left out.

    Raises:
        ValueError: for a rank that there is not; without the two numbers, before there is a group.
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        from ... import distributed

        self.dataset = dataset
        self.num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
        self.rank = distributed.get_rank() if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(
                f"Invalid rank {self.rank}, rank should be in the interval "
                f"[0, {self.num_replicas - 1}]"
            )
        self.epoch = 0
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        length = len(dataset)
        share = length / self.num_replicas
        self.num_samples = math.floor(share) if drop_last else math.ceil(share)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[Any]:
        length = len(self.dataset)
        if self.shuffle:
            generator = _C.Generator()
            generator.manual_seed(self.seed + self.epoch)
            from ... import randperm

            indices = randperm(length, generator=generator).tolist()
        else:
            indices = list(range(length))
        if self.drop_last:
            indices = indices[: self.total_size]
        elif indices:
            indices = (indices * math.ceil(self.total_size / length))[: self.total_size]
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Gives the next iteration the order of this epoch."""
        self.epoch = epoch
