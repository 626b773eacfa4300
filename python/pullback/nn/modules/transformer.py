"""The Transformer (Vaswani et al. 2017): layers of encoder and decoder, their stacks, and both.

PyTorch computes an encoder in evaluation without gradients by one fused kernel on ragged batches;
here there is one way. What can be seen of PyTorch's other one is kept: outputs at padded positions
are zeros where it would be taken (`TransformerEncoder._padded_positions`).
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

from ... import _C
from ..._tensor import Tensor
from .. import functional as F
from .._attention import additive_mask
from .._native import VF as _VF
from ..init import xavier_uniform_
from .activation import GELU, MultiheadAttention, ReLU
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

Activation = Callable[[Tensor], Tensor]


def _generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
    """``(sz, sz)``: minus infinity above the diagonal, else 0."""
    full: Tensor = _VF.full((sz, sz), float("-inf"), device=device, dtype=dtype)
    return full.triu(1)


def _get_clones(module: Module, N: int) -> ModuleList:
    """That many copies, none of which is the module itself."""
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


def _get_activation_fn(activation: str) -> Activation:
    functions: dict[str, Activation] = {"relu": F.relu, "gelu": F.gelu}
    if activation not in functions:
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return functions[activation]


def _get_seq_len(src: Tensor, batch_first: bool) -> int | None:
    """The length of the sequences; None for an input that is neither one sequence nor a batch."""
    if src.dim() == 2:
        return src.size(0)
    return src.size(1 if batch_first else 0) if src.dim() == 3 else None


def _detect_is_causal_mask(
    mask: Tensor | None, is_causal: bool | None = None, size: int | None = None
) -> bool:
    """Whether to treat a mask as the causal one: as the caller says, or else by its elements."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    length = mask.size(-2) if size is None else size
    causal = _generate_square_subsequent_mask(length, device=mask.device, dtype=mask.dtype)
    return mask.size() == causal.size() and bool((mask == causal).all())


class Transformer(Module):
    """An encoder of the source and a decoder of the target that attends to it.

    Args:
        d_model: features of both.
        nhead: how many heads attention has.
        num_encoder_layers: how many layers the encoder has.
        num_decoder_layers: how many the decoder has.
        dim_feedforward: features between the two linear maps of a layer.
        dropout: the probability of dropping.
        activation: between those maps: ``'relu'``, ``'gelu'`` or a function.
        custom_encoder: a module in the place of the encoder.
        custom_decoder: a module in the place of the decoder.
        layer_norm_eps: of the layer norms.
        batch_first: whether batches are ``(N, S, E)`` instead of ``(S, N, E)``.
        norm_first: whether norms come before attention and linear maps, not after.
        bias: whether linear maps and norms have biases.
        device: where the parameters are made.
        dtype: of the parameters.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        layer_options: tuple[Any, ...] = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
        )

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)

        if custom_encoder is None:
            layer = TransformerEncoderLayer(*layer_options, **options)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm())
        self.encoder = custom_encoder
        if custom_decoder is None:
            decoder_layer = TransformerDecoderLayer(*layer_options, **options)
            custom_decoder = TransformerDecoder(decoder_layer, num_decoder_layers, norm())
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Encodes ``src`` and decodes ``tgt``.

        Args:
            src: ``(S, N, E)``, ``(N, S, E)`` with ``batch_first``, or ``(S, E)``.
            tgt: ``(T, N, E)``, laid out as the source.
            src_mask: for pairs of source positions; see :class:`MultiheadAttention`.
            tgt_mask: for pairs of target positions.
            memory_mask: for pairs of target and source positions.
            src_key_padding_mask: ``(N, S)``: source positions to ignore.
            tgt_key_padding_mask: ``(N, T)``: target positions to ignore.
            memory_key_padding_mask: ``(N, S)``: encoded positions to ignore.
            src_is_causal: whether ``src_mask`` is causal; found out unless given.
            tgt_is_causal: whether ``tgt_mask`` is.
            memory_is_causal: whether ``memory_mask`` is.

        Raises:
            RuntimeError: sizes of batches or features do not agree.
        """
        batch_dim = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch_dim) != tgt.size(batch_dim):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        output: Tensor = self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )
        return output

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The causal mask ``(sz, sz)``: minus infinity above the diagonal, else 0."""
        return _generate_square_subsequent_mask(sz, device=device, dtype=dtype)

    def _reset_parameters(self) -> None:
        """Draws all matrices anew, by Glorot's rule."""
        for param in self.parameters():
            if param.dim() > 1:
                xavier_uniform_(param)


class TransformerEncoder(Module):
    """A stack of encoder layers.

    Args:
        encoder_layer: the layer; the stack has copies of it.
        num_layers: how many.
        norm: a module for the output of the last.
        enable_nested_tensor: whether PyTorch may leave padded positions out, in evaluation without
            gradients: the output is zero there (before ``norm``).
        mask_check: whether it looks if the padding is at the ends first.
    """

    __constants__ = ["norm"]  # noqa: RUF012 (as PyTorch has it)

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        obstacle = _obstacle(encoder_layer)
        self.use_nested_tensor = enable_nested_tensor and obstacle is None
        if enable_nested_tensor and obstacle is not None:
            warnings.warn(
                "enable_nested_tensor is True, but self.use_nested_tensor is False because "
                f"{obstacle}",
                stacklevel=2,
            )
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Passes the source through the layers.

        Args:
            src: as of :class:`TransformerEncoderLayer`.
            mask: for pairs of positions.
            src_key_padding_mask: positions to ignore.
            is_causal: whether ``mask`` is causal; found out unless given.
        """
        padding = additive_mask(src_key_padding_mask, "src_key_padding_mask", src.dtype)
        mask = additive_mask(mask, "mask", src.dtype)
        attention = getattr(self.layers[0], "self_attn", None)
        batch_first = bool(getattr(attention, "batch_first", False))
        causal = _detect_is_causal_mask(mask, is_causal, _get_seq_len(src, batch_first))
        ignored = self._padded_positions(src, mask, padding)
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        if ignored is not None:
            output = output.masked_fill(ignored.unsqueeze(-1), 0.0)
        return output if self.norm is None else self.norm(output)

    def _padded_positions(
        self, src: Tensor, mask: Tensor | None, padding: Tensor | None
    ) -> Tensor | None:
        """The positions that PyTorch's kernel for ragged batches leaves out; None without a call.

        It is called in evaluation, without autocast, and where no gradient is wanted.
        """
        if padding is None or mask is not None or not getattr(self, "use_nested_tensor", False):
            return None
        layer: Any = self.layers[0]
        if src.dim() != 3 or layer.training or _obstacle(layer) is not None:
            return None
        ignored = padding != 0
        # (Padding is at the ends when no position that counts follows one that does not.)
        if getattr(self, "mask_check", True) and bool((ignored[:, :-1] & ~ignored[:, 1:]).any()):
            return None
        if _C.is_autocast_enabled(src.device.type):
            return None
        tensors = (src, *layer.parameters())
        if _C.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
            return None
        return ignored


def _obstacle(layer: Any) -> str | None:
    """Why PyTorch's kernel for ragged batches refuses a layer; None if it does not."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention = layer.self_attn
    for fits, reason in (
        (not layer.norm_first, "encoder_layer.norm_first was True"),
        (
            attention.batch_first,
            "encoder_layer.self_attn.batch_first was not True"
            "(use batch_first for better inference performance)",
        ),
        (
            attention._qkv_same_embed_dim,
            "encoder_layer.self_attn._qkv_same_embed_dim was not True",
        ),
        (attention.in_proj_bias is not None, "encoder_layer.self_attn was passed bias=False"),
        (layer.activation_relu_or_gelu, "encoder_layer.activation_relu_or_gelu was not True"),
        (
            layer.norm1.eps == layer.norm2.eps,
            "encoder_layer.norm1.eps was not equal to encoder_layer.norm2.eps",
        ),
        (attention.num_heads % 2 == 0, "encoder_layer.self_attn.num_heads is odd"),
    ):
        if not fits:
            return reason
    return None


class TransformerDecoder(Module):
    """A stack of decoder layers.

    Args:
        decoder_layer: the layer; the stack has copies of it.
        num_layers: how many.
        norm: a module for the output of the last.
    """

    __constants__ = ["norm"]  # noqa: RUF012 (as PyTorch has it)

    def __init__(
        self,
        decoder_layer: TransformerDecoderLayer,
        num_layers: int,
        norm: Module | None = None,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Passes the target through the layers; arguments as of :class:`TransformerDecoderLayer`.

        ``tgt_is_causal`` is found out by the mask unless given.
        """
        attention = getattr(self.layers[0], "self_attn", None)
        length = _get_seq_len(tgt, bool(getattr(attention, "batch_first", False)))
        causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, length)
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


class _Layer(Module):
    """What the layers of encoder and decoder share: the two linear maps and the activation."""

    __constants__ = ["norm_first"]  # noqa: RUF012 (as PyTorch has it)

    # The attentions, and how many norms and dropouts there are; a subclass sets them.
    _attentions: tuple[str, ...] = ()

    self_attn: MultiheadAttention
    linear1: Linear
    dropout: Dropout
    linear2: Linear
    norm_first: bool
    norm1: LayerNorm
    norm2: LayerNorm
    dropout1: Dropout
    dropout2: Dropout
    activation: Any

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        for name in self._attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout=dropout, batch_first=batch_first, **options
            )
            self.add_module(name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **options)
        self.norm_first = norm_first
        numbers = range(1, len(self._attentions) + 2)
        for number in numbers:
            self.add_module(f"norm{number}", LayerNorm(d_model, eps=layer_norm_eps, **options))
        for number in numbers:
            self.add_module(f"dropout{number}", Dropout(dropout))
        self._set_activation(activation)

    def _set_activation(self, activation: str | Activation) -> None:
        if isinstance(activation, str):
            activation = _get_activation_fn(activation)
        self.activation = activation

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("activation", F.relu)

    def _maps(self, x: Tensor) -> Tensor:
        """The two linear maps, the activation and a dropout between them."""
        result: Tensor = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return result


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself, then two linear maps; each is added to what it is given.

    ``x = norm1(x + attention(x)); x = norm2(x + maps(x))``, or with ``norm_first``
    ``x = x + attention(norm1(x)); x = x + maps(norm2(x))``.

    Args:
        d_model: features of input and output.
        nhead: how many heads attention has.
        dim_feedforward: features between the two linear maps.
        dropout: the probability of dropping.
        activation: between those maps: ``'relu'``, ``'gelu'`` or a function.
        layer_norm_eps: of the layer norms.
        batch_first: whether batches are ``(N, S, E)`` instead of ``(S, N, E)``.
        norm_first: whether norms come before attention and linear maps, not after.
        bias: whether linear maps and norms have biases.
        device: where the parameters are made.
        dtype: of the parameters.
    """

    _attentions = ("self_attn",)

    activation_relu_or_gelu: int

    def _set_activation(self, activation: str | Activation) -> None:
        super()._set_activation(activation)
        # The codes of PyTorch's fused kernel: 1 for relu, 2 for gelu, 0 for others.
        kind: Any = self.activation
        is_relu = kind is F.relu or isinstance(kind, ReLU)
        is_gelu = kind is F.gelu or isinstance(kind, GELU)
        self.activation_relu_or_gelu = 1 if is_relu else 2 if is_gelu else 0

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """One step of the encoder.

        Args:
            src: ``(S, N, E)``, ``(N, S, E)`` with ``batch_first``, or ``(S, E)``.
            src_mask: ``(S, S)`` or ``(N * nhead, S, S)``: pairs to ignore.
            src_key_padding_mask: ``(N, S)`` or ``(S)``: positions to ignore.
            is_causal: a hint that ``src_mask`` is the causal mask.
        """
        padding = additive_mask(src_key_padding_mask, "src_key_padding_mask", src.dtype)
        mask = additive_mask(src_mask, "src_mask", src.dtype)
        if self.norm_first:
            x = src + self._sa_block(self.norm1(src), mask, padding, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(src + self._sa_block(src, mask, padding, is_causal))
        result: Tensor = self.norm2(x + self._ff_block(x))
        return result

    def _sa_block(
        self,
        x: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        """Attention to itself, and a dropout."""
        attended = self.self_attn(
            x,
            x,
            x,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            need_weights=False,
            is_causal=is_causal,
        )
        result: Tensor = self.dropout1(attended[0])
        return result

    def _ff_block(self, x: Tensor) -> Tensor:
        """The linear maps, and a dropout."""
        result: Tensor = self.dropout2(self._maps(x))
        return result


class TransformerDecoderLayer(_Layer):
    """Attention of a sequence to itself, then to the memory, then two linear maps.

    Each is added to what it is given, with norms after or, with ``norm_first``, before it.

    Args:
        d_model: features of input and output.
        nhead: how many heads attention has.
        dim_feedforward: features between the two linear maps.
        dropout: the probability of dropping.
        activation: between those maps: ``'relu'``, ``'gelu'`` or a function.
        layer_norm_eps: of the layer norms.
        batch_first: whether batches are ``(N, T, E)`` instead of ``(T, N, E)``.
        norm_first: whether norms come before attention and linear maps, not after.
        bias: whether linear maps and norms have biases.
        device: where the parameters are made.
        dtype: of the parameters.
    """

    _attentions = ("self_attn", "multihead_attn")

    multihead_attn: MultiheadAttention
    norm3: LayerNorm
    dropout3: Dropout

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """One step of the decoder.

        Args:
            tgt: ``(T, N, E)``, ``(N, T, E)`` with ``batch_first``, or ``(T, E)``.
            memory: what the encoder gave, ``(S, N, E)``, laid out as the target.
            tgt_mask: ``(T, T)`` or ``(N * nhead, T, T)``: pairs to ignore.
            memory_mask: ``(T, S)`` or ``(N * nhead, T, S)``: pairs to ignore.
            tgt_key_padding_mask: ``(N, T)``: positions to ignore.
            memory_key_padding_mask: ``(N, S)``: positions to ignore.
            tgt_is_causal: a hint that ``tgt_mask`` is the causal mask.
            memory_is_causal: a hint that ``memory_mask`` is.
        """

        def to_itself(x: Tensor) -> Tensor:
            return self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)

        def to_memory(x: Tensor) -> Tensor:
            return self._mha_block(
                x, memory, memory_mask, memory_key_padding_mask, memory_is_causal
            )

        x = tgt
        steps = ((self.norm1, to_itself), (self.norm2, to_memory), (self.norm3, self._ff_block))
        for norm, step in steps:
            x = x + step(norm(x)) if self.norm_first else norm(x + step(x))
        return x

    def _sa_block(
        self,
        x: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        """Attention to itself, and a dropout."""
        attended = self.self_attn(
            x,
            x,
            x,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            is_causal=is_causal,
            need_weights=False,
        )
        result: Tensor = self.dropout1(attended[0])
        return result

    def _mha_block(
        self,
        x: Tensor,
        mem: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        """Attention to the memory, and a dropout."""
        attended = self.multihead_attn(
            x,
            mem,
            mem,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            is_causal=is_causal,
            need_weights=False,
        )
        result: Tensor = self.dropout2(attended[0])
        return result

    def _ff_block(self, x: Tensor) -> Tensor:
        """The linear maps, and a dropout."""
        result: Tensor = self.dropout3(self._maps(x))
        return result
