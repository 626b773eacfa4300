"""Attention as functions; ``functional.py`` exports them.

``scaled_dot_product_attention`` takes tensors that are projected already;
``multi_head_attention_forward`` adds projections, masks and heads. Invariant: a boolean mask
means "take part" in the first and "leave out" in the second, as in PyTorch.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from .._attention_backends import ALLOWED as _allowed
from .._tensor import Tensor
from ._native import VF as _VF
from ._native import nn as _nn

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]

_linear = _nn.linear
_attend_natively = _nn.scaled_dot_product_attention


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """``softmax(scale * Q K^T + mask) V``.

    Without dropout, and for a mask without gradient, no matrix of scores or weights is in memory,
    neither here nor in backward. With dropout the weights are: random numbers are drawn for them
    in the order of their elements.

    Args:
        query: ``(N, ..., Hq, L, E)``.
        key: ``(N, ..., H, S, E)``.
        value: ``(N, ..., H, S, Ev)``.
        attn_mask: broadcasts to ``(N, ..., L, S)``: boolean, true where attention is paid,
            or numbers that are added to the scores.
        dropout_p: the probability of dropping an attention weight; always applied.
        is_causal: whether position ``i`` sees only ``j <= i``.
        scale: default ``1 / sqrt(E)``.
        enable_gqa: whether each head of key and value serves ``Hq / H`` heads of the query.

    Returns:
        ``(N, ..., Hq, L, Ev)``. A row that may attend to nothing gives zeros.

    Raises:
        RuntimeError: shapes or dtypes do not fit, both a mask and ``is_causal`` are given, or
            :func:`pullback.nn.attention.sdpa_kernel` allows no algorithm that computes it.
    """
    if _allowed["flash"] and _allowed["math"]:
        return _attend_natively(
            query,
            key,
            value,
            attn_mask,
            dropout_p,
            is_causal,
            scale=scale,
            enable_gqa=enable_gqa,
        )
    return _VF._scaled_dot_product_attention_by(
        query,
        key,
        value,
        attn_mask,
        dropout_p,
        is_causal,
        scale=scale,
        enable_gqa=enable_gqa,
        flash=_allowed["flash"],
        math=_allowed["math"],
    )


def _is_bool(mask: Tensor) -> bool:
    return str(mask.dtype).endswith(".bool")


def additive_mask(mask: Tensor | None, name: str, dtype: Any) -> Tensor | None:
    """A mask as numbers to add to scores: true becomes minus infinity."""
    if mask is None or mask.is_floating_point():
        return mask
    if not _is_bool(mask):
        raise AssertionError(f"only bool and floating types of {name} are supported")
    numbers: Tensor = _VF.zeros_like(mask, dtype=dtype).masked_fill_(mask, -math.inf)
    return numbers


def _none_or_dtype(input: Tensor | None) -> Any:
    """The dtype of a mask, if there is one."""
    if input is not None and not isinstance(input, Tensor):
        raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")
    return None if input is None else input.dtype


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: Any,
    other_name: str,
    target_type: Any,
    check_other: bool = True,
) -> Tensor | None:
    """A mask as numbers to add to scores, with a warning where another mask is of another kind."""
    if mask is not None and check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type "
            "for both instead.",
            stacklevel=2,
        )
    return additive_mask(mask, mask_name, target_type)


def _check_shapes(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    num_heads: int,
) -> bool:
    """Whether the call is batched; refuses mixtures."""
    dims = query.dim()
    if dims not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {dims}-D query tensor"
        )
    kind = "batched (3-D)" if dims == 3 else "unbatched (2-D)"
    if key.dim() != dims or value.dim() != dims:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {dims}-D but found "
            f"{key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != dims - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {dims - 1}-D but "
            f"found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is None:
        return dims == 3
    if attn_mask.dim() not in (2, 3):
        raise AssertionError(
            f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
            f"{attn_mask.dim()}-D tensor instead"
        )
    if dims == 2 and attn_mask.dim() == 3:
        expected = (num_heads, query.shape[0], key.shape[0])
        if tuple(attn_mask.shape) != expected:
            raise AssertionError(
                f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}"
            )
    return dims == 3


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention of ``num_heads`` heads on projected inputs; see ``MultiheadAttention``.

    Args:
        query: ``(L, N, E)`` or ``(L, E)``; ``key`` and ``value``: ``(S, N, E)`` or ``(S, E)``.
        in_proj_weight: the three projections stacked, ``(3 E, E)``; with
            ``use_separate_proj_weight`` the three ``*_proj_weight`` are used instead.
        bias_k, bias_v: ``(1, 1, E)``, appended to the sequence of keys and values.
        add_zero_attn: whether a zero key and value are appended.
        static_k, static_v: ``(N * num_heads, S, E / num_heads)``, used as they are.
        key_padding_mask: ``(N, S)`` or ``(S)``, true for keys to ignore.
        attn_mask: ``(L, S)`` or ``(N * num_heads, L, S)``, true for pairs to ignore.
        is_causal: a hint that ``attn_mask`` is the causal mask; needs the mask.

    Returns:
        The output ``(L, N, E)`` or ``(L, E)``, and with ``need_weights`` the attention weights
        ``(N, L, S)``, per head ``(N, num_heads, L, S)`` unless averaged.

    Raises:
        AssertionError, RuntimeError: shapes do not fit.
    """
    batched = _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, width = query.shape
    if width != embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}"
        )
    if width % num_heads != 0:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {num_heads}")
    masks = _masks(query, attn_mask, key_padding_mask, is_causal)
    # (If the weights are not requested, the mask need not be read.)
    is_causal = is_causal and key_padding_mask is None and not need_weights
    attn_mask, key_padding_mask = (None, None) if is_causal else masks
    _check_sequences(key, value, use_separate_proj_weight)
    weights = (
        (q_proj_weight, k_proj_weight, v_proj_weight)
        if use_separate_proj_weight
        else _thirds(in_proj_weight, "use_separate_proj_weight is False but in_proj_weight is None")
    )
    q, k, v = _project(query, key, value, weights, in_proj_bias)
    attn_mask = _shaped_mask(attn_mask, length, key.shape[0], batch * num_heads)
    appended = 0
    if (bias_k is None) != (bias_v is None):
        given, other = ("bias_k", "bias_v") if bias_v is None else ("bias_v", "bias_k")
        raise AssertionError(f"{given} is set but {other} is None")
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key.")
        k = _VF.cat([k, bias_k.repeat(1, batch, 1)])
        v = _VF.cat([v, bias_v.repeat(1, batch, 1)])
        appended += 1
    q = _heads(q, batch * num_heads)
    k = _heads(k, batch * num_heads) if static_k is None else _static(static_k, "static_k", q)
    v = _heads(v, batch * num_heads) if static_v is None else _static(static_v, "static_v", q)
    if add_zero_attn:
        k = _VF.cat([k, _VF.zeros_like(k[:, :1])], 1)
        v = _VF.cat([v, _VF.zeros_like(v[:, :1])], 1)
        appended += 1
    mask = _merged(attn_mask, key_padding_mask, appended, k.size(1), batch, num_heads)
    dropout_p = dropout_p if training else 0.0
    if need_weights:
        out, attention = _attend(q, k, v, mask, dropout_p)
        out = out.transpose(0, 1).reshape(length * batch, width)
    else:
        q, k, v = (x.unflatten(0, (batch, num_heads)) for x in (q, k, v))
        if mask is not None:
            is_shared = mask.size(0) == 1
            mask = mask.unsqueeze(0) if is_shared else mask.unflatten(0, (batch, num_heads))
        out = scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal)
        out = out.permute(2, 0, 1, 3).reshape(length * batch, width)
    out = _linear(out, out_proj_weight, out_proj_bias)
    out = out.view(length, batch, out_proj_weight.size(0))
    if not batched:
        out = out.squeeze(1)
    if not need_weights:
        return out, None
    attention = attention.view(batch, num_heads, length, k.size(1))
    if average_attn_weights:
        attention = attention.mean(1)
    return out, attention if batched else attention.squeeze(0)


def _masks(
    query: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool
) -> tuple[Tensor | None, Tensor | None]:
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )
    both = attn_mask is not None and key_padding_mask is not None
    if both and attn_mask.dtype != key_padding_mask.dtype:  # type: ignore[union-attr]
        warnings.warn(
            "Support for mismatched key_padding_mask and attn_mask is deprecated. "
            "Use same type for both instead.",
            stacklevel=4,
        )
    return (
        additive_mask(attn_mask, "attn_mask", query.dtype),
        additive_mask(key_padding_mask, "key_padding_mask", query.dtype),
    )


def _check_sequences(key: Tensor, value: Tensor, separate: bool) -> None:
    if separate and key.shape[:2] != value.shape[:2]:
        raise AssertionError(
            f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
        )
    if not separate and key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")


def _thirds(tensor: Tensor | None, problem: str) -> Any:
    if tensor is None:
        raise AssertionError(problem)
    return tensor.chunk(3)


def _project(
    query: Tensor, key: Tensor, value: Tensor, weights: Any, bias: Tensor | None
) -> list[Tensor]:
    for name, weight in zip("qkv", weights, strict=True):
        if weight is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
    biases = (None, None, None) if bias is None else bias.chunk(3)
    inputs = (query, key, value)
    return [_linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True)]


def _in_projection_packed(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None
) -> list[Tensor]:
    """Query, key and value through the thirds of one weight, and of one bias."""
    return _project(q, k, v, w.chunk(3), b)


def _in_projection(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    b_q: Tensor | None = None,
    b_k: Tensor | None = None,
    b_v: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """Query, key and value, each through a weight and a bias of its own."""
    triples = zip((q, k, v), (w_q, w_k, w_v), (b_q, b_k, b_v), strict=True)
    return tuple(_linear(x, w, b) for x, w, b in triples)


def _shaped_mask(mask: Tensor | None, length: int, source: int, rows: int) -> Tensor | None:
    if mask is None:
        return None
    expected = (length, source) if mask.dim() == 2 else (rows, length, source)
    if tuple(mask.shape) != expected:
        raise RuntimeError(
            f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {expected}."
        )
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


def _heads(tensor: Tensor, rows: int) -> Tensor:
    """``(L, N, E)`` to ``(N * heads, L, E / heads)``."""
    length, batch, width = tensor.shape
    # (Not -1: of an empty batch it would be ambiguous.)
    size = width if rows == 0 else batch * width // rows
    return tensor.reshape(length, rows, size).transpose(0, 1)


def _static(given: Tensor, name: str, q: Tensor) -> Tensor:
    for position in (0, 2):
        if given.size(position) != q.size(position):
            raise AssertionError(
                f"expecting {name}.size({position}) of {q.size(position)}, "
                f"but got {given.size(position)}"
            )
    return given


def _merged(
    attn_mask: Tensor | None,
    key_padding_mask: Tensor | None,
    appended: int,
    source: int,
    batch: int,
    num_heads: int,
) -> Tensor | None:
    """Both masks as one that is added to scores of shape ``(N * heads, L, S)``."""
    pad = _nn.pad
    if appended and attn_mask is not None:
        attn_mask = pad(attn_mask, (0, appended))
    if key_padding_mask is None:
        return attn_mask
    if appended:
        key_padding_mask = pad(key_padding_mask, (0, appended))
    for position, expected in ((0, batch), (1, source)):
        if key_padding_mask.shape[position] != expected:
            raise AssertionError(
                f"Expected key_padded_mask.shape[{position}] to be {expected}, "
                f"but got {key_padding_mask.shape[position]}"
            )
    rows = key_padding_mask.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1)
    rows = rows.reshape(batch * num_heads, 1, source)
    return rows if attn_mask is None else attn_mask + rows


def _attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float
) -> tuple[Tensor, Tensor]:
    q = q * math.sqrt(1.0 / q.size(-1))
    k = k.transpose(-2, -1)
    scores = _VF.bmm(q, k) if mask is None else _VF.baddbmm(mask, q, k)
    weights = scores.softmax(-1)
    if dropout_p > 0.0:
        weights = _VF.dropout(weights, dropout_p, True)
    return _VF.bmm(weights, v), weights
