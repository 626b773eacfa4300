"""Memory of the accelerator: see `torch.cuda.memory`."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from .. import cuda

__all__ = [
    "empty_cache",
    "empty_host_cache",
    "get_memory_info",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
]


def memory_allocated(device_index: Any = None, /) -> int:
    """How many bytes of a device tensors use: 0, for simulated devices have no memory of their own.

    Raises:
        RuntimeError: if there are devices, and not this one.
    """
    return cuda.memory_allocated(device_index)


max_memory_allocated = max_memory_reserved = memory_reserved = memory_allocated


def memory_stats(device_index: Any = None, /) -> OrderedDict[str, Any]:
    """Statistics of the allocator of a device, which has none: empty.

    Raises:
        RuntimeError: if there are devices, and not this one.
    """
    return cuda.memory_stats(device_index)


def reset_peak_memory_stats(device_index: Any = None, /) -> None:
    """Begins anew to look for the peak of a device's memory.

    Raises:
        RuntimeError: if there are devices, and not this one.
    """
    cuda.reset_peak_memory_stats(device_index)


reset_accumulated_memory_stats = reset_peak_memory_stats


def get_memory_info(device_index: Any = None, /) -> tuple[int, int]:
    """Bytes that are free on a device, and that it has.

    Raises:
        RuntimeError: if there is no such device.
    """
    return cuda.mem_get_info(device_index)


def empty_cache() -> None:
    """Gives cached device memory back; there is none."""


def empty_host_cache() -> None:
    """Gives cached pinned memory back; there is none."""
