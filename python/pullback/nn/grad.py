"""Gradients of convolutions by their input and by their weight, as functions.

They are those of autograd; nothing here is computed in another way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from ._native import VF as _VF

__all__ = [
    "conv1d_input",
    "conv1d_weight",
    "conv2d_input",
    "conv2d_weight",
    "conv3d_input",
    "conv3d_weight",
]


def _gradient(
    convolve: Any, input: Tensor, weight: Tensor, wanted: int, grad_output: Tensor, steps: Any
) -> Tensor:
    """The gradient of a convolution by its input (0) or weight (1), as part of the graph."""
    from ..autograd import grad, is_grad_enabled
    from ..autograd.grad_mode import enable_grad

    differentiable = is_grad_enabled() and any(
        tensor.requires_grad for tensor in (input, weight, grad_output)
    )
    with enable_grad():
        leaves = [input, weight]
        leaves[wanted] = leaves[wanted].detach().requires_grad_()
        output = convolve(leaves[0], leaves[1], None, *steps)
        found: Tensor = grad(output, leaves[wanted], grad_output, create_graph=differentiable)[0]
    return found


def _by_input(convolve: Any) -> Callable[..., Tensor]:
    def by_input(
        input_size: Any,
        weight: Tensor,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        """The gradient of ``{name}(input, weight)`` by ``input``.

        Args:
            input_size: the shape of ``input``.
            weight: the filters.
            grad_output: the gradient by the output.
            stride: as of :func:`functional.{name}`, like the rest.
            padding: see there.
            dilation: see there.
            groups: see there.
        """
        if input_size is None:
            raise ValueError("the gradient by the input needs the input's size")
        input = _VF.zeros(tuple(input_size), dtype=grad_output.dtype, device=grad_output.device)
        steps = (stride, padding, dilation, groups)
        return _gradient(convolve, input, weight, 0, grad_output, steps)

    return _named(by_input, convolve, "input")


def _by_weight(convolve: Any) -> Callable[..., Tensor]:
    def by_weight(
        input: Tensor,
        weight_size: Any,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        """The gradient of ``{name}(input, weight)`` by ``weight``.

        Args:
            input: the input.
            weight_size: the shape of ``weight``.
            grad_output: the gradient by the output.
            stride: as of :func:`functional.{name}`, like the rest.
            padding: see there.
            dilation: see there.
            groups: see there.
        """
        weight = _VF.zeros(tuple(weight_size), dtype=grad_output.dtype, device=grad_output.device)
        steps = (stride, padding, dilation, groups)
        return _gradient(convolve, input, weight, 1, grad_output, steps)

    return _named(by_weight, convolve, "weight")


def _named(made: Callable[..., Tensor], convolve: Any, wanted: str) -> Callable[..., Tensor]:
    """The function as one of this module's, named and described by the convolution's name."""
    function: Any = made
    name = convolve.__name__
    function.__name__ = function.__qualname__ = f"{name}_{wanted}"
    if function.__doc__ is not None:
        function.__doc__ = function.__doc__.replace("{name}", name)
    return made


conv1d_input, conv1d_weight = _by_input(_VF.conv1d), _by_weight(_VF.conv1d)
conv2d_input, conv2d_weight = _by_input(_VF.conv2d), _by_weight(_VF.conv2d)
conv3d_input, conv3d_weight = _by_input(_VF.conv3d), _by_weight(_VF.conv3d)
