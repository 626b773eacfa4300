"""CUDA devices.

This build has no backend for them, so programs that ask run on the CPU; it can simulate some in
main memory, for tests (`simulate`).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _C, _absent, _lazy, _legacy, _stream, storage
from .memory import *  # noqa: F403 (its `__all__` is here too, as in PyTorch)
from .memory import __all__ as _MEMORY
from .memory import mem_get_info
from .random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .streams import Event, ExternalStream, Stream, StreamContext

if TYPE_CHECKING:
    from types import TracebackType

    from . import amp as amp
    from . import comm as comm
    from . import nvtx as nvtx

__all__ = [
    "Event",
    "ExternalStream",
    "Stream",
    "StreamContext",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_rng_state",
    "get_rng_state_all",
    "get_sync_debug_mode",
    "has_half",
    "has_magma",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "is_tf32_supported",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "set_sync_debug_mode",
    "simulate",
    "stream",
    "synchronize",
    *_MEMORY,
]

# One generator for each device that exists when the program begins.
default_generators: tuple[Any, ...] = ()
has_half = False
has_magma = False
_sync_debug_mode = 0

_lazy.submodules(globals(), "amp", "comm", "nvtx")

# The classes of tensors and storages can be named, and are an error when they are called.
for _name in _legacy.DTYPES:
    globals()[_name] = _legacy._made(_name, "torch.cuda", True)
globals().update(storage._CUDA_CLASSES)
del _name


def simulate(count: int) -> None:
    """Lets main memory and the CPU's kernels stand for CUDA devices from now on.

    For programs that use devices, to be run and tested where there are none. Tensors live on one
    device each, ops refuse tensors of several, and backward runs the nodes of each device in a
    thread of its own; nothing becomes faster. There is no way back, since tensors may live there:
    a smaller ``count`` than before changes nothing. Not there: sparse tensors, generators and
    storages of devices, streams.

    Args:
        count: how many, from 0 to 255. Their numbers begin with 0.

    Raises:
        OverflowError: for another number.
    """
    _C._cuda_simulate(count)


def is_available() -> bool:
    """Whether tensors can live on a CUDA device."""
    return device_count() > 0


def is_initialized() -> bool:
    """Whether CUDA's state was set up; simulated devices need none."""
    return is_available()


def device_count() -> int:
    """How many CUDA devices tensors can live on; all are simulated (`simulate`)."""
    return _C._cuda_device_count()


def current_device() -> int:
    """The number of this thread's device, which ``"cuda"`` means.

    Raises:
        RuntimeError: without any device.
    """
    _check_available()
    return _C._cuda_current_device()


def set_device(device: Any) -> None:
    """Makes a device this thread's.

    Args:
        device: a number, a device or its name. A negative number changes nothing.

    Raises:
        RuntimeError: if there is no such device.
    """
    number = _number_of(device)
    if number >= 0:
        _C._cuda_set_device(number)


class device:
    """A context in which a device is this thread's.

    Args:
        device: a number, a device or its name. A negative number changes nothing.
    """

    def __init__(self, device: Any) -> None:
        self.idx = _number_of(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            self.prev_idx = _C._cuda_set_device(self.idx)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.prev_idx >= 0:
            _C._cuda_set_device(self.prev_idx)
            self.prev_idx = -1


class device_of(device):
    """A context in which a tensor's device is this thread's; main memory changes nothing."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def get_device_name(device: Any = None) -> str:
    """What a device is called.

    Raises:
        RuntimeError: if there is no such device.
    """
    number = current_device() if device is None else _number_of(device)
    _check_available()
    if not 0 <= number < device_count():
        raise RuntimeError(f"CUDA error: invalid device ordinal: {number} of {device_count()}")
    return "a simulated device"


def synchronize(device: Any = None) -> None:
    """Waits for all work on a device; simulated ones have always done theirs.

    Raises:
        RuntimeError: if there is no such device.
    """
    get_device_name(device)


class DeviceProperties(NamedTuple):
    """What a device is.

    Args:
        name: what it is called.
        major: the first number of its capability; 0 for a simulated device, as the second.
        minor: the second number.
        total_memory: its bytes.
        multi_processor_count: how many processors work at the same time.
    """

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int


def get_device_properties(device: Any = None) -> DeviceProperties:
    """What a device is.

    Raises:
        RuntimeError: if there is no such device.
    """
    name = get_device_name(device)
    return DeviceProperties(name, 0, 0, mem_get_info(device)[1], os.cpu_count() or 1)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Which instructions of CUDA a device knows: a simulated one knows none, ``(0, 0)``.

    Raises:
        RuntimeError: if there is no such device.
    """
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether a device can read another's memory; all simulated ones live in main memory.

    Raises:
        RuntimeError: if there is no such device.
        AssertionError: for a number that no device has.
    """
    _check_available()
    for number in (_number_of(device), _number_of(peer_device)):
        if not 0 <= number < device_count():
            raise AssertionError(f"Invalid device id: {number}")
    return _number_of(device) != _number_of(peer_device)


def init() -> None:
    """Makes CUDA ready.

    Raises:
        RuntimeError: without any device.
    """
    _check_available()


def ipc_collect() -> None:
    """Frees memory that other processes had; without any device there is none.

    Raises:
        RuntimeError: without any device.
    """
    _check_available()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether devices compute in ``bfloat16``; simulated ones do what the CPU does.

    Args:
        including_emulation: whether it counts if they do it by other means.
    """
    return is_available() and including_emulation


def is_tf32_supported() -> bool:
    """Whether devices round the factors of products of ``float32``: never."""
    return False


def get_arch_list() -> list[str]:
    """The devices that this build has kernels for: none."""
    return []


def get_gencode_flags() -> str:
    """How kernels for devices were compiled; there are none."""
    return ""


def get_sync_debug_mode() -> int:
    """The setting of :func:`set_sync_debug_mode`, as a number.

    Raises:
        RuntimeError: without any device.
    """
    _check_available()
    return _sync_debug_mode


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Keeps what is to be done when a program waits for a device: simulated ones never lag.

    Args:
        debug_mode: ``"default"``, ``"warn"``, ``"error"``, or 0, 1, 2.

    Raises:
        RuntimeError: without any device, and for another word.
    """
    global _sync_debug_mode
    _check_available()
    words = ("default", "warn", "error")
    if debug_mode not in (*words, 0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode: {debug_mode!r}, expected one of {words}")
    _sync_debug_mode = words.index(debug_mode) if isinstance(debug_mode, str) else debug_mode


def current_stream(device: Any = None) -> Stream:
    """This thread's stream on a device.

    Raises:
        RuntimeError: if there is no such device.
    """
    stream = _stream.current(device)
    return stream if isinstance(stream, Stream) else Stream(device, stream_id=stream.stream_id)


def default_stream(device: Any = None) -> Stream:
    """The stream that a device has from the beginning.

    Raises:
        RuntimeError: if there is no such device.
    """
    stream = _stream.default(device)
    assert isinstance(stream, Stream)
    return stream


def set_stream(stream: Stream | None) -> None:
    """Makes a stream this thread's; None changes nothing."""
    if stream is not None:
        _stream.make_current(stream)


def stream(stream: Stream | None) -> StreamContext:
    """A context in which a stream is this thread's; None changes nothing."""
    return StreamContext(stream)


def _number_of(device: Any) -> int:
    """The number that a number, a device or its name means."""
    from .. import device as make_device

    if isinstance(device, int):
        return device
    named = make_device(device)
    if named.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {device}")
    return _C._cuda_current_device() if named.index is None else named.index


def _check_available() -> None:
    if not is_available():
        raise RuntimeError(
            "device 'cuda' is not available: this build of pullback has no cuda backend (only cpu)"
        )


_absent.announce(globals())
