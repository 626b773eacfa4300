"""The parts of batch normalisation over several batches: of processes, or of pieces of one batch.

Each batch gives its statistics (:func:`batch_norm_stats`); those of all batches are joined
(:func:`batch_norm_gather_stats_with_counts`) and each batch is normalised by them
(:func:`batch_norm_elemt`). The gradient goes the same way: sums for each channel
(:func:`batch_norm_backward_reduce`), which are added up over the batches, and then the gradient of
each input (:func:`batch_norm_backward_elemt`). PyTorch has these for CUDA devices alone; here they
are made of other ops, so that they run and can be differentiated wherever those do.

With ``xhat = (x - mean) * invstd``, ``y = xhat * weight + bias`` and ``n`` numbers to a channel,
``dx = (dy - sum(dy) / n - xhat * sum(dy * xhat) / n) * invstd * weight`` (Ioffe and Szegedy, 2015).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _C
from ._overridable import make_overridable as _make_overridable
from .autograd.grad_mode import no_grad

if TYPE_CHECKING:
    from ._tensor import Tensor

__all__ = [
    "batch_norm_backward_elemt",
    "batch_norm_backward_reduce",
    "batch_norm_elemt",
    "batch_norm_gather_stats",
    "batch_norm_gather_stats_with_counts",
    "batch_norm_stats",
]

_F: Any = _C._VariableFunctions


def _wide(tensor: Tensor) -> Tensor:
    """The tensor in the dtype of statistics: float32 for float16 and bfloat16."""
    is_narrow = tensor.dtype in (_C.float16, _C.bfloat16)
    return tensor.float() if is_narrow else tensor


def _other_dims(name: str, tensor: Tensor) -> list[int]:
    """All dimensions but that of the channels."""
    if tensor.dim() < 2:
        raise RuntimeError(
            f"{name}: expected an input of at least 2 dimensions, but got shape "
            f"{list(tensor.shape)}"
        )
    return [dim for dim in range(tensor.dim()) if dim != 1]


def _along_channels(tensor: Tensor, like: Tensor) -> Tensor:
    """A number for each channel, to be broadcast over ``like``."""
    return tensor.reshape([1, -1] + [1] * (like.dim() - 2))


def batch_norm_stats(input: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """The mean of each channel, and one over its standard deviation.

    ``invstd = 1 / sqrt(var + eps)``, with the variance divided by the number of elements.

    Args:
        input: (n, c, ...).
        eps: keeps the root away from 0.

    Returns:
        ``mean`` and ``invstd`` (c,), in float32 for inputs of 16 bits.

    Raises:
        RuntimeError: if there is no dimension of channels.
    """
    dims = _other_dims("batch_norm_stats", input)
    var, mean = _F.var_mean(_wide(input), dims, correction=0)
    return mean, (var + eps).rsqrt()


def batch_norm_elemt(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    invstd: Tensor,
    eps: float,
) -> Tensor:
    """``(input - mean) * invstd * weight + bias``, channel by channel.

    Args:
        input: (n, c, ...).
        weight: (c,), or None for 1.
        bias: (c,), or None for 0.
        mean: (c,).
        invstd: (c,).
        eps: has no effect: it is in ``invstd``.

    Returns:
        The shape and dtype of ``input``.

    Raises:
        RuntimeError: if there is no dimension of channels, or for other sizes.
    """
    _other_dims("batch_norm_elemt", input)
    scale = invstd if weight is None else invstd * weight
    result = (input - _along_channels(mean, input)) * _along_channels(scale, input)
    if bias is not None:
        result = result + _along_channels(bias, input)
    return result.to(input.dtype)


def batch_norm_gather_stats(
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
    count: int,
) -> tuple[Tensor, Tensor]:
    """:func:`batch_norm_gather_stats_with_counts` for batches of one size.

    Args:
        input: is not read.
        mean: (batches, c).
        invstd: (batches, c).
        running_mean: (c,), written to, or None.
        running_var: (c,), written to, or None.
        momentum: the weight of these batches.
        eps: keeps the root away from 0.
        count: the number of elements of a channel in each batch.

    Returns:
        ``mean`` and ``invstd`` (c,) of all.
    """
    counts = _F.full((mean.shape[0],), float(count), dtype=mean.dtype, device=mean.device)
    return batch_norm_gather_stats_with_counts(
        input, mean, invstd, running_mean, running_var, momentum, eps, counts
    )


def batch_norm_gather_stats_with_counts(
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
    counts: Tensor,
) -> tuple[Tensor, Tensor]:
    """The statistics of several batches as of one, and running statistics moved towards them.

    The variance of all is the mean of what the batches' variances and the squares of their means'
    distances from the mean of all are, weighted by their counts.

    Args:
        input: is not read.
        mean: (batches, c), of :func:`batch_norm_stats`.
        invstd: (batches, c), of the same with the same ``eps``.
        running_mean: (c,), written to, or None.
        running_var: (c,), written to, by the variance with Bessel's correction, or None.
        momentum: the weight of these batches.
        eps: keeps the root away from 0.
        counts: (batches,), the number of elements of a channel in each.

    Returns:
        ``mean`` and ``invstd`` (c,) of all.
    """
    weights = counts.to(mean.dtype).reshape(-1, 1)
    total = weights.sum()
    joined = (mean * weights).sum(0) / total
    squares = invstd.pow(-2) - eps + (mean - joined).square()
    var = (squares * weights).sum(0) / total
    with no_grad():
        if running_mean is not None:
            running_mean.lerp_(joined.to(running_mean.dtype), momentum)
        if running_var is not None:
            unbiased = var * (total / (total - 1))
            running_var.lerp_(unbiased.to(running_var.dtype), momentum)
    return joined, (var + eps).rsqrt()


def batch_norm_backward_reduce(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    input_g: bool,
    weight_g: bool,
    bias_g: bool,
) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None]:
    """The sums of a batch that gradients are made of, for each channel.

    Args:
        grad_out: (n, c, ...), the gradient of the result.
        input: (n, c, ...).
        mean: (c,), of all batches.
        invstd: (c,), of all batches.
        weight: (c,), or None.
        input_g: whether the first two results are wanted.
        weight_g: whether the gradient of ``weight`` is wanted.
        bias_g: whether that of the bias is.

    Returns:
        ``sum(grad_out)``, ``sum(grad_out * (input - mean))``, ``grad_weight`` and ``grad_bias``,
        (c,) each, and None for what is not wanted.

    Raises:
        RuntimeError: if there is no dimension of channels, or for other sizes.
    """
    dims = _other_dims("batch_norm_backward_reduce", input)
    grad = _wide(grad_out)
    sum_dy = grad.sum(dims)
    sum_dy_xmu = (grad * (_wide(input) - _along_channels(mean, input))).sum(dims)
    dtype = sum_dy.dtype if weight is None else weight.dtype
    return (
        sum_dy if input_g else None,
        sum_dy_xmu if input_g else None,
        (sum_dy_xmu * invstd).to(dtype) if weight_g else None,
        sum_dy.to(dtype) if bias_g else None,
    )


def batch_norm_backward_elemt(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    sum_dy: Tensor,
    sum_dy_xmu: Tensor,
    count: Tensor,
) -> Tensor:
    """The gradient of a batch, from the sums of all batches.

    Args:
        grad_out: (n, c, ...), the gradient of the result.
        input: (n, c, ...).
        mean: (c,), of all batches.
        invstd: (c,), of all batches.
        weight: (c,), or None for 1.
        sum_dy: (c,), :func:`batch_norm_backward_reduce` of all batches, added up.
        sum_dy_xmu: (c,), the same.
        count: (batches,), the number of elements of a channel in each.

    Returns:
        The shape and dtype of ``input``.

    Raises:
        RuntimeError: if there is no dimension of channels, or for other sizes.
    """
    _other_dims("batch_norm_backward_elemt", input)
    total = count.sum().to(sum_dy.dtype)
    scale = invstd if weight is None else invstd * weight
    slope = invstd.square() * sum_dy_xmu / total
    distance = _wide(input) - _along_channels(mean, input)
    level = _along_channels(sum_dy / total, input)
    grad = _wide(grad_out) - level - distance * _along_channels(slope, input)
    return (grad * _along_channels(scale, input)).to(input.dtype)


_make_overridable(globals(), __all__)
