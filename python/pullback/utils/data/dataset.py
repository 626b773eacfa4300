"""Data sets: maps from an index to an item, or streams of items, and their combinations.

A map-style set implements `__getitem__` (and `__len__` for the default samplers), a stream
`__iter__`. `__getitems__(indices)`, where a set has it, fetches many items in one call.
Neither class defines `__len__`, on purpose: a set of unknown length must not seem to have one.
"""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from ... import Generator, Tensor, randperm

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class Dataset(Generic[T_co]):
    """Base class of map-style data sets: `dataset[index]` gives an item."""

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """Base class of streams: iterating gives the items.

    In a worker process every worker has its own copy of the stream; `get_worker_info()` tells
    it which share of the items to give.
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Dataset[T_co]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


def _length(dataset: Any) -> int:
    return len(dataset)


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Item `i` is the tuple of `tensor[i]`; all tensors have the same first dimension.

    Raises `AssertionError` if the first dimensions differ.
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        sizes = [tensor.size(0) for tensor in tensors]
        if any(size != sizes[0] for size in sizes):
            raise AssertionError(f"Size mismatch between tensors: {sizes}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].size(0))


class StackDataset(Dataset[Any]):
    """Item `i` is the tuple (or, from keywords, the dict) of item `i` of each data set.

    Raises `ValueError` for none, for both forms at once, or for different lengths.
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Dataset[Any], **kwargs: Dataset[Any]) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like "
                "input/output, but both types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = args or kwargs
        lengths = [_length(part) for part in (args or kwargs.values())]
        if any(length != lengths[0] for length in lengths):
            raise ValueError(f"Size mismatch between datasets: {lengths}")
        self._length = lengths[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: part[index] for name, part in self.datasets.items()}
        return tuple(part[index] for part in self.datasets)

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        if isinstance(self.datasets, dict):
            columns = [_fetch(part, indices) for part in self.datasets.values()]
            return [
                dict(zip(self.datasets, row, strict=True)) for row in zip(*columns, strict=True)
            ]
        return list(zip(*(_fetch(part, indices) for part in self.datasets), strict=True))

    def __len__(self) -> int:
        return self._length


def _fetch(dataset: Any, indices: list[Any]) -> list[Any]:
    """The items at `indices`, in one call where the data set offers it."""
    fetch_many = getattr(dataset, "__getitems__", None)
    if not callable(fetch_many):
        return [dataset[index] for index in indices]
    items: list[Any] = fetch_many(indices)
    if len(items) != len(indices):
        raise ValueError(
            f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}"
        )
    return items


class ConcatDataset(Dataset[T_co]):
    """The items of one data set after those of another; negative indices count from the end.

    Raises `AssertionError` for no data sets or for a stream among them, `ValueError` for an
    index before the first item.
    """

    datasets: list[Any]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(part, IterableDataset) for part in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """The running sum of the lengths."""
        return list(itertools.accumulate(len(part) for part in sequence))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> T_co:
        if idx < 0:
            if -idx > len(self):
                raise ValueError(
                    "absolute value of index should not exceed dataset length: "
                    f"index {idx}, length {len(self)}"
                )
            idx += len(self)
        number = bisect.bisect_right(self.cumulative_sizes, idx)
        start = self.cumulative_sizes[number - 1] if number else 0
        item: T_co = self.datasets[number][idx - start]
        return item


class ChainDataset(IterableDataset[Any]):
    """The items of one stream after those of another.

    Raises `AssertionError`, when it gets there, for a part that is no `IterableDataset`.
    """

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = datasets

    def _streams(self) -> Iterator[Any]:
        for part in self.datasets:
            if not isinstance(part, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield part

    def __iter__(self) -> Iterator[Any]:
        for part in self._streams():
            yield from part

    def __len__(self) -> int:
        return sum(_length(part) for part in self._streams())


class Subset(Dataset[T_co]):
    """Item `i` is `dataset[indices[i]]`.

    Raises `NotImplementedError` for a subclass that overrides `__getitem__` but not
    `__getitems__`: the loader calls the latter and would pass the override by.
    """

    dataset: Any
    indices: Sequence[int]

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices
        cls = type(self)
        if cls.__getitem__ is not Subset.__getitem__ and cls.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{cls.__name__} overrides __getitem__ but not __getitems__. A loader fetches "
                "through __getitems__; define it too, for example as "
                "`return [self[i] for i in indices]`."
            )

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        inner = [self.indices[i] for i in indices]
        fetch_many = getattr(self.dataset, "__getitems__", None)
        if callable(fetch_many):
            items: list[T_co] = fetch_many(inner)
            return items
        return [self.dataset[i] for i in inner]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[T],
    lengths: Sequence[int | float],
    generator: Generator | None = None,
) -> list[Subset[T]]:
    """Cuts a data set at random into disjoint subsets of the given lengths.

    `lengths` are counts that sum to the length of the set, or fractions that sum to 1; what
    rounding down leaves over goes one by one to the first subsets. One permutation is drawn
    from `generator`, or from the default one. Raises `ValueError` for sums that do not match
    or a fraction outside [0, 1]; warns about an empty subset of a fraction.
    """
    size = _length(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        counts = _counts_of_fractions(size, lengths)
    else:
        counts = list(lengths)  # type: ignore[arg-type]
    if sum(counts) != size:
        raise ValueError(
            "Sum of input lengths does not equal the length of the input dataset! "
            f"({sum(counts)} against {size})"
        )
    order: list[int] = randperm(size, generator=generator).tolist()
    ends = itertools.accumulate(counts)
    return [
        Subset(dataset, order[end - count : end]) for end, count in zip(ends, counts, strict=True)
    ]


def _counts_of_fractions(size: int, fractions: Sequence[float]) -> list[int]:
    for index, fraction in enumerate(fractions):
        if fraction < 0 or fraction > 1:
            raise ValueError(f"Fraction at index {index} is not between 0 and 1: {fraction}")
    counts = [math.floor(size * fraction) for fraction in fractions]
    for extra in range(size - sum(counts)):
        counts[extra % len(counts)] += 1
    for index, count in enumerate(counts):
        if count == 0:
            warnings.warn(
                f"Length of split at index {index} is 0. This might result in an empty dataset.",
                stacklevel=3,
            )
    return counts
