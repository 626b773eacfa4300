"""The CPU under the names of a device's module: one device, which never lags behind."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .. import _absent, _lazy

if TYPE_CHECKING:
    from . import amp as amp

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "device_count",
    "get_capabilities",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]

_lazy.submodules(globals(), "amp")


# The names of instruction sets here, and in the processor information of Linux.
_FLAGS = {
    "sse2": "sse2",
    "sse3": "pni",
    "sse4_1": "sse4_1",
    "sse4_2": "sse4_2",
    "avx": "avx",
    "avx2": "avx2",
    "fma3": "fma",
    "f16c": "f16c",
    "bmi": "bmi1",
    "bmi2": "bmi2",
    "aes": "aes",
    "sha": "sha_ni",
    "avx512_f": "avx512f",
    "avx512_bw": "avx512bw",
    "avx512_dq": "avx512dq",
    "avx512_vl": "avx512vl",
    "avx512_vnni": "avx512_vnni",
    "avx512_bf16": "avx512_bf16",
    "avx512_fp16": "avx512_fp16",
    "amx_bf16": "amx_bf16",
    "amx_tile": "amx_tile",
    "amx_int8": "amx_int8",
    "neon": "asimd",
    "sve": "sve",
    "sve2": "sve2",
}


def is_available() -> bool:
    """True: there is a CPU."""
    return True


def is_initialized() -> bool:
    """True: nothing needs to be made ready."""
    return True


def device_count() -> int:
    """One."""
    return 1


def current_device() -> str:
    """The device that work is done on, ``"cpu"``."""
    return "cpu"


def set_device(device: Any) -> None:
    """Does nothing: there is no other."""


def synchronize(device: Any = None) -> None:
    """Does nothing: no work is ever outstanding."""


class Stream:
    """Stands for the one queue of work there is; work is done when a call returns.

    Args:
        priority: kept.
    """

    def __init__(self, priority: int = -1) -> None:
        self.priority = priority

    def wait_stream(self, stream: Any) -> None:
        """Lets later work wait for another stream, which is empty."""

    def record_event(self) -> Event:
        """An event, which is past."""
        return Event()

    def wait_event(self, event: Any) -> None:
        """Lets later work wait for an event, which is past."""


class Event:
    """A point in the work of the CPU, which is past as soon as it is there."""

    def query(self) -> bool:
        """Whether all work before the event is done: always."""
        return True

    def record(self, stream: Any = None) -> None:
        """Records the event."""

    def synchronize(self) -> None:
        """Waits for all work before the event, which is done."""

    def wait(self, stream: Any = None) -> None:
        """Lets a stream's later work wait for the event."""


_streams = [Stream()]


def current_stream(device: Any = None) -> Stream:
    """The stream that was made current last."""
    return _streams[-1]


class StreamContext:
    """A context in which a stream is the current one; None changes nothing.

    Args:
        stream: a stream, or None.
    """

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            _streams.append(self.stream)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self.stream is not None:
            _streams.pop()


def stream(stream: Stream | None) -> StreamContext:
    """A context in which a stream is the current one; None changes nothing."""
    return StreamContext(stream)


def get_capabilities() -> Mapping[str, Any]:
    """Which instruction sets the processor has, by their names in small letters.

    They are what the system tells of it (Linux); elsewhere only the architecture is known.
    """
    known: dict[str, Any] = {"architecture": platform.machine().lower()}
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    flags = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    has = set(flags.partition(":")[2].split())
    known |= {ours: theirs in has for ours, theirs in _FLAGS.items()}
    return MappingProxyType(known)


_absent.announce(globals())
