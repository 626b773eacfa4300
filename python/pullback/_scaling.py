"""The two steps of gradient scaling as functions, which scalers of other libraries call.

:class:`torch.amp.GradScaler` does the same on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _C
from .autograd.grad_mode import no_grad

if TYPE_CHECKING:
    from ._tensor import Tensor

__all__ = ["_amp_foreach_non_finite_check_and_unscale_", "_amp_update_scale_"]


def _check_number(name: str, value: Any, dtype: Any = _C.float32) -> None:
    if value.numel() != 1:
        raise RuntimeError(f"{name} must be a 1-element tensor, got {value.numel()} elements")
    if value.dtype is not dtype:
        kind = "a float" if dtype is _C.float32 else "an int"
        raise RuntimeError(f"{name} must be {kind} tensor, got {value.dtype}")


def _check_list(tensors: Any) -> None:
    name = "_amp_foreach_non_finite_check_and_unscale_"
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(
            f"{name}(): argument 'self' (position 1) must be tuple of Tensors, "
            f"not {type(tensors).__name__}"
        )
    for at, tensor in enumerate(tensors):
        if not isinstance(tensor, _C.TensorBase):
            raise TypeError(
                f"expected Tensor as element {at} in argument 0, but got {type(tensor).__name__}"
            )


@no_grad()
def _amp_foreach_non_finite_check_and_unscale_(
    self: Sequence[Tensor], found_inf: Tensor, inv_scale: Tensor
) -> None:
    """Multiplies gradients by a number, and notes whether any was infinite or NaN before.

    Args:
        self: the gradients, which are written to.
        found_inf: a float, set to one if any of them has such an element, else left alone.
        inv_scale: the number, a float.

    Raises:
        TypeError: for what is no list of tensors.
        NotImplementedError: for gradients that are no floating point numbers.
        RuntimeError: for numbers of another size or dtype.
    """
    _check_list(self)
    _check_number("inv_scale", inv_scale)
    _check_number("found_inf", found_inf)
    for grad in self:
        if not grad.dtype.is_floating_point:
            kind = grad.type().rpartition(".")[2].removesuffix("Tensor")
            raise NotImplementedError(
                f"\"_amp_foreach_non_finite_check_and_unscale_cpu\" not implemented for '{kind}'"
            )
    for grad in self:
        values = grad._values() if grad.layout is _C.sparse_coo else grad
        if not bool(values.isfinite().all()):
            found_inf.fill_(1.0)
        grad.mul_(inv_scale.reshape(()))


@no_grad()
def _amp_update_scale_(
    self: Tensor,
    growth_tracker: Tensor,
    found_inf: Tensor,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> Tensor:
    """Moves a scale after a step: down where something was infinite, up after enough good steps.

    Args:
        self: the scale, a float, which is written to.
        growth_tracker: an int32, the good steps since the scale last changed; written to.
        found_inf: a float, not zero if the step overflowed.
        scale_growth_factor: the factor up, which is not taken where it would overflow.
        scale_backoff_factor: the factor down.
        growth_interval: how many good steps are enough.

    Raises:
        RuntimeError: for numbers of another size or dtype.
    """
    _check_number("current_scale", self)
    _check_number("growth_tracker", growth_tracker, _C.int32)
    _check_number("found_inf", found_inf)
    if float(found_inf) != 0:
        self.mul_(scale_backoff_factor)
        growth_tracker.zero_()
        return self
    good = int(growth_tracker) + 1
    if good == growth_interval:
        grown = self * scale_growth_factor
        if bool(grown.isfinite()):
            self.copy_(grown)
        good = 0
    growth_tracker.fill_(good)
    return self
