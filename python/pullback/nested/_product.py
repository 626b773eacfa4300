"""Products, attention, normalizations and embeddings of jagged tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C
from .._tensor import Tensor
from ._jagged import NestedTensor, components, packed, unwrap, wrap, wrap_shared

_VF = _C._VariableFunctions
_Func = Callable[..., Any]


def _shapes(first: Any, other: Any) -> str:
    return f"inputs of shapes {first.shape} and {other.shape}"


def _bmm(name: str, func: _Func, input: Any, mat2: Any) -> Any:
    return _matmul(name, func, input, mat2)


def _matmul(name: str, func: _Func, first: Any, other: Any) -> Any:
    if name == "__rmatmul__":
        first, other = other, first
    if isinstance(first, NestedTensor) and isinstance(other, NestedTensor):
        return _nested_product(name, first, other)
    if not isinstance(first, NestedTensor):
        return _dense_first(name, first, other)
    inner = first.dim() - 1 != first._ragged_idx
    if not inner:
        raise RuntimeError(
            f"{name}(): not supported between {_shapes(first, other)}: the last dimension is ragged"
        )
    if other.dim() <= 2:
        ragged = first._ragged_idx
        return wrap_shared(_VF.matmul(unwrap(first), other), first._structure, ragged)
    if other.size(0) not in (1, first._structure.batch) or other.dim() > first.dim():
        raise RuntimeError(f"{name}(): not supported between {_shapes(first, other)}")
    whole = packed(first)
    if not components(whole):
        raise RuntimeError(f"{name}(): not supported between {_shapes(first, other)}")
    weights = list(other.expand([first._structure.batch, *other.size()[1:]]).unbind(0))
    parts = [_VF.matmul(a, b) for a, b in zip(components(whole), weights, strict=True)]
    return wrap(_VF.cat(parts, whole._ragged_idx - 1), whole._structure, whole._ragged_idx)


def _dense_first(name: str, first: Tensor, other: NestedTensor) -> Any:
    """A matrix times the columns of a tensor that is ragged in the last dimension."""
    if other._ragged_idx != other.dim() - 1 or first.dim() > 2:
        raise RuntimeError(f"{name}(): not supported between {_shapes(first, other)}")
    ragged = other._ragged_idx - (first.dim() == 1)
    return wrap_shared(_VF.matmul(first, unwrap(other)), other._structure, ragged)


def _nested_product(name: str, first: NestedTensor, other: NestedTensor) -> Any:
    """Products of component with component, where no result has two ragged dimensions."""
    same = first._structure == other._structure and first.dim() == other.dim()
    last = first.dim() - 1
    if not same or first._ragged_idx != last or other._ragged_idx != last - 1:
        raise RuntimeError(f"{name}(): not supported between {_shapes(first, other)}")
    pairs = zip(components(first), components(other), strict=True)
    parts = [_VF.matmul(a, b) for a, b in pairs]
    if not parts:
        raise RuntimeError(f"{name}(): not supported between {_shapes(first, other)}")
    return _VF.stack(parts)


def _linear(name: str, func: _Func, source: Any, weight: Any, bias: Any = None) -> Any:
    if not isinstance(source, NestedTensor) or isinstance(weight, NestedTensor):
        raise RuntimeError("linear(): only the input may be a NestedTensor")
    if source._ragged_idx == source.dim() - 1:
        raise RuntimeError("linear(): not supported for NestedTensor on ragged dim")
    values = func(unwrap(source), weight, bias)
    return wrap_shared(values, source._structure, source._ragged_idx)


def _norm(
    name: str, func: _Func, input: Any, normalized_shape: Any, *args: Any, **kwargs: Any
) -> Any:
    """``layer_norm`` and ``rms_norm``."""
    if not isinstance(input, NestedTensor):
        raise RuntimeError(f"{name}(): only the input may be a NestedTensor")
    many = isinstance(normalized_shape, (tuple, list))
    sizes = list(normalized_shape) if many else [normalized_shape]
    if len(sizes) >= input.dim():
        raise RuntimeError(
            f"{name}(): not supported when normalizing over the batch dimension for NestedTensor"
        )
    if input.dim() - len(sizes) <= input._ragged_idx:
        return _norm_of_components(name, func, input, sizes, args, kwargs)
    values = func(unwrap(input), sizes, *args, **kwargs)
    return wrap_shared(values, input._structure, input._ragged_idx)


def _norm_of_components(
    name: str,
    func: _Func,
    source: NestedTensor,
    sizes: list[Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Over the ragged dimension each component has its own mean and spread."""
    if source.dim() <= 2:
        raise RuntimeError(
            f"{name}(): not supported for NestedTensor objects with 2 or fewer dimensions on the "
            "ragged dimension"
        )
    given = [*args, *kwargs.values()]
    fits = sizes == list(source.shape[-len(sizes) :])
    if not fits or any(isinstance(one, Tensor) for one in given):
        raise RuntimeError(
            f"{name}(): over the ragged dimension of a NestedTensor of shape {source.shape}, "
            f"normalized_shape must be its last sizes, got {sizes}, and there can be no weight"
        )
    source = packed(source)
    at = len(sizes)
    parts = [func(one, list(one.size()[-at:]), *args, **kwargs) for one in components(source)]
    ragged = source._ragged_idx
    return wrap(_VF.cat(parts, ragged - 1), source._structure, ragged) if parts else source


def _normalize(
    name: str, func: _Func, source: NestedTensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12
) -> Any:
    from ._view import _one

    at = _one(name, source, dim)
    return wrap(func(unwrap(source), p, at - 1, eps), source._structure, source._ragged_idx)


def _embedding(name: str, func: _Func, source: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    if not isinstance(source, NestedTensor):
        raise RuntimeError("embedding(): the weight may not be a NestedTensor")
    values = func(unwrap(source), weight, *args, **kwargs)
    return wrap_shared(values, source._structure, source._ragged_idx)


def _attention(
    name: str,
    func: _Func,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    **kwargs: Any,
) -> Any:
    """Each component by itself: nothing is held for padding."""
    given = query, key, value
    if not all(isinstance(one, NestedTensor) for one in given):
        raise ValueError(
            "scaled_dot_product_attention(): expected query, key and value all to be nested"
        )
    if attn_mask is not None:
        raise ValueError(
            "scaled_dot_product_attention(): attn_mask is not supported for NestedTensor; "
            "is_causal is"
        )
    for one in given:
        if one._ragged_idx != one.dim() - 2:
            raise ValueError(
                "scaled_dot_product_attention(): the ragged dimension must be the last but one, "
                f"got {one.shape}"
            )
    if key._structure != value._structure:
        raise ValueError(
            f"scaled_dot_product_attention(): key and value have {_shapes(key, value)}"
        )
    if query._structure.batch != key._structure.batch:
        raise ValueError(
            f"scaled_dot_product_attention(): query and key have {_shapes(query, key)}"
        )
    query = packed(query)
    parts = [
        func(q, k, v, None, dropout_p, is_causal, **kwargs)
        for q, k, v in zip(*map(components, (query, key, value)), strict=True)
    ]
    if not parts:
        return query
    at = query._ragged_idx
    return wrap(_VF.cat(parts, at - 1), query._structure, at)


TABLE: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("matmul", "__matmul__", "__rmatmul__"), _matmul),
    "bmm": _bmm,
    "linear": _linear,
    **dict.fromkeys(("layer_norm", "rms_norm"), _norm),
    "normalize": _normalize,
    "embedding": _embedding,
    "scaled_dot_product_attention": _attention,
}
