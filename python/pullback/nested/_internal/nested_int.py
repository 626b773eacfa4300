"""The size of a ragged dimension: a number for each component, so no number of its own."""

from __future__ import annotations

from typing import Any

__all__ = ["NestedIntNode"]


class NestedIntNode:
    """What a ragged size is equal to, at least as great as, and multiplied by.

    It is equal only to the size of tensors that are cut in the same way; it is greater than 1, and
    of greater numbers nothing is known. It is shown as ``j1``, with a factor as ``5*j1``.

    Args:
        t_id: which structure it is of.
        coeff: the factor.
    """

    __slots__ = ("coeff", "t_id")

    def __init__(self, t_id: int, coeff: int) -> None:
        self.t_id, self.coeff = t_id, coeff

    def nested_int_coeff(self) -> int:
        """The factor."""
        return self.coeff

    def is_nested_int(self) -> bool:
        """True."""
        return True

    def is_symbolic(self) -> bool:
        """False: it is no expression."""
        return False

    def maybe_as_int(self) -> int | None:
        """None, because the size is a symbol."""
        return None

    def eq(self, other: Any) -> bool:
        """Whether it is of the same structure, with the same factor."""
        if not isinstance(other, NestedIntNode):
            return False
        return (self.t_id, self.coeff) == (other.t_id, other.coeff)

    def ge(self, other: Any) -> bool:
        """Whether it is at least as great.

        Raises:
            ValueError: where that is not known.
        """
        if isinstance(other, NestedIntNode) and other.t_id == self.t_id:
            return self.coeff >= other.coeff
        if isinstance(other, int) and other <= 2:
            return True
        raise self._unknown(">=", other)

    def le(self, other: Any) -> bool:
        """Whether it is at most as great.

        Raises:
            ValueError: where that is not known.
        """
        if isinstance(other, NestedIntNode) and other.t_id == self.t_id:
            return self.coeff <= other.coeff
        if isinstance(other, int) and other < 2:
            return False
        raise self._unknown("<=", other)

    def _unknown(self, relation: str, other: Any) -> ValueError:
        return ValueError(f"ge/le: relation {self} {relation} {other} is indeterminate")

    def mul(self, other: Any) -> Any:
        """A multiple of it."""
        if not isinstance(other, int):
            return NotImplemented
        return NestedIntNode(self.t_id, self.coeff * other)

    def __hash__(self) -> int:
        return hash((NestedIntNode, self.t_id, self.coeff))

    def __eq__(self, other: object) -> bool:
        return self.eq(other)

    def __str__(self) -> str:
        return f"j{self.t_id}" if self.coeff == 1 else f"{self.coeff}*j{self.t_id}"

    __repr__ = __str__
