"""What a derivative is computed of: inputs, the function's outputs, the vector of a product.

All three are a tensor or a tuple of tensors. A :class:`Pack` keeps them as a tuple together with
what they were, so that results can be given in the same structure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ... import _C

if TYPE_CHECKING:
    from ..._tensor import Tensor

Item = TypeVar("Item")


class Pack(NamedTuple):
    """Tensors, and whether they came in a tuple."""

    tensors: tuple[Tensor, ...]
    is_tuple: bool

    @classmethod
    def of(cls, value: Any, what: str, name: str) -> Pack:
        """Takes the tensors in.

        Args:
            value: a tensor or a tuple of tensors.
            what: the word for it in errors.
            name: the function that asks, for errors.

        Raises:
            TypeError: if it is anything else.
        """
        is_tuple = isinstance(value, tuple)
        tensors = tuple(value) if is_tuple else (value,)
        for index, tensor in enumerate(tensors):
            if not isinstance(tensor, _C.TensorBase):
                found = f"value at index {index}" if is_tuple else f"given {what}"
                raise TypeError(
                    f"The {what} given to {name} must be either a Tensor or a tuple of Tensors "
                    f"but the {found} has type {type(tensor)}."
                )
        return cls(tensors, is_tuple)

    def arranged(self, results: tuple[Item, ...]) -> Item | tuple[Item, ...]:
        """One result per tensor, as the tensors came."""
        return results if self.is_tuple else results[0]


def stand_ins(
    tensors: tuple[Tensor, ...], create_graph: bool, requires_grad: bool = True
) -> tuple[Tensor, ...]:
    """Other tensors with the same elements.

    They are new objects even where the history is kept: a function may have captured the very
    tensors that it is given, and what is captured is a constant to it.

    Args:
        tensors: the originals.
        create_graph: keep the history of those that have one.
        requires_grad: whether those without history require gradients.
    """
    return tuple(
        tensor.view_as(tensor)
        if create_graph and tensor.requires_grad
        else tensor.detach().requires_grad_(requires_grad)
        for tensor in tensors
    )


def outputs_of(
    func: Callable[..., Any], points: tuple[Tensor, ...], name: str, strict: bool
) -> Pack:
    """Calls the function.

    Raises:
        TypeError: if it returns anything but tensors.
        RuntimeError: if ``strict`` and one of them has no history.
    """
    outputs = Pack.of(func(*points), "outputs of the user-provided function", name)
    for index, output in enumerate(outputs.tensors):
        if strict and not output.requires_grad:
            raise RuntimeError(
                f"Output {index} of the user-provided function does not require gradients. In "
                "strict mode every output must come from the inputs by differentiable operations."
            )
    return outputs


def scalar_of(
    func: Callable[..., Any], points: tuple[Tensor, ...], name: str, strict: bool
) -> Tensor:
    """Calls a function that has to return one tensor with one element.

    Raises:
        TypeError: if it returns anything but tensors.
        RuntimeError: if it returns a tuple or more than one element; without history if ``strict``.
    """
    outputs = outputs_of(func, points, name, strict)
    if outputs.is_tuple:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if outputs.tensors[0].numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {name} should contain a single element"
        )
    return outputs.tensors[0]


def vector_for(
    target: Pack, v: Any, name: str, create_graph: bool, condition: str
) -> tuple[Tensor, ...] | None:
    """The vector of a product, checked against the tensors that it is multiplied with.

    Args:
        target: these tensors.
        v: the vector, or None for the number one.
        name: the function that asks, for errors.
        create_graph: keep the history of the vector.
        condition: what says that ``target`` is one number, for errors.

    Raises:
        TypeError: if ``v`` is neither a tensor nor a tuple of tensors.
        RuntimeError: if its length or sizes differ, or it is None where it may not be.
    """
    if v is None:
        if len(target.tensors) != 1 or target.tensors[0].numel() != 1:
            raise RuntimeError(
                f"The vector v can only be None if {condition} a single Tensor with a single "
                "element."
            )
        return None
    tensors = stand_ins(Pack.of(v, "v", name).tensors, create_graph, requires_grad=False)
    _check_sizes(tensors, target)
    return tensors


def _check_sizes(vector: tuple[Tensor, ...], target: Pack) -> None:
    if len(vector) != len(target.tensors):
        raise RuntimeError(
            "v is a tuple of invalid length: should be "
            f"{len(target.tensors)} but got {len(vector)}."
            if target.is_tuple
            else "The given v should contain a single Tensor."
        )
    for index, (given, wanted) in enumerate(zip(vector, target.tensors, strict=True)):
        if given.shape != wanted.shape:
            entry = f"Entry {index} in v" if target.is_tuple else "v"
            raise RuntimeError(
                f"{entry} has invalid size: should be {wanted.shape} but got {given.shape}."
            )
