"""Functions of Python applied to each element of a tensor, and the order of its dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _C

if TYPE_CHECKING:
    from ._tensor import Tensor


def mapped(name: str, function: Callable[..., Any], first: Tensor, *others: Tensor) -> Tensor:
    """Writes ``function`` of the elements at each index into the first tensor.

    Args:
        name: what errors call it.
        function: takes a number of each tensor, as Python has them, and gives one.
        first: the tensor that is written to.
        others: tensors of its dtype, which broadcast to its shape.

    Raises:
        RuntimeError: for tensors that require grad, and shapes that do not fit.
        TypeError: for what is no tensor or of another dtype, is not callable or gives no number.
    """
    for other in others:
        if not isinstance(other, _C.TensorBase):
            raise TypeError(f"{name}(): expected a Tensor, not {type(other).__name__}")
    if any(tensor.requires_grad for tensor in (first, *others)):
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() "
            "instead."
        )
    if not callable(function):
        raise TypeError(f"{type(function).__name__!r} object is not callable")
    for other in others:
        if other.dtype != first.dtype:
            raise TypeError(f"{name}: expected {first.type()} for 'other' (got {other.type()})")
    columns = [first.reshape(-1).tolist()]
    columns += [other.expand(first.shape).reshape(-1).tolist() for other in others]
    found = [function(*values) for values in zip(*columns, strict=True)]
    for value in found:
        if not any(hasattr(type(value), of) for of in ("__float__", "__complex__", "__index__")):
            raise TypeError(f"{name}(): must be real number, not {type(value).__name__}")
    first.copy_(_C.tensor(found, dtype=first.dtype).reshape(first.shape))
    return first


_UNCLEAR = (
    "The tensor does not have unique dim order, or cannot map to exact one of the given memory "
    "formats."
)


def dim_order(tensor: Tensor, ambiguity_check: Any) -> tuple[int, ...]:
    """The dimensions from the outermost to the innermost in memory."""
    if isinstance(ambiguity_check, bool):
        formats: list[Any] = []
    elif isinstance(ambiguity_check, list) and all(
        isinstance(one, _C.memory_format) for one in ambiguity_check
    ):
        formats = ambiguity_check
    else:
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    if ambiguity_check is not False and _is_ambiguous(tensor):
        fitting = [one for one in formats if tensor.is_contiguous(memory_format=one)]
        if len(fitting) != 1:
            raise RuntimeError(_UNCLEAR)
        if fitting[0] != _C.contiguous_format:
            return (0, *range(2, tensor.dim()), 1)
    if tensor.is_contiguous():
        return tuple(range(tensor.dim()))
    return _by_strides(list(tensor.shape), list(tensor.stride()))


def _by_strides(shape: list[int], strides: list[int]) -> tuple[int, ...]:
    """Dimensions by falling strides; one that is expanded stays in its place."""
    order = list(range(len(shape)))
    for index in range(1, len(order)):
        slot = index
        while slot > 0:
            before, current = order[slot - 1], order[slot]
            if strides[before] == 0 or strides[current] == 0:
                break
            if strides[before] > strides[current]:
                break
            if strides[before] == strides[current] and shape[before] >= shape[current]:
                break
            order[slot - 1], order[slot] = current, before
            slot -= 1
    return tuple(order)


def _is_ambiguous(tensor: Tensor) -> bool:
    """Whether several orders describe the memory: with dimensions of one element or one stride."""
    if tensor.numel() == 0:
        return False
    return 1 in tensor.shape or len(set(tensor.stride())) < tensor.dim()
