"""Workers by the names of PyTorch's private modules: loaders of libraries are built on them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from typing import Any

import pytest

import pullback as torch
from pullback.utils.data import Dataset, IterableDataset, default_collate, get_worker_info
from pullback.utils.data import _utils as parts
from pullback.utils.data._utils import signal_handling, worker


class Squares(Dataset[Any]):
    """The square of an index, and the worker's number; the index 3 fails."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> Any:
        if index == 3:
            raise ValueError("no three")
        info = get_worker_info()
        assert info is not None
        return torch.tensor(index**2), info.id


class Stream(IterableDataset[Any]):
    """Two items."""

    def __iter__(self) -> Any:
        return iter([1, 2])


def run(kind: int, dataset: Any, messages: list[Any], init_fn: Any = None) -> list[Any]:
    """What a worker process answers to messages."""
    context = multiprocessing.get_context("fork")
    index_queue, data_queue, done = context.Queue(), context.Queue(), context.Event()
    args = (kind, dataset, index_queue, data_queue, done, True, default_collate, False, 7, init_fn)
    process = context.Process(target=worker._worker_loop, args=(*args, 1, 2, True, None))
    process.start()
    answers = []
    for message in messages:
        index_queue.put(message)
        answers.append(data_queue.get(timeout=60))
    index_queue.put(None)
    process.join(60)
    assert process.exitcode == 0
    return answers


def test_a_worker_on_queues_fetches_batches_and_sends_errors() -> None:
    first, failed, last = run(0, Squares(), [(0, [0, 2]), (1, [3]), (2, [4])])
    assert first[0] == 0
    assert first[1][0].tolist() == [0, 4]
    assert first[1][1].tolist() == [1, 1]
    with pytest.raises(ValueError, match=r"in DataLoader worker process 1(.|\n)*no three"):
        failed[1].reraise()
    assert last[1][0].tolist() == [16]


def test_a_stream_ends_and_begins_again() -> None:
    resume = worker._ResumeIteration(3)
    answers = run(1, Stream(), [(0, [0, 1]), (1, [2, 3]), resume, (2, [0])])
    assert answers[0][1].tolist() == [1, 2]
    assert answers[1] == (1, worker._IterableDatasetStopIteration(1))
    assert answers[2] == (resume, None)
    assert answers[3][1].tolist() == [1]


def fail(number: int) -> None:
    raise KeyError(number)


def test_a_failure_to_begin_is_the_answer_to_every_index() -> None:
    for _, answer in run(0, Squares(), [(0, [0]), (1, [0])], fail):
        with pytest.raises(KeyError, match="worker process 1"):
            answer.reraise()


def test_a_watchdog_sees_whether_the_parent_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    watchdog = worker.ManagerWatchdog()
    assert watchdog.is_alive()
    monkeypatch.setattr(os, "getppid", lambda: watchdog.manager_pid + 1)
    assert not watchdog.is_alive()
    monkeypatch.undo()
    assert not watchdog.is_alive()


@pytest.mark.skipif(signal_handling.IS_WINDOWS, reason="children are not asked there")
@pytest.mark.parametrize(
    ("end", "words"),
    [
        (lambda: os._exit(3), "exited unexpectedly with exit code 3"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "is killed by signal: Killed"),
    ],
)
def test_a_dead_worker_is_an_error_of_who_asks(end: Any, words: str) -> None:
    signal_handling._error_if_any_worker_fails()
    process = multiprocessing.get_context("fork").Process(target=end)
    process.start()
    assert process.pid is not None
    signal_handling._set_worker_pids(11, [process.pid])
    with pytest.raises(ValueError, match="loader 11 has told its workers already"):
        signal_handling._set_worker_pids(11, [])
    try:
        with pytest.raises(RuntimeError, match=rf"\(pid {process.pid}\) {words}"):  # noqa: PT012
            for _ in range(600):
                signal_handling._error_if_any_worker_fails()
                time.sleep(0.05)
        signal_handling._error_if_any_worker_fails()
    finally:
        signal_handling._remove_worker_pids(11)
        process.join()
    with pytest.raises(ValueError, match="loader 11 has told no workers"):
        signal_handling._remove_worker_pids(11)


def test_a_worker_that_ends_well_is_no_error() -> None:
    process = multiprocessing.get_context("fork").Process(target=int)
    process.start()
    assert process.pid is not None
    signal_handling._set_worker_pids(12, [process.pid])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    signal_handling._error_if_any_worker_fails()
    process.join()
    signal_handling._error_if_any_worker_fails()
    signal_handling._remove_worker_pids(12)


def test_what_the_loader_knows_of_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parts.HAS_NUMPY
    monkeypatch.setattr(parts, "python_exit_status", False)
    parts._set_python_exit_flag()
    assert parts.python_exit_status is True
