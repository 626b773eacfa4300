"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..._tensor import Tensor
from .._native import VF as _VF
from ..modules._base import typename

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The parameters, flattened and joined in order: ``(sum of sizes)``.

    Raises:
        TypeError: they lie on different devices.
    """
    device = None
    parts = []
    for param in parameters:
        device = _same_device(param, device)
        parts.append(param.view(-1))
    joined: Tensor = _VF.cat(parts)
    return joined


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Makes the parameters views of consecutive parts of ``vec``.

    Raises:
        TypeError: ``vec`` is no tensor, or the parameters lie on different devices.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    device = None
    start = 0
    for param in parameters:
        device = _same_device(param, device)
        end = start + param.numel()
        param.data = vec[start:end].view_as(param).data
        start = end


def _same_device(param: Tensor, device: Any) -> Any:
    if device is not None and param.device != device:
        raise TypeError(
            "Found two parameters on different devices, this is currently not supported."
        )
    return param.device
