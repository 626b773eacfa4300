"""Filling tensors with initial values, in place and outside of autograd.

Invariant: each function draws from the generator exactly what PyTorch draws, in the same order,
so that equal seeds give equal models. No module is known here.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from .. import _absent
from .._tensor import Tensor
from ._native import VF as _VF
from ._native import linalg as _linalg

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]


# Nonlinearities whose gain is 1: they keep the variance of a signal.
_UNIT_GAIN = (
    "linear",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "sigmoid",
)


def _no_grad() -> Any:
    from ..autograd import no_grad

    return no_grad()


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which a nonlinearity asks weights to be scaled.

    1 for linear layers and sigmoid, 5/3 for tanh, sqrt(2) for relu,
    sqrt(2 / (1 + slope**2)) for leaky_relu, 3/4 for selu.

    Args:
        nonlinearity: the name of the function in ``nn.functional``.
        param: the negative slope of leaky_relu. Default: 0.01.

    Raises:
        ValueError: the name is unknown, or the slope is no number.
    """
    if nonlinearity in _UNIT_GAIN:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "selu":
        return 3.0 / 4
    if nonlinearity != "leaky_relu":
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    if param is None:
        param = 0.01
    elif isinstance(param, bool) or not isinstance(param, (int, float)):
        raise ValueError(f"negative_slope {param} not a valid number")
    return math.sqrt(2.0 / (1 + param**2))


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fills with draws of the uniform distribution on ``[a, b)``."""
    with _no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fills with draws of the normal distribution ``N(mean, std**2)``."""
    with _no_grad():
        return tensor.normal_(mean, std, generator=generator)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills with ``val``."""
    with _no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fills with 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fills with 0."""
    with _no_grad():
        return tensor.zero_()


def _normal_cdf(x: float) -> float:
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Fills with draws of ``N(mean, std**2)`` conditioned on ``[a, b]``.

    Values outside are drawn again: from the normal distribution itself when at least three
    tenths of it lie inside, else by rejection from the uniform one on ``[a, b]``.
    """
    if tensor.is_meta:
        return tensor
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=2,
        )
    inside = _normal_cdf((b - mean) / std) - _normal_cdf((a - mean) / std)
    with _no_grad():
        if inside > 0.3:
            return _redraw_outside(tensor, mean, std, a, b, generator)
        return _reject_uniform(tensor, mean, std, a, b, generator)


def _redraw_outside(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any
) -> Tensor:
    # The bounds as the tensor's dtype rounds them.
    low, high = tensor.new_tensor([a, b], device="cpu").tolist()
    result = tensor.normal_(mean, std, generator=generator)
    while True:
        outside = (result < low) | (result > high)
        if not bool(outside.any()):
            break
        fresh = _VF.empty_like(result).normal_(mean, std, generator=generator)
        result = _VF.where(outside, fresh, result)
    return tensor if result is tensor else tensor.copy_(result)


def _reject_uniform(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any
) -> Tensor:
    """Keeps a uniform candidate ``x`` where ``log u < log density(x) - log peak``."""
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2

    def rejected(candidates: Tensor) -> Tensor:
        density = candidates.clone().sub_(mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)
        draws = _VF.empty_like(tensor).uniform_(generator=generator).log_()
        return draws.gt(density)

    result = tensor.uniform_(a, b, generator=generator)
    pending = rejected(result)
    while bool(pending.any()):
        candidates = _VF.empty_like(tensor).uniform_(a, b, generator=generator)
        result = _VF.where(pending, candidates, result)
        pending = _VF.where(pending, rejected(candidates), pending)
    return tensor if result is tensor else tensor.copy_(result)


def eye_(tensor: Tensor) -> Tensor:
    """Fills a matrix with the identity: ones on the diagonal, zeros elsewhere.

    Raises:
        ValueError: the tensor is not two-dimensional.
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with _no_grad():
        tensor.zero_().diagonal().fill_(1)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fills convolution weights so that as many channels as possible pass unchanged.

    Args:
        tensor: ``(out, in / groups, *kernel)`` with one to three kernel dimensions.
        groups: the number of groups of the convolution.

    Raises:
        ValueError: another number of dimensions, or ``out`` not divisible by ``groups``.
    """
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    out, channels, *kernel = tensor.shape
    if out % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    if tensor.is_meta:
        return tensor
    per_group = out // groups
    centre = tuple(extent // 2 for extent in kernel)
    with _no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, channels)):
                coordinates = (group * per_group + channel, channel, *centre)
                tensor[coordinates] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many inputs an output of the weight has, and how many outputs an input has."""
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    fan_out, fan_in, *kernel = tensor.shape
    field = math.prod(kernel)
    return fan_in * field, fan_out * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    modes = ["fan_in", "fan_out"]
    if mode.lower() not in modes:
        raise ValueError(f"Mode {mode.lower()} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode.lower())]


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fills from ``U(-a, a)``, ``a = gain sqrt(6 / (fan_in + fan_out))`` (Glorot, Bengio 2010)."""
    std = gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fills from ``N(0, std**2)``, ``std = gain sqrt(2 / (fan_in + fan_out))``."""
    std = gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))
    return normal_(tensor, 0.0, std, generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Fills from ``U(-b, b)``, ``b = gain sqrt(3 / fan)`` (He and others 2015).

    Args:
        a: the negative slope of leaky_relu, for the gain.
        mode: ``'fan_in'`` keeps the variance forward, ``'fan_out'`` backward.
        nonlinearity: what follows the layer; see :func:`calculate_gain`.
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Fills from ``N(0, std**2)``, ``std = gain / sqrt(fan)``; see :func:`kaiming_uniform_`."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fills with ``gain`` times a (semi-)orthogonal matrix (Saxe and others 2013).

    Dimensions after the first count as columns.

    Raises:
        ValueError: fewer than two dimensions.
    """
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0 or tensor.is_meta:
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    with _no_grad():
        flat = tensor.new_empty((rows, cols)).normal_(0, 1, generator=generator)
        factors: Any = _linalg.linalg_qr(flat.t() if rows < cols else flat)
        # The signs of R's diagonal make the distribution uniform (Mezzadri 2006).
        q: Tensor = factors[0] * factors[1].diagonal().sign()
        tensor.copy_((q.t() if rows < cols else q).reshape(tensor.shape))
        tensor.mul_(gain)
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fills a matrix from ``N(0, std**2)`` with a share ``sparsity`` of each column at zero.

    Raises:
        ValueError: the tensor is not two-dimensional.
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    if tensor.is_meta:
        return tensor
    rows, cols = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with _no_grad():
        tensor.normal_(0, std, generator=generator)
        for col in range(cols):
            tensor[_VF.randperm(rows)[:zeros], col] = 0
    return tensor


def _renamed(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The older name of a function, without the underscore; it warns."""
    new, old = function.__name__, function.__name__[:-1]

    def deprecated(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    deprecated.__doc__ = f"The older name of :func:`{new}`."
    deprecated.__name__ = deprecated.__qualname__ = old
    return deprecated


uniform = _renamed(uniform_)
normal = _renamed(normal_)
constant = _renamed(constant_)
eye = _renamed(eye_)
dirac = _renamed(dirac_)
xavier_uniform = _renamed(xavier_uniform_)
xavier_normal = _renamed(xavier_normal_)
kaiming_uniform = _renamed(kaiming_uniform_)
kaiming_normal = _renamed(kaiming_normal_)
orthogonal = _renamed(orthogonal_)
sparse = _renamed(sparse_)

_absent.announce(globals())


def _no_grad_uniform_(tensor: Tensor, a: float, b: float, generator: Any = None) -> Tensor:
    """The older private name of :func:`uniform_`."""
    return uniform_(tensor, a, b, generator)


def _no_grad_normal_(tensor: Tensor, mean: float, std: float, generator: Any = None) -> Tensor:
    """The older private name of :func:`normal_`."""
    return normal_(tensor, mean, std, generator)


def _no_grad_fill_(tensor: Tensor, val: float) -> Tensor:
    """The older private name of :func:`constant_`."""
    return constant_(tensor, val)


def _no_grad_zero_(tensor: Tensor) -> Tensor:
    """The older private name of :func:`zeros_`."""
    return zeros_(tensor)


def _no_grad_trunc_normal_(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any = None
) -> Tensor:
    """The older private name of :func:`trunc_normal_`."""
    return trunc_normal_(tensor, mean, std, a, b, generator)
