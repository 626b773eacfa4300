"""A batch norm in evaluation as part of the convolution or linear map before it."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from ..._tensor import Tensor
from .._native import VF as _VF
from ..modules.batchnorm import _BatchNorm
from ..modules.module import Module
from ..parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]

ConvT = TypeVar("ConvT", bound=Module)
LinearT = TypeVar("LinearT", bound=Module)


def fuse_conv_bn_eval(conv: ConvT, bn: _BatchNorm, transpose: bool = False) -> ConvT:
    """A convolution that computes what ``bn(conv(x))`` gives.

    Args:
        conv: a convolution in evaluation mode; a copy is changed.
        bn: a batch norm in evaluation mode, with running statistics.
        transpose: whether ``conv`` is a transposed convolution.

    Raises:
        AssertionError: one of them is in training mode.
    """
    if conv.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused: Any = copy.deepcopy(conv)
    mean, var = _statistics(bn)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, mean, var, bn.eps, bn.weight, bn.bias, transpose
    )
    made: ConvT = fused
    return made


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """The weight and bias of :func:`fuse_conv_bn_eval`.

    Args:
        conv_w: the weight of the convolution.
        conv_b: its bias.
        bn_rm: the running mean.
        bn_rv: the running variance.
        bn_eps: what is added to it.
        bn_w: the weight of the norm.
        bn_b: its bias.
        transpose: whether the convolution is a transposed one.
    """
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    return _fused(conv_w, conv_b, (bn_rm, bn_rv, bn_eps, bn_w, bn_b), shape)


def fuse_linear_bn_eval(linear: LinearT, bn: _BatchNorm) -> LinearT:
    """A linear map that computes what ``bn(linear(x))`` gives.

    Args:
        linear: a linear map in evaluation mode; a copy is changed.
        bn: a batch norm in evaluation mode, with running statistics, of as many features or one.

    Raises:
        AssertionError: one of them is in training mode, or their features do not agree.
    """
    if linear.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused: Any = copy.deepcopy(linear)
    if bn.num_features not in (fused.out_features, 1):
        raise AssertionError(
            f"To fuse, linear.out_features == bn.num_features or bn.num_features == 1: "
            f"got {fused.out_features} and {bn.num_features}"
        )
    mean, var = _statistics(bn)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, mean, var, bn.eps, bn.weight, bn.bias
    )
    made: LinearT = fused
    return made


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """The weight and bias of :func:`fuse_linear_bn_eval`; arguments as of the other function."""
    return _fused(linear_w, linear_b, (bn_rm, bn_rv, bn_eps, bn_w, bn_b), [-1, 1])


def _statistics(bn: _BatchNorm) -> tuple[Tensor, Tensor]:
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("a batch norm without running statistics cannot be fused")
    return bn.running_mean, bn.running_var


def _fused(
    weight: Tensor, bias: Tensor | None, norm: tuple[Any, ...], shape: list[int]
) -> tuple[Parameter, Parameter]:
    mean, var, eps, scale, shift = norm
    scale = _VF.ones_like(mean) if scale is None else scale
    shift = _VF.zeros_like(mean) if shift is None else shift
    bias_dtype = weight.dtype if bias is None else bias.dtype
    factor = scale * (var + eps).rsqrt()
    new_bias = (-mean if bias is None else bias - mean) * factor + shift
    return (
        Parameter((weight * factor.reshape(shape)).to(weight.dtype), weight.requires_grad),
        Parameter(new_bias.to(bias_dtype), (weight if bias is None else bias).requires_grad),
    )
