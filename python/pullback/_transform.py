"""The function transforms that are at work on each thread: ``vmap``, ``grad`` and ``jvp``.

What they compute needs none of this: levels and histories are native. It is for what depends on the
order in which they were opened, such as custom functions, and for calls that make no sense within
them. Invariant: a thread has an entry if and only if a transform is open on it, so that outside of
all of them one look at an empty dictionary is enough.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from threading import get_ident
from typing import Literal, NamedTuple

from . import _C

Kind = Literal["grad", "jvp", "vmap"]


class Transform(NamedTuple):
    """One that is open."""

    kind: Kind
    level: int = -1
    """The number of its level; reverse mode has none."""
    randomness: str = "error"
    is_old: bool = False
    """Whether it is :func:`pullback._vmap_internals._vmap`, which asks less of functions."""


# By thread, the outermost first.
_OPEN: dict[int, list[Transform]] = {}


def of_thread() -> list[Transform]:
    """The transforms that are open on this thread, the outermost first; not to be changed."""
    return _OPEN.get(get_ident(), []) if _OPEN else []


@contextlib.contextmanager
def _entered(transform: Transform) -> Iterator[None]:
    thread = get_ident()
    _OPEN.setdefault(thread, []).append(transform)
    _C._transform_opened()
    try:
        yield
    finally:
        _C._transform_closed()
        mine = _OPEN[thread]
        mine.pop()
        if not mine:
            del _OPEN[thread]


def reverse_mode() -> contextlib.AbstractContextManager[None]:
    """Within it the function of a reverse mode transform runs."""
    return _entered(Transform("grad"))


@contextlib.contextmanager
def forward_mode() -> Iterator[int]:
    """Opens a level of tangents.

    Returns:
        Its number.
    """
    level = _C._jvp_enter()
    try:
        with _entered(Transform("jvp", level)):
            yield level
    finally:
        _C._jvp_exit(level)


@contextlib.contextmanager
def batch(size: int, randomness: str, is_old: bool = False) -> Iterator[int]:
    """Opens a level of ``vmap``.

    Args:
        size: how many examples there are.
        randomness: what random ops do: ``"error"``, ``"different"`` or ``"same"``.
        is_old: whether it is the old ``vmap``.

    Returns:
        Its number.
    """
    level = _C._vmap_enter(size, randomness)
    try:
        with _entered(Transform("vmap", level, randomness, is_old)):
            yield level
    finally:
        _C._vmap_exit(level)


def refuse_backward() -> None:
    """What ``backward`` says within a transform.

    Raises:
        RuntimeError: if one is open.
    """
    mine = of_thread()
    if not mine:
        return
    if all(transform.is_old for transform in mine):
        raise RuntimeError(
            "backward() called inside torch.vmap. This is not supported: take the gradients of "
            "what vmap returns, outside of it, or use torch.func.grad or torch.func.vjp."
        )
    raise RuntimeError(
        "backward() called inside a functorch transform. This is not supported: please use "
        "torch.func.grad or torch.func.vjp there, or call backward() outside of all transforms."
    )
