"""Discrete Fourier transforms: the registry's ``fft_*`` ops under their short names."""

from __future__ import annotations

from . import Tensor
from ._C import _fft
from ._short import short_names

_functions = short_names(_fft)
globals().update(_functions)

__all__ = ["Tensor", *_functions]
