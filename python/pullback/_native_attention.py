"""Multi-head attention with its projections, as the functions that PyTorch's fast path calls.

``softmax(q k^T / sqrt(d)) v`` for each head, where q, k and v are linear in the inputs; the heads'
results are joined and projected. Made of ops, so that gradients, ``vmap`` and modes have their way.
"""

from __future__ import annotations

import math
from typing import Any

from . import _C
from ._tensor import Tensor

_VF: Any = _C._VariableFunctions


def transform_bias_rescale_qkv(
    qkv: Tensor, qkv_bias: Tensor, num_heads: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values ``(batch, heads, length, width)`` of their projections side by side.

    Args:
        qkv: the three projections, ``(batch, length, 3 * heads * width)``.
        qkv_bias: what is added to them.
        num_heads: how many heads there are.

    Returns:
        The three, of which the queries are divided by ``sqrt(width)``.

    Raises:
        RuntimeError: for a width that the heads do not divide.
    """
    if qkv.dim() != 3:
        raise RuntimeError(f"expected 3-D `qkv`, got {qkv.dim()}-D tensor")
    width = qkv.size(-1) // 3
    if qkv.size(-1) % 3 or width % num_heads:
        raise RuntimeError(
            f"the last dimension of `qkv`, {qkv.size(-1)}, is not three times a multiple of "
            f"num_heads, {num_heads}"
        )
    query, key, value = (qkv + qkv_bias).split(width, -1)
    query = query / math.sqrt(width // num_heads)
    return _by_head(query, num_heads), _by_head(key, num_heads), _by_head(value, num_heads)


def _by_head(projected: Tensor, num_heads: int) -> Tensor:
    batch, length, width = projected.shape
    split: Tensor = projected.reshape(batch, length, num_heads, width // num_heads)
    return split.transpose(1, 2)


def native_multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Attention of queries over keys, with the projections before and after it.

    Args:
        query: ``(batch, length, embed_dim)``; all three may be nested tensors.
        key: ``(batch, others, embed_dim)``.
        value: as ``key``.
        embed_dim: the width.
        num_head: how many heads there are.
        qkv_weight: ``(3 * embed_dim, embed_dim)``.
        qkv_bias: ``(3 * embed_dim,)``.
        proj_weight: ``(embed_dim, embed_dim)``.
        proj_bias: ``(embed_dim,)``.
        mask: true where there is no attention.
        need_weights: whether the weights are a result, too.
        average_attn_weights: whether these are averaged over the heads.
        mask_type: what the mask is of: 0 ``(length, others)``, 1 ``(batch, others)``, 2 all four
            dimensions of the weights.

    Raises:
        RuntimeError: for sizes that do not fit, and for a mask beside nested tensors.
        ValueError: for another ``mask_type``.
    """
    _check(query, embed_dim, num_head, qkv_weight, qkv_bias)
    sizes = None
    if query.is_nested:
        if mask is not None:
            raise RuntimeError("NestedTensor with mask is not supported: its sizes say the same")
        sizes = [part.size(0) for part in query.unbind()]
        key_sizes = [part.size(0) for part in key.unbind()]
        nested: tuple[Any, ...] = (query, key, value)
        query, key, value = (part.to_padded_tensor(0.0) for part in nested)
        others = _VF.arange(key.size(1))
        mask, mask_type = others >= _C.tensor(key_sizes).unsqueeze(1), 1
    weights, biases = qkv_weight.split(embed_dim), qkv_bias.split(embed_dim)
    projected = [
        part.matmul(weight.t()) + bias
        for part, weight, bias in zip((query, key, value), weights, biases, strict=True)
    ]
    q, k, v = (_by_head(part, num_head) for part in projected)
    scores = (q / math.sqrt(embed_dim // num_head)).matmul(k.transpose(-2, -1))
    if mask is not None:
        scores = scores.masked_fill(_as_scores(mask, mask_type), -math.inf)
    attention = scores.softmax(-1)
    joined = attention.matmul(v).transpose(1, 2).flatten(2)
    result: Any = joined.matmul(proj_weight.t()) + proj_bias
    if sizes is not None:
        from .nested import as_nested_tensor

        result = as_nested_tensor([part[:n] for part, n in zip(result, sizes, strict=True)])
    if not need_weights:
        return result, None
    return result, attention.mean(1) if average_attn_weights else attention


def _as_scores(mask: Tensor, mask_type: int | None) -> Tensor:
    """A mask with the dimensions of the weights: batch, head, query, key."""
    mask = mask.to(_C.bool)
    if mask_type == 0:
        return mask
    if mask_type == 1:
        return mask[:, None, None, :]
    if mask_type == 2:
        return mask
    raise ValueError(f"mask_type should be 0 (src_mask), 1 (padding) or 2, got {mask_type}")


def _check(
    query: Tensor, embed_dim: int, num_head: int, qkv_weight: Tensor, qkv_bias: Tensor
) -> None:
    if query.dim() != 3:
        raise RuntimeError(f"expected 3-D `query`, got {query.dim()}-D tensor")
    if not query.is_nested and query.size(2) != embed_dim:
        raise RuntimeError(
            f"passed-in embed_dim {embed_dim} didn't match last dim of query {query.size(2)}"
        )
    if tuple(qkv_weight.shape) != (3 * embed_dim, embed_dim):
        raise RuntimeError(
            f"expected `qkv_weight` of shape {(3 * embed_dim, embed_dim)}, got "
            f"{tuple(qkv_weight.shape)}"
        )
    if tuple(qkv_bias.shape) != (3 * embed_dim,):
        raise RuntimeError(
            f"expected `qkv_bias` of shape {(3 * embed_dim,)}, got {tuple(qkv_bias.shape)}"
        )
    if embed_dim % num_head:
        raise RuntimeError(f"embed_dim must divide evenly by num_heads: {embed_dim}, {num_head}")
