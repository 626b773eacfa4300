"""Switches of libraries that PyTorch hands work to. This one computes everything itself.

None of those libraries is here: ``is_available()`` says so, and switches keep what they are set to
without effect, so that programs which set them run.
"""

from __future__ import annotations

from . import cuda as cuda
from . import cudnn as cudnn
from . import mkl as mkl
from . import mkldnn as mkldnn
from . import mps as mps
from . import openmp as openmp

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]
