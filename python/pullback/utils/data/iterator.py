"""One pass over a loader: what both kinds of iterator share, and the one of this process.

Invariant: making an iterator draws one number from the loader's generator, the base seed
of the workers, before the sampler draws anything; PyTorch does so with and without workers.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from .fetch import IterableFetcher, MapFetcher
from .sampler import draw_seed

if TYPE_CHECKING:
    from .dataloader import DataLoader


def has_accelerator() -> bool:
    """Whether there is a device whose copies profit from pinned memory."""
    cuda = getattr(sys.modules[__name__.partition(".")[0]], "cuda", None)
    return cuda is not None and bool(cuda.is_available())


def pin_memory(data: Any) -> Any:
    """The same structure with every tensor in pinned memory."""
    if isinstance(data, (str, bytes)):
        return data
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, Mapping):
        return type(data)({key: pin_memory(value) for key, value in data.items()})  # type: ignore[call-arg]
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(pin_memory, data))
    if isinstance(data, Sequence):
        return type(data)([pin_memory(value) for value in data])  # type: ignore[call-arg]
    return data


class LoaderIter:
    """Base of the iterators that `iter(loader)` gives."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._dataset: Any = loader.dataset
        self._is_iterable = loader._is_iterable
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._collate_fn = loader.collate_fn
        self._index_sampler: Any = loader._index_sampler
        self._num_workers = loader.num_workers
        if loader.pin_memory and not has_accelerator():
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device "
                "pinned memory won't be used.",
                stacklevel=4,
            )
        self._pin_memory = loader.pin_memory and has_accelerator()
        self._start_pass(loader)
        self._base_seed = draw_seed(loader.generator)

    def _start_pass(self, loader: DataLoader[Any]) -> None:
        self._sampler_iter: Iterator[Any] = iter(self._index_sampler)
        self._num_yielded = 0
        self._promised_length = loader._IterableDataset_len_called

    def __iter__(self) -> LoaderIter:
        return self

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")

    def __next__(self) -> Any:
        data = self._next_data()
        if self._pin_memory:
            data = pin_memory(data)
        self._num_yielded += 1
        if self._promised_length is not None and self._num_yielded > self._promised_length:
            self._warn_too_many()
        return data

    def _next_data(self) -> Any:
        raise NotImplementedError

    def _warn_too_many(self) -> None:
        text = (
            f"Length of IterableDataset {self._dataset} was reported to be "
            f"{self._promised_length} (when accessing len(dataloader)), but "
            f"{self._num_yielded} samples have been fetched."
        )
        if self._num_workers > 0:
            text += (
                " For multiprocessing data-loading, this is what happens if each worker gives all "
                "items instead of its share: see get_worker_info."
            )
        warnings.warn(text, stacklevel=3)


class SingleProcessIter(LoaderIter):
    """Fetches in this process, batch by batch, on demand."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if loader.timeout != 0:
            raise AssertionError(
                f"timeout needs worker processes, but got timeout={loader.timeout} with "
                "num_workers=0"
            )
        make = IterableFetcher if self._is_iterable else MapFetcher
        fetcher = make(self._dataset, self._auto_collation, self._collate_fn, self._drop_last)
        self._fetch = fetcher.fetch

    def _next_data(self) -> Any:
        return self._fetch(next(self._sampler_iter))
