"""Convolution layers whose number of input channels is found out at their first call.

``conv.py`` exports them. Invariant: apart from the first argument they are made as their ordinary
classes, and become these.
"""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from ..parameter import UninitializedParameter
from .conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    _ConvNd,
)
from .conversion import no_grad
from .lazy import LazyModuleMixin

__all__: list[str] = []


class _LazyConvNd(LazyModuleMixin, _ConvNd):
    """What lazy convolutions share: parameters without shape, and the shapes by the first batch."""

    def _make_lazy(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        """Puts parameters without shape in the place of those for no channels."""
        options = {"device": device, "dtype": dtype}
        self.weight = UninitializedParameter(**options)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(**options)

    def reset_parameters(self) -> None:
        """Draws the parameters anew if their shapes are known."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Makes and draws the parameters for the channels of ``input``.

        Raises:
            RuntimeError: the input has another number of dimensions.
            ValueError: the channels are not divisible by ``groups``.
        """
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        weight: Any = self.weight
        bias: Any = self.bias
        with no_grad():
            weight.materialize((first, second // self.groups, *self.kernel_size))
            if bias is not None:
                bias.materialize((self.out_channels,))
            self.reset_parameters()

    def _get_in_channels(self, input: Tensor) -> int:
        """The channels of a batch, or of one sample."""
        rank = self._get_num_spatial_dims()
        if input.dim() not in (rank + 1, rank + 2):
            raise RuntimeError(
                f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        return int(input.shape[1] if input.dim() == rank + 2 else input.shape[0])

    def _get_num_spatial_dims(self) -> int:
        """How many spatial dimensions there are."""
        return len(self.kernel_size)


class _LazyConv(_LazyConvNd):
    """How convolutions of any number of dimensions are made without ``in_channels``."""

    def __init__(
        self,
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
        super().__init__(
            0,
            0,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            False,
            padding_mode,
            device,
            dtype,
        )
        self._make_lazy(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvNd):
    """How transposed convolutions are made without ``in_channels``."""

    def __init__(
        self,
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
        super().__init__(
            0,
            0,
            kernel_size,
            stride,
            padding,
            output_padding,
            groups,
            False,
            dilation,
            padding_mode,
            device,
            dtype,
        )
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """:class:`Conv1d` whose ``in_channels`` are those of its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """:class:`Conv2d` whose ``in_channels`` are those of its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """:class:`Conv3d` whose ``in_channels`` are those of its first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """:class:`ConvTranspose1d` whose ``in_channels`` are those of its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """:class:`ConvTranspose2d` whose ``in_channels`` are those of its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """:class:`ConvTranspose3d` whose ``in_channels`` are those of its first input."""

    cls_to_become = ConvTranspose3d
