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
        chunking_method: ``'aspect_ratio'``, which ``'auto'`` stands for: so many rows that the
            logits of a chunk have about as many elements as the input. ``'aspect_ratio:N'``: an
            N-th of these. ``None``: one chunk, unless ``batch_chunk_size`` is given.
        acc_policy: what sums of gradients are kept in; here always in the parameters' dtype.
        acc_dtype: the same as a dtype.

    Raises:
        ValueError: an unknown policy or method, a size that is not positive, or one that a method
            other than ``'auto'`` contradicts.
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
        method = "auto" if self.chunking_method is None else self.chunking_method
        name, colon, factor = method.partition(":")
        is_divided = name == "aspect_ratio" and factor.isdigit() and int(factor) > 0
        if not (is_divided if colon else name in ("auto", "aspect_ratio")):
            raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")

    def _rows(self, rows: int, in_features: int, classes: int) -> int:
        """The number of rows of a chunk."""
        given = self.batch_chunk_size
        if self.chunking_method is None or (given is not None and self.chunking_method == "auto"):
            return max(rows, 1) if given is None else given
        chunks = -(-classes // max(in_features, 1))
        target = -(-rows // max(chunks, 1))
        factor = int(self.chunking_method.partition(":")[2] or 1)
        # (A power of two, as matrix products are fast for.)
        size = max(min((1 << max(target - 1, 0).bit_length()) // factor, rows), 1)
        if given is not None and given != size:
            raise ValueError(
                f"batch_chunk_size (={given}) and chunking_method ('{self.chunking_method}') give "
                f"different chunk sizes ({given} vs {size}); pass only one."
            )
        return size
