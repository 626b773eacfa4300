"""Predicates of a tensor, or of an object that acts as one."""

from __future__ import annotations

from typing import Any

from ._overridable import make_overridable as _make_overridable
from ._tensor import Tensor

__all__ = [
    "expect_tensor",
    "is_complex",
    "is_conj",
    "is_floating_point",
    "is_inference",
    "is_neg",
    "numel",
    "resize_as_",
    "typename",
]


def expect_tensor(function: str, argument: str, position: int, value: object) -> None:
    """Refuses what is no tensor, in the words of the functions of ops.

    Raises:
        TypeError: ``value`` is no tensor.
    """
    if not isinstance(value, Tensor):
        kind = type(value).__name__
        raise TypeError(
            f"{function}(): argument '{argument}' (position {position}) must be Tensor, not {kind}"
        )


def _call_predicate(input: Any, name: str) -> bool:
    """The result of a predicate of a tensor, or of an object that acts as one."""
    method = getattr(input, name, None)
    if method is None:
        kind = type(input).__name__
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {kind}")
    result: bool = method()
    return result


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating-point one."""
    return _call_predicate(input, "is_floating_point")


def is_complex(input: Tensor) -> bool:
    """Whether the dtype is complex."""
    return _call_predicate(input, "is_complex")


def is_conj(input: Tensor) -> bool:
    """Whether the tensor shows the conjugates of what its memory holds, as ``conj()`` gives."""
    return _call_predicate(input, "is_conj")


def is_neg(input: Tensor) -> bool:
    """Whether the tensor shows the negatives of what its memory holds."""
    return _call_predicate(input, "is_neg")


def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    return _call_predicate(input, "is_inference")


def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """Resizes ``input`` in place to the shape of another: :meth:`Tensor.resize_as_`."""
    return input.resize_as_(the_template, memory_format=memory_format)


def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


def typename(obj: object) -> str:
    """The type's full name; a tensor's legacy type name."""
    if isinstance(obj, Tensor):
        return obj.type()
    kind = obj if isinstance(obj, type) else type(obj)
    module = getattr(kind, "__module__", "")
    return kind.__qualname__ if module in ("", "builtins") else f"{module}.{kind.__qualname__}"


_make_overridable(
    globals(),
    ("is_complex", "is_conj", "is_neg", "resize_as_", "is_floating_point", "is_inference", "numel"),
)
