"""``torch._foreach_*``: one op on each tensor of a list, as optimisers of other libraries call it.

They are loops of Python over the ops, which record and broadcast as they always do. (The optimisers
of :mod:`pullback.optim` use one native call for all tensors instead.) What can be wrong with the
lists is found before the first tensor is written to.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import _C

# Ops of one tensor, of a tensor and an operand, of three tensors and a number.
_UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2"
)
_UNARY += " neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
_BINARY = "add sub mul div maximum minimum clamp_max clamp_min pow"
_TERNARY = "addcdiv addcmul"


def _tensors(name: str, tensors: Any) -> list[Any]:
    found = list(tensors) if isinstance(tensors, (list, tuple)) else None
    if found is None or not all(isinstance(one, _C.TensorBase) for one in found):
        raise TypeError(f"{name}(): argument 'self' (position 1) must be tuple of Tensors")
    if not found:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return found


def _each(count: int, operand: Any) -> list[Any]:
    """An operand for each tensor: those of a list, or the same for all."""
    if not isinstance(operand, (list, tuple)):
        return [operand] * count
    if len(operand) != count:
        what = (
            "Tensor lists must have the same number of tensors"
            if operand and isinstance(operand[0], _C.TensorBase)
            else "Tensor list must have same number of elements as scalar list"
        )
        raise RuntimeError(f"{what}, got {count} and {len(operand)}")
    return list(operand)


def _applied(
    op: str, is_inplace: bool, tensors: Sequence[Any], *operands: Any, **named: Any
) -> Any:
    method = op + "_" if is_inplace else op
    results = [
        getattr(tensor, method)(*given, **named)
        for tensor, *given in zip(tensors, *operands, strict=True)
    ]
    return None if is_inplace else tuple(results)


def _unary(op: str, is_inplace: bool, self: Any) -> Any:
    return _applied(op, is_inplace, _tensors(f"_foreach_{op}", self))


_ABSENT: Any = object()


def _binary(
    op: str,
    is_inplace: bool,
    self: Any,
    other: Any = _ABSENT,
    *,
    scalar: Any = _ABSENT,
    scalars: Any = _ABSENT,
    exponent: Any = _ABSENT,
    alpha: Any = 1,
) -> Any:
    """An op with another list, a list of numbers, a number or a tensor."""
    name = f"_foreach_{op}"
    if op == "pow" and not isinstance(self, (list, tuple)):
        # A number to the power of each tensor.
        bases = _tensors(name, exponent if other is _ABSENT else other)
        return tuple(_C._VariableFunctions.pow(self, one) for one in bases)
    given = [one for one in (other, scalar, scalars, exponent) if one is not _ABSENT]
    if len(given) != 1:
        raise TypeError(f"{name}(): expected one operand beside the tensors, got {len(given)}")
    tensors = _tensors(name, self)
    operands = _each(len(tensors), given[0])
    if op in ("maximum", "minimum") and not isinstance(operands[0], _C.TensorBase):
        op = "clamp_min" if op == "maximum" else "clamp_max"
    elif op in ("clamp_max", "clamp_min") and isinstance(operands[0], _C.TensorBase):
        op = "minimum" if op == "clamp_max" else "maximum"
    if op in ("maximum", "minimum") and is_inplace:
        function = getattr(_C._VariableFunctions, op)
        for tensor, operand in zip(tensors, operands, strict=True):
            tensor.copy_(function(tensor, operand))
        return None
    named = {"alpha": alpha} if op in ("add", "sub") and alpha != 1 else {}
    return _applied(op, is_inplace, tensors, operands, **named)


def _lerp(
    is_inplace: bool, self: Any, tensors1: Any, weights: Any = None, *, weight: Any = None
) -> Any:
    """Each tensor on its way to the one of the other list, as far as the weight says."""
    tensors = _tensors("_foreach_lerp", self)
    ends = _each(len(tensors), _tensors("_foreach_lerp", tensors1))
    given = weight if weights is None else weights
    return _applied("lerp", is_inplace, tensors, ends, _each(len(tensors), given))


def _ternary(
    op: str,
    is_inplace: bool,
    self: Any,
    tensor1: Any,
    tensor2: Any,
    scalars: Any = None,
    *,
    value: Any = 1,
) -> Any:
    """Each tensor plus a number times the product, or the quotient, of those of two lists."""
    name = f"_foreach_{op}"
    tensors = _tensors(name, self)
    count = len(tensors)
    first, second = _each(count, _tensors(name, tensor1)), _each(count, _tensors(name, tensor2))
    given = value if scalars is None else scalars
    if isinstance(given, _C.TensorBase) and given.dim() > 0:
        given = given.tolist()
    values = _each(count, given)
    method = op + "_" if is_inplace else op
    results = [
        getattr(tensor, method)(a, b, value=number)
        for tensor, a, b, number in zip(tensors, first, second, values, strict=True)
    ]
    return None if is_inplace else tuple(results)


def _copy(self: Any, src: Any, non_blocking: bool = False) -> None:
    """Writes the tensors of a list into those of another one."""
    tensors = _tensors("_foreach_copy_", self)
    for tensor, source in zip(tensors, _each(len(tensors), src), strict=True):
        tensor.copy_(source, non_blocking)


def _zero(is_inplace: bool, self: Any) -> Any:
    tensors = _tensors("_foreach_zero", self)
    if is_inplace:
        return _applied("zero", True, tensors)
    return tuple(_C._VariableFunctions.zeros_like(tensor) for tensor in tensors)


def _norm(self: Any, ord: Any = 2, dtype: Any = None) -> Any:
    """The norm of each tensor's elements."""
    norm = _C._linalg.linalg_vector_norm
    return tuple(norm(tensor, ord, dtype=dtype) for tensor in _tensors("_foreach_norm", self))


def _clone(self: Any) -> Any:
    return _applied("clone", False, _tensors("_foreach_clone", self))


def _mm(self: Any, mat2: Any) -> Any:
    tensors = _tensors("_foreach_mm", self)
    return _applied("mm", False, tensors, _each(len(tensors), _tensors("_foreach_mm", mat2)))


def _max(self: Any) -> Any:
    return _applied("max", False, _tensors("_foreach_max", self))


def _both(op: str, function: Callable[..., Any], *first: Any) -> Iterable[tuple[str, Any]]:
    for is_inplace in (False, True):
        name = f"_foreach_{op}{'_' if is_inplace else ''}"
        yield name, functools.partial(function, *first, is_inplace)


def functions() -> dict[str, Any]:
    """All of them by name."""
    found: dict[str, Any] = {"_foreach_copy_": _copy, "_foreach_max": _max}
    found.update(_foreach_norm=_norm, _foreach_clone=_clone, _foreach_mm=_mm)
    for op in _UNARY.split():
        found.update(_both(op, _unary, op))
    for op in _BINARY.split():
        found.update(_both(op, _binary, op))
    for op in _TERNARY.split():
        found.update(_both(op, _ternary, op))
    found.update(_both("lerp", _lerp))
    found.update(_both("zero", _zero))
    return found
