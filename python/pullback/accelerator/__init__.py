"""The accelerator of this machine, whatever it is: simulated CUDA devices, or none.

Without one, predicates and counts say so, and what needs one is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C, _absent, _placeholder, _stream, cuda
from .memory import (
    empty_cache,
    empty_host_cache,
    get_memory_info,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
)

if TYPE_CHECKING:
    from types import TracebackType

__all__ = [
    "Graph",
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "empty_host_cache",
    "get_device_capability",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]


def is_available() -> bool:
    """Whether tensors can live on an accelerator."""
    return cuda.is_available()


def device_count() -> int:
    """How many devices the accelerator has."""
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> Any:
    """The accelerator as a device without a number; None where there is none.

    Args:
        check_available: whether it must be usable, which it is whenever it is there.
    """
    return _C.device("cuda") if is_available() else None


def _number(device: Any) -> int:
    """The number that a device, its name or its number means; the current one for None.

    Raises:
        RuntimeError: without accelerator.
        ValueError: for a device of another type.
    """
    _check()
    if device is None:
        return cuda.current_device()
    if isinstance(device, int):
        return device
    named = _C.device(device)
    if named.type != "cuda":
        raise ValueError(
            f"{named.type} doesn't match the current accelerator {current_accelerator()}."
        )
    return cuda.current_device() if named.index is None else int(named.index)


def _check() -> None:
    if not is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")


def current_device_index() -> int:
    """The number of this thread's device.

    Raises:
        RuntimeError: without accelerator.
    """
    return _number(None)


current_device_idx = current_device_index


def set_device_index(device: Any, /) -> None:
    """Makes a device this thread's; a negative number changes nothing.

    Raises:
        RuntimeError: without accelerator, or such a device.
    """
    cuda.set_device(_number(device))


set_device_idx = set_device_index


class device_index:
    """A context in which the device with a number is this thread's; None changes nothing.

    Args:
        device: a number, or None.
    """

    def __init__(self, device: int | None, /) -> None:
        self.idx = device
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx is not None:
            self.prev_idx = current_device_index()
            set_device_index(self.idx)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.idx is not None:
            set_device_index(self.prev_idx)


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """What a device can do: the dtypes that it computes in, which are those of the CPU.

    Raises:
        RuntimeError: without accelerator, or such a device.
    """
    cuda.get_device_name(_number(device))
    found = {value for value in vars(_C).values() if isinstance(value, _C.dtype)}
    return {"supported_dtypes": found}


def current_stream(device: Any = None, /) -> _stream.Stream:
    """This thread's stream on a device.

    Raises:
        RuntimeError: without accelerator, or such a device.
    """
    return _stream.current(_number(device))


def set_stream(stream: _stream.Stream) -> None:
    """Makes a stream, and its device, those of this thread.

    Raises:
        RuntimeError: without accelerator.
    """
    _check()
    _stream.make_current(stream)


def synchronize(device: Any = None, /) -> None:
    """Waits for all work on a device; simulated ones have always done theirs.

    Raises:
        RuntimeError: without accelerator, or such a device.
    """
    cuda.synchronize(_number(device))


Graph: Any = _placeholder.made("torch.accelerator.Graph", "class")
_absent.announce(globals())
