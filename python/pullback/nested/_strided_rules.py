"""What nested tensors of the strided layout can do: each rule goes through the components."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from .. import _C
from .._tensor import Tensor
from . import _pointwise
from ._level import below
from ._rules import _AS_THEY_ARE, _OPS, VIEWS, name_of, shown
from ._strided import StridedNestedTensor, copied, unwrap, wrap

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
    _check_format(name, kwargs.get("memory_format"))
    return wrap([func(one, *args, **kwargs) for one in unwrap(source)], source)


def _check_format(name: str, format: Any) -> None:
    if format in (None, _C.preserve_format, _C.contiguous_format):
        return
    words = "".join(word.capitalize() for word in str(format).removeprefix("torch.").split("_"))
    raise RuntimeError(
        f"Nested tensor {name} supports Preserve and Contiguous memory formats, called {name} with "
        f"memory format: {words}"
    )


def _to(name: str, func: _Func, source: Any, *args: Any, **kwargs: Any) -> Any:
    """The tensor itself, if nothing changes."""
    if not isinstance(source, StridedNestedTensor):
        return func(source, args[0].device, args[0].dtype, *args[1:], **kwargs)
    if args and isinstance(args[0], Tensor):
        args = (args[0].device, args[0].dtype, *args[1:])
    parts = unwrap(source)
    made = [func(one, *args, **kwargs) for one in parts]
    if all(one is other for one, other in zip(made, parts, strict=True)):
        return source
    return wrap(made, source)


def _has_nested(given: Sequence[Any]) -> bool:
    return any(isinstance(one, StridedNestedTensor) for one in given)


def _pairs(name: str, func: _Func, *args: Any, **kwargs: Any) -> Any:
    nested = [one for one in args if isinstance(one, StridedNestedTensor)]
    first = nested[0]
    if name in _ROW_WISE and len(args) == 2 and _is_row_for_each(first, args[1]):
        args = first, wrap(args[1].unbind(0), first)
        rows = zip(unwrap(first), unwrap(args[1]), strict=True)
        return wrap([func(*row, **kwargs) for row in rows], first)
    for one in args:
        if _is_plain(one) and one.dim() and name != "where":
            words = ["non-nested" if _is_plain(x) else "nested" for x in args[:2]]
            raise RuntimeError(
                f"Expected both self and other to be nested, but got a {words[0]} self and "
                f"{words[1]} other"
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


# Functions that also take a row for each component: ``(B, 1, D)`` beside ``(B, *, D)``.
_ROW_WISE = frozenset({"add", "mul", "__add__", "__mul__"})


def _is_plain(one: Any) -> bool:
    return isinstance(one, Tensor) and not isinstance(one, StridedNestedTensor)


def _is_row_for_each(nested: StridedNestedTensor, other: Any) -> bool:
    if not _is_plain(other) or other.dim() != nested.dim() or other.dim() not in (2, 3):
        return False
    if other.size(0) != len(nested._parts) or other.size(1) != 1:
        return False
    return other.dim() == 2 or all(one.size(-1) == other.size(2) for one in nested._parts)


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
    if not source._parts:
        return wrap([], source)
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
    if len(dims) != 1:
        raise RuntimeError(
            f"NestedTensor only allows reduction of a single dimension for now, got {list(dims)}"
        )
    if [_dim(source, one) for one in dims] != [source.dim() - 1]:
        raise RuntimeError(
            "NestedTensor can only be reduced across the last dimension for now got dimension "
            f"{dims[0]} instead."
        )
    if not keepdim:
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")
    return wrap([func(one, dim=-1, keepdim=True, **kwargs) for one in unwrap(source)], source)


def _matmul(name: str, func: _Func, first: Any, other: Any) -> Any:
    if _is_plain(other) and other.dim() == 2 and first.dim() >= 3:
        # A matrix for all components, as weights are.
        return wrap([_VF.matmul(one, other) for one in unwrap(first)], first)
    words = ["non-nested" if _is_plain(one) else "nested" for one in (first, other)]
    if "non-nested" in words:
        raise RuntimeError(
            f"Expected both to be nested, but got a {words[0]} self and {words[1]} other"
        )
    for which, one in (("1st", first), ("2nd", other)):
        if one.dim() < 3:
            raise RuntimeError(
                "matmul: For nested tensors, only inputs with >= 3 dims are currently supported. "
                f"{which} input has rank: {one.dim()}"
            )
    if len(first._parts) != len(other._parts):
        raise RuntimeError(
            "matmul: Expected size for the 1st dimension of 2nd input tensor to be: "
            f"{len(first._parts)} but got: {len(other._parts)}."
        )
    for at, (a, b) in enumerate(zip(first._parts, other._parts, strict=True)):
        if a.size()[:-2] != b.size()[:-2]:
            raise RuntimeError(
                "matmul: For nested tensors, batch dimensions must have the same sizes, got "
                f"{list(a.size())} and {list(b.size())} at index {at}"
            )
        if a.size(-1) != b.size(-2):
            raise RuntimeError(
                "matmul: Nested tensors cannot be matrix multiplied: the components of index "
                f"{at} have the sizes {list(a.size())} and {list(b.size())}"
            )
    pairs = zip(unwrap(first), unwrap(other), strict=True)
    return wrap([_VF.matmul(a, b) for a, b in pairs], first)


def _bmm(name: str, func: _Func, input: Any, mat2: Any) -> Any:
    """Matrix by matrix; one of the two may be a plain tensor of three dimensions."""
    first, other = input, mat2
    for which, one in (("batch1", first), ("batch2", other)):
        if one.dim() != 3:
            raise RuntimeError(f"{which} must be a 3D tensor, got {one.dim()} dimensions")
    rows, columns = (
        unwrap(one) if isinstance(one, StridedNestedTensor) else list(one.unbind(0))
        for one in (first, other)
    )
    if len(rows) != len(columns):
        raise RuntimeError(
            f"Expected size for the 1st dimension of batch2 tensor to be: {len(rows)} but got: "
            f"{len(columns)}."
        )
    for at, (a, b) in enumerate(zip(rows, columns, strict=True)):
        if a.size(1) != b.size(0):
            raise RuntimeError(
                f"{at}-th nested matrices in batch cannot be multiplied ({a.size(0)}x{a.size(1)} "
                f"and {b.size(0)}x{b.size(1)})"
            )
    like = first if isinstance(first, StridedNestedTensor) else other
    return wrap([a @ b for a, b in zip(rows, columns, strict=True)], like)


def _linear(name: str, func: _Func, source: Any, weight: Any, bias: Any = None) -> Any:
    if not isinstance(source, StridedNestedTensor) or isinstance(weight, StridedNestedTensor):
        raise RuntimeError(
            "Linear does not support nested weight when input is a nested tensor."
            if isinstance(source, StridedNestedTensor)
            else "linear(): only the input may be a nested tensor"
        )
    if source.dim() < 3 or weight.dim() != 2:
        raise RuntimeError(
            "Linear requires nested_tensor.dim == 3 and dense_matrix.dim == 2. Nested tensor dim: "
            f"{source.dim()}. Dense tensor dim: {weight.dim()}"
        )
    widths = [one.size(-1) for one in source._parts]
    if len(set(widths)) > 1:
        at = next(at for at, one in enumerate(widths) if one != widths[0])
        raise RuntimeError(
            "Expected all tensors in nested tensor to have the same trailing dimension, instead "
            f"last dimension equals: {widths[at]} at index {at} and {widths[0]} at index 0"
        )
    if widths and widths[0] != weight.size(1):
        raise RuntimeError(
            "Shape mismatch for NestedTensor Linear: Expected input's (a nested tensor) 'last_dim' "
            f"to equal 'weight.size(1), but got: last_dim = {widths[0]}, and weight.size(1) = "
            f"{weight.size(1)}"
        )
    return _each(name, func, source, weight, bias)


def _layer_norm(
    name: str, func: _Func, input: Any, normalized_shape: Any, *args: Any, **kwargs: Any
) -> Any:
    many = isinstance(normalized_shape, (tuple, list))
    sizes = list(normalized_shape) if many else [normalized_shape]
    if not isinstance(input, StridedNestedTensor) or len(sizes) >= input.dim():
        raise RuntimeError(f"{name}(): the batch of a nested tensor cannot be normalized over")
    for at, wanted in enumerate(sizes):
        found = {one.size(at - len(sizes)) for one in input._parts}
        if len(found) > 1:
            raise RuntimeError(
                "normalized_shape extends into irregular dimensions for the nested tensor: "
                f"dimension {input.dim() - len(sizes) + at} has the sizes {sorted(found)}"
            )
        if found - {wanted}:
            raise RuntimeError(
                f"The shape at dimension {at} of normalized_shape is {wanted}, but the components "
                f"of the nested tensor have {found.pop()} there"
            )
    return _each(name, func, input, sizes, *args, **kwargs)


def _attention(
    name: str, func: _Func, query: Any, key: Any, value: Any, *args: Any, **kwargs: Any
) -> Any:
    given = query, key, value
    if not all(isinstance(one, StridedNestedTensor) for one in given):
        raise ValueError(f"{name}(): expected query, key and value all to be nested")
    if args[:1] not in ((), (None,)) or kwargs.get("attn_mask") is not None:
        raise RuntimeError(
            f"{name}(): for nested tensors not supported when an explicit attn_mask is set; "
            "is_causal is supported"
        )
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
    if head is Ellipsis and not rest:
        return wrap(unwrap(source), source)
    if not isinstance(head, int) or isinstance(head, bool):
        raise NotImplementedError(
            f"{name}(): the first index of a nested tensor of the strided layout is a number, got "
            f"{head!r}"
        )
    component = _select(name, func, source, 0, head)
    return component[rest] if rest else component


def _chunk(name: str, func: _Func, source: StridedNestedTensor, count: Any, dim: int = 0) -> Any:
    at = _dim(source, dim)
    if at != source.dim() - 1:
        word = name.capitalize() if name == "chunk" else name
        raise RuntimeError(
            f"{word} for nested tensors is currently only supported for the last dimension."
        )
    for one in source._parts:
        if name == "split_with_sizes" and sum(count) != one.size(-1):
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {one.size(-1)} (input "
                f"tensor's size at dimension {dim}), but got split_sizes={list(count)}"
            )
        if name == "chunk" and (count < 1 or one.size(-1) % count):
            raise RuntimeError(
                "Chunk for nested tensors is only supported for nested tensors with trailing "
                f"dimension divisible by chunks. Got {one.size(-1)} % {count}"
            )
    columns = [func(one, count, at - 1) for one in unwrap(source)]
    if len({len(parts) for parts in columns}) > 1:
        raise RuntimeError(f"{name}(): the components have different numbers of parts")
    return tuple(wrap(parts, source) for parts in zip(*columns, strict=True))


def _view(name: str, func: _Func, source: StridedNestedTensor, *given: Any) -> Any:
    sizes = list(given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given)
    if not sizes:
        raise RuntimeError("shape '[]' is invalid for a nested tensor")
    if not source._parts:
        raise RuntimeError("empty nested tensor cannot be reshaped")
    if len(sizes) < 2 or sizes[0] != len(source._parts):
        raise RuntimeError(
            f"{name}: For now nested {name} cannot change or infer the implicit batch dimension, "
            f"which is {len(source._parts)}, got the shape {sizes}"
        )
    inner = sizes[1:]
    if inner.count(-1) > 1:
        raise RuntimeError(f"{name}: only one dimension can be inferred, got the shape {sizes}")
    return wrap([getattr(one, name)(inner) for one in unwrap(source)], source)


def _squeeze(name: str, func: _Func, source: StridedNestedTensor, dim: int | None = None) -> Any:
    if dim is None:
        raise RuntimeError(
            "For nested tensors, squeeze without the dim argument is not supported at the moment"
        )
    at = _dim(source, dim) if name == "squeeze" else dim % (source.dim() + 1)
    if at == 0:
        raise RuntimeError(
            f"{name}(): For nested tensors, squeezing dimension 0 is not supported at the moment"
        )
    if name == "squeeze" and source.dim() == 2 and all(one.numel() == 1 for one in source._parts):
        raise RuntimeError(
            "For nested tensors, squeezing a nested tensor of singleton tensors is not supported "
            "at the moment"
        )
    return wrap([func(one, at - 1) for one in unwrap(source)], source)


def _narrow(
    name: str, func: _Func, source: StridedNestedTensor, dim: int, start: int, length: int
) -> Any:
    """A slice of the components along the batch."""
    if _dim(source, dim) != 0:
        raise RuntimeError(f"narrow(): only dim=0 supported for nested tensors, but got dim={dim}")
    count = len(source._parts)
    first = start + count if start < 0 else start
    if not 0 <= first <= count or length < 0 or first + length > count:
        raise RuntimeError(
            f"narrow(): start ({start}) + length ({length}) exceeds dimension size ({count})."
        )
    return wrap(unwrap(source)[first : first + length], source)


def _cat(name: str, func: _Func, tensors: Any, dim: int = 0) -> Any:
    """Along the batch all components; else component by component."""
    tensors = list(tensors)
    if not all(isinstance(one, StridedNestedTensor) for one in tensors):
        raise RuntimeError(f"{name}(): expected each tensor in given list to be nested")
    first = tensors[0]
    at = _dim(first, dim)
    if at == 0:
        return copied([part for one in tensors for part in unwrap(one)])
    for one in tensors[1:]:
        if _sizes_but(one, at - 1) != _sizes_but(first, at - 1):
            raise RuntimeError(
                f"{name}(): expected all nested tensors to have matching ragged structures outside "
                "of the concatenated dim"
            )
    columns = zip(*map(unwrap, tensors), strict=True)
    return wrap([func(column, at - 1) for column in columns], first)


def _sizes_but(source: StridedNestedTensor, dim: int) -> list[list[int]]:
    """The sizes of the components but for one dimension."""
    sizes = [list(one.size()) for one in source._parts]
    return [[*one[:dim], *one[dim + 1 :]] for one in sizes]


def to_padded(source: StridedNestedTensor, padding: float, output_size: Any = None) -> Tensor:
    """The components one below another, with ``padding`` where they end early."""
    dims = source.dim() - 1
    if source._parts and source.numel() == 0:
        raise RuntimeError(
            "to_padded_tensor(): at least one constituent tensor should have non-zero numel"
        )
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
        _refuse_target(name, target, args)
    other = args[0] if args else None
    if name == "fill_" and isinstance(other, Tensor) and other.dim():
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {other.dim()} "
            "dimensions."
        )
    if name == "copy_" and not _is_same_size(name, func, target, other):
        raise RuntimeError(
            "copy_ only supports tensors that are the same size for Nested implementations"
        )
    if _C.is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in given):
        raise RuntimeError(
            f"{name}(): in-place operations on a nested tensor are not recorded; use the operation "
            "that makes a new one, or torch.no_grad()"
        )
    _pairs(name, func, target.detach(), *args, **kwargs)
    return target


def _refuse_target(name: str, target: Any, args: tuple[Any, ...]) -> NoReturn:
    if target.dim():
        raise RuntimeError(
            "Expected both self and other to be nested, but got a non-nested self and nested other"
        )
    other = next(one for one in args if isinstance(one, StridedNestedTensor))
    longest = [max(one.size(at) for one in other._parts) for at in range(other.dim() - 1)]
    raise RuntimeError(
        f"{name}(): output with shape [] doesn't match the broadcast shape "
        f"[{', '.join(map(str, [len(other._parts), *longest]))}] of a nested tensor"
    )


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
    **dict.fromkeys(("matmul", "__matmul__"), _matmul),
    "bmm": _bmm,
    "to": _to,
    "linear": _linear,
    **dict.fromkeys(("embedding", "contiguous"), _each),
    "narrow": _narrow,
    **dict.fromkeys(("cat", "concat", "concatenate"), _cat),
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
    name = name_of(func)
    rule = TABLE.get(name)
    if rule is not None:
        result = rule(name, func, *args, **kwargs)
        return shown(result, args[0]) if name in VIEWS else result
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
