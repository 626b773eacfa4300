"""Normalisation as functions; ``functional.py`` exports them.

Invariant: the shape of the input is kept; running statistics change only where they are given and
the input's own are used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._tensor import Tensor
from ._native import VF as _VF

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "normalize", "rms_norm"]

_layer_norm = _VF.layer_norm
_batch_norm = _VF.batch_norm


def _check_batch(size: Any) -> None:
    """A channel with a single value has no variance to train on."""
    count = size[0]
    for extent in size[2:]:
        count *= extent
    if count == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {size}"
        )


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` for each channel of ``(N, C, *)``.

    In training the statistics are the batch's, and the running ones move towards them by
    ``momentum`` (the variance in its unbiased form); otherwise the running ones are used.

    Raises:
        ValueError: one value per channel in training, or ``eps`` out of range.
    """
    if training:
        _check_batch(input.size())
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return _batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps, False
    )


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """:func:`batch_norm` with statistics of their own for each ``(n, c)`` of ``(N, C, *)``.

    Raises:
        ValueError: one spatial value per channel.
        RuntimeError: neither input nor running statistics to use.
    """
    if use_input_stats:
        count = math.prod(input.shape[2:])
        if count == 1:
            raise ValueError(
                f"Expected more than 1 spatial element when training, got input size {input.size()}"
            )
    elif running_mean is None or running_var is None:
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    n, c = input.shape[:2]
    # Samples become channels; per-sample copies of the running statistics are averaged after.
    scale, shift = (None if t is None else t.repeat(n) for t in (weight, bias))
    mean, var = (None if t is None else t.repeat(n) for t in (running_mean, running_var))
    flat = input.contiguous().view(1, n * c, *input.shape[2:])
    out = _batch_norm(flat, scale, shift, mean, var, use_input_stats, momentum, eps, False)
    for running, copies in ((running_mean, mean), (running_var, var)):
        if running is not None and copies is not None:
            running.copy_(copies.view(n, c).mean(0))
    return out.view(input.shape)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last dimensions.

    Args:
        normalized_shape: the sizes of those dimensions.
    """
    sizes: Any = normalized_shape
    return _layer_norm(input, sizes, weight, bias, eps, False)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises ``(N, C, *)`` over groups of ``C / num_groups`` channels of each sample.

    Raises:
        RuntimeError: fewer than two dimensions.
        ValueError: one value per group.
    """
    if input.dim() < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.dim()}"
        )
    n, c = input.shape[:2]
    _check_batch([n * c // num_groups, num_groups, *input.shape[2:]])
    return _VF.group_norm(input, num_groups, weight, bias, eps, False)


def rms_norm(
    input: Tensor,
    normalized_shape: list[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """``x / sqrt(mean(x**2) + eps) * weight`` over the last dimensions.

    Args:
        normalized_shape: the sizes of those dimensions.
        eps: default: the machine epsilon of the dtype.

    Raises:
        RuntimeError: the shapes do not agree.
    """
    shape = list(normalized_shape)
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least "
            "one element, but got normalized_shape = []"
        )
    if weight is not None and list(weight.shape) != shape:
        raise RuntimeError(
            "Expected weight to be of same shape as normalized_shape, but got weight of shape "
            f"{list(weight.shape)} and normalized_shape = {shape}"
        )
    if list(input.shape[-len(shape) :]) != shape:
        raise RuntimeError(
            f"Given normalized_shape={shape}, expected input with shape "
            f"[*{', '.join(map(str, shape))}], but got input of size{list(input.shape)}"
        )
    if input.is_floating_point() and (weight is None or weight.dtype is input.dtype):
        return _VF.rms_norm(input, shape, weight, eps)
    # Half precision is squared and averaged in float, as its range is too small.
    wide = input.float() if input.element_size() == 2 else input
    if eps is None:
        eps = _machine_epsilon(wide)
    dims = tuple(range(-len(shape), 0))
    out = wide * (wide.square().mean(dims, keepdim=True) + eps).rsqrt()
    if weight is not None:
        out = out * weight
    return out.to(input.dtype)


def _machine_epsilon(tensor: Tensor) -> float:
    """The distance from 1 to the next number of the tensor's real dtype."""
    size = tensor.element_size() // (2 if tensor.is_complex() else 1)
    return 2.0**-52 if size == 8 else 2.0**-23


def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """``x / max(|x|_p, eps)`` along ``dim``."""
    denominator = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / denominator if out is None else _VF.div(input, denominator, out=out)
