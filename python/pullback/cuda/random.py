"""Random numbers of CUDA devices: simulated ones draw from the generator of main memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .. import random as _random

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def _check(device: Any) -> None:
    from . import _number_of, get_device_name

    get_device_name(_number_of(device))


def get_rng_state(device: Any = "cuda") -> Tensor:
    """The state of a device's generator.

    Raises:
        RuntimeError: if there is no such device.
    """
    _check(device)
    return _random.get_rng_state()


def get_rng_state_all() -> list[Tensor]:
    """The states of the generators of all devices."""
    from . import device_count

    return [get_rng_state(number) for number in range(device_count())]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Gives a device's generator a state; without any device, nothing is done.

    Raises:
        RuntimeError: if there are devices, and not this one.
    """
    from . import is_available

    if is_available():
        _check(device)
        _random.set_rng_state(new_state)


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Sets the states of the generators of all devices.

    Raises:
        RuntimeError: for more states than there are devices, if there are any.
    """
    for number, state in enumerate(new_states):
        set_rng_state(state, number)


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator, which for a simulated one is that of main memory."""
    from . import is_available

    if is_available():
        _random.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all devices; simulated ones have that of main memory."""
    manual_seed(seed)


def seed() -> None:
    """Seeds the current device's generator by chance: see :func:`manual_seed`."""
    from . import is_available

    if is_available():
        _random.seed()


def seed_all() -> None:
    """Seeds the generators of all devices by chance: see :func:`manual_seed_all`."""
    seed()


def initial_seed() -> int:
    """The seed of the current device's generator.

    Raises:
        RuntimeError: without any device.
    """
    _check("cuda")
    return _random.initial_seed()
