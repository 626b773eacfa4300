"""What runs in a worker process of a loader: take an index, fetch, send the batch back.

The worker speaks with the loader over one two-way pipe. It receives `Task`s, in order;
`Restart` begins another pass; `None`, or the end of the pipe, ends it. It sends pickled
`Result`s from a thread of its own, so that it can prepare the next batch while the loader
has not yet read the last one. Invariant: every task gets one
result, whatever goes wrong in user code.
"""

from __future__ import annotations

import contextlib
import pickle
import queue
import random
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from ... import manual_seed, set_num_threads
from ..._dense import ExceptionWrapper
from . import info
from .fetch import IterableFetcher, MapFetcher


class Restart(NamedTuple):
    """Begins pass number `epoch`."""

    epoch: int


class Task(NamedTuple):
    """Batch number `number` of pass `epoch`, to be fetched at `index`."""

    epoch: int
    number: int
    index: Any


class Result(NamedTuple):
    """The result of a task. `ended` is set if this worker's stream has no more items."""

    epoch: int
    number: int
    worker_id: int
    data: Any
    ended: bool = False


class WorkerSetup(NamedTuple):
    """The arguments of a worker's main function."""

    dataset: Any
    is_iterable: bool
    auto_collation: bool
    collate_fn: Callable[[Any], Any]
    drop_last: bool
    base_seed: int
    init_fn: Callable[[int], Any] | None
    worker_id: int
    num_workers: int

    def make_fetcher(self) -> IterableFetcher | MapFetcher:
        """A fetcher for one pass."""
        make = IterableFetcher if self.is_iterable else MapFetcher
        return make(self.dataset, self.auto_collation, self.collate_fn, self.drop_last)


class CaughtError(ExceptionWrapper):
    """An exception of a worker as text and type, to be raised again in the loader."""

    def __init__(self, error: BaseException, where: str) -> None:
        super().__init__((type(error), error, error.__traceback__), where)


def _pickled(result: Result, where: str) -> bytes:
    try:
        return pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        caught = CaughtError(error, where)
        if isinstance(result.data, CaughtError):
            # A class defined inside a function, for one: send its text under a known class.
            caught = result.data
            caught.exc_msg = (
                f"{caught.exc_type.__qualname__}, which cannot be sent: {caught.exc_msg}"
            )
            caught.exc_type = RuntimeError
        return pickle.dumps(result._replace(data=caught), pickle.HIGHEST_PROTOCOL)


def generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Four words to seed another generator with: no worker and no pass has those of another."""
    import numpy

    low, high = base_seed & 0xFFFFFFFF, base_seed >> 32
    mixed = numpy.random.SeedSequence([worker_id, low, high, 0])
    return [int(word) for word in mixed.generate_state(4)]


def _seed(setup: WorkerSetup) -> int:
    seed = setup.base_seed + setup.worker_id
    random.seed(seed)
    manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        # Mixed, so that numpy's twister does not repeat the stream of the one above.
        numpy.random.seed(generate_state(setup.base_seed, setup.worker_id))
    return seed


def _send_all(pipe: Connection, outbox: queue.SimpleQueue[bytes | None]) -> None:
    # A broken pipe means that the loader is gone; the main thread sees that too.
    with contextlib.suppress(OSError):
        while (message := outbox.get()) is not None:
            pipe.send_bytes(message)


def run_worker(setup: WorkerSetup, pipe: Connection, foreign: list[Connection]) -> None:
    """The main function of a worker process. `foreign` are inherited ends to close."""
    for end in foreign:
        end.close()
    # The threads of the parent's pool do not exist in a forked child.
    set_num_threads(1)
    seed = _seed(setup)
    info.worker_info = info.WorkerInfo(setup.worker_id, setup.num_workers, seed, setup.dataset)
    outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    sender = threading.Thread(target=_send_all, args=(pipe, outbox), daemon=True)
    sender.start()
    # The main process gets the interrupt as well and ends the workers.
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        _serve(setup, pipe, outbox)
        outbox.put(None)
        sender.join()


def _messages(pipe: Connection) -> Iterator[Restart | Task]:
    """The messages of the loader, less the tasks that a later message has made pointless."""
    waiting: deque[Restart | Task | None] = deque()
    while True:
        if not waiting:
            waiting.append(pipe.recv())
        while pipe.poll():
            waiting.append(pipe.recv())
        if None in waiting:
            return
        restart = max((i for i, m in enumerate(waiting) if isinstance(m, Restart)), default=0)
        for _ in range(restart):
            waiting.popleft()
        message = waiting.popleft()
        if message is not None:
            yield message


def _serve(setup: WorkerSetup, pipe: Connection, outbox: queue.SimpleQueue[bytes | None]) -> None:
    where = f"in DataLoader worker process {setup.worker_id}"
    fetcher: IterableFetcher | MapFetcher | None = None
    failure: CaughtError | None = None
    try:
        if setup.init_fn is not None:
            setup.init_fn(setup.worker_id)
    except Exception as error:
        failure = CaughtError(error, where)
    is_ended = False
    for message in _messages(pipe):
        if isinstance(message, Restart):
            fetcher, is_ended = None, False
            continue
        data: Any = failure
        try:
            if failure is None and not is_ended:
                if fetcher is None:
                    fetcher = setup.make_fetcher()
                data = fetcher.fetch(message.index)
        except StopIteration as error:
            is_ended = setup.is_iterable
            data = None if is_ended else CaughtError(error, where)
        except Exception as error:
            data = CaughtError(error, where)
        failure = None
        result = Result(message.epoch, message.number, setup.worker_id, data, is_ended)
        outbox.put(_pickled(result, where))
