"""More functions of ``nn.functional`` over the positions of an image, beside ``_spatial.py``.

Volumes, adaptive maxima, windows at random, norms, unpooling, and the blocks of images. What
returns positions, too, has a second name that ends in ``_with_indices``.
"""

from __future__ import annotations

from typing import Any, cast

from .._tensor import Tensor
from ._native import VF as _VF
from ._native import nn as _nn
from ._spatial import _list_with_default

__all__ = [
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "fold",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "local_response_norm",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "unfold",
]


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """:func:`max_pool1d` and the positions of the maxima."""
    steps = [] if stride is None else stride
    pool = _VF.max_pool1d_with_indices
    return _pair(pool(input, kernel_size, steps, padding, dilation, ceil_mode))


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """:func:`max_pool3d` and the flat positions of the maxima within each volume."""
    steps = [] if stride is None else stride
    pool = _nn.max_pool3d_with_indices
    return _pair(pool(input, kernel_size, steps, padding, dilation, ceil_mode))


def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of ``(N, C, D, H, W)`` or ``(C, D, H, W)``; see ``max_pool2d``."""
    if return_indices:
        return max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    steps = [] if stride is None else stride
    return _VF.max_pool3d(input, kernel_size, steps, padding, dilation, ceil_mode)


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Means of ``(N, C, D, H, W)`` or ``(C, D, H, W)`` over windows chosen to give ``output_size``.

    Args:
        output_size: one number or three; ``None`` keeps the input's size.
    """
    return _nn.adaptive_avg_pool3d(input, _sizes(output_size, input, 3))


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """:func:`adaptive_max_pool1d` and the positions of the maxima."""
    return _pair(_VF.adaptive_max_pool1d(input, output_size))


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of ``(N, C, L)`` or ``(C, L)`` over windows chosen to give ``output_size``.

    Args:
        return_indices: whether the positions of the maxima are returned, too.
    """
    both = adaptive_max_pool1d_with_indices(input, output_size)
    return both if return_indices else both[0]


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """:func:`adaptive_max_pool2d` and the flat positions of the maxima within each plane."""
    return _pair(_nn.adaptive_max_pool2d(input, _sizes(output_size, input, 2)))


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of ``(N, C, H, W)`` or ``(C, H, W)`` over windows chosen to give ``output_size``.

    Args:
        output_size: one number or two; ``None`` keeps the input's size.
        return_indices: whether the positions of the maxima are returned, too.
    """
    both = adaptive_max_pool2d_with_indices(input, output_size)
    return both if return_indices else both[0]


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """:func:`adaptive_max_pool3d` and the flat positions of the maxima within each volume."""
    return _pair(_nn.adaptive_max_pool3d(input, _sizes(output_size, input, 3)))


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of volumes over windows chosen to give ``output_size``."""
    both = adaptive_max_pool3d_with_indices(input, output_size)
    return both if return_indices else both[0]


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """:func:`fractional_max_pool2d` and the flat positions of the maxima within each plane."""
    return _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 2)


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Maxima over windows at random distances (Graham 2014) of ``(N, C, H, W)`` or ``(C, H, W)``.

    Args:
        kernel_size: of the windows.
        output_size: how many windows there are along each dimension, or
        output_ratio: how many as a part of the input's size.
        return_indices: whether the positions of the maxima are returned, too.
    """
    both = _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 2)
    return both if return_indices else both[0]


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """:func:`fractional_max_pool3d` and the flat positions of the maxima within each volume."""
    return _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 3)


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """:func:`fractional_max_pool2d` of volumes ``(N, C, D, H, W)`` or ``(C, D, H, W)``."""
    both = _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 3)
    return both if return_indices else both[0]


def _fractional(
    input: Tensor, kernel: Any, size: Any, ratio: Any, samples: Tensor | None, rank: int
) -> tuple[Tensor, Tensor]:
    name = f"fractional_max_pool{rank}d"
    if size is None and ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if size is None:
        ratios = (ratio,) * rank if isinstance(ratio, int | float) else tuple(ratio)
        if len(ratios) < rank:
            raise ValueError(f"{name} requires an output_ratio of {rank} numbers, got {ratio}")
        dims = range(-rank, 0)
        size = [int(input.size(d) * r) for d, r in zip(dims, ratios, strict=False)]
    if samples is None:
        batch = 1 if input.dim() == rank + 1 else input.size(0)
        shape = (batch, input.size(-rank - 1), rank)
        samples = _VF.rand(shape, dtype=input.dtype, device=input.device)
    return _pair(getattr(_nn, name)(input, kernel, size, samples))


def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: Any,
    stride: Any = None,
    ceil_mode: bool = False,
) -> Tensor:
    """``(sum of x**p)**(1/p)`` over each window of ``(N, C, L)`` or ``(C, L)``, ``p = norm_type``.

    Raises:
        ValueError: a norm type of zero.
    """
    return _lp_pool(input, norm_type, kernel_size, (stride, ceil_mode), 1)


def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: Any,
    stride: Any = None,
    ceil_mode: bool = False,
) -> Tensor:
    """:func:`lp_pool1d` of images ``(N, C, H, W)`` or ``(C, H, W)``."""
    return _lp_pool(input, norm_type, kernel_size, (stride, ceil_mode), 2)


def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: Any,
    stride: Any = None,
    ceil_mode: bool = False,
) -> Tensor:
    """:func:`lp_pool1d` of volumes ``(N, C, D, H, W)`` or ``(C, D, H, W)``."""
    return _lp_pool(input, norm_type, kernel_size, (stride, ceil_mode), 3)


def _lp_pool(input: Tensor, p: float, kernel: Any, steps: tuple[Any, bool], rank: int) -> Tensor:
    sizes = _tuple(kernel, rank)
    if len(sizes) != rank:
        raise ValueError(f"lp_pool{rank}d: kernel_size must be one number or {rank}, got {kernel}")
    if p == 0:
        raise ValueError(f"norm_type must be a non-zero value, but got {p}")
    stride, ceil_mode = steps
    pool = (_VF.avg_pool1d, _nn.avg_pool2d, _nn.avg_pool3d)[rank - 1]
    mean = pool(input.pow(p), kernel, [] if stride is None else stride, 0, ceil_mode)
    elements = 1
    for size in sizes:
        elements *= size
    # The mean's sign, for odd powers of negative numbers, is that of the sum that a norm takes.
    return (mean.sign() * mean.abs().relu()).mul(elements).pow(1.0 / p)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """``x / (k + alpha m)**beta`` with the mean ``m`` of the squares of ``size`` channels around.

    Args:
        input: ``(N, C, *)``; channels beyond the first and last one count as zeros.

    Raises:
        ValueError: fewer than three dimensions.
    """
    if input.dim() < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)"
        )
    if input.numel() == 0:
        return input
    channels = input.square().reshape(input.size(0), 1, input.size(1), -1)
    padded = _nn.pad(channels, [0, 0, size // 2, (size - 1) // 2])
    means = _nn.avg_pool2d(padded, (size, 1), 1).reshape(input.shape)
    return input / (means * alpha + k).pow(beta)


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Zeros ``(N, C, L)`` or ``(C, L)`` with the elements of ``input`` at their ``indices``.

    Args:
        kernel_size: that of the ``max_pool1d`` whose result and indices are given; likewise
            ``stride`` and ``padding``.
        output_size: the size of what was pooled, if it is not to be guessed.

    Raises:
        ValueError: an ``output_size`` that pooling could not have given this of.
    """
    size = _unpooled_size(input, (kernel_size, stride, padding), output_size, 1)
    plane = _nn.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1])
    return plane.squeeze(-1)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """:func:`max_unpool1d` of images ``(N, C, H, W)`` or ``(C, H, W)``."""
    size = _unpooled_size(input, (kernel_size, stride, padding), output_size, 2)
    return _nn.max_unpool2d(input, indices, size)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """:func:`max_unpool1d` of volumes ``(N, C, D, H, W)`` or ``(C, D, H, W)``."""
    size = _unpooled_size(input, (kernel_size, stride, padding), output_size, 3)
    steps = _tuple(kernel_size if stride is None else stride, 3)
    return _nn.max_unpool3d(input, indices, size, steps, _tuple(padding, 3))


def _unpooled_size(
    input: Tensor, window: tuple[Any, Any, Any], output_size: Any, rank: int
) -> list[int]:
    """The size of what was pooled: as given, or what the windows cover."""
    kernel_size, stride, padding = window
    kernel, pads = _tuple(kernel_size, rank), _tuple(padding, rank)
    steps = kernel if stride is None else _tuple(stride, rank)
    for name, given in (("kernel_size", kernel), ("stride", steps), ("padding", pads)):
        if len(given) != rank:
            raise RuntimeError(
                f"max_unpool{rank}d: There should be exactly {rank} elements in {name}, but got"
                f" {len(given)} elements: {given}"
            )
    shape = input.shape[-rank:]
    default = [
        (n - 1) * step + k - 2 * p for n, step, k, p in zip(shape, steps, kernel, pads, strict=True)
    ]
    if output_size is None:
        for dim, extent in enumerate(default):
            if extent < 0:
                raise ValueError(
                    "max_unpooling: output_size must contain non-negative spatial dimensions, but"
                    f" got output_size[{dim}]={extent}"
                )
        return default
    size = list(output_size)
    if len(size) == rank + 2:
        size = size[2:]
    if len(size) != rank:
        raise ValueError(
            f"output_size should be a sequence containing {rank} or {rank + 2} elements, but it has"
            f" a length of '{len(size)}'"
        )
    for dim, step in enumerate(steps):
        least, most = default[dim] - step, default[dim] + step
        if not least < size[dim] < most:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {dim} must be between {least} and'
                f" {most})"
            )
    return size


def unfold(
    input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The blocks that slide over ``(N, C, H, W)`` or ``(C, H, W)`` as columns ``(N, C kh kw, L)``.

    Raises:
        RuntimeError: shapes or settings that do not fit.
    """
    return _nn.im2col(input, *(_tuple(v, 2) for v in (kernel_size, dilation, padding, stride)))


def fold(
    input: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """The sum of blocks ``(N, C kh kw, L)`` at their positions in images ``(N, C, *output_size)``.

    Raises:
        RuntimeError: shapes or settings that do not fit.
    """
    settings = (output_size, kernel_size, dilation, padding, stride)
    return _nn.col2im(input, *(_tuple(v, 2) for v in settings))


def _tuple(value: Any, rank: int) -> tuple[int, ...]:
    """One number for each dimension."""
    return tuple(value) if hasattr(value, "__iter__") else (value,) * rank


def _sizes(output_size: Any, input: Tensor, rank: int) -> list[int]:
    """``output_size`` with the input's sizes in the places of ``None``."""
    if isinstance(output_size, int):
        return [output_size] * rank
    return _list_with_default(output_size, input.size())


def _pair(both: Any) -> tuple[Tensor, Tensor]:
    return cast("tuple[Tensor, Tensor]", (both[0], both[1]))
