"""CUDA devices. This build has no backend for them, so programs that ask run on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _lazy, _legacy, storage

if TYPE_CHECKING:
    from . import amp as amp

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "is_available",
    "manual_seed",
    "manual_seed_all",
    "synchronize",
]

_lazy.submodules(globals(), "amp")

# The classes of tensors and storages can be named, and are an error when they are called.
for _name in _legacy.DTYPES:
    globals()[_name] = _legacy._made(_name, "torch.cuda", True)
globals().update(storage._CUDA_CLASSES)
del _name


def is_available() -> bool:
    """Whether tensors can live on a CUDA device."""
    return device_count() > 0


def device_count() -> int:
    """How many CUDA devices tensors can live on."""
    return 0


def current_device() -> int:
    """The number of the device in use.

    Raises:
        RuntimeError: without a CUDA backend.
    """
    raise _unavailable()


def synchronize(device: object = None) -> None:
    """Waits for all work on a device.

    Raises:
        RuntimeError: without a CUDA backend.
    """
    raise _unavailable()


def empty_cache() -> None:
    """Gives cached device memory back; does nothing where there is none."""


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator; does nothing where there is none."""


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all devices; does nothing where there are none."""


def _unavailable() -> RuntimeError:
    return RuntimeError(
        "device 'cuda' is not available: this build of pullback has no cuda backend (only cpu)"
    )
