"""How this package was built and runs: ``print(torch.__config__.show())``."""

from __future__ import annotations

import os

from . import _C, version

__all__ = ["parallel_info", "show"]


def show() -> str:
    """A description of the build for people: version, kernels, processor, libraries."""
    from .backends.cpu import get_cpu_capability

    profile = "debug" if version.debug else "release"
    lines = [
        f"pullback {version.pullback}, for programs of PyTorch {version.__version__.split('+')[0]}",
        f"Build settings: BUILD_TYPE={profile}, USE_CUDA=0, USE_MKL=0, USE_MKLDNN=0, USE_OPENMP=0",
        "LAPACK is enabled (linear algebra of its own, and faer)",
        f"CPU capability usage: {get_cpu_capability()}",
    ]
    return "PyTorch built with:\n" + "".join(f"  - {line}\n" for line in lines)


def parallel_info() -> str:
    """A description for people of how many threads compute."""
    lines = [
        f"torch.get_num_threads() : {_C.get_num_threads()}",
        f"processors : {os.cpu_count()}",
        "parallel backend: a pool of threads of the kernels' own",
    ]
    return "".join(f"{line}\n" for line in lines)


def _cxx_flags() -> str:
    """The flags of the C++ compiler: empty, because no C++ is compiled."""
    return ""
