"""Reductions, and other functions that combine elements along dimensions, such as softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C
from .._tensor import Tensor
from ._jagged import NestedTensor, components, packed, unwrap, wrap

_VF = _C._VariableFunctions


def canonical(source: NestedTensor, dim: Any) -> list[int]:
    """Dimensions as numbers from zero."""
    found = []
    for one in dim if isinstance(dim, (tuple, list)) else [dim]:
        if not -source.dim() <= one < source.dim():
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-source.dim()}, "
                f"{source.dim() - 1}], but got {one})"
            )
        found.append(one % source.dim())
    if len(set(found)) != len(found):
        raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
    return found


def _tuple_of(result: Any, change: Callable[[Tensor], Any]) -> Any:
    """Applies a change to each tensor of a result."""
    if isinstance(result, Tensor):
        return change(result)
    return type(result)([change(one) for one in result])


def _reduce(
    name: str,
    func: Callable[..., Any],
    source: NestedTensor,
    *args: Any,
    keepdim: bool = False,
    **kwargs: Any,
) -> Any:
    kwargs, dim, rest = _arguments(name, args, kwargs)
    if rest:
        keepdim, *rest = rest
    if rest:
        raise RuntimeError(f"{name}(): too many arguments for a NestedTensor")
    if kwargs.pop("out", None) is not None:
        raise RuntimeError(f"{name}(): out= is not supported for NestedTensor")
    if dim is None or dim in ((), []):
        return func(unwrap(packed(source)), **kwargs)
    dims = canonical(source, dim)
    ragged = source._ragged_idx
    if 0 in dims and ragged not in dims:
        raise RuntimeError(
            f"{name}(): reducing along the batch dimension but not the ragged dimension is not "
            "supported for nested tensors"
        )
    if ragged in dims and 0 not in dims:
        if len(dims) > 1:
            raise RuntimeError(
                f"{name}(): reducing along a ragged and non-batch dimension is not supported for "
                "nested tensors"
            )
        many = isinstance(dim, (tuple, list))
        return _over_ragged(
            name, func, source, [ragged - 1] if many else ragged - 1, keepdim, kwargs
        )
    if 0 in dims and not isinstance(dim, (tuple, list)):
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    return _over_others(func, source, dim, dims, keepdim, kwargs)


def _arguments(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[dict[str, Any], Any, list[Any]]:
    """Separates the dimension from what else is given."""
    rest = list(args)
    kwargs = dict(kwargs)
    if "axis" in kwargs:
        kwargs["dim"] = kwargs.pop("axis")
    dim = kwargs.pop("dim", None)
    if name in ("norm",):
        kwargs["p"] = rest.pop(0) if rest else kwargs.get("p", 2)
    if rest and dim is None:
        dim = rest.pop(0)
    return kwargs, dim, rest


def _over_others(
    func: Callable[..., Any],
    source: NestedTensor,
    dim: Any,
    dims: list[int],
    keepdim: bool,
    kwargs: dict[str, Any],
) -> Any:
    if 0 in dims:
        source = packed(source)
    inner: Any = [one - 1 for one in dims if one]
    if not isinstance(dim, (tuple, list)):
        inner = inner[0]
    result = func(unwrap(source), dim=inner, keepdim=keepdim, **kwargs)
    if 0 in dims:
        return _tuple_of(result, lambda one: one.unsqueeze(0) if keepdim else one)
    before = 0 if keepdim else sum(one < source._ragged_idx for one in dims)
    return _tuple_of(result, lambda one: wrap(one, source._structure, source._ragged_idx - before))


def _over_ragged(
    name: str,
    func: Callable[..., Any],
    source: NestedTensor,
    at: Any,
    keepdim: bool,
    kwargs: dict[str, Any],
) -> Any:
    is_sum = name == "sum" or (name == "mean" and source._values.is_floating_point())
    if is_sum and kwargs.get("dtype") is None:
        return _sums(name, packed(source), keepdim)
    results = [func(one, dim=at, keepdim=keepdim, **kwargs) for one in components(source)]
    if not results:
        raise RuntimeError(f"{name}(): a NestedTensor without components has nothing to reduce")
    if isinstance(results[0], Tensor):
        return _VF.stack(results)
    return type(results[0])([_VF.stack(parts) for parts in zip(*results, strict=True)])


def _sums(name: str, source: NestedTensor, keepdim: bool) -> Tensor:
    """Sums over the ragged dimension, all components at once."""
    values, structure, at = unwrap(source), source._structure, source._ragged_idx - 1
    first = values.movedim(at, 0)
    if not (values.is_floating_point() or values.is_complex()):
        first = first.to(_C.int64)
    empty = first.new_zeros([structure.batch, *first.size()[1:]])
    sums: Tensor = empty.index_add(0, structure.rows(), first)
    if name == "mean":
        counts = _C.tensor(structure.counts, dtype=values.dtype)
        sums = sums / counts.reshape([-1] + [1] * (sums.dim() - 1))
    return sums.unsqueeze(source._ragged_idx) if keepdim else sums


def _whole(name: str, func: Callable[..., Any], source: NestedTensor, **kwargs: Any) -> Any:
    return func(unwrap(packed(source)), **kwargs)


def _softmax(
    name: str,
    func: Callable[..., Any],
    source: NestedTensor,
    dim: Any = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    if dim is None:
        raise RuntimeError(f"{name}(): dim must be given for a NestedTensor")
    (at,) = canonical(source, dim)
    if at == 0:
        raise RuntimeError(
            f"{name}(): not supported when reducing across the batch dimension for NestedTensor"
        )
    if at != source._ragged_idx:
        values = func(unwrap(source), at - 1, *args, **kwargs)
        return wrap(values, source._structure, source._ragged_idx)
    source = packed(source)
    parts = [func(one, at - 1, *args, **kwargs) for one in components(source)]
    if not parts:
        return source
    return wrap(_VF.cat(parts, at - 1), source._structure, source._ragged_idx)


REDUCTIONS = frozenset(
    {
        *("sum", "mean", "prod", "amax", "amin", "max", "min", "argmax", "argmin", "any", "all"),
        *("var", "std", "logsumexp", "norm", "nansum", "nanmean", "count_nonzero"),
    }
)
ALONG = frozenset({"softmax", "log_softmax", "softmin", "cumsum", "cumprod", "logcumsumexp"})


def _count(name: str, func: Callable[..., Any], source: Any, *args: Any, **kwargs: Any) -> Any:
    """Counts have no ``keepdim``."""
    kwargs, dim, rest = _arguments(name, args, kwargs)
    if rest or (dim is not None and source._ragged_idx not in canonical(source, dim)):
        raise RuntimeError(f"{name}(): supported over all or the ragged dimension of NestedTensor")
    if dim is None:
        return _whole(name, func, source)
    return _reduce(
        name, lambda one, dim, keepdim: func(one, dim=dim), source, dim=dim, keepdim=False
    )


def _reduce_or_pair(
    name: str, func: Callable[..., Any], source: Any, *args: Any, **kwargs: Any
) -> Any:
    """``max`` and ``min`` of two tensors are pointwise."""
    from ._pointwise import TABLE as pointwise

    other = args[0] if args else kwargs.get("other")
    if isinstance(other, Tensor):
        return pointwise["maximum"](name, func, source, *args, **kwargs)
    return _reduce(name, func, source, *args, **kwargs)


TABLE: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(REDUCTIONS, _reduce),
    **dict.fromkeys(ALONG, _softmax),
    "max": _reduce_or_pair,
    "min": _reduce_or_pair,
    "count_nonzero": _count,
}
