"""The function whose first derivatives are the second derivatives of another."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ... import _C
from .. import grad
from .problem import as_tuple, differentiable, requires_grad

if TYPE_CHECKING:
    from ..._tensor import Tensor


def first_derivative(
    function: Callable[..., Any], inputs: Any, grad_outputs: Any, noncontiguous: bool
) -> tuple[Callable[..., tuple[Tensor, ...]], tuple[Any, ...]]:
    """The gradients of the inputs, as a function of the inputs and the gradients of the outputs.

    Args:
        function: gives one or several tensors.
        inputs: its arguments.
        grad_outputs: a gradient for each output that requires grad; None for random ones.
        noncontiguous: whether the random ones are strided over twice their memory.

    Returns:
        The function and its arguments.
    """
    given = as_tuple(inputs)
    if grad_outputs is None:
        outputs = differentiable(as_tuple(function(*given)))
        starts = tuple(_random_like(output, noncontiguous) for output in outputs)
    else:
        starts = as_tuple(grad_outputs)
    arguments = given + starts
    # Forward mode passes detached tensors on: which ones are to be differentiated is kept here.
    active = frozenset(i for i, value in enumerate(arguments) if requires_grad(value))

    def derivative(*args: Any) -> tuple[Tensor, ...]:
        values = [v.requires_grad_() if i in active else v for i, v in enumerate(args)]
        values, vectors = values[: len(given)], values[len(given) :]
        outputs = differentiable(as_tuple(function(*values)))
        targets = [value for i, value in enumerate(values) if i in active]
        found = grad(outputs, targets, vectors, create_graph=True, allow_unused=True)
        # Inputs that were not used have None, which the type of `grad` leaves out.
        return tuple(gradient for gradient in found if gradient is not None)

    return derivative, arguments


def _random_like(output: Tensor, noncontiguous: bool) -> Tensor:
    """A leaf with the shape and dtype of an output, between -1 and 1."""
    shape = tuple(output.shape)
    is_spread = noncontiguous and output.numel() > 1
    drawn = output.detach().new_empty((*shape[:-1], 2 * shape[-1]) if is_spread else shape)
    parts = _C._VariableFunctions.view_as_real(drawn) if drawn.is_complex() else drawn
    parts.uniform_(-1, 1)
    # Every other element, from the second one on: neither contiguous nor at the memory's start.
    return (drawn[..., 1::2] if is_spread else drawn).requires_grad_()
