"""The op that calls one of two functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._control_flow import cond
from .._ops import HigherOrderOperator

__all__ = ["CondOp", "cond", "cond_op"]


class CondOp(HigherOrderOperator):
    """The op behind :func:`cond`: it runs the function that is chosen, whose ops are seen."""

    def __init__(self) -> None:
        super().__init__("cond")

    def __call__(
        self,
        pred: Any,
        true_fn: Callable[..., Any],
        false_fn: Callable[..., Any],
        operands: Any = (),
    ) -> Any:
        """Calls ``true_fn(*operands)`` if ``pred``, else ``false_fn(*operands)``."""
        return cond(pred, true_fn, false_fn, operands)


cond_op = CondOp()
