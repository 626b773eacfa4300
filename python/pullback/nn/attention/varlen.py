"""Attention of sequences of different lengths that lie one after the other in one tensor.

Each sequence is computed by itself, by the formula.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..._tensor import Tensor
from .._native import VF as _VF

__all__ = ["AuxRequest", "varlen_attn", "varlen_attn_out"]


class AuxRequest(NamedTuple):
    """What :func:`varlen_attn` is to return besides its output.

    Args:
        lse: the logarithm of the sum of exponentials of the scores, ``(Hq, Tq)``.
    """

    lse: bool = False


def varlen_attn(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Tensor | None = None,
    block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Any:
    """``softmax(scale * Q K^T) V`` of each sequence.

    Args:
        query: ``(Tq, Hq, D)``, the sequences one after the other.
        key: ``(Tk, Hkv, D)``, or with ``block_table`` ``(pages, page size, Hkv, D)``.
        value: as the key.
        cu_seq_q: ``(N + 1)``: where each sequence of the query begins, and the end.
        cu_seq_k: the same of the key; may be ``None`` with ``block_table``.
        max_q: the length of the longest query.
        max_k: the length of the longest key.
        return_aux: what else is returned.
        scale: default ``1 / sqrt(D)``; positive.
        window_size: how many keys before and behind its own position a query sees, -1 for all;
            positions are counted from the ends, so that the last query is at the last key.
        enable_gqa: whether each head of key and value serves ``Hq / Hkv`` heads of the query.
        seqused_k: ``(N)``: how many keys of each sequence count.
        block_table: ``(N, most pages)``: which pages hold the keys of each sequence.
        num_splits: has no effect: how kernels of GPUs divide the keys.

    Returns:
        ``(Tq, Hq, D)``; with ``return_aux.lse`` and a tensor ``(Hq, Tq)``.

    Raises:
        ValueError: heads do not agree, a scale that is not positive, or a sequence longer than
            ``max_q`` or ``max_k``.
    """
    heads, kv_heads = query.size(-2), key.size(-2)
    if heads != kv_heads and not enable_gqa:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and "
            f"Hkv={kv_heads}. Try setting enable_gqa=True for GQA."
        )
    if kv_heads == 0 or heads % kv_heads != 0:
        raise ValueError(f"Hq={heads} must be divisible by Hkv={kv_heads}")
    if scale is not None and not scale > 0:
        raise ValueError(f"scale must be positive, got {scale}")
    factor = 1.0 / math.sqrt(query.size(-1)) if scale is None else scale
    outputs, sums = [], []
    bounds = cu_seq_q.tolist()
    for index in range(len(bounds) - 1):
        rows = query[bounds[index] : bounds[index + 1]]
        k, v = (_keys(x, index, cu_seq_k, seqused_k, block_table) for x in (key, value))
        for name, tensor, most in (("max_q", rows, max_q), ("max_k", k, max_k)):
            if tensor.size(0) > most:
                raise ValueError(f"sequence {index} has {tensor.size(0)} places, {name} is {most}")
        output, lse = _attend(rows, k, v, factor, window_size)
        outputs.append(output)
        sums.append(lse)
    if not outputs:
        outputs, sums = [query[:0]], [query[:0, :, 0].t().float()]
    joined: Tensor = _VF.cat(outputs)
    if return_aux is not None and return_aux.lse:
        return joined, _VF.cat(sums, 1)
    return joined


def _keys(
    x: Tensor, index: int, bounds: Tensor | None, used: Tensor | None, table: Tensor | None
) -> Tensor:
    """The keys, or values, of a sequence."""
    if table is not None:
        if used is None:
            raise ValueError("block_table needs seqused_k")
        count = int(used[index])
        pages = table[index][: -(-count // x.size(1))].long()
        return x.index_select(0, pages).flatten(0, 1)[:count]
    if bounds is None:
        raise ValueError("cu_seq_k must be given unless block_table is")
    start, end = int(bounds[index]), int(bounds[index + 1])
    if used is not None:
        end = min(end, start + int(used[index]))
    return x[start:end]


def _attend(
    query: Tensor, key: Tensor, value: Tensor, factor: float, window: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """Attention of one sequence ``(L, H, D)``, and the logarithms of the sums ``(H, L)``."""
    repeats = query.size(1) // key.size(1)
    if repeats != 1:
        key, value = (x.repeat_interleave(repeats, 1) for x in (key, value))
    q, k, v = (x.transpose(0, 1) for x in (query, key, value))
    if q.element_size() < 4:
        q, k = q.float(), k.float()
    scores = (q @ k.transpose(-2, -1)) * factor
    hidden = _outside(query.size(0), key.size(0), window, query.device)
    if hidden is not None:
        scores = scores.masked_fill(hidden, -math.inf)
    lse = scores.logsumexp(-1)
    empty = lse.isneginf().unsqueeze(-1)
    weights = scores.masked_fill(empty, 0.0).softmax(-1).masked_fill(empty, 0.0)
    return (weights.to(value.dtype) @ v).transpose(0, 1), lse


def _outside(queries: int, keys: int, window: tuple[int, int], device: Any) -> Tensor | None:
    """The keys that a query does not see; None if it sees all."""
    left, right = window
    if left < 0 and right < 0:
        return None
    own = _VF.arange(queries, device=device).unsqueeze(1) + (keys - queries)
    distance = _VF.arange(keys, device=device).unsqueeze(0) - own
    hidden = _VF.zeros_like(distance).bool()
    if left >= 0:
        hidden = hidden | (distance < -left)
    return hidden | (distance > right) if right >= 0 else hidden


def varlen_attn_out(
    out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Tensor | None = None,
    block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Any:
    """:func:`varlen_attn` into ``out``, of the query's shape; without gradients.

    Raises:
        ValueError: as :func:`varlen_attn`.
    """
    from ...autograd import no_grad

    with no_grad():
        found = varlen_attn(
            query,
            key,
            value,
            cu_seq_q,
            cu_seq_k,
            max_q,
            max_k,
            return_aux=return_aux,
            scale=scale,
            window_size=window_size,
            enable_gqa=enable_gqa,
            seqused_k=seqused_k,
            block_table=block_table,
            num_splits=num_splits,
        )
        if isinstance(found, tuple):
            return out.copy_(found[0]), found[1]
        return out.copy_(found)
