"""Normalisation within a sample: layer, group, RMS, local response.

Batch statistics are in ``batchnorm.py``.

Invariant: the shape of the input is kept; ``weight`` starts at 1 and ``bias`` at 0.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

from ... import _C
from ..._tensor import Tensor
from .. import functional as F
from .. import init
from .._native import VF as _VF
from ..parameter import Parameter
from .module import Module

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]

_layer_norm = _VF.layer_norm


def _make_affine(
    module: Module, shape: Any, weight: bool, bias: bool, device: Any, dtype: Any
) -> None:
    """Registers ``weight`` and ``bias``, ``None`` for those that are disabled."""
    empty = _VF.empty
    for name, wanted in (("weight", weight), ("bias", bias)):
        if wanted:
            setattr(module, name, Parameter(empty(shape, device=device, dtype=dtype)))
        else:
            module.register_parameter(name, None)


def _reset_affine(module: Any) -> None:
    if module.weight is not None:
        init.ones_(module.weight)
    if module.bias is not None:
        init.zeros_(module.bias)


def _as_shape(normalized_shape: Any) -> tuple[int, ...]:
    if isinstance(normalized_shape, Integral):
        return (int(normalized_shape),)
    return tuple(normalized_shape)


class LayerNorm(Module):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last dimensions.

    Args:
        normalized_shape: the sizes of those dimensions; one number for the last alone.
        eps: keeps the root away from 0.
        elementwise_affine: whether ``weight`` and ``bias`` exist.
        bias: whether ``bias`` exists.
        device: where the parameters are made.
        dtype: of the parameters.
    """

    normalized_shape: tuple[int, ...]
    eps: float
    elementwise_affine: bool
    weight: Parameter
    bias: Parameter

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        affine = elementwise_affine
        _make_affine(self, self.normalized_shape, affine, affine and bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets ``weight`` to 1 and ``bias`` to 0."""
        _reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        """Normalises ``(*, *normalized_shape)``."""
        params = self._parameters
        try:
            weight: Any = params["weight"]
            bias: Any = params["bias"]
        except KeyError:
            weight, bias = self.weight, self.bias
        return _layer_norm(input, self.normalized_shape, weight, bias, self.eps, False)

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class GroupNorm(Module):
    """Normalises ``(N, C, *)`` over groups of ``C / num_groups`` channels of each sample.

    Args:
        num_groups: the number of groups.
        num_channels: ``C``, divisible by it.
        eps: keeps the root away from 0.
        affine: whether ``weight`` and ``bias``, one number per channel, exist.
        device: where the parameters are made.
        dtype: of the parameters.
        bias: whether ``bias`` exists.

    Raises:
        ValueError: the channels are not divisible.
    """

    num_groups: int
    num_channels: int
    eps: float
    affine: bool
    weight: Parameter
    bias: Parameter

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        _make_affine(self, num_channels, affine, affine and bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets ``weight`` to 1 and ``bias`` to 0."""
        _reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        """Normalises ``(N, C, *)``."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """``x / sqrt(mean(x**2) + eps) * weight`` over the last dimensions.

    Args:
        normalized_shape: the sizes of those dimensions; one number for the last alone.
        eps: default: the machine epsilon of the input's dtype.
        elementwise_affine: whether ``weight`` exists.
        device: where the parameter is made.
        dtype: of the parameter.
    """

    normalized_shape: tuple[int, ...]
    eps: float | None
    elementwise_affine: bool
    weight: Parameter

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            empty = _VF.empty
            self.weight = Parameter(empty(self.normalized_shape, device=device, dtype=dtype))
        else:
            self.register_parameter("weight", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets ``weight`` to 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Normalises ``(*, *normalized_shape)``."""
        return F.rms_norm(x, list(self.normalized_shape), self.weight, self.eps)

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class LocalResponseNorm(Module):
    """``x / (k + alpha / size * sum x**2)**beta``, the sum over ``size`` neighbouring channels.

    Args:
        size: how many channels.
        alpha: the weight of the sum.
        beta: the exponent.
        k: what is added to the sum.
    """

    size: int
    alpha: float
    beta: float
    k: float

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """Normalises ``(N, C, *)``."""
        result: Tensor = F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)
        return result

    def extra_repr(self) -> str:
        """The options."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


def _takes_part(channel: int, other: int, reach: int) -> float:
    """Whether the sum of :class:`CrossMapLRN2d` for a channel has another one: 1 or 0."""
    near = abs(other - channel) < reach
    return float(near or (other == 0 and channel >= reach))


class CrossMapLRN2d(Module):
    """The older form of :class:`LocalResponseNorm`, of ``(N, C, H, W)``, from Torch7.

    Its sums run over ``2 m - 1`` channels, ``m = (size + 1) // 2``, without those beyond the ends.
    As in PyTorch the square of the first channel, once counted, stays in all of them. Gradients are
    those of this function; PyTorch's are of sums without that square.

    Args:
        size: how many channels.
        alpha: the weight of the sum, divided by ``size``.
        beta: the exponent.
        k: what is added to the sum.
    """

    size: int
    alpha: float
    beta: float
    k: float

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """Normalises ``(N, C, H, W)``.

        Raises:
            ValueError: the input has another number of dimensions.
        """
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        channels, reach = input.size(1), int((self.size - 1) / 2 + 1)
        rows = [
            [_takes_part(row, other, reach) for other in range(channels)] for row in range(channels)
        ]
        window = _C.tensor(rows, dtype=input.dtype, device=input.device)
        sums = _VF.einsum("cj,njhw->nchw", [window, input * input])
        return input * (sums * (self.alpha / self.size) + self.k).pow(-self.beta)

    def extra_repr(self) -> str:
        """The options."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
