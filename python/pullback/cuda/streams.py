"""Streams and events of CUDA devices, see `_stream.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _placeholder, _stream

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Event", "ExternalStream", "Stream", "StreamContext"]


class Stream(_stream.Stream):
    """A queue of work on a CUDA device: :class:`torch.Stream`."""

    def _new_event(self) -> Event:
        return Event()


class Event(_stream.Event):
    """A point in the work of a stream.

    Args:
        enable_timing: whether :meth:`elapsed_time` is allowed.
        blocking: whether waiting would sleep; there is nothing to wait for.
        interprocess: whether other processes may wait.
        external: whether a graph would take it for one of its own.
    """

    def __init__(
        self,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> None:
        super().__init__(enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)


class StreamContext:
    """A context in which a stream is this thread's; None changes nothing.

    Args:
        stream: a stream, or None.
    """

    def __init__(self, stream: _stream.Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.stream is not None:
            self.stream.__exit__(kind, error, trace)


ExternalStream: Any = _placeholder.made("torch.cuda.ExternalStream", "class")
