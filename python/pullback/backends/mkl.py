"""Whether MKL is used: no."""

from __future__ import annotations

from typing import Any

from .. import _absent
from ._switch import guard

__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "is_available", "verbose"]

VERBOSE_OFF = 0
VERBOSE_ON = 1


def is_available() -> bool:
    """Whether this build uses MKL."""
    return False


class verbose:
    """A context in which the library tells of its work; it has none.

    Args:
        enable: ``VERBOSE_ON`` or ``VERBOSE_OFF``.
    """

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> verbose:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        pass


guard(globals())
_absent.announce(globals())
