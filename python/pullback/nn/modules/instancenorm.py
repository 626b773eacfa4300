"""Instance normalisation under PyTorch's module path, and its lazy forms."""

from __future__ import annotations

from ._lazy_norm import LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d
from .batchnorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from .batchnorm import _InstanceNorm as _InstanceNorm
from .batchnorm import _NormBase as _NormBase

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]
