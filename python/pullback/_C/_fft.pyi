# Written by `cargo xtask gen` from the op registry; edits are lost.

from collections.abc import Sequence
from typing import Any, overload

from .. import return_types
from .._tensor import Tensor
from ..types import DeviceLikeType, Number, _bool, _complex, _dtype, _float, _int, _layout, _size
from . import Generator, memory_format

def fft_fft(input: Tensor, n: _int | None = None, dim: _int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The discrete Fourier transform along `dim`: `X[k] = sum_j x[j] exp(-2 pi i j k / n)`, complex. The input is cut off or padded with zeros to `n` elements. `norm` "backward" (the default) means no factor, "ortho" a factor of `1/sqrt(n)`, "forward" a factor of `1/n`. Errors: a length of 0, and another `norm`, are refused."""
def fft_fft2(input: Tensor, s: _int | _size | None = None, dim: _int | _size = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The discrete Fourier transform along two dimensions `dim`, the last two by default; `s` are the sizes that the input is cut off or padded with zeros to. `norm` is that of `torch.fft.fft`."""
def fft_fftfreq(n: _int, d: _float = 1.0, *, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """The frequencies of the elements of the result of `torch.fft.fft`: `0, 1, .., -2, -1` over `n d`, where `d` is the
    distance of samples. The negative frequencies are the second half."""
def fft_fftn(input: Tensor, s: _int | _size | None = None, dim: _int | _size | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The discrete Fourier transform along the dimensions `dim`, by default the last ones, as many as `s` has, or all. `s` are the sizes that the input is cut off or padded with zeros to; -1 keeps a size."""
def fft_fftshift(input: Tensor, dim: _int | _size | None = None) -> Tensor:
    """A spectrum with the zero frequency moved to the centre: rolled by half of each size along `dim`, or along all
    dimensions if `None`."""
def fft_hfft(input: Tensor, n: _int | None = None, dim: _int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The discrete Fourier transform, which is real, of a Hermitian signal, of which the first half is given along `dim`. The result has `n` elements, `2 (m - 1)` if it is not given, where `m` is the size of the input."""
def fft_hfft2(input: Tensor, s: _int | _size | None = None, dim: _int | _size = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The discrete Fourier transform, which is real, of a Hermitian signal along two dimensions `dim`, of which the last holds the first half of the signal."""
def fft_hfftn(input: Tensor, s: _int | _size | None = None, dim: _int | _size | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The discrete Fourier transform, which is real, of a Hermitian signal along the dimensions `dim`, of which the last holds the first half of the signal."""
def fft_ifft(input: Tensor, n: _int | None = None, dim: _int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse discrete Fourier transform along `dim`: `x[j] = 1/n sum_k X[k] exp(2 pi i j k / n)`, complex. With `norm` "ortho" the factor is `1/sqrt(n)`, with "forward" there is none."""
def fft_ifft2(input: Tensor, s: _int | _size | None = None, dim: _int | _size = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse discrete Fourier transform along two dimensions `dim`, the last two by default: the inverse of `torch.fft.fft2`."""
def fft_ifftn(input: Tensor, s: _int | _size | None = None, dim: _int | _size | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse discrete Fourier transform along the dimensions `dim`: the inverse of `torch.fft.fftn`."""
def fft_ifftshift(input: Tensor, dim: _int | _size | None = None) -> Tensor:
    """The inverse of `torch.fft.fftshift`, from which it differs where a size is odd."""
def fft_ihfft(input: Tensor, n: _int | None = None, dim: _int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `torch.fft.hfft`: the first half, `n / 2 + 1` complex elements (rounded down), of the Hermitian signal whose spectrum is the real input."""
def fft_ihfft2(input: Tensor, s: _int | _size | None = None, dim: _int | _size = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `torch.fft.hfft2`: the first half, along the last of the dimensions `dim`, of the Hermitian signal whose spectrum is the real input."""
def fft_ihfftn(input: Tensor, s: _int | _size | None = None, dim: _int | _size | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `torch.fft.hfftn`: the first half, along the last of the dimensions `dim`, of the Hermitian signal whose spectrum is the real input."""
def fft_irfft(input: Tensor, n: _int | None = None, dim: _int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `torch.fft.rfft`: the real signal of `n` elements whose spectrum has this first half. `n` is `2 (m - 1)` if it is not given, where `m` is the size of the input along `dim`."""
def fft_irfft2(input: Tensor, s: _int | _size | None = None, dim: _int | _size = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `torch.fft.rfft2`: the real signal whose spectrum has this first half along the last of the dimensions `dim`."""
def fft_irfftn(input: Tensor, s: _int | _size | None = None, dim: _int | _size | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `torch.fft.rfftn`: the real signal whose spectrum has this first half. The last size is `2 (m - 1)` by default, where `m` is that of the input."""
def fft_rfft(input: Tensor, n: _int | None = None, dim: _int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The discrete Fourier transform of real input along `dim`: the first half of the spectrum, `n / 2 + 1` complex elements (rounded down). The other half is its mirror image, conjugated. `n` and `norm` are those of `torch.fft.fft`."""
def fft_rfft2(input: Tensor, s: _int | _size | None = None, dim: _int | _size = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The discrete Fourier transform of real input along two dimensions `dim`; the last of these has the first half of the spectrum only."""
def fft_rfftfreq(n: _int, d: _float = 1.0, *, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """The frequencies of the elements of the result of `torch.fft.rfft`: `0, 1, .., n / 2` over `n d`, where `d` is the
    distance of samples."""
def fft_rfftn(input: Tensor, s: _int | _size | None = None, dim: _int | _size | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The discrete Fourier transform of real input along the dimensions `dim`; the last of these has the first half of the spectrum only."""
