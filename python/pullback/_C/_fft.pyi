# Written by `cargo xtask gen` from the op registry; edits are lost.

from collections.abc import Sequence
from typing import Any, overload

from .. import return_types
from .._tensor import Tensor
from ..types import DeviceLikeType, Number, _bool, _complex, _dtype, _float, _int, _layout, _size
from . import Generator, memory_format

def fft_fft(input: Tensor, n: _int | None = None, dim: _int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The discrete Fourier transform along `dim`: `X[k] = sum_j x[j] exp(-2 pi i j k / n)`. The input is cut off or followed by zeros
    so that it has `n` numbers there. `norm` "backward" (the default) has no factor, "ortho" one over the root of `n`, "forward"
    one over `n`. Real numbers give a complex spectrum."""
def fft_fft2(input: Tensor, s: _int | _size | None = None, dim: _int | _size = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """`fft` along two dimensions, the last two unless `dim` names others; `s` are the sizes that the input is cut or padded to."""
def fft_fftfreq(n: _int, d: _float = 1.0, *, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """The frequencies of the numbers that `fft` gives: `0, 1, .., -2, -1` over `n d`, where `d` is the time between two samples. The negative ones
    begin in the middle."""
def fft_fftn(input: Tensor, s: _int | _size | None = None, dim: _int | _size | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """`fft` along several dimensions: those of `dim`, else as many of the last ones as `s` has, else all. `s` are the sizes that the input is cut or padded to; -1 leaves a size as it is."""
def fft_fftshift(input: Tensor, dim: _int | _size | None = None) -> Tensor:
    """A spectrum with the frequency zero in the middle: rolled by half of each size along `dim`, all dimensions if `None`."""
def fft_hfft(input: Tensor, n: _int | None = None, dim: _int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The spectrum, which is real, of a signal that is Hermitian: its first half is given, `n` numbers come out."""
def fft_hfft2(input: Tensor, s: _int | _size | None = None, dim: _int | _size = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """`hfft` along two dimensions: a forward transform along the first, of half a Hermitian signal along the last."""
def fft_hfftn(input: Tensor, s: _int | _size | None = None, dim: _int | _size | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """`hfft` along several dimensions: forward transforms, of half a Hermitian signal along the last."""
def fft_ifft(input: Tensor, n: _int | None = None, dim: _int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `fft`: `x[j] = 1/n sum_k X[k] exp(2 pi i j k / n)`; for `norm` "ortho" the factor is one over the root of `n`, for
    "forward" there is none."""
def fft_ifft2(input: Tensor, s: _int | _size | None = None, dim: _int | _size = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `fft2`."""
def fft_ifftn(input: Tensor, s: _int | _size | None = None, dim: _int | _size | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `fftn`."""
def fft_ifftshift(input: Tensor, dim: _int | _size | None = None) -> Tensor:
    """The inverse of `fftshift`, which is another function where a size is odd."""
def fft_ihfft(input: Tensor, n: _int | None = None, dim: _int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `hfft`: the first half of the Hermitian signal whose spectrum these real numbers are."""
def fft_ihfft2(input: Tensor, s: _int | _size | None = None, dim: _int | _size = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `hfft2`."""
def fft_ihfftn(input: Tensor, s: _int | _size | None = None, dim: _int | _size | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `hfftn`."""
def fft_irfft(input: Tensor, n: _int | None = None, dim: _int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `rfft`: `n` real numbers (`2 (m - 1)` unless given) of the first half of a spectrum, of which `m` numbers are there."""
def fft_irfft2(input: Tensor, s: _int | _size | None = None, dim: _int | _size = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `rfft2`."""
def fft_irfftn(input: Tensor, s: _int | _size | None = None, dim: _int | _size | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `rfftn`; the last size is `2 (m - 1)` unless `s` says otherwise, where `m` numbers of the spectrum are there."""
def fft_rfft(input: Tensor, n: _int | None = None, dim: _int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The first half of the spectrum of real numbers, `n / 2 + 1` complex ones: the rest of what `fft` gives is its mirror image,
    conjugated."""
def fft_rfft2(input: Tensor, s: _int | _size | None = None, dim: _int | _size = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """`fft2` of real numbers: of the last of its dimensions the first half of the spectrum."""
def fft_rfftfreq(n: _int, d: _float = 1.0, *, out: Tensor | None = None, dtype: _dtype | None = None, layout: _layout | None = None, device: DeviceLikeType | None = None, pin_memory: _bool | None = False, requires_grad: _bool | None = False) -> Tensor:
    """The frequencies of the numbers that `rfft` gives: `0, 1, .., n / 2` over `n d`."""
def fft_rfftn(input: Tensor, s: _int | _size | None = None, dim: _int | _size | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """`fftn` of real numbers: of the last of its dimensions the first half of the spectrum."""
