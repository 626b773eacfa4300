"""Functions of ``nn.functional`` that are made of others, and those under former names."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from ._native import VF as _VF
from ._native import nn as _nn
from ._reduction import get_enum, resolved

__all__ = [
    "assert_int_or_pair",
    "boolean_dispatch",
    "channel_shuffle",
    "local_response_norm",
    "multilabel_margin_loss",
    "native_channel_shuffle",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """``x / (k + alpha * mean(x**2))**beta`` of ``(N, C, *)``, the mean over ``size`` channels.

    Those before and behind a channel count, ``size // 2`` and ``(size - 1) // 2`` of them; beyond
    the ends there are zeros.

    Raises:
        ValueError: fewer than three dimensions.
    """
    if input.dim() < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)"
        )
    if input.numel() == 0:
        return input
    squares = input.mul(input).flatten(2).unsqueeze(1)
    squares = _nn.pad(squares, [0, 0, size // 2, (size - 1) // 2])
    means = _nn.avg_pool2d(squares, [size, 1], [1, 1]).reshape(input.shape)
    return input / means.mul(alpha).add(k).pow(beta)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Mixes the channels of ``(N, C, *)``: the first of each group, the second of each, and so on.

    Args:
        groups: the number of groups; ``C`` is divisible by it.

    Raises:
        RuntimeError: fewer than three dimensions, or channels that cannot be divided so.
    """
    if input.dim() <= 2:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes "
            f"{list(input.shape)}"
        )
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    batch, channels = input.shape[:2]
    if channels % groups != 0:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and "
            f"{groups} groups."
        )
    parted = input.reshape(batch, groups, channels // groups, *input.shape[2:])
    return parted.transpose(1, 2).reshape(input.shape)


native_channel_shuffle = channel_shuffle


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``sum_ij max(0, 1 - (x[y_j] - x[i])) / C`` over targets ``y_j`` and other classes ``i``.

    Args:
        input: ``(N, C)`` or ``(C)``.
        target: classes of the input's shape; those from the first negative one on do not count.

    Raises:
        RuntimeError: the shapes do not agree, or a class is out of range.
    """
    number = get_enum(resolved(reduction, size_average, reduce))
    if input.dim() > 2 or (input.dim() and input.size(-1) == 0):
        raise RuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
            f"{list(input.shape)}"
        )
    if target.shape != input.shape:
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}"
        )
    if target.is_floating_point():
        raise RuntimeError("expected scalar type Long but found Float")
    rows, classes = (x.reshape(-1, max(x.size(-1) if x.dim() else 1, 1)) for x in (input, target))
    counts = (classes >= 0).cumprod(1).bool()
    used = classes.masked_fill(~counts, 0)
    if bool((used >= rows.size(1)).any()):
        raise RuntimeError("argument #2 'target' is out of range")
    is_target = _VF.zeros_like(rows, dtype=used.dtype).scatter_add_(1, used, counts.long()) > 0
    margins = (1 - rows.gather(1, used).unsqueeze(2) + rows.unsqueeze(1)).clamp_min(0)
    hinges = margins * counts.unsqueeze(2) * ~is_target.unsqueeze(1)
    losses = hinges.sum((1, 2)) / rows.size(1)
    if number == 0:
        return losses if input.dim() == 2 else losses.reshape(())
    return losses.mean() if number == 1 else losses.sum()


def _renamed(name: str, instead: str) -> None:
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.{instead}` instead.",
        stacklevel=3,
    )


def _interpolate() -> Any:
    """``functional.interpolate``, which this module is loaded before."""
    from . import functional

    return functional.interpolate


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """The former name of :func:`interpolate`."""
    _renamed("upsample", "interpolate")
    result: Tensor = _interpolate()(input, size, scale_factor, mode, align_corners)
    return result


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """The former name of :func:`interpolate` by the nearest element."""
    _renamed("upsample_nearest", "interpolate")
    result: Tensor = _interpolate()(input, size, scale_factor, mode="nearest")
    return result


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """The former name of bilinear :func:`interpolate` with aligned corners."""
    _renamed("upsample_bilinear", "interpolate")
    result: Tensor = _interpolate()(input, size, scale_factor, mode="bilinear", align_corners=True)
    return result


def assert_int_or_pair(arg: Any, arg_name: str, message: str) -> None:
    """Refuses what is neither a number nor two.

    Raises:
        AssertionError: ``message``, with ``arg_name`` in it.
    """
    if not isinstance(arg, int) and len(arg) != 2:
        raise AssertionError(message.format(arg_name))


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    module_name: str,
    func_name: str,
) -> Callable[..., Any]:
    """A function that is one of two, by an argument that is true or false.

    Args:
        arg_name: the argument's name.
        arg_index: its place.
        default: what it is unless given.
        if_true: what is called when it is true.
        if_false: what is called when it is false.
        module_name: where the function says that it is.
        func_name: its name.
    """

    def choose(*args: Any, **kwargs: Any) -> Any:
        chosen = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if chosen else if_false)(*args, **kwargs)

    choose.__name__, choose.__module__ = func_name, module_name
    choose.__doc__ = if_true.__doc__ or if_false.__doc__
    return choose
