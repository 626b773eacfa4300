"""CUDA devices.

This build has no backend for them, so programs that ask run on the CPU; it can simulate some in
main memory, for tests (`simulate`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C, _absent, _lazy, _legacy, storage

if TYPE_CHECKING:
    from types import TracebackType

    from . import amp as amp
    from . import comm as comm

__all__ = [
    "current_device",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_device_name",
    "is_available",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "set_device",
    "simulate",
    "synchronize",
]

_lazy.submodules(globals(), "amp", "comm")

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


def empty_cache() -> None:
    """Gives cached device memory back; does nothing where there is none."""


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator; simulated devices draw from the one of main memory."""


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all devices; simulated devices draw from the one of main memory."""


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
