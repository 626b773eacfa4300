"""How values are reduced, and handles of work, which is done as soon as they are there."""

from __future__ import annotations

import enum
from datetime import timedelta
from typing import Any

from ..futures import Future

__all__ = ["RedOpType", "ReduceOp", "Work", "reduce_op"]


class RedOpType(enum.IntEnum):
    """The reduction of values of several processes."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __repr__(self) -> str:
        return f"<{type(self).__name__}.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


class ReduceOp:
    """Stands for :class:`RedOpType`, whose members it has.

    Args:
        op: a member.

    Raises:
        TypeError: for anything else.
    """

    RedOpType = RedOpType
    SUM = RedOpType.SUM
    AVG = RedOpType.AVG
    PRODUCT = RedOpType.PRODUCT
    MIN = RedOpType.MIN
    MAX = RedOpType.MAX
    BAND = RedOpType.BAND
    BOR = RedOpType.BOR
    BXOR = RedOpType.BXOR
    PREMUL_SUM = RedOpType.PREMUL_SUM

    def __init__(self, op: Any) -> None:
        if not isinstance(op, RedOpType):
            raise TypeError(f"ReduceOp expects a RedOpType, but got {type(op).__name__}")
        self.op = op

    def __eq__(self, other: object) -> bool:
        return self.op == (other.op if isinstance(other, ReduceOp) else other)

    def __hash__(self) -> int:
        return hash(self.op)


class _OldReduceOp:
    """The older name of :class:`ReduceOp`."""

    SUM = RedOpType.SUM
    PRODUCT = RedOpType.PRODUCT
    MAX = RedOpType.MAX
    MIN = RedOpType.MIN


reduce_op = _OldReduceOp()


class Work:
    """A handle of work that is done.

    Args:
        result: the tensors that it wrote.
    """

    def __init__(self, result: list[Any] | None = None) -> None:
        self._result = list(result or [])

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Waits until the work is done, which it is.

        Args:
            timeout: how long at most.
        """
        return True

    def synchronize(self) -> None:
        """Lets this thread's stream wait for the work, which is done."""

    def is_completed(self) -> bool:
        """Whether the work is done: always."""
        return True

    def is_success(self) -> bool:
        """Whether the work succeeded: always."""
        return True

    def exception(self) -> BaseException | None:
        """The error of the work: None."""
        return None

    def result(self) -> list[Any]:
        """The tensors that the work wrote."""
        return list(self._result)

    def source_rank(self) -> int:
        """Whom was received from.

        Raises:
            RuntimeError: always: a process alone receives from nobody.
        """
        raise RuntimeError(
            "sourceRank() may only be called on work objects that correspond to a recv or "
            "recv-from-any call."
        )

    def get_future(self) -> Future[list[Any]]:
        """A future of the tensors that the work wrote, which is done."""
        future: Future[list[Any]] = Future()
        future.set_result(self.result())
        return future
