"""The table of what jagged tensors can do: from the name of a call or op to the rule for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import _pointwise, _product, _reduction, _view
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
    raise NotImplementedError(f"{name}(): not supported for NestedTensor with the jagged layout")


# What the engine does with gradients.
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
