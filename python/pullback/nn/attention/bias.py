"""Causal masks of attention that are not made as tensors where that can be helped."""

from __future__ import annotations

import warnings
from enum import IntEnum, auto
from typing import Any

from ... import _C
from ..._tensor import Tensor
from .. import functional as F
from .._native import VF as _VF

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """Where the diagonal of a causal mask that is no square is: from a corner."""

    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()

    def __repr__(self) -> str:
        return f"<CausalVariant.{self.name}: {self.value}>"


class CausalBias(Tensor):
    """A causal mask for ``scaled_dot_product_attention``, by its sizes alone.

    All else that is done with one is done with the mask ``(seq_len_q, seq_len_kv)`` as a boolean
    tensor, true where attention is paid.

    Args:
        variant: where the diagonal is.
        seq_len_q: the length of the query.
        seq_len_kv: the length of key and value.

    Raises:
        AssertionError: another kind of variant.
    """

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        """Makes a mask; no memory depends on its sizes."""
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        shape = _VF.ones((), dtype=_bool()).expand(seq_len_q, seq_len_kv)
        made: Any = Tensor._make_subclass(cls, shape, False)
        made.variant, made.seq_len_q, made.seq_len_kv = variant, seq_len_q, seq_len_kv
        if variant is CausalVariant.LOWER_RIGHT and seq_len_q > seq_len_kv:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > "
                "seq_len_kv!",
                stacklevel=3,
            )
        result: CausalBias = made
        return result

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask as a tensor."""
        ones = _VF.ones((self.seq_len_q, self.seq_len_kv), device=device, dtype=_bool())
        lower = self.variant is CausalVariant.LOWER_RIGHT
        return ones.tril(self.seq_len_kv - self.seq_len_q if lower else 0)

    @staticmethod
    def _dispatch(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: CausalBias,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """Attention with such a mask.

        Raises:
            ValueError: ``is_causal`` is given, too.
        """
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        upper = attn_mask.variant is CausalVariant.UPPER_LEFT
        plain = upper or attn_mask.seq_len_q == attn_mask.seq_len_kv
        return F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=None if plain else attn_mask._materialize(query.device),
            dropout_p=dropout_p,
            is_causal=plain,
            scale=scale,
            enable_gqa=enable_gqa,
        )

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is F.scaled_dot_product_attention:
            return cls._dispatch(*args, **kwargs)

        def plain(value: Any) -> Any:
            return value._materialize() if isinstance(value, CausalBias) else value

        with _C.DisableTorchFunctionSubclass():
            if getattr(func, "__name__", "") == "__get__":
                return func(*args, **kwargs)
            named = {name: plain(value) for name, value in kwargs.items()}
            return func(*(plain(value) for value in args), **named)

    # (The names of a `__repr__`'s arguments are lost on mypy.)
    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return repr(self._materialize())


def _bool() -> Any:
    from ... import bool as dtype

    return dtype


def _causal(name: str, variant: CausalVariant, size: tuple[int, ...]) -> CausalBias:
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors")
    return CausalBias(variant, *size)


def causal_upper_left(*size: int) -> CausalBias:
    """The causal mask whose diagonal begins at the upper left: row ``i`` sees ``j <= i``.

    Raises:
        AssertionError: there are not two sizes.
    """
    return _causal("causal_upper_left", CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """The causal mask whose diagonal ends at the lower right: the last row sees all.

    Raises:
        AssertionError: there are not two sizes.
    """
    return _causal("causal_lower_right", CausalVariant.LOWER_RIGHT, size)
