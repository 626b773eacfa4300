"""How ``functional.linear_cross_entropy`` takes its rows in chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["LinearCrossEntropyOptions"]

_POLICIES = ("auto", "accurate", "compact")


@dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """Rows are taken in chunks, so that the logits of all are never there at once.

    The logits of a chunk are computed a second time by backward. Results are those without options,
    and gradients of gradients exist; PyTorch's own form has none.

    Args:
        allow_retain_graph: whether backward may run twice; it always may here.
        batch_chunk_size: how many rows a chunk has; chosen by ``chunking_method`` unless given.
        chunking_method: ``'auto'``: as many rows as give a chunk about ``in_features`` columns.
        acc_policy: what sums of gradients are kept in; here always in the parameters' dtype.
        acc_dtype: the same as a dtype.

    Raises:
        ValueError: an unknown policy or method, or a size that is not positive.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        if self.acc_policy not in _POLICIES:
            allowed = ", ".join(map(repr, _POLICIES))
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}; expected one of {allowed}")
        if self.chunking_method not in (None, "auto"):
            raise ValueError(
                f"invalid chunking_method: {self.chunking_method!r}; expected 'auto' or None"
            )
        if self.batch_chunk_size is not None and self.batch_chunk_size <= 0:
            raise ValueError(f"batch_chunk_size must be positive, got {self.batch_chunk_size}")

    def _rows(self, rows: int, in_features: int, classes: int) -> int:
        """How many rows a chunk has."""
        if self.batch_chunk_size is not None:
            return self.batch_chunk_size
        if self.chunking_method is None:
            return max(rows, 1)
        chunks = -(-classes // max(in_features, 1))
        return max(-(-rows // chunks), 1)
