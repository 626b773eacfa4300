"""What nested tensors of the strided layout can do: each rule goes through the components."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _C
from .._tensor import Tensor
from . import _pointwise
from ._level import below
from ._rules import _AS_THEY_ARE, _OPS
from ._strided import StridedNestedTensor, unwrap, wrap

_VF = _C._VariableFunctions
_Func = Callable[..., Any]


def _dim(source: StridedNestedTensor, dim: int) -> int:
    if not -source.dim() <= dim < source.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-source.dim()}, "
            f"{source.dim() - 1}], but got {dim})"
        )
    return dim % source.dim()


def _each(name: str, func: _Func, source: Any, *args: Any, **kwargs: Any) -> Any:
    if not isinstance(source, StridedNestedTensor) or _has_nested((*args, *kwargs.values())):
        raise RuntimeError(f"{name}(): only the first argument may be a nested tensor")
    return wrap([func(one, *args, **kwargs) for one in unwrap(source)], source)


def _has_nested(given: Sequence[Any]) -> bool:
    return any(isinstance(one, StridedNestedTensor) for one in given)


def _pairs(name: str, func: _Func, *args: Any, **kwargs: Any) -> Any:
    nested = [one for one in args if isinstance(one, StridedNestedTensor)]
    first = nested[0]
    for one in args:
        plain = isinstance(one, Tensor) and not isinstance(one, StridedNestedTensor)
        if plain and one.dim() and name != "where":
            raise RuntimeError(
                "Expected both self and other to be nested, but got a nested self and non-nested "
                "other"
            )
    for one in nested[1:]:
        if [x.size() for x in one._parts] != [x.size() for x in first._parts]:
            raise RuntimeError(
                f"{name}(): expected nested tensors whose components have the same sizes"
            )
    columns = [
        unwrap(one) if isinstance(one, StridedNestedTensor) else [one] * len(first._parts)
        for one in args
    ]
    return wrap([func(*row, **kwargs) for row in zip(*columns, strict=True)], first)


def _transpose(name: str, func: _Func, source: StridedNestedTensor, dim0: int, dim1: int) -> Any:
    first, second = _dim(source, dim0), _dim(source, dim1)
    if 0 in (first, second) and first != second:
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed")
    if first == second:
        return wrap(unwrap(source), source)
    return wrap([one.transpose(first - 1, second - 1) for one in unwrap(source)], source)


def _softmax(
    name: str, func: _Func, source: StridedNestedTensor, dim: int, *args: Any, **kwargs: Any
) -> Any:
    at = _dim(source, dim)
    if at == 0:
        raise RuntimeError("Cannot apply softmax across nested dimension 0")
    return wrap([func(one, at - 1, *args, **kwargs) for one in unwrap(source)], source)


def _sum(
    name: str,
    func: _Func,
    source: StridedNestedTensor,
    dim: Any = None,
    keepdim: bool = False,
    **kwargs: Any,
) -> Any:
    if dim is None:
        return func(source.values(), **kwargs)
    dims = dim if isinstance(dim, (tuple, list)) else [dim]
    if [_dim(source, one) for one in dims] != [source.dim() - 1]:
        raise RuntimeError(
            "NestedTensor can only be reduced across the last dimension for now got dimension "
            f"{dims[0]} instead."
        )
    if not keepdim:
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")
    return wrap([func(one, dim=-1, keepdim=True, **kwargs) for one in unwrap(source)], source)


def _matmul(name: str, func: _Func, first: Any, other: Any) -> Any:
    words = [
        "nested" if isinstance(one, StridedNestedTensor) else "non-nested" for one in (first, other)
    ]
    if "non-nested" in words:
        raise RuntimeError(
            f"Expected both to be nested, but got a {words[0]} self and {words[1]} other"
        )
    if len(first._parts) != len(other._parts):
        raise RuntimeError(
            f"{name}(): expected the same number of components, got {len(first._parts)} and "
            f"{len(other._parts)}"
        )
    pairs = zip(unwrap(first), unwrap(other), strict=True)
    return wrap([_VF.matmul(a, b) for a, b in pairs], first)


def _layer_norm(name: str, func: _Func, source: Any, sizes: Any, *args: Any, **kwargs: Any) -> Any:
    count = len(sizes) if isinstance(sizes, (tuple, list)) else 1
    if count >= source.dim():
        raise RuntimeError(f"{name}(): the batch of a nested tensor cannot be normalized over")
    return _each(name, func, source, sizes, *args, **kwargs)


def _attention(
    name: str, func: _Func, query: Any, key: Any, value: Any, *args: Any, **kwargs: Any
) -> Any:
    given = query, key, value
    if not all(isinstance(one, StridedNestedTensor) for one in given):
        raise ValueError(f"{name}(): expected query, key and value all to be nested")
    if args[:1] not in ((), (None,)) or kwargs.get("attn_mask") is not None:
        raise ValueError(f"{name}(): attn_mask is not supported for nested tensors; is_causal is")
    if len({len(one._parts) for one in given}) != 1:
        raise ValueError(f"{name}(): query, key and value need one number of components")
    rows = zip(*map(unwrap, given), strict=True)
    return wrap([func(*row, *args, **kwargs) for row in rows], query)


def _unbind(name: str, func: _Func, source: StridedNestedTensor, dim: int = 0) -> Any:
    if _dim(source, dim) != 0:
        raise RuntimeError(
            "NestedTensor can only be unbound along dimension 0 got dimension "
            f"{_dim(source, dim)} instead."
        )
    return tuple(unwrap(source))


def _select(name: str, func: _Func, source: StridedNestedTensor, dim: int, index: int) -> Any:
    at = _dim(source, dim)
    if at:
        return wrap([one.select(at - 1, index) for one in unwrap(source)], source)
    if not -len(source._parts) <= index < len(source._parts):
        raise IndexError(
            f"index {index} is out of bounds for dimension 0 with size {len(source._parts)}"
        )
    return unwrap(source)[index]


def _getitem(name: str, func: _Func, source: StridedNestedTensor, index: Any) -> Any:
    head, rest = (index[0], index[1:]) if isinstance(index, tuple) and index else (index, ())
    if not isinstance(head, int) or isinstance(head, bool):
        source._refuse("sizes")
    component = _select(name, func, source, 0, head)
    return component[rest] if rest else component


def _chunk(name: str, func: _Func, source: StridedNestedTensor, count: Any, dim: int = 0) -> Any:
    at = _dim(source, dim)
    if at != source.dim() - 1:
        raise RuntimeError(
            f"{name}() for nested tensors is currently only supported for the last dimension."
        )
    columns = [func(one, count, at - 1) for one in unwrap(source)]
    if len({len(parts) for parts in columns}) > 1:
        raise RuntimeError(f"{name}(): the components have different numbers of parts")
    return tuple(wrap(parts, source) for parts in zip(*columns, strict=True))


def _view(name: str, func: _Func, source: StridedNestedTensor, *given: Any) -> Any:
    sizes = list(given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given)
    if len(sizes) < 2 or sizes[0] != len(source._parts):
        raise RuntimeError(
            f"{name}: For now nested view cannot change or infer the implicit batch dimension"
        )
    inner = sizes[1:]
    if inner.count(-1) > 1:
        raise RuntimeError(f"{name}: only one dimension of a nested tensor may be -1")
    return wrap([getattr(one, name)(inner) for one in unwrap(source)], source)


def _squeeze(name: str, func: _Func, source: StridedNestedTensor, dim: int) -> Any:
    at = _dim(source, dim) if name == "squeeze" else dim % (source.dim() + 1)
    if at == 0:
        raise RuntimeError(
            f"{name}(): For nested tensors, squeezing dimension 0 is not supported at the moment"
        )
    return wrap([func(one, at - 1) for one in unwrap(source)], source)


def to_padded(source: StridedNestedTensor, padding: float, output_size: Any = None) -> Tensor:
    """The components one below another, with ``padding`` where they end early."""
    dims = source.dim() - 1
    sizes = [len(source._parts)]
    sizes += [max((one.size(at) for one in source._parts), default=0) for at in range(dims)]
    wanted = sizes if output_size is None else [int(one) for one in output_size]
    if len(wanted) != len(sizes) or any(a < b for a, b in zip(wanted, sizes, strict=True)):
        raise RuntimeError(
            "Value in output_size is less than NestedTensor padded size. "
            "Truncation is not supported."
        )
    rows = []
    for one in unwrap(source):
        ends = [wanted[at + 1] - one.size(at) for at in reversed(range(dims))]
        rows.append(_VF.constant_pad_nd(one, [x for end in ends for x in (0, end)], padding))
    blank = _VF.full(wanted[1:], padding, dtype=source.dtype)
    rows += [blank] * (wanted[0] - len(rows))
    return _VF.stack(rows) if rows else _VF.full(wanted, padding, dtype=source.dtype)


def _padded(name: str, func: _Func, source: Any, padding: float, output_size: Any = None) -> Any:
    return to_padded(source, padding, output_size)


def _in_place(name: str, func: _Func, target: Any, *args: Any, **kwargs: Any) -> Any:
    given = [target, *args, *kwargs.values()]
    if not isinstance(target, StridedNestedTensor):
        raise RuntimeError(f"{name}(): a plain tensor cannot be filled from a nested tensor")
    if _C.is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in given):
        raise RuntimeError(
            f"{name}(): in-place operations on a nested tensor are not recorded; use the operation "
            "that makes a new one, or torch.no_grad()"
        )
    _pairs(name, func, target.detach(), *args, **kwargs)
    return target


def _is_same_size(name: str, func: _Func, source: Any, other: Any) -> bool:
    if not (isinstance(source, StridedNestedTensor) and isinstance(other, StridedNestedTensor)):
        raise RuntimeError("Expected both self and other to be nested tensors.")
    return [x.size() for x in source._parts] == [x.size() for x in other._parts]


TABLE: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(_pointwise.UNARY, _each),
    **dict.fromkeys(_pointwise.BROADCAST, _pairs),
    **dict.fromkeys(_pointwise.IN_PLACE, _in_place),
    **dict.fromkeys(("transpose", "swapaxes", "swapdims"), _transpose),
    **dict.fromkeys(("softmax", "log_softmax"), _softmax),
    **dict.fromkeys(("sum", "mean"), _sum),
    **dict.fromkeys(("matmul", "bmm", "__matmul__"), _matmul),
    **dict.fromkeys(("linear", "embedding", "contiguous"), _each),
    **dict.fromkeys(("layer_norm", "rms_norm"), _layer_norm),
    "scaled_dot_product_attention": _attention,
    "unbind": _unbind,
    "select": _select,
    "__getitem__": _getitem,
    **dict.fromkeys(("chunk", "split", "split_with_sizes"), _chunk),
    **dict.fromkeys(("view", "reshape"), _view),
    **dict.fromkeys(("squeeze", "unsqueeze"), _squeeze),
    "to_padded_tensor": _padded,
    "is_same_size": _is_same_size,
}


def call(func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Computes a call by its rule.

    Raises:
        NotImplementedError: for a call that has none; it is named.
    """
    name = getattr(func, "__name__", str(func))
    rule = TABLE.get(name)
    if rule is not None:
        return rule(name, func, *args, **kwargs)
    if name in _AS_THEY_ARE:
        return func(*args, **kwargs)
    raise NotImplementedError(f"{name}(): not supported for nested tensors of the strided layout")


def op(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Computes an op below autograd.

    Raises:
        NotImplementedError: for one that the engine does not use; it is named.
    """
    name = str(func).split(".")[1]
    if name not in _OPS:
        raise NotImplementedError(f"{func}: not supported for nested tensors of the strided layout")
    with below():
        return TABLE[name](name, func, *args, **kwargs)
