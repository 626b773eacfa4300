"""Clipping of gradients, by their common norm or by value, in place and outside of autograd.

Invariant: the norm is that of all gradients as one vector, made on the first one's device.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from types import GeneratorType
from typing import Any

from ..._tensor import Tensor
from .._native import VF as _VF
from .._native import linalg as _linalg

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]


def _no_grad() -> Any:
    from ...autograd import no_grad

    return no_grad()


def _as_list(tensors: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _groups(tensors: list[Tensor]) -> Iterator[list[Tensor]]:
    """The tensors by device and dtype, as the natives over lists want them."""
    groups: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        groups.setdefault((tensor.device, tensor.dtype), []).append(tensor)
    yield from groups.values()


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The ``norm_type``-norm of all tensors as one vector; 0 for no tensors.

    Args:
        tensors: one or many.
        norm_type: the order of the norm; infinity for the greatest magnitude.
        error_if_nonfinite: whether an infinite or NaN norm is an error.
        foreach: with ``False`` the tensors are treated one by one; the result is the same.

    Raises:
        RuntimeError: the norm is not finite and that was to be an error.
    """
    tensors = _as_list(tensors)
    order = float(norm_type)
    if not tensors:
        empty: Tensor = _VF.zeros(())
        return empty
    vector_norm = _linalg.linalg_vector_norm
    device = tensors[0].device
    with _no_grad():
        norms: list[Tensor] = []
        for group in _groups(tensors):
            if foreach is False:
                norms += [vector_norm(tensor, order) for tensor in group]
            else:
                norms += _VF._foreach_norm(group, order)
        total: Tensor = vector_norm(_VF.stack([norm.to(device) for norm in norms]), order)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {order} for gradients from `parameters` is non-finite, so "
            "it cannot be clipped. To disable this error and scale the gradients by the "
            "non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Scales gradients in place by ``max_norm / (total_norm + 1e-6)`` where that is below 1.

    Args:
        parameters: whose gradients; those without one are passed over.
        max_norm: the greatest norm allowed.
        total_norm: the norm, from :func:`get_total_norm`.
        foreach: accepted for compatibility; the result does not depend on it.
    """
    grads = [param.grad for param in _as_list(parameters) if param.grad is not None]
    if not grads:
        return
    with _no_grad():
        # A factor of 1 is multiplied, too: asking for the number would wait for the device.
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for group in _groups(grads):
            local = factor.to(group[0].device)
            for grad in group:
                grad.mul_(local)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales gradients in place so that their common norm is at most ``max_norm``.

    Args:
        parameters: whose gradients; those without one are passed over.
        max_norm: the greatest norm allowed.
        norm_type: the order of the norm; infinity for the greatest magnitude.
        error_if_nonfinite: whether an infinite or NaN norm is an error.
        foreach: with ``False`` the tensors are treated one by one; the result is the same.

    Returns:
        The norm before clipping.

    Raises:
        RuntimeError: the norm is not finite and that was to be an error.
    """
    params = _as_list(parameters)
    if isinstance(parameters, GeneratorType) and not params:
        warnings.warn(
            "`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2
        )
    grads = [param.grad for param in params if param.grad is not None]
    total_norm = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(params, max_norm, total_norm, foreach)
    return total_norm


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The older name of :func:`clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Clamps gradients in place to ``[-clip_value, clip_value]``.

    Args:
        parameters: whose gradients; those without one are passed over.
        clip_value: the greatest magnitude allowed.
        foreach: accepted for compatibility; the result does not depend on it.
    """
    limit = float(clip_value)
    with _no_grad():
        for param in _as_list(parameters):
            if param.grad is not None:
                param.grad.clamp_(min=-limit, max=limit)
