"""Functions of the main namespace about devices, this build and threads."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

from . import _C

__all__ = [
    "AcceleratorError",
    "classproperty",
    "compiled_with_cxx11_abi",
    "cudnn_is_acceptable",
    "get_device",
    "get_device_module",
    "get_file_path",
    "get_num_interop_threads",
    "has_lapack",
    "has_mkl",
    "has_openmp",
    "has_spectral",
    "init_num_threads",
    "is_vulkan_available",
    "prepare_multiprocessing_environment",
    "profiler_allow_cudagraph_cupti_lazy_reinit_cuda12",
    "set_flush_denormal",
    "set_num_interop_threads",
]

has_lapack = True
has_mkl = False
has_openmp = False
has_spectral = True


class classproperty:
    """A property of a class: ``func(cls)``, read from the class or an object.

    Args:
        func: the function; one of ``staticmethod`` gets no class.
    """

    def __init__(self, func: Callable[[Any], Any]) -> None:
        is_bound = isinstance(func, (classmethod, staticmethod))
        self.fget: Any = func if is_bound else classmethod(func)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self.fget.__get__(instance, type(instance) if owner is None else owner)()


class AcceleratorError(RuntimeError):
    """An error of an accelerator; programs name it to catch it."""


def get_device(input: Any) -> int:
    """The number of a tensor's device; -1 on the CPU."""
    number: int = input.get_device()
    return number


def get_device_module(device: Any = None) -> ModuleType:
    """The module of a type of devices, as ``torch.cpu``.

    Args:
        device: a device or its name; the accelerator, or else the CPU, where there is none.

    Raises:
        RuntimeError: for a type without a module, and for a value of another kind.
    """
    if isinstance(device, _C.device):
        name = device.type
    elif isinstance(device, str):
        name = _C.device(device).type
    elif device is None:
        name = "cuda" if _C._cuda_device_count() else "cpu"
    else:
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    if name not in ("cpu", "cuda", "mps", "mtia", "xpu"):
        raise RuntimeError(
            f"Device '{name}' does not have a corresponding module registered as 'torch.{name}'."
        )
    return importlib.import_module(f"{__package__}.{name}")


def get_file_path(*path_components: str) -> str:
    """The path of a file of this package."""
    return os.path.join(os.path.dirname(os.path.dirname(__file__)), *path_components)


def compiled_with_cxx11_abi() -> bool:
    """Whether the build is C++ with the newer library: it is not C++."""
    return False


def is_vulkan_available() -> bool:
    """Whether Vulkan can compute: no."""
    return False


def cudnn_is_acceptable(input: Any) -> bool:
    """Whether cuDNN could work on the tensor: no."""
    return False


def init_num_threads() -> None:
    """Chooses how many threads compute, which the first op does by itself."""


def prepare_multiprocessing_environment(path: str) -> None:
    """Makes a program ready to start others, which needs nothing here."""


def profiler_allow_cudagraph_cupti_lazy_reinit_cuda12() -> bool:
    """Whether the profiler of CUDA may begin anew: there is none."""
    return False


def set_flush_denormal(mode: bool) -> bool:
    """Wishes that numbers below the least normal one count as zero: they keep their values.

    Returns:
        Whether the wish was fulfilled: False, unless it was to keep them.

    Raises:
        TypeError: for what is no bool.
    """
    if not isinstance(mode, bool):
        raise TypeError(f"set_flush_denormal expects a bool, but got {type(mode).__name__}")
    return not mode


_interop_threads: list[int] = []


def get_num_interop_threads() -> int:
    """How many ops may run at the same time: what was set, or one for each core."""
    return _interop_threads[0] if _interop_threads else (os.cpu_count() or 1)


def set_num_interop_threads(num: int) -> None:
    """Keeps how many ops may run at the same time; ops run when they are called.

    Raises:
        RuntimeError: for a number below one, and the second time.
    """
    if not isinstance(num, int) or isinstance(num, bool):
        raise TypeError(f"set_num_interop_threads expects an int, but got {type(num).__name__}")
    if num <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    if _interop_threads:
        raise RuntimeError(
            "Error: cannot set number of interop threads after parallel work has started or "
            "set_num_interop_threads called"
        )
    _interop_threads.append(num)
