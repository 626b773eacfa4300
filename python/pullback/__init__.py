"""Tensors with automatic differentiation: PyTorch's autograd system in Rust, under PyTorch's names.

``import pullback as torch`` runs a program written for PyTorch. The functions of ops come from the
registry of the extension; subpackages that a program may not need are imported when first used.
"""

from __future__ import annotations

import importlib
import sys
from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi
from typing import TYPE_CHECKING, Any

from . import _C
from ._C import (
    Generator,
    OutOfMemoryError,
    Size,
    UntypedStorage,
    as_tensor,
    asarray,
    can_cast,
    default_generator,
    device,
    dtype,
    from_dlpack,
    from_numpy,
    frombuffer,
    get_default_dtype,
    get_num_threads,
    is_grad_enabled,
    is_inference_mode_enabled,
    is_tensor,
    layout,
    memory_format,
    promote_types,
    result_type,
    set_default_dtype,
    set_num_threads,
    set_printoptions,
    tensor,
)
from ._tensor import Tensor
from .autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from .random import get_rng_state, initial_seed, manual_seed, seed, set_rng_state

if TYPE_CHECKING:
    from . import (  # noqa: F401
        autograd,
        fft,
        func,
        linalg,
        memory,
        nn,
        optim,
        profiler,
        random,
        return_types,
        special,
        utils,
    )

__version__ = "0.1.0"

# The constants: dtypes with their second names, layouts, memory formats.
for _name in dir(_C):
    if type(getattr(_C, _name)).__name__ in ("dtype", "layout", "memory_format"):
        globals()[_name] = getattr(_C, _name)
# The functions of ops; what is written by hand above wins.
for _name in _C._public_names():
    globals().setdefault(_name, getattr(_C._VariableFunctions, _name))
del _name

newaxis = None


def __getattr__(name: str) -> Any:
    """Imports a subpackage, or one of the modules of less used functions, at first use."""
    if not name.startswith("__"):
        try:
            module = importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
        else:
            globals()[name] = module
            return module
        for place in ("_function", "_info"):
            try:
                module = importlib.import_module(f"{__name__}.{place}")
            except ModuleNotFoundError as error:
                if error.name != f"{__name__}.{place}":
                    raise
                continue
            if name in getattr(module, "__all__", ()):
                value = getattr(module, name)
                globals()[name] = value
                return value
        native = getattr(_C._VariableFunctions, name, None)
        if native is not None:
            return native
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating-point one."""
    return input.is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Whether the dtype is complex."""
    return input.is_complex()


def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    return input.is_inference()


def is_storage(obj: object) -> bool:
    """Whether ``obj`` is a storage."""
    return isinstance(obj, UntypedStorage)


def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


def set_default_device(device: Any) -> None:
    """Accepts ``cpu`` or None: the only device of this build.

    Raises:
        RuntimeError: for any other device.
    """
    if device is not None and _C.device(device).type != "cpu":
        raise RuntimeError(f"device '{device}' is not available: this build has only cpu")


def get_default_device() -> Any:
    """The device of new tensors."""
    return _C.device("cpu")


def typename(obj: object) -> str:
    """The type's full name; a tensor's legacy type name."""
    if isinstance(obj, Tensor):
        return obj.type()
    kind = type(obj)
    module = getattr(kind, "__module__", "")
    return kind.__qualname__ if module in ("", "builtins") else f"{module}.{kind.__qualname__}"


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Does nothing: every algorithm here is deterministic."""


def are_deterministic_algorithms_enabled() -> bool:
    """True: every algorithm here is deterministic."""
    return True


def compile(model: Any = None, **options: Any) -> Any:
    """Returns the model as it is (used as a decorator too)."""
    return (lambda given: given) if model is None else model


def as_torch() -> None:
    """Makes ``import torch`` mean this package, for a program written for PyTorch.

    Raises:
        RuntimeError: if PyTorch itself was imported already.
    """
    present = sys.modules.get("torch")
    this = sys.modules[__name__]
    if present is not None and present is not this:
        raise RuntimeError("torch was imported already; call pullback.as_torch() first")
    from ._alias import install

    install()


__all__ = [
    "Generator",
    "OutOfMemoryError",
    "Size",
    "Tensor",
    "UntypedStorage",
    "as_tensor",
    "as_torch",
    "asarray",
    "can_cast",
    "compile",
    "default_generator",
    "device",
    "dtype",
    "enable_grad",
    "from_dlpack",
    "from_numpy",
    "frombuffer",
    "get_default_dtype",
    "get_num_threads",
    "get_rng_state",
    "inference_mode",
    "initial_seed",
    "is_complex",
    "is_floating_point",
    "is_grad_enabled",
    "is_inference",
    "is_inference_mode_enabled",
    "is_storage",
    "is_tensor",
    "layout",
    "manual_seed",
    "memory_format",
    "no_grad",
    "numel",
    "promote_types",
    "result_type",
    "seed",
    "set_default_dtype",
    "set_grad_enabled",
    "set_num_threads",
    "set_printoptions",
    "set_rng_state",
    "tensor",
    "typename",
    *_C._public_names(),
]
