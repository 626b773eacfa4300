"""Numbers that PyTorch takes for sizes unknown while it traces: here they are numbers."""

from __future__ import annotations

import math
import numbers
from typing import Any

__all__ = [
    "SymInt",
    "sym_constrain_range",
    "sym_constrain_range_for_size",
    "sym_float",
    "sym_int",
    "sym_ite",
    "sym_max",
    "sym_min",
    "sym_not",
    "sym_sqrt",
    "sym_sum",
]


class SymInt:
    """A whole number that is known by its relations alone: a node has them.

    Programs ask whether a size is one. The only ones here are the sizes of ragged dimensions
    (`nested._internal.nested_int`); all other sizes are numbers.

    Args:
        node: what compares and multiplies it.
    """

    __slots__ = ("node",)

    def __init__(self, node: Any) -> None:
        self.node = node

    def __eq__(self, other: object) -> bool:
        return bool(self.node.eq(_node_of(other)))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __ge__(self, other: Any) -> bool:
        return bool(self.node.ge(_node_of(other)))

    def __le__(self, other: Any) -> bool:
        return bool(self.node.le(_node_of(other)))

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __lt__(self, other: Any) -> bool:
        return not self >= other

    def __hash__(self) -> int:
        return hash(self.node)

    def __mul__(self, other: Any) -> Any:
        found = self.node.mul(_node_of(other))
        return found if found is NotImplemented else type(self)(found)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return str(self.node)

    def __int__(self) -> int:
        raise TypeError(f"the ragged size {self!r} is no single number")


def _node_of(other: Any) -> Any:
    return other.node if isinstance(other, SymInt) else other


def _check_number(value: Any) -> None:
    if not isinstance(value, numbers.Real):
        raise AssertionError(f"expected a number, got {type(value)}")


def sym_max(a: Any, b: Any) -> Any:
    """The greater of two numbers, a float if one of them is.

    Raises:
        AssertionError: for what is no number.
    """
    for value in (a, b):
        _check_number(value)
    found = max(a, b)
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers, a float if one of them is.

    Raises:
        AssertionError: for what is no number.
    """
    for value in (a, b):
        _check_number(value)
    found = min(a, b)
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_int(a: Any) -> int:
    """The whole number towards zero."""
    return int(a)


def sym_float(a: Any) -> float:
    """The number as a float."""
    return float(a)


def sym_not(a: Any) -> bool:
    """Whether the number is false."""
    return not a


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """``t`` if ``b``, else ``f``.

    Raises:
        AssertionError: if ``b`` is no bool, or the others are of different types.
    """
    if not (isinstance(b, bool) and type(t) is type(f)):
        raise AssertionError(f"expected a bool and two values of one type, got {b}, {t}, {f}")
    return t if b else f


def sym_sum(*args: Any) -> Any:
    """The sum of numbers, given one by one or as one list or tuple; 0 of none."""
    is_one = len(args) == 1 and isinstance(args[0], (list, tuple))
    return sum(args[0] if is_one else args)


def sym_sqrt(a: Any) -> float:
    """The square root."""
    return math.sqrt(a)


def sym_constrain_range(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Checks that a whole number is within bounds, which are part of it.

    Raises:
        RuntimeError: if it is not, and if the bounds leave nothing.
    """
    least = -(2**63) if min is None else min
    most = 2**63 - 1 if max is None else max
    if least > most:
        raise RuntimeError(f"Max must be greater or equal to min, got min={least} and max={most}")
    if not least <= int(size) <= most:
        raise RuntimeError(f"Invalid value range for {int(size)} between [{least}, {most}].")


def sym_constrain_range_for_size(
    size: Any, *, min: int | None = None, max: int | None = None
) -> None:
    """As :func:`sym_constrain_range`; a size is at least 0.

    Raises:
        RuntimeError: if it is not within the bounds.
    """
    sym_constrain_range(size, min=0 if min is None else min, max=max)
