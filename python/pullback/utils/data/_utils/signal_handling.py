"""Worker processes that died, under the names of PyTorch's module.

The loaders here see that a worker has died by the end of its pipe. A loader that speaks with its
workers by queues does not: it tells their numbers here, and asks, or has the interpreter ask when a
child ends.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Iterable
from typing import Any

__all__: list[str] = []

IS_WINDOWS = sys.platform == "win32"

# The process identifiers of workers, by the loader that watches them.
_WATCHED: dict[int, tuple[int, ...]] = {}
_SIGCHLD_handler_set = False


def _set_worker_pids(loader_id: int, pids: Iterable[int]) -> None:
    """Watches processes.

    Raises:
        ValueError: if the loader watches some already.
    """
    if loader_id in _WATCHED:
        raise ValueError(f"_set_worker_pids: loader {loader_id} has told its workers already")
    _WATCHED[loader_id] = tuple(pids)


def _remove_worker_pids(loader_id: int) -> None:
    """Ends the watch of a loader's processes.

    Raises:
        ValueError: if it watches none.
    """
    if loader_id not in _WATCHED:
        raise ValueError(f"_remove_worker_pids: loader {loader_id} has told no workers")
    del _WATCHED[loader_id]


def _error_if_any_worker_fails() -> None:
    """Looks at all processes that are watched, without waiting for one to end.

    Raises:
        RuntimeError: if one ended by a signal, or with a code other than 0.
    """
    if IS_WINDOWS:
        return
    for loader_id, pids in list(_WATCHED.items()):
        for pid in pids:
            failure = _failure_of(pid)
            if failure is not None:
                # (Told once: the processes are no longer watched.)
                _WATCHED[loader_id] = ()
                raise RuntimeError(f"DataLoader worker (pid {pid}) {failure}")


def _failure_of(pid: int) -> str | None:
    """How a process failed; None if it is running, has ended well, or is no child."""
    try:
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    if ended is None:
        return None
    if ended.si_code == os.CLD_EXITED:
        code = ended.si_status
        return f"exited unexpectedly with exit code {code}" if code else None
    return f"is killed by signal: {signal.strsignal(ended.si_status)}."


def _set_SIGCHLD_handler() -> None:
    """Has the interpreter look at the processes when a child ends; in the main thread alone."""
    global _SIGCHLD_handler_set
    in_main = threading.current_thread() is threading.main_thread()
    if IS_WINDOWS or _SIGCHLD_handler_set or not in_main:
        return
    previous = signal.getsignal(signal.SIGCHLD)

    def handle(number: int, frame: Any) -> None:
        _error_if_any_worker_fails()
        if callable(previous):
            previous(number, frame)

    signal.signal(signal.SIGCHLD, handle)
    _SIGCHLD_handler_set = True


def _set_worker_signal_handlers() -> None:
    """Has a worker print where it was when it dies of a fault."""
    if not faulthandler.is_enabled():
        faulthandler.enable()
