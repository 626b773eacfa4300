"""One pass over a loader with worker processes: hands out indices, collects batches.

Each worker has a two-way pipe of its own, so a worker that dies is seen at once as the end
of its pipe and cannot hurt the others. At most `prefetch_factor` tasks per worker are under
way. Invariant: every task number has exactly one result; in order, number n is delivered
before n + 1.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import weakref
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, NoReturn

from .iterator import LoaderIter
from .worker import CaughtError, Restart, Result, Task, WorkerSetup, run_worker

if TYPE_CHECKING:
    from .dataloader import DataLoader

# How long a worker may take to finish its current task before it is terminated.
_PATIENCE_S = 5.0


class MultiProcessIter(LoaderIter):
    """Fetches in worker processes, ahead of demand."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        assert loader.prefetch_factor is not None
        self._max_tasks = loader.prefetch_factor * loader.num_workers
        self._persistent = loader.persistent_workers
        self._in_order = loader.in_order
        self._timeout = loader.timeout
        self._epoch = -1
        self._workers: list[Any] = []
        self._pipes: list[Connection] = []
        self._shutdown = weakref.finalize(
            self, _end_workers, self._workers, self._pipes, os.getpid()
        )
        try:
            self._start_workers(loader)
        except BaseException:
            self._shutdown()
            raise
        self._prime()

    def _start_workers(self, loader: DataLoader[Any]) -> None:
        context: Any = loader.multiprocessing_context or multiprocessing.get_context()
        is_fork = context.get_start_method() == "fork"
        for worker_id in range(self._num_workers):
            here, there = context.Pipe()
            self._pipes.append(here)
            setup = WorkerSetup(
                dataset=self._dataset,
                is_iterable=self._is_iterable,
                auto_collation=self._auto_collation,
                collate_fn=self._collate_fn,
                drop_last=self._drop_last,
                base_seed=self._base_seed,
                init_fn=loader.worker_init_fn,
                worker_id=worker_id,
                num_workers=self._num_workers,
            )
            # A forked child inherits our ends; while it holds one, no pipe ends with us.
            foreign = list(self._pipes) if is_fork else []
            worker = context.Process(target=run_worker, args=(setup, there, foreign))
            worker.daemon = True
            worker.start()
            there.close()
            self._workers.append(worker)

    def _prime(self) -> None:
        """Begins a pass: forgets the last one and hands out the first tasks."""
        self._epoch += 1
        self._sent = self._next_number = 0
        self._ready: dict[int, Result] = {}
        self._tasks_of = [0] * self._num_workers
        self._is_active = [True] * self._num_workers
        self._last_worker = -1
        for _ in range(self._max_tasks):
            self._put_task()

    def _reset(self, loader: DataLoader[Any]) -> None:
        """Begins another pass with the same workers."""
        self._start_pass(loader)
        for worker_id in range(self._num_workers):
            self._send(worker_id, Restart(self._epoch + 1))
        self._prime()

    def _put_task(self) -> None:
        try:
            index = next(self._sampler_iter)
        except StopIteration:
            return
        worker_id = self._pick_worker()
        if worker_id is None:
            return
        self._send(worker_id, Task(self._epoch, self._sent, index))
        self._tasks_of[worker_id] += 1
        self._sent += 1

    def _pick_worker(self) -> int | None:
        count = self._num_workers
        turns = [(self._last_worker + turn) % count for turn in range(1, count + 1)]
        active = [worker_id for worker_id in turns if self._is_active[worker_id]]
        if not active:
            return None
        chosen = active[0] if self._in_order else min(active, key=self._tasks_of.__getitem__)
        self._last_worker = chosen
        return chosen

    def _send(self, worker_id: int, message: Any) -> None:
        try:
            self._pipes[worker_id].send(message)
        except OSError:
            self._fail_for_death(worker_id)

    def _next_data(self) -> Any:
        while True:
            while self._ready and (not self._in_order or self._next_number in self._ready):
                number = self._next_number if self._in_order else next(iter(self._ready))
                result = self._ready.pop(number)
                self._next_number += 1
                if result.ended:
                    continue
                self._put_task()
                if isinstance(result.data, CaughtError):
                    result.data.reraise()
                return result.data
            if not any(self._tasks_of):
                if not self._persistent:
                    self._shutdown()
                raise StopIteration
            self._receive()

    def _receive(self) -> None:
        """Waits for the workers and receives their results."""
        if not self._shutdown.alive:
            raise RuntimeError("DataLoader workers have been shut down after an error")
        ends = wait(self._pipes, self._timeout or None)
        if not ends:
            # A worker that is late now may be stuck for good: do not ask it to finish.
            for worker in self._workers:
                worker.terminate()
            self._shutdown()
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        for end in ends:
            worker_id = self._pipes.index(end)  # type: ignore[arg-type]
            try:
                message = self._pipes[worker_id].recv_bytes()
            except (EOFError, OSError):
                self._fail_for_death(worker_id)
            result: Result = pickle.loads(message)
            if result.epoch != self._epoch:
                # Requested in a pass that was given up early.
                continue
            self._tasks_of[worker_id] -= 1
            self._ready[result.number] = result
            if result.ended:
                self._is_active[worker_id] = False
                self._put_task()

    def _fail_for_death(self, worker_id: int) -> NoReturn:
        worker = self._workers[worker_id]
        worker.join(_PATIENCE_S)
        pid, code = worker.pid, worker.exitcode
        self._shutdown()
        raise RuntimeError(
            f"DataLoader worker (pid(s) {pid}) exited unexpectedly with exit code {code}"
            + (f" (killed by signal {-code})" if code is not None and code < 0 else "")
        )


def _end_workers(workers: list[Any], pipes: list[Connection], owner: int) -> None:
    # A forked child holds a copy of the iterator, and must not end its siblings with it.
    if os.getpid() != owner:
        return
    for pipe in pipes:
        with contextlib.suppress(OSError):
            pipe.send(None)
        pipe.close()
    for worker in workers:
        worker.join(_PATIENCE_S)
        if worker.is_alive():
            worker.terminate()
            worker.join(_PATIENCE_S)
