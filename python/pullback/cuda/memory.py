"""Memory of CUDA devices. Simulated ones have none of their own: what is used is none."""

from __future__ import annotations

import contextlib
import os
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .. import _absent

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


__all__ = [
    "caching_allocator_disabled",
    "caching_allocator_enable",
    "empty_cache",
    "get_allocator_backend",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "list_gpu_processes",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
]


def _check(device: Any) -> None:
    """Checks that there is such a device, if there is any."""
    from . import get_device_name, is_available

    if is_available():
        get_device_name(device)


def memory_allocated(device: Any = None) -> int:
    """How many bytes of a device tensors use: 0.

    Raises:
        RuntimeError: if there are devices, and not this one.
    """
    _check(device)
    return 0


memory_reserved = max_memory_allocated = max_memory_reserved = memory_allocated
memory_cached = max_memory_cached = memory_allocated


def memory_stats(device: Any = None) -> OrderedDict[str, Any]:
    """Statistics of the allocator of a device, which has none: empty.

    Raises:
        RuntimeError: if there are devices, and not this one.
    """
    _check(device)
    return OrderedDict()


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """Statistics of the allocator of a device, which has none: empty.

    Raises:
        RuntimeError: if there are devices, and not this one.
    """
    return dict(memory_stats(device))


def host_memory_stats() -> OrderedDict[str, Any]:
    """Statistics of pinned memory, of which there is none: empty."""
    return OrderedDict()


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """Statistics of pinned memory, of which there is none: empty."""
    return {}


def memory_snapshot(mempool_id: Any = None, include_traces: bool = True) -> list[Any]:
    """The blocks of the allocators of devices, which have none: empty.

    Args:
        mempool_id: of which pool; there is none.
        include_traces: whether with what happened to them; nothing did.
    """
    return []


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The statistics as a text for people.

    Args:
        device: a device, its number or name.
        abbreviated: whether the text is to be short.

    Raises:
        RuntimeError: if there are devices, and not this one.
    """
    used = memory_allocated(device)
    return f"no allocator of CUDA devices: {used} bytes are in use" + ("" if abbreviated else "\n")


def list_gpu_processes(device: Any = None) -> str:
    """The processes that use a device, as a text.

    Raises:
        RuntimeError: if there is no such device.
    """
    from . import get_device_name

    return f"{get_device_name(device)}: this process alone"


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes that are free on a device, and that it has: those of main memory, where they live.

    Raises:
        RuntimeError: if there is no such device.
    """
    from . import get_device_name

    get_device_name(device)
    if not hasattr(os, "sysconf") or "SC_AVPHYS_PAGES" not in os.sysconf_names:
        raise RuntimeError("this system does not say how much of its memory is free")
    page = os.sysconf("SC_PAGE_SIZE")
    return page * os.sysconf("SC_AVPHYS_PAGES"), page * os.sysconf("SC_PHYS_PAGES")


def get_allocator_backend() -> str:
    """Which allocator devices use, by PyTorch's name of its own."""
    return "native"


def caching_allocator_enable(value: bool = True) -> None:
    """Says whether the allocator of devices keeps what is freed; there is none."""


@contextlib.contextmanager
def caching_allocator_disabled() -> Iterator[None]:
    """A context in which the allocator of devices keeps nothing; there is none."""
    yield


def empty_cache() -> None:
    """Gives cached device memory back; there is none."""


def reset_peak_memory_stats(device: Any = None) -> None:
    """Begins anew to look for the peak of a device's memory.

    Raises:
        RuntimeError: if there are devices, and not this one.
    """
    _check(device)


reset_accumulated_memory_stats = reset_peak_memory_stats
reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def reset_peak_host_memory_stats() -> None:
    """Begins anew to look for the peak of pinned memory, of which there is none."""


def reset_accumulated_host_memory_stats() -> None:
    """Begins anew to count pinned memory, of which there is none."""


_absent.announce(globals())
