"""Starting processes that all run one function, and hearing of the first that fails."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any

__all__ = [
    "ENV_VAR_PARALLEL_START",
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]

# PyTorch's flag for starting processes from several threads; here they start one after the other.
ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"


class ProcessException(Exception):
    """A process that did not end well."""

    __slots__ = ["error_index", "error_pid"]

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = self.pid = pid

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process whose function raised; the text has its traceback."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg, error_index, error_pid)


class ProcessExitedException(ProcessException):
    """A process that ended with a code other than 0, or by a signal."""

    __slots__ = ["exit_code"]

    def __init__(
        self,
        msg: str,
        error_index: int,
        error_pid: int,
        exit_code: int,
        signal_name: str | None = None,
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(function: Callable[..., Any], number: int, args: Sequence[Any], errors: str) -> None:
    """The main function of a process. Its failure is written to the file ``errors``."""
    try:
        function(number, *args)
    except KeyboardInterrupt:
        # The parent was interrupted too.
        return
    except Exception:
        with open(errors, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


class ProcessContext:
    """Processes that were started together."""

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        self.processes = processes
        self.error_files = error_files
        self.sentinels = {process.sentinel: number for number, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The numbers of the processes."""
        return [int(process.pid) for process in self.processes]

    def _end_others(self, grace_period: float | None) -> None:
        if grace_period is not None and grace_period > 0:
            end = time.monotonic() + grace_period
            for process in self.processes:
                process.join(max(0, end - time.monotonic()))
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        end = time.monotonic() + (grace_period if grace_period is not None else 30)
        for process in self.processes:
            process.join(max(0, end - time.monotonic()))
        for process in self.processes:
            if process.is_alive():
                process.kill()
            process.join()

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits for the processes, or for the first that fails: the others are then ended.

        Args:
            timeout: seconds to wait at most.
            grace_period: seconds that the others have to end by themselves, and then to obey.

        Returns:
            Whether all have ended.

        Raises:
            ProcessRaisedException: if the function of one raised.
            ProcessExitedException: if one ended otherwise.
        """
        if not self.sentinels:
            return True
        ready = multiprocessing.connection.wait(list(self.sentinels), timeout=timeout)
        failed = None
        for sentinel in ready:
            number = self.sentinels.pop(sentinel)
            process = self.processes[number]
            process.join()
            if process.exitcode != 0:
                failed = number
                break
        if failed is None:
            if not self.sentinels:
                self._remove_files()
            return not self.sentinels
        self._end_others(grace_period)
        error = self._error(failed)
        self._remove_files()
        raise error

    def _error(self, number: int) -> ProcessException:
        process = self.processes[number]
        path = self.error_files[number]
        if os.path.exists(path) and os.path.getsize(path) > 0:
            with open(path, "rb") as file:
                text = pickle.load(file)  # (Written by the process that was started here.)
            message = f"\n\n-- Process {number} terminated with the following error:\n{text}"
            return ProcessRaisedException(message, number, process.pid)
        code = process.exitcode
        if code >= 0:
            return ProcessExitedException(
                f"process {number} terminated with exit code {code}", number, process.pid, code
            )
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"<Unknown signal {-code}>"
        return ProcessExitedException(
            f"process {number} terminated with signal {name}", number, process.pid, code, name
        )

    def _remove_files(self) -> None:
        for path in self.error_files:
            with contextlib.suppress(OSError):
                os.unlink(path)


class SpawnContext(ProcessContext):
    """Processes that were started by ``spawn``."""


def start_processes(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
    numa_options: Any = None,
) -> ProcessContext | None:
    """Starts processes that call ``fn(number, *args)``, numbered from 0 on.

    Args:
        fn: a function of a module's top level, unless the processes are forked.
        args: its further arguments; tensors are shared, not copied.
        nprocs: how many processes.
        join: whether to wait until all have ended.
        daemon: whether they end with this process.
        start_method: ``spawn``, ``fork`` or ``forkserver``.
        numa_options: must be None.

    Returns:
        The processes, if they are not waited for.

    Raises:
        ProcessRaisedException, ProcessExitedException: see :meth:`ProcessContext.join`.
        NotImplementedError: for ``numa_options``.
    """
    if numa_options is not None:
        raise NotImplementedError("start_processes(): numa_options are not supported")
    context: Any = multiprocessing.get_context(start_method)
    processes: list[Any] = []
    error_files: list[str] = []
    for number in range(nprocs):
        descriptor, path = tempfile.mkstemp(prefix="pytorch-errorfile-", suffix=".pickle")
        os.close(descriptor)
        error_files.append(path)
        process = context.Process(target=_run, args=(fn, number, args, path), daemon=daemon)
        process.start()
        processes.append(process)
    group = ProcessContext(processes, error_files)
    if not join:
        return group
    while not group.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Starts ``nprocs`` fresh processes that call ``fn(number, *args)``.

    As :func:`start_processes` with the start method ``spawn``; another one is used with a warning.
    """
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}): "
            "torch.multiprocessing.start_processes() takes others",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
