"""Operations on the shape: those that keep the ragged dimension whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import _C
from .._symbol import SymInt
from .._tensor import Tensor
from ._jagged import NestedTensor, components, packed, unwrap, wrap
from ._reduction import canonical
from ._structure import of_counts

_VF = _C._VariableFunctions
_Func = Callable[..., Any]


def _one(name: str, source: NestedTensor, dim: int) -> int:
    """A dimension that is neither that of the batch nor the ragged one."""
    (at,) = canonical(source, dim)
    if at == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    if at == source._ragged_idx:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    return at


def _transpose(name: str, func: _Func, source: NestedTensor, dim0: int, dim1: int) -> Any:
    dims = canonical(source, [dim0]) + canonical(source, [dim1])
    if dims[0] == dims[1]:
        return wrap(unwrap(source), source._structure, source._ragged_idx)
    if 0 in dims:
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    ragged = source._ragged_idx
    if ragged in dims:
        ragged = dims[1 - dims.index(ragged)]
    return wrap(unwrap(source).transpose(dims[0] - 1, dims[1] - 1), source._structure, ragged)


def _permute(name: str, func: _Func, source: NestedTensor, *dims: Any, **kwargs: Any) -> Any:
    given = kwargs.get("dims", dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims)
    given = tuple(given)
    if len(given) != source.dim():
        raise ValueError(
            f"permute(): number of dimensions in the tensor input ({source.dim()}) does not match "
            f"the length of the desired ordering of dimensions ({len(given)})."
        )
    order = [canonical(source, one)[0] for one in given]
    if len(set(order)) != len(order):
        raise ValueError(f"permute(): duplicate dims are not allowed. Got {given}")
    if order[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    values = unwrap(source).permute([one - 1 for one in order[1:]])
    return wrap(values, source._structure, order.index(source._ragged_idx))


def _matrix_transpose(name: str, func: _Func, source: NestedTensor) -> Any:
    return _transpose(name, func, source, -2, -1)


def _unsqueeze(name: str, func: _Func, source: NestedTensor, dim: int) -> Any:
    at = dim + source.dim() + 1 if dim < 0 else dim
    if not 0 <= at <= source.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-source.dim() - 1}, "
            f"{source.dim()}], but got {dim})"
        )
    if at == 0:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    ragged = source._ragged_idx + (at <= source._ragged_idx)
    return wrap(unwrap(source).unsqueeze(at - 1), source._structure, ragged)


def _squeeze(name: str, func: _Func, source: NestedTensor, dim: Any = None) -> Any:
    if dim is None:
        raise RuntimeError("squeeze(): a NestedTensor needs the dim to squeeze")
    dims = canonical(source, dim)
    if 0 in dims:
        raise RuntimeError("squeeze(): not supported for NestedTensor on dim=0")
    if source._ragged_idx in dims:
        raise RuntimeError("squeeze(): not supported for NestedTensor on ragged dim")
    gone = [one for one in dims if source._values.size(one - 1) == 1]
    ragged = source._ragged_idx - sum(one < source._ragged_idx for one in gone)
    return wrap(unwrap(source).squeeze([one - 1 for one in gone]), source._structure, ragged)


def _flatten(
    name: str, func: _Func, source: NestedTensor, start_dim: int = 0, end_dim: int = -1
) -> Any:
    (start,), (end,) = canonical(source, start_dim), canonical(source, end_dim)
    if start == end:
        return wrap(unwrap(source), source._structure, source._ragged_idx)
    if start == 0:
        raise RuntimeError("flatten(): not supported for NestedTensor on dim=0")
    if start <= source._ragged_idx <= end:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    ragged = source._ragged_idx - (end - start if end < source._ragged_idx else 0)
    return wrap(unwrap(source).flatten(start - 1, end - 1), source._structure, ragged)


def _unflatten(name: str, func: _Func, source: NestedTensor, dim: int, sizes: Any) -> Any:
    at = _one(name, source, dim)
    ragged = source._ragged_idx + (len(sizes) - 1 if at < source._ragged_idx else 0)
    return wrap(unwrap(source).unflatten(at - 1, sizes), source._structure, ragged)


def _sizes_of(source: NestedTensor, given: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    for key in ("size", "shape"):
        if key in kwargs:
            return list(kwargs[key])
    return list(given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given)


def _view(name: str, func: _Func, source: NestedTensor, *given: Any, **kwargs: Any) -> Any:
    """New sizes, where the one for the ragged dimension is its symbol, or ``-1``."""
    sizes = _sizes_of(source, given, kwargs)
    if len(sizes) == 1 and isinstance(sizes[0], _C.dtype):
        return wrap(unwrap(source).view(sizes[0]), source._structure, source._ragged_idx)
    symbols = [at for at, one in enumerate(sizes) if isinstance(one, SymInt)]
    own = source._structure.size
    if len(symbols) > 1 or any(sizes[at] != own for at in symbols):
        raise RuntimeError(f"{name}(): cannot view shape {source.shape} as {sizes}")
    packed_shape = list(source._values.size())
    before = math.prod(packed_shape[: source._ragged_idx - 1])
    holders = symbols or [
        at for at, one in enumerate(sizes) if one == -1 and at and _product(sizes[1:at]) == before
    ]
    if len(sizes) < 2 or sizes[0] not in (source._structure.batch, -1) or not holders:
        raise RuntimeError(
            f"{name}(): cannot view shape {source.shape} as {sizes}: the batch and the ragged "
            "dimension must stay as they are"
        )
    at = holders[0]
    if at == 0 or _product(sizes[1:at]) != before:
        raise RuntimeError(f"{name}(): cannot view shape {source.shape} as {sizes}")
    inner = list(sizes[1:])
    inner[at - 1] = packed_shape[source._ragged_idx - 1]
    if -1 in inner:
        where = inner.index(-1)
        rest = math.prod(packed_shape[source._ragged_idx :])
        known = _product([one for one in inner[at:] if one != -1])
        if where < at or inner.count(-1) > 1 or known == 0 or rest % known:
            raise RuntimeError(f"{name}(): cannot view shape {source.shape} as {sizes}")
        inner[where] = rest // known
    if name == "view":
        return wrap(unwrap(source).view(inner), source._structure, at)
    return wrap(unwrap(source).reshape(inner), source._structure, at)


def _product(sizes: Sequence[int]) -> int:
    return math.prod(sizes)


def _like(name: str, func: _Func, source: Any, other: Any) -> Any:
    if not isinstance(source, NestedTensor):
        raise RuntimeError(f"{name}(): a plain tensor cannot get the shape of a NestedTensor")
    rule = _expand if name == "expand_as" else _view
    return rule(name.removesuffix("_as"), func, source, *other.size())


def _expand(name: str, func: _Func, source: NestedTensor, *given: Any, **kwargs: Any) -> Any:
    sizes = _sizes_of(source, given, kwargs)
    ragged = source._ragged_idx
    fits = len(sizes) == source.dim() and sizes[0] in (-1, source._structure.batch)
    if not fits or sizes[ragged] not in (-1, source._structure.size):
        raise RuntimeError(f"expand(): cannot expand shape {source.shape} -> {tuple(sizes)}")
    inner = [-1 if at == ragged - 1 else one for at, one in enumerate(sizes[1:])]
    return wrap(unwrap(source).expand(inner), source._structure, ragged)


def _narrow(name: str, func: _Func, source: NestedTensor, dim: int, start: int, length: int) -> Any:
    at = _one(name, source, dim)
    values = unwrap(source).narrow(at - 1, start, length)
    return wrap(values, source._structure, source._ragged_idx)


def _select(name: str, func: _Func, source: NestedTensor, dim: int, index: int) -> Any:
    (at,) = canonical(source, dim)
    if at == 0:
        return _component(source, index)
    _one(name, source, dim)
    ragged = source._ragged_idx - (at < source._ragged_idx)
    return wrap(unwrap(source).select(at - 1, index), source._structure, ragged)


def _component(source: NestedTensor, index: int) -> Tensor:
    batch = source._structure.batch
    if not -batch <= index < batch:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {source.shape} at dimension 0"
        )
    start, count = source._structure.starts[index], source._structure.counts[index]
    return unwrap(source).narrow(source._ragged_idx - 1, start, count)


def _getitem(name: str, func: _Func, source: NestedTensor, index: Any) -> Any:
    """Components, and what leaves batch and ragged dimension whole."""
    parts = list(index) if isinstance(index, tuple) else [index]
    given = sum(one is not None and one is not Ellipsis for one in parts)
    if any(isinstance(one, (Tensor, list)) for one in parts):
        raise NotImplementedError(
            "index(): indices that are tensors: not supported for NestedTensor"
        )
    if given > source.dim():
        raise IndexError(f"too many indices for tensor of dimension {source.dim()}")
    dots = [at for at, one in enumerate(parts) if one is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    at = dots[0] if dots else len(parts)
    parts[at : at + 1] = [slice(None)] * (source.dim() - given)
    head, *rest = parts
    if isinstance(head, int) and not isinstance(head, bool):
        component = _component(source, head)
        return component[tuple(rest)] if rest else component
    if head != slice(None):
        raise RuntimeError("slice(): not supported for NestedTensor on dim=0")
    seen = kept = 0
    ragged = 0
    for one in rest:
        if one is None:
            kept += 1
            continue
        seen += 1
        if seen == source._ragged_idx:
            if one != slice(None):
                kind = "select" if isinstance(one, int) else "slice"
                raise RuntimeError(f"{kind}(): not supported for NestedTensor on ragged dim")
            ragged = kept + 1
        kept += not isinstance(one, int)
    return wrap(unwrap(source)[tuple(rest)], source._structure, ragged)


def _unbind(name: str, func: _Func, source: NestedTensor, dim: int = 0) -> Any:
    if canonical(source, dim) != [0]:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    return tuple(components(source))


def _split(name: str, func: _Func, source: NestedTensor, *args: Any, **kwargs: Any) -> Any:
    """The first argument after the tensor has another name in each of these functions."""
    given = [*args, *(one for key, one in kwargs.items() if key != "dim")]
    if len(given) > 2 or (len(given) == 2 and "dim" in kwargs) or not given:
        raise TypeError(f"{name}(): expected how to split a NestedTensor, and a dim")
    dim = kwargs.get("dim", given[1] if len(given) == 2 else 0)
    sizes = isinstance(given[0], (tuple, list))
    at = _one("split_with_sizes" if name == "split" and sizes else name, source, dim)
    parts = getattr(unwrap(source), name)(given[0], at - 1)
    return tuple(wrap(one, source._structure, source._ragged_idx) for one in parts)


def _chunk(name: str, func: _Func, source: NestedTensor, chunks: int, dim: int = 0) -> Any:
    if canonical(source, dim) != [0]:
        return _split(name, func, source, chunks, dim)
    if chunks < 1:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    source = packed(source)
    counts, at = source._structure.counts, source._ragged_idx - 1
    step = max(1, -(-len(counts) // chunks))
    groups = [counts[first : first + step] for first in range(0, len(counts), step)]
    parts = unwrap(source).split([sum(group) for group in groups], at)
    pairs = zip(parts, groups, strict=True)
    return tuple(wrap(one, of_counts(group), at + 1) for one, group in pairs)


def _join(name: str, func: _Func, tensors: Any, dim: int = 0) -> Any:
    tensors = list(tensors)
    for one in tensors:
        if not isinstance(one, NestedTensor):
            raise RuntimeError(f"{name}(): expected all tensors to be NestedTensors")
    first = tensors[0]
    for one in tensors[1:]:
        if one._structure != first._structure or one._ragged_idx != first._ragged_idx:
            raise RuntimeError(
                f"{name}(): expected NestedTensors of one ragged structure, got {first.shape} and "
                f"{one.shape}"
            )
    if name == "stack":
        at = dim + first.dim() + 1 if dim < 0 else dim
        if at == 0:
            raise RuntimeError("stack(): not supported for NestedTensor on dim=0")
        ragged = first._ragged_idx + (at <= first._ragged_idx)
    else:
        at, ragged = _one("cat", first, dim), first._ragged_idx
    return wrap(func([unwrap(one) for one in tensors], at - 1), first._structure, ragged)


def _contiguous(name: str, func: _Func, source: NestedTensor, **kwargs: Any) -> Any:
    whole = packed(source)
    if whole is source and source.is_contiguous():
        return source
    return wrap(unwrap(whole).contiguous(), whole._structure, whole._ragged_idx)


def to_padded(source: NestedTensor, padding: float, output_size: Any = None) -> Tensor:
    """The components one below another, with ``padding`` where they end early."""
    source = packed(source)
    structure, at = source._structure, source._ragged_idx
    sizes = [structure.batch, *source._values.size()]
    sizes[at] = structure.longest
    wanted = sizes if output_size is None else [int(one) for one in output_size]
    if len(wanted) != len(sizes) or any(a < b for a, b in zip(wanted, sizes, strict=True)):
        raise RuntimeError(
            "Value in output_size is less than NestedTensor padded size. "
            "Truncation is not supported."
        )
    values = unwrap(source).movedim(at - 1, 0)
    empty = values.new_full([sizes[0], sizes[at], *values.size()[1:]], padding)
    padded = empty.index_put((structure.rows(), structure.positions()), values).movedim(1, at)
    if wanted == sizes:
        return padded
    grown = padded.new_full(wanted, padding)
    return grown.index_put(
        tuple(_VF.meshgrid([_VF.arange(one) for one in sizes], indexing="ij")), padded
    )


def _padded(name: str, func: _Func, source: Any, padding: float, output_size: Any = None) -> Any:
    return to_padded(source, padding, output_size)


def _item(name: str, func: _Func, source: NestedTensor) -> Any:
    if source.numel() != 1:
        raise RuntimeError(f"a Tensor with {source.numel()} elements cannot be converted to Scalar")
    return source._values.item()


TABLE: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("transpose", "swapaxes", "swapdims"), _transpose),
    "permute": _permute,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "flatten": _flatten,
    "unflatten": _unflatten,
    **dict.fromkeys(("view", "reshape", "_unsafe_view"), _view),
    **dict.fromkeys(("view_as", "reshape_as", "expand_as"), _like),
    "expand": _expand,
    "narrow": _narrow,
    "select": _select,
    "__getitem__": _getitem,
    "unbind": _unbind,
    **dict.fromkeys(("split", "split_with_sizes", "tensor_split"), _split),
    "chunk": _chunk,
    **dict.fromkeys(("cat", "concat", "concatenate", "stack"), _join),
    "contiguous": _contiguous,
    "to_padded_tensor": _padded,
    **dict.fromkeys(("item", "__bool__", "__float__", "__int__"), _item),
}
