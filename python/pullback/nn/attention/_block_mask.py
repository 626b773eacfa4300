"""Masks of attention by blocks: which blocks of keys each block of queries has to look at.

``flex_attention.py`` exports this. A row's blocks are the first ``num_blocks`` of its ``indices``;
the partial ones are masked element by element, the full ones not at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..._tensor import Tensor
from .._native import VF as _VF
from .._native import nn as _nn

__all__: list[str] = []

MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]

_TENSORS = (
    "kv_num_blocks",
    "kv_indices",
    "full_kv_num_blocks",
    "full_kv_indices",
    "q_num_blocks",
    "q_indices",
    "full_q_num_blocks",
    "full_q_indices",
)
_ORDERS = ("dq_write_order", "dq_write_order_full", "dq_kv_order", "dq_kv_order_spt")


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """A mask that lets all pass."""
    from ... import bool as dtype

    return _VF.ones((), dtype=dtype, device=getattr(batch, "device", None))


def _sliced_mask_mod_error(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Any:
    raise RuntimeError(
        "Cannot use mask_mod from a sliced BlockMask: its places are no longer those of the "
        "sequence. Set block_mask.mask_mod to a function that knows where the slice begins."
    )


def ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    """The number of blocks of each row, and their columns, in order."""
    numbers = dense.int()
    return numbers.sum(-1).int(), numbers.argsort(dim=-1, descending=True, stable=True).int()


def dense(num_blocks: Tensor, indices: Tensor, columns: int) -> Tensor:
    """1 where a row has a block, else 0."""
    positions = _VF.arange(indices.size(-1), device=indices.device)
    used = (positions < num_blocks.unsqueeze(-1)).int()
    # (Entries behind a row's last one may be anything; they go to a column of their own.)
    safe = _VF.where(used.bool(), indices.long(), columns)
    shape = (*indices.shape[:-1], columns + 1)
    zeros = _VF.zeros(shape, dtype=used.dtype, device=indices.device)
    return zeros.scatter(-1, safe, used)[..., :columns]


class BlockMask:
    """Which blocks of keys and values each block of queries has to look at.

    Args:
        seq_lengths: the lengths of query and key.
        kv_num_blocks: ``(B, H, rows)``: how many partial blocks each row has.
        kv_indices: ``(B, H, rows, columns)``: which.
        full_kv_num_blocks: the same for blocks that no mask touches.
        full_kv_indices: the same.
        q_num_blocks: the same the other way round: which rows a column of blocks has.
        q_indices: the same.
        full_q_num_blocks: the same.
        full_q_indices: the same.
        BLOCK_SIZE: how many queries and keys a block has.
        mask_mod: the mask within partial blocks: of batch, head, query and key, all as tensors.
        dq_write_order: kept for kernels of GPUs, like the rest.
        dq_write_order_full: see there.
        dq_kv_order: see there.
        dq_kv_order_spt: see there.
    """

    seq_lengths: tuple[int, int]
    kv_num_blocks: Tensor
    kv_indices: Tensor
    full_kv_num_blocks: Tensor | None
    full_kv_indices: Tensor | None
    q_num_blocks: Tensor | None
    q_indices: Tensor | None
    full_q_num_blocks: Tensor | None
    full_q_indices: Tensor | None
    BLOCK_SIZE: tuple[int, int]
    mask_mod: Any

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (128, 128),
        mask_mod: Any = noop_mask,
        *,
        dq_write_order: Tensor | None = None,
        dq_write_order_full: Tensor | None = None,
        dq_kv_order: Tensor | None = None,
        dq_kv_order_spt: bool | None = None,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError(
                "full_kv_num_blocks and full_kv_indices must be both provided or omitted"
            )
        if (full_q_num_blocks is None) != (full_q_indices is None):
            raise AssertionError(
                "full_q_num_blocks and full_q_indices must be both provided or omitted"
            )
        self.seq_lengths = seq_lengths
        self.kv_num_blocks = kv_num_blocks
        self.kv_indices = kv_indices
        self.full_kv_num_blocks = full_kv_num_blocks
        self.full_kv_indices = full_kv_indices
        self.q_num_blocks = q_num_blocks
        self.q_indices = q_indices
        self.full_q_num_blocks = full_q_num_blocks
        self.full_q_indices = full_q_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod
        self.dq_write_order = dq_write_order
        self.dq_write_order_full = dq_write_order_full
        self.dq_kv_order = dq_kv_order
        self.dq_kv_order_spt = dq_kv_order_spt

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = 128,
        mask_mod: Any = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
        **orders: Any,
    ) -> BlockMask:
        """A mask by its blocks of keys.

        Args:
            kv_num_blocks: ``(B, H, rows)``: how many partial blocks each row has.
            kv_indices: ``(B, H, rows, columns)``: which.
            full_kv_num_blocks: the same for blocks that no mask touches.
            full_kv_indices: the same.
            BLOCK_SIZE: how many queries and keys a block has.
            mask_mod: the mask within partial blocks; none unless given.
            seq_lengths: the lengths of query and key; whole blocks unless given.
            compute_q_blocks: whether the blocks of queries are computed.
            orders: kept for kernels of GPUs.
        """
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError(
                "full_kv_num_blocks and full_kv_indices must be both provided or omitted"
            )
        sizes = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        rows, columns = kv_indices.shape[-2:]
        if seq_lengths is None:
            seq_lengths = (rows * sizes[0], columns * sizes[1])
        by_query: list[Tensor | None] = [None] * 4
        if compute_q_blocks:
            by_query[:2] = ordered(dense(kv_num_blocks, kv_indices, columns).transpose(-2, -1))
            if full_kv_num_blocks is not None and full_kv_indices is not None:
                full = dense(full_kv_num_blocks, full_kv_indices, columns)
                by_query[2:] = ordered(full.transpose(-2, -1))
        q_num, q_indices, full_q_num, full_q_indices = by_query
        return cls(
            seq_lengths,
            kv_num_blocks,
            kv_indices,
            full_kv_num_blocks,
            full_kv_indices,
            q_num,
            q_indices,
            full_q_num,
            full_q_indices,
            sizes,
            noop_mask if mask_mod is None else mask_mod,
            **orders,
        )

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """What the mask is made of.

        Args:
            flatten: whether pairs of sizes are two entries each.
        """
        middle = [getattr(self, name) for name in (*_TENSORS, *_ORDERS)]
        lengths: tuple[Any, ...] = (self.seq_lengths,)
        sizes: tuple[Any, ...] = (self.BLOCK_SIZE,)
        if flatten:
            lengths, sizes = self.seq_lengths, self.BLOCK_SIZE
        return (*lengths, *middle, *sizes, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """``(B, H, query length, key length)``."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def __str__(self) -> str:
        drawn = self.to_string().strip()
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{drawn}\n)"

    def __repr__(self) -> str:
        lines = [
            f"    {name}={None if value is None else value.shape}"
            for name in _TENSORS
            for value in [getattr(self, name)]
        ]
        mask = getattr(self.mask_mod, "__name__", self.mask_mod)
        lines += [
            f"    BLOCK_SIZE={self.BLOCK_SIZE}",
            f"    shape={self.shape}",
            f"    sparsity={self.sparsity():.2f}%",
            f"    mask_mod={mask}",
        ]
        return "BlockMask(\n" + ",\n".join(lines) + "\n)"

    def __getitem__(self, index: Any) -> BlockMask:
        """The mask of some batches, heads or blocks of queries; dimensions stay."""
        keys = index if isinstance(index, tuple) else (index,)
        if Ellipsis in [key for key in keys if key is Ellipsis]:
            at = next(i for i, key in enumerate(keys) if key is Ellipsis)
            fill = (slice(None),) * (self.kv_num_blocks.dim() - len(keys) + 1)
            keys = (*keys[:at], *fill, *keys[at + 1 :])
        keys = tuple(_as_slice(key, self.kv_num_blocks.size(d)) for d, key in enumerate(keys))
        parts: list[Any] = [
            None if value is None else value[keys]
            for value in (
                self.kv_num_blocks,
                self.kv_indices,
                self.full_kv_num_blocks,
                self.full_kv_indices,
            )
        ]
        sliced = len(keys) == self.kv_num_blocks.dim()
        query, key_length = self.seq_lengths
        if sliced:
            query = min(query, parts[0].size(-1) * self.BLOCK_SIZE[0])
        return BlockMask.from_kv_blocks(
            parts[0],
            parts[1],
            parts[2],
            parts[3],
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=_sliced_mask_mod_error if sliced else self.mask_mod,
            seq_lengths=(query, key_length),
            compute_q_blocks=self.q_indices is not None,
        )

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The upper left corner of the mask, or the mask with no further blocks, for lengths."""
        rows = -(-new_q_len // self.BLOCK_SIZE[0])
        columns = -(-new_kv_len // self.BLOCK_SIZE[1])
        old = self.kv_indices.size(-1)
        parts: list[Any] = []
        for num, indices in (
            (self.kv_num_blocks, self.kv_indices),
            (self.full_kv_num_blocks, self.full_kv_indices),
        ):
            if num is None or indices is None:
                parts += [None, None]
                continue
            blocks = dense(num, indices, old)[..., :rows, :columns]
            grown = [0, columns - blocks.size(-1), 0, rows - blocks.size(-2)]
            parts += ordered(_nn.pad(blocks, grown))
        return BlockMask.from_kv_blocks(
            parts[0],
            parts[1],
            parts[2],
            parts[3],
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=self.mask_mod,
            seq_lengths=(new_q_len, new_kv_len),
        )

    def numel(self) -> int:
        """How many pairs of query and key there are, masked or not."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """The percentage of blocks that need not be looked at."""
        blocks = self.to_dense()
        return 100 * (1 - float(blocks.sum()) / blocks.numel()) if blocks.numel() else 0.0

    def _parts(self) -> tuple[Tensor, Tensor | None]:
        """The partial blocks, and the full ones: 1 where there is one."""
        columns = self.kv_indices.size(-1)
        full = None
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            full = dense(self.full_kv_num_blocks, self.full_kv_indices, columns)
        return dense(self.kv_num_blocks, self.kv_indices, columns), full

    def to_dense(self) -> Tensor:
        """``(B, H, rows, columns)``: 1 for blocks that are looked at, else 0."""
        partial, full = self._parts()
        return partial if full is None else partial | full

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """The blocks as a drawing.

        Args:
            grid_size: how many rows and columns it has at most; -1 for all.
            limit: how many heads are drawn.
        """
        blocks = self.to_dense()
        if grid_size == -1:
            grid_size = (blocks.size(-2), blocks.size(-1))
        most = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        leading = blocks.shape[:-2]
        flat = blocks.reshape(-1, *blocks.shape[-2:])
        lines = [
            f"{_place(number, leading)}\n{_drawn(flat[number], most)}"
            for number in range(min(flat.size(0), limit))
        ]
        rest = flat.size(0) - limit
        text = "\n".join(lines)
        return text if rest <= 0 else f"{text}\n... and {rest} more"

    def to(self, device: Any) -> BlockMask:
        """The mask with its tensors on a device."""
        moved = {name: getattr(self, name) for name in (*_TENSORS, *_ORDERS)}
        for name, value in moved.items():
            if isinstance(value, Tensor):
                moved[name] = value.to(device)
        return BlockMask(
            self.seq_lengths, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod, **moved
        )


def _as_slice(key: Any, size: int) -> Any:
    """A number as a slice of length one, so that the dimension stays."""
    if not isinstance(key, int):
        return key
    if not -size <= key < size:
        raise IndexError(f"index {key} is out of bounds for dimension with size {size}")
    at = key % size
    return slice(at, at + 1)


def _place(number: int, sizes: Any) -> tuple[int, ...]:
    coordinates = []
    for size in reversed(tuple(sizes)):
        coordinates.append(number % size)
        number //= size
    return tuple(reversed(coordinates))


def _drawn(blocks: Tensor, most: tuple[int, int]) -> str:
    """Two characters for each cell: full, partly full or empty."""
    rows, columns = blocks.shape
    high, wide = (
        max(-(-size // limit), 1) for size, limit in zip((rows, columns), most, strict=True)
    )
    lines = []
    for top in range(0, rows, high):
        line = ""
        for left in range(0, columns, wide):
            part = float(blocks[top : top + high, left : left + wide].float().mean())
            line += "██" if part == 1 else "░░" if part > 0 else "  "
        lines.append(line + "\n")
    return "".join(lines)
