"""What backward must do besides giving the right numbers: zeros in give zeros out.

A gradient of an output may be a tensor of zeros, or not be there at all ("undefined"); either way
what reaches the inputs is zero or undefined too, and looks like the inputs.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ... import _C
from .. import grad
from ..function import Function
from . import GradcheckError
from .analytical import check_layout
from .problem import Problem, as_tuple, differentiable

if TYPE_CHECKING:
    from ..._tensor import Tensor


class _Undefined(Function):
    """The identity, whose backward gives no gradient."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        """A copy."""
        return value.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> None:
        """Returns no gradient."""


def check_zeros(problem: Problem, masked: bool) -> None:
    """Checks that gradients of zeros for the outputs give zeros for the inputs.

    Args:
        problem: the function and its inputs.
        masked: whether zeros within a tolerance are enough.

    Raises:
        GradcheckError: if they do not, or look unlike the inputs.
    """
    targets = problem.targets
    found = grad(problem.outputs, targets, _zeros(problem.outputs), allow_unused=True)
    for gradient, target in zip(found, targets, strict=True):
        # None comes for an input that was not used, which the type of `grad` leaves out.
        if gradient is not None:
            _check_zero(gradient, target, masked)


def _check_zero(gradient: Tensor, target: Tensor, masked: bool) -> None:
    check_layout(gradient, target)
    gradient, target = gradient.to_dense(), target.detach().to_dense()
    zeros = gradient.detach().new_zeros(gradient.shape)
    if not (gradient.allclose(zeros) if masked else gradient.eq(0).all()):
        raise GradcheckError(
            "backward not multiplied by grad_output: from gradients of zeros for the outputs it "
            f"made\n{gradient}"
        )
    if gradient.dtype != target.dtype:
        raise GradcheckError(f"grad is incorrect type ({gradient.dtype}, not {target.dtype})")
    if gradient.device != target.device:
        raise GradcheckError(f"grad is incorrect device ({gradient.device}, not {target.device})")
    if gradient.shape != target.shape:
        raise GradcheckError(f"grad is incorrect size ({gradient.shape}, not {target.shape})")


def check_undefined(problem: Problem) -> None:
    """Checks backward with no gradient for all outputs, then for each of several alone.

    Raises:
        GradcheckError: if backward raises a RuntimeError or gives gradients other than zero.
            Errors of other kinds are left as they are.
    """
    count = len(_outputs(problem))
    _check_without(problem, range(count))
    if count > 1:
        for i in range(count):
            _check_without(problem, [i])


def _outputs(problem: Problem) -> list[Tensor]:
    """The outputs that require grad, of a new call; what only imitates tensors is left out."""
    result = differentiable(as_tuple(problem.function(*problem.inputs)))
    return [value for value in result if isinstance(value, _C.TensorBase)]


def _check_without(problem: Problem, undefined: Sequence[int]) -> None:
    starts: list[Any] = [
        _Undefined.apply(output) if i in undefined else output
        for i, output in enumerate(_outputs(problem))
    ]
    try:
        found = grad(starts, problem.targets, _zeros(starts), allow_unused=True)
    except RuntimeError as error:
        _warn()
        raise GradcheckError(
            "Expected backward function to handle undefined output grads. The gradient of an "
            "output that is not used is None (zeros for a custom function that does not call "
            f"ctx.set_materialize_grads(False)), and backward raised: {error}"
        ) from error
    for gradient in found:
        if gradient is not None and not gradient.to_dense().eq(0).all():
            _warn()
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are "
                f"undefined or zero, but got\n{gradient}"
            )


def _zeros(outputs: Sequence[Tensor]) -> list[Tensor]:
    return [output.detach().new_zeros(output.shape) for output in outputs]


def _warn() -> None:
    # The levels between: this function, `_check_without`, `check_undefined`, `_check_backward`,
    # `run`, `_verdict` and `gradcheck`.
    warnings.warn(
        "Backwards compatibility: New undefined gradient support checking feature is enabled by "
        "default; `check_undefined_grad=False` turns it off.",
        stacklevel=8,
    )
