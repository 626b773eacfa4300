"""Switches of libraries that PyTorch hands work to. This one computes everything itself.

None of those libraries is here: ``is_available()`` says so, and switches keep what they are set to
without effect, so that programs which set them run. A switch that PyTorch does not have is an
AttributeError.
"""

from __future__ import annotations

from .. import _absent
from . import cpu as cpu
from . import cuda as cuda
from . import cudnn as cudnn
from . import cusparselt as cusparselt
from . import kleidiai as kleidiai
from . import mha as mha
from . import miopen as miopen
from . import mkl as mkl
from . import mkldnn as mkldnn
from . import mps as mps
from . import nnpack as nnpack
from . import openmp as openmp
from . import opt_einsum as opt_einsum
from . import quantized as quantized
from ._switch import guard, is_precision

__all__ = [
    "cpu",
    "cuda",
    "cudnn",
    "cusparselt",
    "fp32_precision",
    "kleidiai",
    "mha",
    "miopen",
    "mkl",
    "mkldnn",
    "mps",
    "nnpack",
    "openmp",
    "opt_einsum",
    "quantized",
]

# How exact products of `float32` matrices must be: here they are as exact as the dtype.
fp32_precision = "none"

guard(globals(), fp32_precision=is_precision)
_absent.announce(globals())
