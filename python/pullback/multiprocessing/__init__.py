"""Processes that share the memory of tensors: :mod:`multiprocessing` with tensors in it.

What a queue, a pipe or the arguments of a process carry of a tensor is its storage in shared
memory (:meth:`Tensor.share_memory_`), not a copy of its elements: a write of one process is seen by
all. Everything of :mod:`multiprocessing` is here under the same name; beside it are :func:`spawn`
and how memory is shared.
"""

from __future__ import annotations

import multiprocessing as _standard
import os as _os
from multiprocessing import *  # noqa: F403

from .. import _absent, _shared_memory
from . import reductions
from .spawn import (
    ENV_VAR_PARALLEL_START,
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    *_standard.__all__,
    "ENV_VAR_PARALLEL_START",
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]

reductions.init_reductions()


def get_all_sharing_strategies() -> set[str]:
    """The strategies that this system has: ``file_descriptor`` (Linux) and ``file_system``."""
    strategies = {_shared_memory.FILE_SYSTEM}
    if hasattr(_os, "memfd_create"):
        strategies.add(_shared_memory.FILE_DESCRIPTOR)
    return strategies


def get_sharing_strategy() -> str:
    """The strategy by which storages are moved to shared memory from now on."""
    return _shared_memory.strategy


def _thread_name_file() -> str:
    """The file in which the system keeps the name of the calling thread."""
    import threading

    return f"/proc/self/task/{threading.get_native_id()}/comm"


def _set_thread_name(name: str) -> None:
    """Names the calling thread, for tools that list threads; where there is no such name, nothing.

    Args:
        name: up to 15 bytes, the most that Linux keeps.
    """
    import contextlib

    with contextlib.suppress(FileNotFoundError), open(_thread_name_file(), "w") as file:
        file.write(name)


def _get_thread_name() -> str:
    """The name of the calling thread; empty where the system keeps none."""
    try:
        with open(_thread_name_file()) as file:
            return file.read().rstrip("\n")
    except FileNotFoundError:
        return ""


def set_sharing_strategy(new_strategy: str) -> None:
    """Chooses the strategy by which storages are moved to shared memory from now on.

    Args:
        new_strategy: ``file_descriptor``: each storage keeps a descriptor open, and nothing is
            left when processes crash. ``file_system``: each storage is a file in the system's
            memory, for programs that share more storages than a process may have descriptors; a
            process that is killed leaves files.

    Raises:
        AssertionError: for a strategy that the system lacks.
    """
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(
            f"strategy must be one of {sorted(get_all_sharing_strategies())}, got {new_strategy!r}"
        )
    _shared_memory.strategy = new_strategy


_absent.announce(globals())
