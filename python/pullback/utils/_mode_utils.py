"""Small questions about modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from .. import _C

T = TypeVar("T")
no_dispatch = _C._DisableTorchDispatch


def all_same_mode(modes: Sequence[object]) -> bool:
    """Whether all are the same mode."""
    return all(mode == modes[0] for mode in modes)
