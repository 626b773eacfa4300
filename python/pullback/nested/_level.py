"""Whether this thread computes an op below autograd, where nothing gets a history."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from .. import _C
from ..autograd.grad_mode import no_grad

_STATE = threading.local()


def is_below() -> bool:
    """Whether it does."""
    return getattr(_STATE, "below", False)


@contextlib.contextmanager
def below() -> Iterator[None]:
    """Computes the op of a ``__torch_dispatch__``."""
    before = is_below()
    _STATE.below = True
    try:
        with _C.DisableTorchFunctionSubclass(), no_grad():
            yield
    finally:
        _STATE.below = before
