"""What runs in a worker process, under the names of PyTorch's module.

The loaders here have a worker of their own (``utils/data/worker.py``), which speaks over a pipe.
``_worker_loop`` is for loaders that libraries wrote on queues: it takes ``(number, index)`` and
gives ``(number, data)``, where data may be the end of a stream or an exception.
"""

from __future__ import annotations

import os
import queue
import sys
from dataclasses import dataclass
from typing import Any

from .... import set_num_threads
from ...._dense import ExceptionWrapper
from .. import info
from ..info import WorkerInfo, get_worker_info
from ..worker import WorkerSetup, _seed
from ..worker import generate_state as _generate_state  # noqa: F401 (programs seed with it)
from . import signal_handling

__all__ = ["WorkerInfo", "get_worker_info"]

IS_WINDOWS = sys.platform == "win32"
# How many seconds a worker waits for an index before it checks that its loader is alive.
MP_STATUS_CHECK_INTERVAL = 5.0


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """A worker's stream has no more items."""

    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """Begins another pass; the worker answers with the same message."""

    seed: int | None = None


class ManagerWatchdog:
    """Lets a worker check that the process that started it is alive."""

    def __init__(self) -> None:
        self.manager_pid = os.getppid()
        self.manager_dead = False

    def is_alive(self) -> bool:
        """Whether the parent process is alive; once it is not, this stays false."""
        if not self.manager_dead:
            self.manager_dead = os.getppid() != self.manager_pid
        return not self.manager_dead


def _worker_loop(
    dataset_kind: int,
    dataset: Any,
    index_queue: Any,
    data_queue: Any,
    done_event: Any,
    auto_collation: bool,
    collate_fn: Any,
    drop_last: bool,
    base_seed: int,
    init_fn: Any,
    worker_id: int,
    num_workers: int,
    persistent_workers: bool,
    shared_seed: int | None,
) -> None:
    """The main function of a worker that speaks by queues.

    Args:
        dataset_kind: 0 for items by key, 1 for a stream.
        dataset: what is fetched from.
        index_queue: gives ``(number, index)``, ``_ResumeIteration`` or None, which ends the worker.
        data_queue: takes ``(number, data)``.
        done_event: set when the loader wants no more.
        auto_collation: whether an index is a list, whose items become a batch.
        collate_fn: makes the batch.
        drop_last: whether a batch that is too small is left out at the end of a stream.
        base_seed: the worker's random numbers are seeded with it and its number.
        init_fn: called with the worker's number, first of all.
        worker_id: the number.
        num_workers: how many workers there are.
        persistent_workers: whether further passes may follow, by ``_ResumeIteration``.
        shared_seed: for pipelines of PyTorch's datapipes, which are not here.
    """
    signal_handling._set_worker_signal_handlers()
    set_num_threads(1)
    setup = WorkerSetup(
        dataset,
        dataset_kind == 1,
        auto_collation,
        collate_fn,
        drop_last,
        base_seed,
        init_fn,
        worker_id,
        num_workers,
    )
    seed = _seed(setup)
    info.worker_info = info.WorkerInfo(worker_id, num_workers, seed, dataset)
    serving = _Serving(setup)
    watchdog = ManagerWatchdog()
    while watchdog.is_alive():
        try:
            message = index_queue.get(timeout=MP_STATUS_CHECK_INTERVAL)
        except queue.Empty:
            continue
        except KeyboardInterrupt:
            break
        if message is None:
            break
        if isinstance(message, _ResumeIteration):
            serving.begin()
            data_queue.put((message, None))
        elif not done_event.is_set() and not serving.is_ended:
            number, index = message
            data_queue.put((number, serving.fetch(index)))
    if done_event.is_set():
        data_queue.cancel_join_thread()
        data_queue.close()


class _Serving:
    """How a worker fetches items, one pass after the other."""

    def __init__(self, setup: WorkerSetup) -> None:
        self._setup = setup
        self._where = f"in DataLoader worker process {setup.worker_id}"
        self._failure: ExceptionWrapper | None = None
        self._fetcher: Any = None
        self.is_ended = False
        try:
            if setup.init_fn is not None:
                setup.init_fn(setup.worker_id)
            self._fetcher = setup.make_fetcher()
        except Exception:
            self._failure = ExceptionWrapper(where=self._where)

    def begin(self) -> None:
        """Begins another pass."""
        self.is_ended = False
        try:
            self._fetcher = self._setup.make_fetcher()
        except Exception:
            self._failure = ExceptionWrapper(where=self._where)

    def fetch(self, index: Any) -> Any:
        """The data of an index, the end of the stream, or an exception."""
        if self._failure is not None:
            return self._failure
        try:
            return self._fetcher.fetch(index)
        except StopIteration:
            if self._setup.is_iterable:
                self.is_ended = True
                return _IterableDatasetStopIteration(self._setup.worker_id)
            return ExceptionWrapper(where=self._where)
        except Exception:
            return ExceptionWrapper(where=self._where)
