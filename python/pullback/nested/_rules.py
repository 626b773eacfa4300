"""The table of what jagged tensors can do: from the name of a call or op to the rule for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._tensor import Tensor
from . import _pointwise, _product, _question, _reduction, _view
from ._base import Nested
from ._jagged import NestedTensor
from ._level import below

Rule = Callable[..., Any]

# Calls that concern the node and its history, not the elements.
_AS_THEY_ARE = frozenset(
    {
        *("__get__", "__set__", "__delete__", "requires_grad_", "backward", "register_hook"),
        *(
            "retain_grad",
            "is_floating_point",
            "is_complex",
            "is_signed",
            "element_size",
            "get_device",
        ),
        *(
            "__hash__",
            "__format__",
            "is_inference",
            "register_post_accumulate_grad_hook",
            "is_tensor",
        ),
        *("is_conj", "is_neg", "has_names", "grad", "has_torch_function"),
        *("_make_dual", "_unpack_dual"),
    }
)

TABLE: dict[str, Rule] = {
    **_pointwise.TABLE,
    **_reduction.TABLE,
    **_view.TABLE,
    **_product.TABLE,
    **_question.TABLE,
}


# Calls whose result shows the memory of their first argument, unless they had to copy.
VIEWS = frozenset(
    {
        *("view", "view_as", "reshape", "reshape_as", "flatten", "unflatten", "expand"),
        *("expand_as", "transpose", "swapaxes", "swapdims", "permute", "squeeze", "unsqueeze"),
        *("narrow", "select", "__getitem__", "split", "split_with_sizes", "tensor_split"),
        "chunk",
    }
)


def name_of(func: Callable[..., Any]) -> str:
    """The name of a call, without that of an overload."""
    return getattr(func, "__name__", str(func)).partition(".")[0]


def shown(result: Any, source: Any) -> Any:
    """The result of a call, as a view of its argument where it has the memory of that."""
    if isinstance(result, tuple):
        return type(result)(shown(one, source) for one in result)
    if isinstance(result, Nested) and result is not source and _memory(result) == _memory(source):
        result._showing(source)
    return result


def _memory(one: Any) -> int:
    values: list[Tensor] = [one._values] if isinstance(one, NestedTensor) else one._parts[:1]
    return values[0].untyped_storage().data_ptr() if values else 0


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
    raise NotImplementedError(f"{name}(): not supported for NestedTensor with the jagged layout")


# Functions that the engine applies to gradients.
_OPS = frozenset(
    {
        *("add", "add_", "detach", "alias", "clone", "zeros_like", "ones_like", "empty_like"),
        *("_to_copy", "mul", "neg", "copy_", "full_like", "zero_", "fill_"),
    }
)


def op(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Computes an op below autograd.

    Raises:
        NotImplementedError: for one that the engine does not use; it is named.
    """
    name = str(func).split(".")[1]
    if name not in _OPS:
        raise NotImplementedError(f"{func}: not supported for NestedTensor with the jagged layout")
    with below():
        return TABLE[name](name, func, *args, **kwargs)


__all__ = ["TABLE", "NestedTensor", "call", "op"]
