"""Fetchers: from what a sampler gave to a finished batch.

One fetcher serves one pass over a data set, in this process or in a worker. Batches of a
`TensorDataset`, or of a `Subset` of one, are gathered by one indexing per tensor where the
result is the same as collating item by item.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import Tensor, strided, tensor
from .collate import default_collate
from .dataset import Subset, TensorDataset


class IterableFetcher:
    """Takes items from a stream; raises `StopIteration` when a batch would be empty."""

    def __init__(
        self,
        dataset: Any,
        auto_collation: bool,
        collate_fn: Callable[[Any], Any],
        drop_last: bool,
    ) -> None:
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, batch: Any) -> Any:
        """The next batch of as many items as `batch` is long, or the next item."""
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        items = []
        for _ in batch:
            try:
                items.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
        if not items or (self.drop_last and len(items) < len(batch)):
            raise StopIteration
        return self.collate_fn(items)


class MapFetcher:
    """Takes the items of a map-style data set at the sampler's indices."""

    def __init__(
        self,
        dataset: Any,
        auto_collation: bool,
        collate_fn: Callable[[Any], Any],
        drop_last: bool,
    ) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.subsets: list[Subset[Any]] = []
        self.tensors: tuple[Tensor, ...] | None = None
        if auto_collation and collate_fn is default_collate:
            while type(dataset) is Subset:
                self.subsets.append(dataset)
                dataset = dataset.dataset
            if type(dataset) is TensorDataset and all(map(_gathers_like_stack, dataset.tensors)):
                self.tensors = dataset.tensors

    def fetch(self, batch: Any) -> Any:
        """The batch at the list of indices `batch`, or the item at the index `batch`."""
        if self.tensors is not None:
            gathered = self._gather(self.tensors, batch)
            if gathered is not None:
                return gathered
        if not self.auto_collation:
            return self.collate_fn(self.dataset[batch])
        fetch_many = getattr(self.dataset, "__getitems__", None)
        if fetch_many:
            return self.collate_fn(fetch_many(batch))
        return self.collate_fn([self.dataset[index] for index in batch])

    def _gather(self, tensors: tuple[Tensor, ...], batch: Any) -> list[Tensor] | None:
        """The batch by indexing whole tensors; `None` for indices that are no plain ints."""
        for subset in self.subsets:
            indices = subset.indices
            batch = [indices[position] for position in batch]
        if set(map(type, batch)) != {int}:
            return None
        index = tensor(batch)
        return [source[index] for source in tensors]


def _gathers_like_stack(source: Tensor) -> bool:
    # A subclass, a graph or unusual strides would show in the result.
    return (
        type(source) is Tensor
        and source.layout == strided
        and not source.requires_grad
        and source.is_contiguous()
    )
