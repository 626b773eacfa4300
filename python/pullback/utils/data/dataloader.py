"""The loader: a data set, an order and a way to make batches, as one iterable.

`DataLoader` only checks and keeps its options; the work is done by the iterators in
`iterator` and `multiprocess`. Invariant: what decides the batches (data set, samplers,
batch size) cannot be changed after construction.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ... import Generator
from .collate import default_collate, default_convert
from .dataset import Dataset, IterableDataset
from .info import get_worker_info
from .iterator import LoaderIter, SingleProcessIter
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

if TYPE_CHECKING:
    from .multiprocess import MultiProcessIter


class _DatasetKind:
    """How items are fetched: by key, or from an iterator."""

    Map = 0
    Iterable = 1


__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

T_co = TypeVar("T_co", covariant=True)

# By PyTorch's names.
_BaseDataLoaderIter = LoaderIter
_SingleProcessDataLoaderIter = SingleProcessIter

_FIXED = frozenset(
    ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
)


class _InfiniteConstantSampler(Sampler[None]):
    """`None` for ever: a stream says itself when it ends."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[T_co]):
    """Iterates over a data set in batches.

    - `batch_size` items are joined by `collate_fn` (by default `default_collate`); with
      `batch_size=None` items come one by one. `drop_last` leaves out a short last batch.
    - `shuffle` permutes the items at every pass; `sampler` or `batch_sampler` set the order.
    - `num_workers` processes prepare batches ahead, `prefetch_factor` each (default 2), kept
      alive between passes with `persistent_workers`. `worker_init_fn(worker_id)` runs in each
      first. Batches come in order unless `in_order=False`. `timeout` (seconds, 0 for none)
      limits the wait for a batch.
    - `generator` is the source of the permutation and of the workers' seeds.

    Raises `ValueError` for options that exclude each other. An exception in a worker is raised
    again here, with the worker's traceback in its text; a worker that dies is a `RuntimeError`.
    """

    __initialized = False

    def __init__(
        self,
        dataset: Dataset[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_worker_options(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.generator = generator
        self._is_iterable = isinstance(dataset, IterableDataset)
        if self._is_iterable:
            _check_stream_options(shuffle, sampler, batch_sampler)
        _check_batch_options(bool(shuffle), sampler, batch_sampler, batch_size, drop_last)
        if sampler is None:
            sampler = self._default_sampler(bool(shuffle))
        if batch_sampler is not None:
            batch_size = None
        elif batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler: Any = sampler
        self.batch_sampler: Any = batch_sampler
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn: Callable[[Any], Any] = collate_fn
        self.persistent_workers = persistent_workers
        # What len() last promised for a stream; passing it is worth a warning.
        self._IterableDataset_len_called: int | None = None
        self._iterator: MultiProcessIter | None = None
        self.__initialized = True
        self.check_worker_number_rationality()

    def _default_sampler(self, shuffle: bool) -> Sampler[Any]:
        if self._is_iterable:
            return _InfiniteConstantSampler()
        data: Any = self.dataset
        if shuffle:
            return RandomSampler(data, generator=self.generator)
        return SequentialSampler(data)

    @property
    def multiprocessing_context(self) -> Any:
        """The context that starts the workers; `None` for the system's default."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, value: Any) -> None:
        if value is not None:
            value = _checked_context(value, self.num_workers)
        self.__multiprocessing_context = value

    def __setattr__(self, attr: str, val: Any) -> None:
        if self.__initialized and attr in _FIXED:
            raise ValueError(
                f"{attr} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(attr, val)

    def __iter__(self) -> LoaderIter:
        if self.persistent_workers and self.num_workers > 0:
            if self._iterator is None or not self._iterator._shutdown.alive:
                self._iterator = self._multiprocess_iter()
            else:
                self._iterator._reset(self)
            return self._iterator
        return self._get_iterator()

    def _get_iterator(self) -> LoaderIter:
        if self.num_workers == 0:
            return SingleProcessIter(self)
        self.check_worker_number_rationality()
        return self._multiprocess_iter()

    def _multiprocess_iter(self) -> MultiProcessIter:
        # Imported late: multiprocessing is slow to import and most programs do without.
        from .multiprocess import MultiProcessIter

        return MultiProcessIter(self)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __len__(self) -> int:
        """The number of batches; of a stream, what its own `__len__` promises."""
        if not self._is_iterable:
            return len(self._index_sampler)
        data: Any = self.dataset
        length = self._IterableDataset_len_called = len(data)
        if self.batch_size is None:
            return length
        if self.drop_last:
            return length // self.batch_size
        return math.ceil(length / self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warns if there are more workers than processors to run them."""
        if not self.num_workers:
            return
        if hasattr(os, "sched_getaffinity"):
            limit: int | None = len(os.sched_getaffinity(0))
        else:
            limit = os.cpu_count()
        if limit is None or self.num_workers > limit:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our "
                f"suggested max number of worker in current system is {limit}, the processors: "
                "excessive worker creation might get DataLoader running slow or even freeze.",
                stacklevel=3,
            )


def _check_worker_options(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> None:
    if num_workers < 0:
        raise ValueError(
            f"num_workers option should be non-negative, but got {num_workers}; use "
            "num_workers=0 to disable multiprocessing."
        )
    if timeout < 0:
        raise ValueError(f"timeout option should be non-negative, but got {timeout}")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing. let num_workers "
            "> 0 to enable multiprocessing, otherwise set prefetch_factor to None (got "
            f"{prefetch_factor})."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError(
            f"prefetch_factor option should be non-negative, but got {prefetch_factor}"
        )
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_stream_options(shuffle: bool | None, sampler: Any, batch_sampler: Any) -> None:
    given = (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler))
    for name, value in given:
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got "
                f"{name}={value}"
            )


def _check_batch_options(
    shuffle: bool, sampler: Any, batch_sampler: Any, batch_size: int | None, drop_last: bool
) -> None:
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, "
                "and drop_last"
            )
    elif batch_size is None and drop_last:
        raise ValueError(
            "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
        )


def _checked_context(value: Any, num_workers: int) -> Any:
    import multiprocessing.context

    if num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > "
            f"0), but got num_workers={num_workers}"
        )
    if isinstance(value, str):
        methods = multiprocessing.get_all_start_methods()
        if value not in methods:
            raise ValueError(
                "multiprocessing_context option should specify a valid start method in "
                f"{methods!r}, but got multiprocessing_context={value!r}"
            )
        return multiprocessing.get_context(value)
    if not isinstance(value, multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string "
            f"specifying the start method, but got multiprocessing_context={value}"
        )
    return value


def __getattr__(name: str) -> Any:
    """The iterator over workers, by PyTorch's name: its module is loaded where there are some."""
    if name != "_MultiProcessingDataLoaderIter":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .multiprocess import MultiProcessIter

    return MultiProcessIter
