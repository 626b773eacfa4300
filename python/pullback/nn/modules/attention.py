"""Multi-head attention as a module; the arithmetic is in ``nn/_attention.py``."""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from .. import functional as F
from .. import init
from .._native import VF as _VF
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear
from .module import Module

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """``concat(head_1, ..., head_h) W_o``, ``head_i = attention(Q W_i^Q, K W_i^K, V W_i^V)``.

    Args:
        embed_dim: features of the query and the output, ``E``.
        num_heads: how many heads share them; ``E`` is divisible by it.
        dropout: the probability of dropping an attention weight in training.
        bias: whether the projections have biases.
        add_bias_kv: whether a learnt key and value are appended to the sequences.
        add_zero_attn: whether a zero key and value are appended.
        kdim: features of the key. Default: ``embed_dim``.
        vdim: features of the value. Default: ``embed_dim``.
        batch_first: whether batches are ``(N, L, E)`` instead of ``(L, N, E)``.
        device: where the parameters are made.
        dtype: of the parameters.

    Raises:
        ValueError: a size that is not positive.
        AssertionError: ``embed_dim`` is not divisible by ``num_heads``.
    """

    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, "
                f"got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self._add_projections(bias, device, dtype)
        self.out_proj = NonDynamicallyQuantizableLinear(
            embed_dim, embed_dim, bias=bias, device=device, dtype=dtype
        )
        for name in ("bias_k", "bias_v"):
            if add_bias_kv:
                self._add(name, (1, 1, embed_dim), device, dtype)
            else:
                setattr(self, name, None)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _add(self, name: str, shape: tuple[int, ...], device: Any, dtype: Any) -> None:
        empty = _VF.empty
        setattr(self, name, Parameter(empty(shape, device=device, dtype=dtype)))

    def _add_projections(self, bias: bool, device: Any, dtype: Any) -> None:
        width = self.embed_dim
        separate = {"q": width, "k": self.kdim, "v": self.vdim}
        if self._qkv_same_embed_dim:
            self._add("in_proj_weight", (3 * width, width), device, dtype)
            for letter in separate:
                self.register_parameter(f"{letter}_proj_weight", None)
        else:
            for letter, features in separate.items():
                self._add(f"{letter}_proj_weight", (width, features), device, dtype)
            self.register_parameter("in_proj_weight", None)
        if bias:
            self._add("in_proj_bias", (3 * width,), device, dtype)
        else:
            self.register_parameter("in_proj_bias", None)

    def _reset_parameters(self) -> None:
        for weight in (
            self.in_proj_weight,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
        ):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            for bias in (self.in_proj_bias, self.out_proj.bias):
                if bias is not None:
                    init.constant_(bias, 0.0)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """Both masks as one, and what it is.

        Args:
            attn_mask: ``(L, L)`` or ``(N * num_heads, L, L)``, numbers to add to scores.
            key_padding_mask: ``(N, L)``, the same.
            query: ``(N, L, E)``.

        Returns:
            The mask ``(N, num_heads, L, L)`` and 2, the padding mask and 1, or twice ``None``.
        """
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, length = query.shape[:2]
        if attn_mask.dim() == 3:
            merged = attn_mask.view(batch, -1, length, length)
        else:
            merged = attn_mask.view(1, 1, length, length)
            merged = merged.expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            padding = key_padding_mask.view(batch, 1, 1, length)
            merged = merged + padding.expand(-1, self.num_heads, -1, -1)
        return merged, 2

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attends to ``value`` by the likeness of ``query`` and ``key``.

        Args:
            query: ``(L, N, E)``, ``(N, L, E)`` with ``batch_first``, or ``(L, E)``.
            key: ``(S, N, kdim)``, laid out as the query.
            value: ``(S, N, vdim)``, laid out as the query.
            key_padding_mask: ``(N, S)`` or ``(S)``: true, or minus infinity, for keys to ignore.
            need_weights: whether the attention weights are returned.
            attn_mask: ``(L, S)`` or ``(N * num_heads, L, S)``: the same for pairs.
            average_attn_weights: whether the weights returned are averaged over the heads.
            is_causal: a hint that ``attn_mask`` is the causal mask.

        Returns:
            The output, laid out as the query, and the weights ``(N, L, S)`` or ``None``. Of one
            nested tensor for all three, in evaluation and without gradients, the output is nested.

        Raises:
            AssertionError: for nested tensors otherwise.
        """
        if query.is_nested or key.is_nested or value.is_nested:
            from .._nested_attention import attended

            masks = (key_padding_mask, attn_mask)
            inputs = (query, key, value)
            return attended(self, inputs, masks, need_weights, average_attn_weights)
        swap = self.batch_first and query.dim() == 3
        if swap:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (output.transpose(0, 1) if swap else output), weights
