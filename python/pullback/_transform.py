"""The function transforms that are at work on each thread: ``vmap``, ``grad`` and ``jvp``.

What they compute needs none of this: levels and histories are native. It is for what depends on the
order in which they were opened, such as custom functions, and for calls that make no sense within
them. Invariant: a thread has an entry if and only if a transform is open on it, so that outside of
all of them one look at an empty dictionary is enough.
"""

from __future__ import annotations

import contextlib
import threading
from threading import get_ident
from typing import Literal, NamedTuple

from . import _C

Kind = Literal["grad", "jvp", "vmap"]


class Transform(NamedTuple):
    """An open transform."""

    kind: Kind
    level: int = -1
    """The number of its level; reverse mode has none."""
    randomness: str = "error"
    is_old: bool = False
    """Whether it is :func:`pullback._vmap_internals._vmap`, which asks less of functions."""
    size: int = -1
    """How many examples ``vmap`` has; others have none."""
    was_enabled: bool = True
    """Whether the mode that ``grad`` or ``jvp`` switches on was on outside."""


class _Allowed(threading.local):
    """The permissions of this thread within transforms, set by the program."""

    requires_grad = False
    functions_without_setup = False


ALLOWED = _Allowed()


# The transforms by thread, the outermost first.
_OPEN: dict[int, list[Transform]] = {}


def of_thread() -> list[Transform]:
    """The transforms that are open on this thread, the outermost first; not to be changed."""
    return _OPEN.get(get_ident(), []) if _OPEN else []


class _Open(contextlib.AbstractContextManager[int]):
    """A transform for as long as the context lasts, which gives the number of its level.

    (A class by hand: every call of a transform makes one, and generators are slower.)
    """

    __slots__ = ("_is_old", "_kind", "_level", "_number", "_randomness", "_size", "_thread")

    def __init__(
        self, kind: Kind, size: int = -1, randomness: str = "error", is_old: bool = False
    ) -> None:
        self._kind = kind
        self._size = size
        self._randomness = randomness
        self._is_old = is_old
        self._level = -1

    def __enter__(self) -> int:
        was_enabled = True
        if self._kind == "vmap":
            self._level = _C._vmap_enter(self._size, self._randomness)
        elif self._kind == "jvp":
            was_enabled = _C._is_fwd_grad_enabled()
            self._level = _C._jvp_enter()
        else:
            was_enabled = _C.is_grad_enabled()
        if self._kind != "vmap":
            self._number = _C._transform_enter()
        self._thread = get_ident()
        transform = Transform(
            self._kind, self._level, self._randomness, self._is_old, self._size, was_enabled
        )
        _OPEN.setdefault(self._thread, []).append(transform)
        _C._transform_opened()
        return self._level

    def __exit__(self, *exception: object) -> None:
        _C._transform_closed()
        mine = _OPEN[self._thread]
        mine.pop()
        if not mine:
            del _OPEN[self._thread]
        if self._kind != "vmap":
            _C._transform_exit(self._number)
        if self._kind == "vmap":
            _C._vmap_exit(self._level)
        elif self._kind == "jvp":
            _C._jvp_exit(self._level)


def reverse_mode() -> contextlib.AbstractContextManager[int]:
    """Within it the function of a reverse mode transform runs."""
    return _Open("grad")


def forward_mode() -> contextlib.AbstractContextManager[int]:
    """Opens a level of tangents, and gives its number."""
    return _Open("jvp")


def batch(
    size: int, randomness: str, is_old: bool = False
) -> contextlib.AbstractContextManager[int]:
    """Opens a level of ``vmap``, and gives its number.

    Args:
        size: how many examples there are.
        randomness: what random ops do: ``"error"``, ``"different"`` or ``"same"``.
        is_old: whether it is the old ``vmap``.
    """
    return _Open("vmap", size, randomness, is_old)


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


def refuse(method: str) -> None:
    """What methods say that change how a tensor is differentiated, within a transform.

    There the transform says what is differentiated: a tensor that is marked besides would have no
    part in it, and its derivatives would be lost without a word. (The old ``vmap`` differentiates
    nothing.)

    Args:
        method: its name.

    Raises:
        RuntimeError: if a transform is open.
    """
    if all(transform.is_old for transform in of_thread()):
        return
    if method == "requires_grad_" and ALLOWED.requires_grad:
        return
    also = " (or perhaps using torch.autograd.functional.* APIs)" if method[-1] == "_" else ""
    raise RuntimeError(
        f"You are attempting to call Tensor.{method}(){also} inside of a function being "
        "transformed by a functorch transform. This is unsupported, please attempt to use the "
        "functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call "
        f"{method}() outside of a function being transformed instead."
    )
