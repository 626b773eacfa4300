"""Operations that treat every element alike: the values go through them, the structure stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C
from .._symbol import SymInt
from .._tensor import Tensor
from ._jagged import NestedTensor, packed, unwrap, wrap, wrap_shared

_VF = _C._VariableFunctions

UNARY = frozenset(
    {
        *("abs", "absolute", "acos", "arccos", "acosh", "arccosh", "angle", "asin", "arcsin"),
        *("asinh", "arcsinh", "atan", "arctan", "atanh", "arctanh", "bitwise_not", "ceil"),
        *("conj_physical", "cos", "cosh", "deg2rad", "digamma", "erf", "erfc", "erfinv", "exp"),
        *("exp2", "expm1", "fix", "floor", "frac", "i0", "isfinite", "isinf", "isnan", "isneginf"),
        *("isposinf", "lgamma", "log", "log10", "log1p", "log2", "logical_not", "logit"),
        *("nan_to_num", "neg", "negative", "positive", "rad2deg", "real", "reciprocal", "round"),
        *("rsqrt", "sgn", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh", "sqrt", "square"),
        *("tan", "tanh", "trunc", "celu", "elu", "gelu", "hardshrink", "hardsigmoid", "hardswish"),
        *("hardtanh", "leaky_relu", "log_sigmoid", "mish", "relu", "relu6", "selu", "silu"),
        *("softplus", "softshrink", "softsign", "tanhshrink", "threshold", "dropout"),
        *("alpha_dropout", "bernoulli", "__abs__", "__invert__", "__neg__", "__pos__"),
        *("to", "type", "_to_copy", "cpu", "float", "double", "half", "int", "long", "short"),
        *("char", "byte", "bool", "bfloat16", "detach", "alias", "clone"),
        *("empty_like", "full_like", "ones_like", "rand_like", "randn_like", "zeros_like"),
    }
)

# With several tensors, nested or not, that are broadcast together.
BROADCAST = frozenset(
    {
        *("add", "arctan2", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or"),
        *("bitwise_right_shift", "bitwise_xor", "copysign", "div", "divide", "eq", "float_power"),
        *("floor_divide", "fmax", "fmin", "fmod", "ge", "greater", "greater_equal", "gt", "hypot"),
        *("le", "less", "less_equal", "logaddexp", "logaddexp2", "logical_and", "logical_or"),
        *("logical_xor", "lt", "maximum", "minimum", "mul", "multiply", "ne", "nextafter"),
        *("not_equal", "pow", "remainder", "rsub", "sub", "subtract", "true_divide", "xlogy"),
        *("isclose", "heaviside", "ldexp", "__radd__", "__rsub__", "__rmul__", "__rtruediv__"),
        *("__rfloordiv__", "__rmod__", "__rpow__", "__add__", "__sub__", "__mul__", "__truediv__"),
        *("__floordiv__", "__mod__", "__pow__", "__and__", "__or__", "__xor__", "__rand__"),
        *("__ror__", "__rxor__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"),
        *("where", "masked_fill", "addcmul", "addcdiv", "lerp", "clamp", "clip", "clamp_min"),
        *("clamp_max", "threshold_backward"),
    }
)

IN_PLACE = frozenset(
    {
        *("add_", "sub_", "mul_", "div_", "pow_", "neg_", "exp_", "log_", "sqrt_", "abs_", "zero_"),
        *("fill_", "copy_", "clamp_", "relu_", "sigmoid_", "tanh_", "masked_fill_", "normal_"),
        *(
            "uniform_",
            "bernoulli_",
            "gelu_",
            "silu_",
            "__iadd__",
            "__isub__",
            "__imul__",
            "__itruediv__",
        ),
    }
)


def _unary(name: str, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if not isinstance(args[0], NestedTensor):
        raise RuntimeError(f"{name}(): expected the first argument to be a NestedTensor")
    source: NestedTensor = args[0]
    if kwargs.get("out") is not None:
        raise RuntimeError(f"{name}(): out= is not supported for NestedTensor")
    format = kwargs.pop("memory_format", None)
    layout = kwargs.get("layout")
    if layout is source.layout:
        del kwargs["layout"]
    values = unwrap(source)
    result = func(values, *args[1:], **kwargs)
    if result is values or not isinstance(result, Tensor):
        return source if result is values else result
    if format is _C.contiguous_format:
        result = result.contiguous()
    return wrap(result, source._structure, source._ragged_idx)


def _refuse_pair(name: str, first: NestedTensor, other: NestedTensor) -> None:
    shapes = [f"({', '.join(map(repr, one.shape))})" for one in (first, other)]
    raise RuntimeError(
        f"cannot call binary pointwise function {name} with inputs of shapes {shapes[0]} and "
        f"{shapes[1]}"
    )


def aligned(name: str, tensors: list[Any]) -> tuple[list[Any], NestedTensor]:
    """The values of these operands, ready to be broadcast, and the one that they are cut like."""
    nested = [one for one in tensors if isinstance(one, NestedTensor)]
    for one in tensors:
        if isinstance(one, SymInt):
            raise RuntimeError(f"{name}(): invalid argument {one!r}: a ragged size is no number")
    first = max(nested, key=lambda one: one.dim())
    for one in nested:
        same = one._structure == first._structure
        if not same or one._ragged_idx - one.dim() != first._ragged_idx - first.dim():
            _refuse_pair(name, *((one, first) if one is nested[0] else (first, one)))
        if one.dim() != first.dim():
            _refuse_pair(name, first, one)
    dense = [one for one in tensors if type(one) is not type(first) and isinstance(one, Tensor)]
    if any(_is_wide(one, first) for one in dense):
        whole = packed(first)
        if whole is not first:
            tensors = [packed(one) if isinstance(one, NestedTensor) else one for one in tensors]
            tensors = [
                wrap(unwrap(one), whole._structure, one._ragged_idx)
                if isinstance(one, NestedTensor)
                else one
                for one in tensors
            ]
        first = whole
    return [_operand(name, one, first) for one in tensors], first


def _is_wide(dense: Tensor, like: NestedTensor) -> bool:
    """Whether it has elements of its own for each component, or each place of one."""
    sizes = [1] * (like.dim() - dense.dim()) + list(dense.size())
    return sizes[0] != 1 or (len(sizes) > like._ragged_idx and sizes[like._ragged_idx] != 1)


def _operand(name: str, one: Any, like: NestedTensor) -> Any:
    if isinstance(one, NestedTensor):
        return unwrap(one)
    if not isinstance(one, Tensor) or one.dim() == 0:
        return one
    if one.dim() > like.dim():
        raise RuntimeError(
            f"{name}(): a tensor of {one.dim()} dimensions does not go with a NestedTensor of "
            f"{like.dim()}"
        )
    whole = one.reshape([1] * (like.dim() - one.dim()) + list(one.size()))
    at, structure = like._ragged_idx, like._structure
    if not _is_wide(one, like):
        return whole.squeeze(0)
    batch, longest = whole.size(0), whole.size(at)
    if batch not in (1, structure.batch) or longest not in (1, structure.longest):
        raise RuntimeError(
            f"cannot call binary pointwise function {name} with inputs of shapes "
            f"({', '.join(map(repr, like.shape))}) and {tuple(one.size())}"
        )
    # From each dense row to the positions of its component; no element is held for padding.
    rows = structure.rows() if batch != 1 else _VF.zeros_like(structure.rows())
    places = structure.positions() if longest != 1 else _VF.zeros_like(rows)
    return whole.movedim(at, 1)[rows, places].movedim(0, at - 1)


def _broadcast(name: str, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if kwargs.get("out") is not None:
        raise RuntimeError(f"{name}(): out= is not supported for NestedTensor")
    given = [*args, *kwargs.values()]
    operands, like = aligned(_full(name, func), given)
    count = len(args)
    result = func(*operands[:count], **dict(zip(kwargs, operands[count:], strict=True)))
    if result is NotImplemented:
        return result
    return wrap_shared(result, like._structure, like._ragged_idx)


def _full(name: str, func: Any) -> str:
    return f"{name}.Tensor" if name in ("add", "sub", "mul", "div") else name


def _in_place(name: str, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    target = args[0]
    if not isinstance(target, NestedTensor):
        raise RuntimeError(f"{name}(): a plain tensor cannot be filled from a NestedTensor")
    given = [*args, *kwargs.values()]
    if name == "copy_" and isinstance(args[1], NestedTensor) and target.shape != args[1].shape:
        raise RuntimeError(
            "copy_ only supports Nested Tensors that have same size and the exact same offset "
            f"tensor, got {target.shape} and {args[1].shape}"
        )
    if _C.is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in given):
        raise RuntimeError(
            f"{name}(): in-place operations on a NestedTensor are not recorded; use the "
            "operation that makes a new one, or torch.no_grad()"
        )
    operands, like = aligned(name, given)
    if like._structure != target._structure:
        raise RuntimeError(f"{name}(): a NestedTensor with holes needs an operand of its structure")
    operands[0] = target._values
    rest = dict(zip(kwargs, operands[len(args) :], strict=True))
    func(*operands[: len(args)], **rest)
    return target


def _equal(name: str, func: Callable[..., Any], first: Any, other: Any, **kwargs: Any) -> bool:
    if not (isinstance(first, NestedTensor) and isinstance(other, NestedTensor)):
        return False
    if first._ragged_idx != other._ragged_idx:
        return False
    if first._structure != other._structure:
        if first._structure.counts != other._structure.counts:
            return False
        first, other = packed(first), packed(other)
    return bool(func(unwrap(first), unwrap(other), **kwargs))


TABLE: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(UNARY, _unary),
    **dict.fromkeys(BROADCAST, _broadcast),
    **dict.fromkeys(IN_PLACE, _in_place),
    "equal": _equal,
    "allclose": _equal,
}
