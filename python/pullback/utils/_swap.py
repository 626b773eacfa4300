"""Exchanges the contents of tensors, and sets the module that a function reports."""

from __future__ import annotations

import copyreg
import weakref
from typing import Any

from .._tensor import Tensor

__all__ = ["set_module", "swap_tensors"]


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Makes each of two leaves what the other is: class, attributes, memory, gradient.

    Args:
        t1: a leaf.
        t2: a leaf.

    Raises:
        RuntimeError: for a tensor with weak references or a history, and for classes with different
            ``__slots__``.
    """
    for name, tensor in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(tensor):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
        if not tensor.is_leaf:
            raise RuntimeError(f"Cannot swap {name} because it has a history: it is no leaf")
    slots = [set(copyreg._slotnames(type(tensor))) for tensor in (t1, t2)]  # type: ignore[attr-defined]
    if slots[0] != slots[1]:
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    states = [(type(t), dict(vars(t)), t.detach(), t.requires_grad, t.grad) for t in (t1, t2)]
    for tensor, (kind, attributes, data, requires_grad, grad) in zip(
        (t1, t2), reversed(states), strict=True
    ):
        tensor.grad = None
        tensor.requires_grad_(False)
        tensor.data = data
        tensor.__class__ = kind
        vars(tensor).clear()
        vars(tensor).update(attributes)
        tensor.requires_grad_(requires_grad)
        tensor.grad = grad


def set_module(obj: Any, mod: str) -> None:
    """Sets the module that a function or class reports.

    Raises:
        TypeError: for what is no string.
    """
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod
