"""Convolution layers. The arithmetic is native; here are the parameters and the padding modes.

Invariant: ``kernel_size``, ``stride``, ``dilation`` and a numeric ``padding`` are tuples with one
entry per spatial dimension. Those whose input channels are found out are in ``_lazy_conv.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..._tensor import Tensor
from .. import functional as F
from .. import init
from .._native import VF as _VF
from ..parameter import Parameter
from .module import Module
from .utils import _ntuple, _reverse_repeat_tuple, _single

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What convolutions of any number of dimensions share.

    Attributes:
        weight: ``(out_channels, in_channels / groups, *kernel_size)``, at first from
            ``U(-k, k)``, ``k = 1 / sqrt(in_channels / groups * prod(kernel_size))``.
        bias: ``(out_channels)``, from the same distribution, or ``None``.
    """

    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: str | tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool
    output_padding: tuple[int, ...]
    groups: int
    padding_mode: str
    weight: Parameter
    bias: Parameter

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: str | tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _check_options(in_channels, out_channels, groups, stride, padding, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._pads()
        if transposed:
            shape = (in_channels, out_channels // groups, *kernel_size)
        else:
            shape = (out_channels, in_channels // groups, *kernel_size)
        empty = _VF.empty
        self.weight = Parameter(empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _pads(self) -> list[int]:
        """The padding in the order that ``F.pad`` takes: last dimension first, both sides."""
        if not isinstance(self.padding, str):
            return list(_reverse_repeat_tuple(self.padding, 2))
        pads: list[int] = []
        for dilation, kernel in zip(
            reversed(self.dilation), reversed(self.kernel_size), strict=True
        ):
            total = dilation * (kernel - 1) if self.padding == "same" else 0
            pads += [total // 2, total - total // 2]
        return pads

    def reset_parameters(self) -> None:
        """Draws the parameters anew: weight, then bias."""
        # With a = sqrt(5) the bound of kaiming_uniform_ is 1 / sqrt(fan_in).
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        raise NotImplementedError

    def forward(self, input: Tensor) -> Tensor:
        """Convolves a batch, or one sample without the batch dimension."""
        params = self._parameters
        try:
            weight: Any = params["weight"]
            bias: Any = params["bias"]
        except KeyError:
            weight, bias = self.weight, self.bias
        return self._conv_forward(input, weight, bias)

    def _padded(self, input: Tensor) -> Tensor:
        return F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)

    def extra_repr(self) -> str:
        """The options that differ from their defaults."""
        shown = [
            f"{self.in_channels}",
            f"{self.out_channels}",
            f"kernel_size={self.kernel_size}",
            f"stride={self.stride}",
        ]
        if self.padding != (0,) * len(self.padding):
            shown.append(f"padding={self.padding}")
        if self.dilation != (1,) * len(self.dilation):
            shown.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * len(self.output_padding):
            shown.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            shown.append(f"groups={self.groups}")
        if self.bias is None:
            shown.append("bias=False")
        if self.padding_mode != "zeros":
            shown.append(f"padding_mode={self.padding_mode}")
        return ", ".join(shown)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


def _check_options(
    in_channels: int,
    out_channels: int,
    groups: int,
    stride: tuple[int, ...],
    padding: str | tuple[int, ...],
    padding_mode: str,
) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if in_channels % groups != 0:
        raise ValueError("in_channels must be divisible by groups")
    if out_channels % groups != 0:
        raise ValueError("out_channels must be divisible by groups")
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(
                f"Invalid padding string '{padding}', should be one of {{'same', 'valid'}}"
            )
        if padding == "same" and any(step != 1 for step in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if padding_mode not in _PADDING_MODES:
        raise ValueError(
            f"padding_mode must be one of {set(_PADDING_MODES)}, "
            f"but got padding_mode='{padding_mode}'"
        )


class _Conv(_ConvNd):
    """Convolutions, with options for each spatial dimension or one for all."""

    _rank: int
    _convolve: Callable[..., Tensor]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        tuples = _ntuple(self._rank)
        super().__init__(
            in_channels,
            out_channels,
            tuples(kernel_size),
            tuples(stride),
            padding if isinstance(padding, str) else tuples(padding),
            tuples(dilation),
            False,
            tuples(0),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = self._padded(input), (0,) * self._rank
        return self._convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv1d(_Conv):
    """Cross-correlation of ``(N, C_in, L)`` with learnt filters: ``(N, C_out, L_out)``.

    ``L_out = floor((L + 2 padding - dilation (kernel_size - 1) - 1) / stride + 1)``.

    Args:
        in_channels: ``C_in``.
        out_channels: ``C_out``.
        kernel_size: the length of the filters.
        stride: the step between outputs.
        padding: added on both sides; or ``'valid'`` (none) or ``'same'`` (output as long).
        dilation: the step between the points of a filter.
        groups: in how many groups the channels are split; both counts are divisible by it.
        bias: whether a bias is added.
        padding_mode: ``'zeros'``, ``'reflect'``, ``'replicate'`` or ``'circular'``.
        device: where the parameters are made.
        dtype: of the parameters.

    Raises:
        ValueError: options that do not fit together.
    """

    _rank = 1
    _convolve = staticmethod(_VF.conv1d)


class Conv2d(_Conv):
    """Cross-correlation of ``(N, C_in, H, W)`` with learnt filters: ``(N, C_out, H_out, W_out)``.

    Sizes and arguments as in :class:`Conv1d`, for each of the two spatial dimensions; where one
    number is given it serves for both.
    """

    _rank = 2
    _convolve = staticmethod(_VF.conv2d)


class Conv3d(_Conv):
    """Cross-correlation of ``(N, C_in, D, H, W)`` with learnt filters.

    The output is ``(N, C_out, D_out, H_out, W_out)``; sizes and arguments as in
    :class:`Conv1d`, for each of the three spatial dimensions; where one number is given it serves
    for all.
    """

    _rank = 3
    _convolve = staticmethod(_VF.conv3d)


class _ConvTransposeNd(_ConvNd):
    """What transposed convolutions of any number of dimensions share.

    Attributes:
        weight: ``(in_channels, out_channels / groups, *kernel_size)``, at first from
            ``U(-k, k)``, ``k = 1 / sqrt(out_channels / groups * prod(kernel_size))``.
        bias: ``(out_channels)``, from the same distribution, or ``None``.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            transposed,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(
        self,
        input: Tensor,
        output_size: Any,
        stride: Any,
        padding: Any,
        kernel_size: Any,
        num_spatial_dims: int,
        dilation: Any = None,
    ) -> Any:
        """How much is added at the end so that the output has ``output_size``."""
        if output_size is None:
            return _single(self.output_padding)
        rank = num_spatial_dims
        leading = 2 if input.dim() == rank + 2 else 1
        sizes = list(output_size)
        if len(sizes) == leading + rank:
            sizes = sizes[leading:]
        if len(sizes) != rank:
            raise ValueError(
                f"ConvTranspose{rank}D: for {input.dim()}D input, output_size must have {rank} or "
                f"{leading + rank} elements (got {len(sizes)})"
            )
        steps = [1] * rank if dilation is None else dilation
        least = [
            (input.size(leading + i) - 1) * stride[i]
            - 2 * padding[i]
            + steps[i] * (kernel_size[i] - 1)
            + 1
            for i in range(rank)
        ]
        most = [least[i] + stride[i] - 1 for i in range(rank)]
        if any(not low <= size <= high for low, size, high in zip(least, sizes, most, strict=True)):
            raise ValueError(
                f"requested an output size of {list(output_size)}, but valid sizes range from "
                f"{least} to {most} (for an input of {input.size()[2:]})"
            )
        return [size - low for size, low in zip(sizes, least, strict=True)]

    def _transposed(self, function: Any, input: Tensor, output_size: Any) -> Tensor:
        rank = len(self.kernel_size)
        extra = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, rank, self.dilation
        )
        result: Tensor = function(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            extra,
            self.groups,
            self.dilation,
        )
        return result


class _ConvTranspose(_ConvTransposeNd):
    """Transposed convolutions, with options for each spatial dimension or one for all."""

    _rank: int
    _spread: Callable[..., Tensor]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        tuples = _ntuple(self._rank)
        super().__init__(
            in_channels,
            out_channels,
            tuples(kernel_size),
            tuples(stride),
            tuples(padding),
            tuples(dilation),
            True,
            tuples(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """Spreads a batch, or one sample without the batch dimension.

        Args:
            input: what is spread.
            output_size: the spatial size of the output, with or without the leading sizes, in
                place of ``output_padding``.

        Raises:
            ValueError: no such size is possible.
        """
        return self._transposed(self._spread, input, output_size)


class ConvTranspose1d(_ConvTranspose):
    """The gradient of :class:`Conv1d` by its input as a layer: ``(N, C_in, L)`` to longer ones.

    ``L_out = (L - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1``.

    Args:
        in_channels: ``C_in``.
        out_channels: ``C_out``.
        kernel_size: the length of the filters.
        stride: the step between the positions where filters are added.
        padding: how much is cut off at both ends.
        output_padding: how much is added at one end; less than ``stride`` or ``dilation``.
        groups: in how many groups the channels are split; both counts are divisible by it.
        bias: whether a bias is added.
        dilation: the step between the points of a filter.
        padding_mode: only ``'zeros'``.
        device: where the parameters are made.
        dtype: of the parameters.

    Raises:
        ValueError: options that do not fit together.
    """

    _rank = 1
    _spread = staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTranspose):
    """The gradient of :class:`Conv2d` by its input as a layer: ``(N, C_in, H, W)`` to larger ones.

    Sizes and arguments as in :class:`ConvTranspose1d`, for each spatial dimension; where one number
    is given it serves for all.
    """

    _rank = 2
    _spread = staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTranspose):
    """The gradient of :class:`Conv3d` by its input as a layer, of ``(N, C_in, D, H, W)``.

    Sizes and arguments as in :class:`ConvTranspose1d`, for each spatial dimension; where one number
    is given it serves for all.
    """

    _rank = 3
    _spread = staticmethod(F.conv_transpose3d)


from ._lazy_conv import (  # noqa: E402 (these are made of the classes above)
    LazyConv1d,
    LazyConv2d,
    LazyConv3d,
    LazyConvTranspose1d,
    LazyConvTranspose2d,
    LazyConvTranspose3d,
)
