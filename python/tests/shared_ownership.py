"""What the tests of ownership share."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import pullback as torch


class Marker:
    """Something that can be watched, kept by what is under test."""


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    """Switches the cycle collector off for every test of a file that imports this."""
    gc.disable()
    yield
    gc.enable()


def leaf(*shape: int) -> Any:
    return torch.full(shape or (3,), 0.5, requires_grad=True)


def watch_node(node: Any) -> weakref.ref[Marker]:
    """A weak reference that lives as long as the node: through a hook that the node owns."""
    marker = Marker()
    node.register_hook(lambda given, got, kept=marker: None)
    return weakref.ref(marker)
