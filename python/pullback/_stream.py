"""Streams and events of devices: work on simulated devices is done when a call returns.

So a stream is always idle, and waiting costs nothing; events note the time. Without a device,
streams cannot be made, as in PyTorch.
"""

from __future__ import annotations

import itertools
import threading
import time
from typing import TYPE_CHECKING, Any

from . import _C

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

__all__ = ["Event", "Stream", "current", "make_current"]

_numbers = itertools.count(1)
# For each thread, the stream that is current on a device, where it is not the default one.
_current = threading.local()
_default: dict[int, Stream] = {}


def _device(device: Any) -> Any:
    """The device that is meant, with its number.

    Raises:
        RuntimeError: if there is no such device.
    """
    from . import cuda

    if device is None or isinstance(device, int):
        number = cuda.current_device() if device is None else device
    else:
        named = _C.device(device)
        if named.type != "cuda":
            raise RuntimeError(f"streams belong to accelerators, not to device {str(named)!r}")
        number = cuda.current_device() if named.index is None else named.index
    cuda.get_device_name(number)
    return _C.device("cuda", number)


class Stream:
    """A queue of work on a device, which is always empty here.

    Args:
        device: a device, its number or name; this thread's where there is none.
        priority: kept; every stream is served at once.

    Raises:
        RuntimeError: if there is no such device.
    """

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        self.device = _device(device)
        self.priority = priority
        self.stream_id = kwargs.get("stream_id", next(_numbers))
        self._outer: list[tuple[Stream, int]] = []

    @property
    def device_index(self) -> int:
        """The device's number."""
        index: int = self.device.index
        return index

    @property
    def device_type(self) -> str:
        """The device's type."""
        kind: str = self.device.type
        return kind

    def query(self) -> bool:
        """Whether all work is done: always."""
        return True

    def synchronize(self) -> None:
        """Waits for all work, which is done."""

    def wait_event(self, event: Event) -> None:
        """Lets later work wait for an event, which is past."""

    def wait_stream(self, stream: Stream) -> None:
        """Lets later work wait for another stream, which is empty."""

    def record_event(self, event: Event | None = None) -> Event:
        """Notes the time in an event, a new one unless one is given."""
        noted = self._new_event() if event is None else event
        noted.record(self)
        return noted

    def _new_event(self) -> Event:
        return Event(self.device)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return (self.device, self.stream_id) == (other.device, other.stream_id)

    def __hash__(self) -> int:
        return hash((self.device.type, self.device.index, self.stream_id))

    def __enter__(self) -> Self:
        from . import cuda

        self._outer.append((current(self.device), cuda.current_device()))
        make_current(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        from . import cuda

        stream, number = self._outer.pop()
        make_current(stream)
        cuda.set_device(number)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} device={self.device} id={self.stream_id}>"


def current(device: Any = None) -> Stream:
    """The stream of this thread on a device.

    Raises:
        RuntimeError: if there is no such device.
    """
    number = _device(device).index
    chosen: dict[int, Stream] = _current.__dict__.setdefault("streams", {})
    return chosen.get(number) or default(number)


def default(device: Any = None) -> Stream:
    """The stream that a device has from the beginning.

    Raises:
        RuntimeError: if there is no such device.
    """
    number = _device(device).index
    if number not in _default:
        from .cuda.streams import Stream as CudaStream

        _default[number] = CudaStream(number, stream_id=0)
    return _default[number]


def make_current(stream: Stream) -> None:
    """Makes a stream, and its device, those of this thread."""
    from . import cuda

    streams: dict[int, Stream] = _current.__dict__.setdefault("streams", {})
    streams[stream.device_index] = stream
    cuda.set_device(stream.device_index)


class Event:
    """A point in the work of a stream.

    Args:
        device: the device; any where there is none.
        enable_timing: whether :meth:`elapsed_time` is allowed.
        blocking: whether waiting would sleep; there is nothing to wait for.
        interprocess: whether other processes may wait.
    """

    def __init__(
        self,
        device: Any = None,
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        self.device = None if device is None else _C.device(device)
        self.enable_timing = enable_timing
        self._time: int | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Notes the time; all work before it is done.

        Raises:
            RuntimeError: without a stream, where there is no device.
        """
        self.device = (current() if stream is None else stream).device
        self._time = time.perf_counter_ns()

    def query(self) -> bool:
        """Whether all work before the event is done: always."""
        return True

    def synchronize(self) -> None:
        """Waits for all work before the event, which is done."""

    def wait(self, stream: Stream | None = None) -> None:
        """Lets a stream's later work wait for the event, which is past."""

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds between this and another event.

        Raises:
            ValueError: if one of them was made without ``enable_timing`` or not recorded.
        """
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._time is None or end_event._time is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end_event._time - self._time) / 1e6

    def __repr__(self) -> str:
        return f"<{type(self).__name__} device={self.device} recorded={self._time is not None}>"
