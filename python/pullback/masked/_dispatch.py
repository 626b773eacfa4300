"""The implementation of ``MaskedTensor``'s ``__torch_function__`` and ``__torch_dispatch__``.

A call is computed on the plain data, with its history, and the result masked again: so it has every
derivative that the plain operation has. A function that is not known as a call arrives as the ops
that it consists of, below autograd; so do in-place ops and what the engine does with gradients.
Both look their names up in the same sets.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .. import _C
from .._tensor import Tensor
from . import _extremum, _normalization, _pattern, _reduction
from ._level import CALL, OP, Level, check_masks, has, mapped, refuse_out, union
from ._mask import any_of, canonical_dim
from ._name import BINARY, CONVERSION, FOLD, JOINING, LIKE, SHAPE, UNARY, VIEW
from ._tensor import MaskedTensor

_VF = _C._VariableFunctions

_Implementation = Callable[[Level, str, Callable[..., Any], Sequence[Any], dict[str, Any]], Any]


# --- calls -------------------------------------------------------------------------------------


def _unary(
    level: Level, name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    refuse_out(name, kwargs)
    source, *rest = args
    if has([*rest, *kwargs.values()], Tensor) or not isinstance(source, MaskedTensor):
        raise TypeError(
            f"{name}: MaskedTensor unary ops do not support additional Tensor arguments"
        )
    result = func(level.unwrap(source), *rest, **kwargs)
    # (`type` without arguments is a name.)
    return level.wrap(result, source._masked_mask) if isinstance(result, Tensor) else result


def _binary(
    level: Level, name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    refuse_out(name, kwargs)
    left, right, *rest = args
    if has([*rest, *kwargs.values()], Tensor):
        raise TypeError(
            f"{name}: MaskedTensor binary ops do not support Tensor arguments aside from the lhs "
            "and rhs"
        )
    if level is CALL:
        check_masks(left, right)
        left, right = _gated(left, right), _gated(right, left)
    mask = union(left, right)
    if _pattern.is_pattern(mask):
        left, right = _valued(mask, left), _valued(mask, right)
    result = func(mapped(left, level.unwrap), mapped(right, level.unwrap), *rest, **kwargs)
    return level.wrap(result, mask if _pattern.is_pattern(mask) else mask.expand_as(result))


def _valued(mask: Tensor, part: Any) -> Any:
    """A plain operand's elements where the sparse mask of the other one has some."""
    is_plain = isinstance(part, Tensor) and not isinstance(part, MaskedTensor)
    return _pattern.gathered(mask, part) if is_plain else part


def _gated(part: Any, other: Any) -> Any:
    """A plain operand that gets no gradient where the other one is masked out.

    The gradient there is zero times the data of the other, which may be nan.
    """
    if isinstance(part, MaskedTensor) or not isinstance(part, Tensor) or not part.requires_grad:
        return part
    mask = _pattern.pattern_of(other._masked_mask, _C.strided)
    return _VF.where(mask, part, part.detach())


def _shape(
    level: Level, name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    refuse_out(name, kwargs)
    given, *rest = args
    if has(given, MaskedTensor) and _is_sparse(given):
        if name == "clone":
            return level.wrap(func(level.unwrap(given), *rest, **kwargs), given._masked_mask)
        raise TypeError(f"{name}: not supported for sparse MaskedTensors; use to_dense()")
    if name in JOINING:
        flags: Any = [_flags(part) for part in given]
    elif not isinstance(given, MaskedTensor) or has(rest, MaskedTensor):
        raise TypeError(f"{name}: indices and sizes must not be MaskedTensors")
    else:
        flags = given._masked_mask
    data = func(mapped(given, level.unwrap), *mapped(rest, level.unwrap), **kwargs)
    mask = func(flags, *mapped(rest, MaskedTensor.get_mask), **kwargs)
    if isinstance(data, Tensor):
        return level.wrap(data, mask)
    return type(data)([level.wrap(one, flag) for one, flag in zip(data, mask, strict=True)])


def _fold(
    level: Level, name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """Blocks of a picture as columns, and sums of them: what no element is in does not count."""
    source, *rest = args
    if _is_sparse(source):
        raise TypeError(f"{name}: not supported for sparse MaskedTensors; use to_dense()")
    data, mask = level.unwrap(source), source._masked_mask
    if name == "col2im":
        data = _VF.where(mask, data, data.new_zeros([]))
    return level.wrap(func(data, *rest, **kwargs), func(mask.float(), *rest, **kwargs) > 0)


def _is_sparse(value: Any) -> bool:
    parts = value if isinstance(value, (list, tuple)) else (value,)
    return any(
        isinstance(part, MaskedTensor) and _pattern.is_pattern(part._masked_mask) for part in parts
    )


def _flags(part: Tensor) -> Tensor:
    """The mask of one of several tensors: of a plain one everything counts."""
    if isinstance(part, MaskedTensor):
        return part._masked_mask
    return _VF.ones_like(part, dtype=_C.bool)


def _like(
    level: Level, name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    source, *rest = args
    if not isinstance(source, MaskedTensor):
        raise TypeError(f"{name}: arguments beside the first must not be MaskedTensors")
    requires_grad = kwargs.pop("requires_grad", False)
    made = OP.wrap(func(OP.unwrap(source), *rest, **kwargs), source._masked_mask)
    if requires_grad:
        made._masked_gradient(True)
    return made


def _where(
    level: Level, name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    if len(args) + len(kwargs) != 3:
        raise ValueError(f"{name}: len(args) must be 3 but got {len(args) + len(kwargs)}")
    if func is _C.TensorBase.where:
        args = [args[1], args[0], *args[2:]]
    names = ("condition", "input", "other")
    parts = {**dict(zip(names, args, strict=False)), **kwargs}
    condition = parts["condition"]
    if isinstance(condition, MaskedTensor):
        condition = condition._masked_data
    chosen, other = parts.get("input", parts.get("self")), parts["other"]
    if _is_sparse([chosen, other]):
        raise TypeError(f"{name}: not supported for sparse MaskedTensors; use to_dense()")
    data = _VF.where(condition, mapped(chosen, level.unwrap), mapped(other, level.unwrap))
    true = condition.new_ones([], dtype=_C.bool)
    masks = [
        part._masked_mask if isinstance(part, MaskedTensor) else true for part in (chosen, other)
    ]
    return level.wrap(data, _VF.where(condition, masks[0], masks[1]).expand_as(data))


def _getitem(
    level: Level, name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """Elements by index; what takes no tensors and lists shows the same memory."""
    parts = args[1] if isinstance(args[1], tuple) else (args[1],)
    if _is_sparse(args[0]):
        raise TypeError(f"{name}: not supported for sparse MaskedTensors; use to_dense()")
    if any(isinstance(part, (Tensor, list, range)) for part in parts):
        return _shape(level, name, func, args, kwargs)
    return func(*args, **kwargs)


def _written(
    level: Level, name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """Ops that write into their first argument, which are carried out as ops."""
    if not isinstance(args[0], MaskedTensor):
        raise TypeError(f"{name}: a MaskedTensor cannot be written into a plain tensor")
    for part in args[1:]:
        check_masks(args[0], part)
    if not _is_sparse(args[0]):
        return func(*args, **kwargs)
    tensors = [part for part in args if isinstance(part, Tensor)]
    if _C.is_grad_enabled() and any(part.requires_grad for part in tensors):
        raise RuntimeError(f"{name}: sparse MaskedTensors that require grad are not written into")
    return _write(name, func, args, kwargs)


def _setitem(
    level: Level, name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    target, index, value = args
    if not isinstance(target, MaskedTensor):
        raise TypeError(f"{name}: a MaskedTensor cannot be written into a plain tensor")
    if has(index, MaskedTensor):
        raise TypeError(f"{name}: indices must not be MaskedTensors")
    if isinstance(value, MaskedTensor):
        part = target._masked_mask[index]
        if not bool((part == value._masked_mask.expand_as(part)).all()):
            raise ValueError(
                "Input masks must match: those of the elements and of their new values"
            )
    return func(*args, **kwargs)


def _require(
    level: Level, name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    if args[0].is_leaf and not args[0].requires_grad:
        args[0]._masked_gradient(*args[1:], **kwargs)
        return args[0]
    return func(*args, **kwargs)


# --- reductions --------------------------------------------------------------------------------

_BY_NAME: dict[str, Callable[..., Tensor]] = {
    "sum": _reduction.sum,
    "mean": _reduction.mean,
    "prod": _reduction.prod,
    "logsumexp": _reduction.logsumexp,
    "amax": _extremum.amax,
    "amin": _extremum.amin,
    "argmax": _extremum.argmax,
    "argmin": _extremum.argmin,
    "var": _reduction.var,
    "std": _reduction.std,
    "norm": _reduction.norm,
    "softmax": _normalization.softmax,
    "log_softmax": _normalization.log_softmax,
    "cumsum": _normalization.cumsum,
    "cumprod": _normalization.cumprod,
}
_PARAMETERS = {
    **dict.fromkeys(("sum", "mean", "prod"), ("dim", "keepdim", "dtype")),
    **dict.fromkeys(("amax", "amin", "argmax", "argmin", "logsumexp"), ("dim", "keepdim")),
    **dict.fromkeys(("all", "any"), ("dim", "keepdim")),
    **dict.fromkeys(("var", "std"), ("dim", "unbiased", "keepdim", "correction")),
    **dict.fromkeys(("softmax", "log_softmax", "cumsum", "cumprod"), ("dim", "dtype")),
    "norm": ("p", "dim", "keepdim", "dtype"),
}


def _bound(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a reduction after its tensor, by name."""
    refuse_out(name, kwargs)
    names = _PARAMETERS[name]
    given = dict(zip(names, args, strict=False))
    if name in ("var", "std") and len(args) == 1 and isinstance(args[0], bool):
        given = {"unbiased": args[0]}
    if len(args) > len(names) or any(key in given for key in kwargs):
        raise TypeError(f"{name}(): too many arguments for a MaskedTensor")
    given.update({key: value for key, value in kwargs.items() if key not in ("out", "_stacklevel")})
    unknown = [key for key in given if key not in names]
    if unknown:
        raise TypeError(f"{name}() got an unexpected keyword argument {unknown[0]!r}")
    if name == "norm":
        order = given.pop("p", None)
        given["ord"] = 2.0 if order is None or order == "fro" else order
    return given


def _reduce(
    level: Level, name: str, source: MaskedTensor, args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """What a reduction or normalization makes of the elements of ``source`` that count.

    Args:
        level: that of the call.
        name: as in :mod:`pullback`.
        source: the masked tensor.
        args: the further arguments of the operation on tensors.
        kwargs: those given by name.
    """
    if not isinstance(source, MaskedTensor):
        raise TypeError(f"{name}: arguments beside the first must not be MaskedTensors")
    given = _bound(name, args, kwargs)
    if _is_sparse(source):
        source = _strided(level, source, name, given)
    mask = source._masked_mask
    if name in ("all", "any"):
        dims = canonical_dim(given.get("dim"), source.ndim)
        is_true = level.unwrap(source) != 0
        result = is_true | ~mask if name == "all" else is_true & mask
        for dim in reversed(dims):
            result = getattr(result, name)(dim, bool(given.get("keepdim")))
        if name == "any":
            # (That none of no elements is true is known: so it counts.)
            return level.wrap(result, _VF.ones_like(result))
    else:
        result = _BY_NAME[name](level.unwrap(source), mask=mask, **given)
    if "keepdim" not in _PARAMETERS[name]:
        return level.wrap(result, mask)
    dims = canonical_dim(given.get("dim"), source.ndim)
    flags = any_of(mask, dims, bool(given.get("keepdim")))
    return level.wrap(result, flags.reshape(result.shape))


def _strided(level: Level, source: MaskedTensor, name: str, given: dict[str, Any]) -> MaskedTensor:
    """What to reduce in place of a sparse tensor: its values alone, where places do not matter."""
    mask, data = source._masked_mask, level.unwrap(source)
    is_whole = given.get("dim") is None and not given.get("keepdim")
    if "keepdim" in _PARAMETERS[name] and is_whole and name not in ("argmax", "argmin"):
        return level.wrap(data, _pattern.values(mask))
    return level.wrap(_pattern.scattered(mask, data), _pattern.pattern_of(mask, _C.strided))


def _reduced(
    level: Level, name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    return _reduce(level, name, args[0], args[1:], kwargs)


# --- tables ------------------------------------------------------------------------------------


@functools.cache
def _calls() -> dict[Callable[..., Any], tuple[str, _Implementation]]:
    """The functions and methods that are overridden as calls, with names and implementations."""
    from ..nn import functional

    table: dict[Callable[..., Any], tuple[str, _Implementation]] = {}
    implementations: list[tuple[frozenset[str], _Implementation]] = [
        (UNARY | CONVERSION, _unary),
        (BINARY, _binary),
        (SHAPE | JOINING, _shape),
        (LIKE, _like),
        (frozenset(_PARAMETERS), _reduced),
        (frozenset({"where"}), _where),
        (frozenset({"__getitem__"}), _getitem),
        (frozenset({"__setitem__"}), _setitem),
        (frozenset({"requires_grad_"}), _require),
        (frozenset(f"{name}_" for name in UNARY | BINARY | {"copy"}), _written),
    ]
    import pullback

    for names, implementation in implementations:
        for name in names:
            for space in (pullback, Tensor, _C.TensorBase):
                found = getattr(space, name, None)
                if callable(found):
                    table[found] = name, implementation
    for name in ("softmax", "log_softmax"):
        table[getattr(functional, name)] = name, _softmax
    return table


def _softmax(
    level: Level, name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """``softmax`` and ``log_softmax`` of ``nn.functional``, which have one more parameter."""
    given = dict(zip(("dim", "_stacklevel", "dtype"), args[1:], strict=False))
    return _reduce(level, name, args[0], (), {**given, **kwargs})


def dispatch_call(func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Computes a call that has a masked tensor among its arguments.

    Args:
        func: what was called.
        args: its arguments given by position.
        kwargs: those given by name.

    Raises:
        TypeError: for tensors where the operation takes none.
        ValueError: for masks that differ.
    """
    name, implementation = _calls().get(func, ("", None))
    if implementation is None:
        return func(*args, **kwargs)
    kwargs = dict(kwargs)
    for key in ("input", "self", "tensors", "other"):
        # The first argument may have been given by name.
        if implementation is not _where and key in kwargs and len(args) == (key == "other"):
            args = [*args, kwargs.pop(key)]
    return implementation(CALL, name, func, args, kwargs)


def dispatch_op(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Computes an op that has a masked tensor among its arguments, below autograd.

    Args:
        func: the op.
        args: its arguments given by position.
        kwargs: those given by name.

    Returns:
        The result, or ``NotImplemented`` with a warning for an op that masked tensors do not have.
    """
    name: str = func._opname
    base = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    if name == "_local_scalar_dense":
        return _number(func, args[0])
    # (`conj_physical_` is made of an op of its own, so that it counts as a write of any tensor.)
    is_unary = base in UNARY or base == "_conj_physical"
    if name == "copy_" or (base != name and (is_unary or base in BINARY)):
        return _write(name, func, args, kwargs)
    if name in ("detach", "alias") and _is_sparse(args[0]):
        return MaskedTensor._made(args[0]._masked_data, args[0]._masked_mask)
    for names, implementation in (
        (UNARY | CONVERSION, _unary),
        (BINARY, _binary),
        (SHAPE | JOINING | VIEW, _shape),
        (LIKE, _like),
        (frozenset({"where"}), _where),
        (FOLD, _fold),
    ):
        if name in names:
            return implementation(OP, name, func, args, dict(kwargs))
    if name in _PARAMETERS:
        return _reduce(OP, name, args[0], args[1:], kwargs)
    if name == "linalg_vector_norm":
        kwargs = {"p" if key == "ord" else key: value for key, value in kwargs.items()}
        return _reduce(OP, "norm", args[0], args[1:], kwargs)
    if name == "as_strided":
        return _restrided(func, *args, **kwargs)
    if name == "is_same_size":
        return func(*mapped(list(args), OP.unwrap))
    warnings.warn(
        f"{name} is not implemented in __torch_dispatch__ for MaskedTensor.", stacklevel=2
    )
    return NotImplemented


def _restrided(
    func: Any, source: MaskedTensor, size: Any, stride: Any, storage_offset: int | None = None
) -> Any:
    """A view by strides, which count in the memory of the data: the mask is laid out alike."""
    data = source._masked_data
    offset = data.storage_offset() if storage_offset is None else storage_offset
    memory = _VF.zeros(data.untyped_storage().nbytes() // data.element_size(), dtype=_C.bool)
    layout = data.size(), data.stride(), data.storage_offset()
    _VF.as_strided(memory, *layout).copy_(source._masked_mask)
    return MaskedTensor._made(func(data, size, stride, offset), func(memory, size, stride, offset))


def _number(func: Any, source: MaskedTensor) -> Any:
    if not source._masked_mask.item():
        raise ValueError(f"{func}: expected a mask tensor that is true: the element is masked out")
    return source._masked_data.item()


def _write(name: str, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    target, *rest = args
    if not isinstance(target, MaskedTensor):
        # A gradient that is put into zeros; calls of programs do not come here.
        return func(target, *mapped(rest, lambda source: source.to_tensor(0)), **kwargs)
    mask = union(target, rest[0] if rest else None)
    if _pattern.is_pattern(mask):
        rest = [_valued(mask, part) for part in rest]
    func(OP.unwrap(target), *mapped(rest, OP.unwrap), **kwargs)
    if not _pattern.is_pattern(mask):
        target._masked_mask = mask.expand_as(target._masked_data)
    return target
