"""The default generator: seeds and states. The streams are PyTorch's, number by number."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from . import _C, _absent

if TYPE_CHECKING:
    from ._tensor import Tensor

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "thread_safe_generator",
]

default_generator = _C.default_generator


def manual_seed(seed: int) -> _C.Generator:
    """Starts the default generator's stream at ``seed`` (64 bits, signed or not)."""
    return _C.manual_seed(seed)


def seed() -> int:
    """Starts a stream with an unpredictable seed, and returns the seed."""
    return _C.seed()


def thread_safe_generator() -> _C.Generator | None:
    """The generator of a worker that is a thread: None, since workers of loaders are processes.

    Functions take None for the default generator, of which every process has its own.
    """
    return None


def initial_seed() -> int:
    """The seed that the default generator was given last."""
    return _C.initial_seed()


def get_rng_state() -> Tensor:
    """The default generator's state, a tensor of bytes in PyTorch's layout."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Takes over a state that :func:`get_rng_state` gave.

    Raises:
        TypeError: if it is not a tensor of bytes.
        RuntimeError: if it is no such state.
    """
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(
    devices: Any = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str = "cuda",
) -> Iterator[None]:
    """Puts the default generator's state back at the end of the block.

    Args:
        devices: whose generators' states are put back, too. Devices have none of their own here.
        enabled: whether anything is.
        _caller: what errors of PyTorch call the function.
        _devices_kw: what they call ``devices``.
        device_type: the kind of device.
    """
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if state is not None:
            set_rng_state(state)


_absent.announce(globals())
