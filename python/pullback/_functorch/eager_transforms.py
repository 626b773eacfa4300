"""The transforms that differentiate, under the name of PyTorch's module."""

from __future__ import annotations

from typing import Any

from ..func import functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from ..func._argument import chosen

__all__ = [
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "vjp",
]


def _slice_argnums(args: tuple[Any, ...], argnums: Any, as_tuple: bool = True) -> Any:
    """The arguments that ``argnums`` names; a single one in a tuple too, if ``as_tuple``.

    Raises:
        RuntimeError: for numbers that are not among them, or named twice.
    """
    found = chosen(args, argnums)
    return (found,) if as_tuple and isinstance(argnums, int) else found


def _as_tuple(val: object) -> tuple[Any, ...]:
    """A tuple as it is, anything else as the only element of one."""
    return val if isinstance(val, tuple) else (val,)
