"""Functions that libraries ask of ``torch._C`` itself, and that are none of the extension's."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from . import _C, _lazy, _transform
from ._dispatch_key import (
    DispatchKey,
    DispatchKeySet,
    _AutoDispatchBelowAutograd,
    _DisableAutocast,
    _dispatch_keys,
    _dispatch_tls_local_exclude_set,
    _ExcludeDispatchKeyGuard,
)

__all__ = ["fill"]

_PACKAGE = __name__.rpartition(".")[0]


def _log_api_usage_once(event: str, /) -> None:
    """Does nothing: the use of a program is not reported to anybody."""


def _get_tracing_state() -> None:
    """None: no program is traced."""


def _get_privateuse1_backend_name() -> str:
    """The name of a program's own backend; there is none."""
    return "privateuseone"


def _cuda_isInBadFork() -> bool:
    """Whether CUDA was used before the process was forked: never."""
    return False


def _get_deterministic_fill_uninitialized_memory() -> bool:
    """Whether uninitialised memory is filled: `torch.utils.deterministic`."""
    from . import _deterministic

    return _deterministic._fills_uninitialized_memory()


def _set_deterministic_fill_uninitialized_memory(fills: bool, /) -> None:
    """Sets whether uninitialised memory is filled: `torch.utils.deterministic`."""
    from . import _deterministic

    _deterministic._set_fill_uninitialized_memory(fills)


def _are_functorch_transforms_active() -> bool:
    """Whether a function transform is at work on this thread."""
    return bool(_transform.of_thread())


def _is_alias_of(first: Any, second: Any, /) -> bool:
    """Whether two tensors lie in one storage."""
    return bool(first.untyped_storage()._cdata == second.untyped_storage()._cdata)


def _has_storage(tensor: Any, /) -> bool:
    """Whether a tensor lies in a storage, as those with strides do."""
    return tensor.layout is _C.strided


def _get_default_device() -> str:
    """The type of the device of new tensors."""
    from . import get_default_device

    return str(get_default_device().type)


def _get_accelerator(check: bool | None = None) -> Any:
    """The accelerator, which is the CPU where there is none."""
    from .accelerator import current_accelerator

    return current_accelerator(bool(check)) or _C.device("cpu")


def _cuda_clearCublasWorkspaces() -> None:
    """Does nothing: there is no device with such memory."""


def _set_math_sdp_allow_fp16_bf16_reduction(allows: bool, /) -> None:
    """Takes the setting that attention may add up in half precision, which it never does."""


def _jit_can_fuse() -> bool:
    """Whether ops are put together by a compiler: never."""
    return False


def _jit_switch(switch: bool, /) -> bool:
    """Does nothing; returns the previous setting: not at all."""
    return False


def parse_schema(schema: str) -> Any:
    """Reads the signature of an op."""
    from ._function_schema import parse

    return parse(schema)


def _jit_get_schemas_for_operator(name: str) -> list[Any]:
    """The signatures of all overloads of an op, ``aten::add``; none if there is no such op."""
    from . import ops

    space, _, op = name.partition("::")
    packet = getattr(getattr(ops, space, None), op, None)
    found = [] if packet is None else packet.overloads()
    return [getattr(packet, overload)._schema for overload in found]


def _get_schema(name: str, overload: str) -> Any:
    """The signature of one overload, whose name is empty where it is the only one.

    Raises:
        RuntimeError: if there is none.
    """
    found = [s for s in _jit_get_schemas_for_operator(name) if s.overload_name == overload]
    if not found:
        raise RuntimeError(f"Found no overload {overload!r} of the op {name}")
    return found[0]


_SWITCHES = (
    "_jit_set_profiling_executor",
    "_jit_set_profiling_mode",
    "_jit_override_can_fuse_on_cpu",
    "_jit_override_can_fuse_on_gpu",
    "_jit_set_texpr_fuser_enabled",
    "_jit_set_nvfuser_enabled",
    "_jit_set_nvfuser_guard_mode",
)


# Types that libraries annotate with, placeholders of the main namespace.
_SCRIPT_TYPES = (
    "Argument",
    "Block",
    "FunctionSchema",
    "Graph",
    "Node",
    "TensorType",
    "Type",
    "Value",
)


def fill(extension: ModuleType) -> None:
    """Adds the functions to the extension."""
    for function in (
        _log_api_usage_once,
        _get_tracing_state,
        _get_privateuse1_backend_name,
        _cuda_isInBadFork,
        _get_deterministic_fill_uninitialized_memory,
        _set_deterministic_fill_uninitialized_memory,
        _are_functorch_transforms_active,
        _is_alias_of,
        _has_storage,
        _get_default_device,
        _get_accelerator,
        _cuda_clearCublasWorkspaces,
        _set_math_sdp_allow_fp16_bf16_reduction,
        parse_schema,
        _jit_get_schemas_for_operator,
        _get_schema,
        DispatchKey,
        DispatchKeySet,
        _AutoDispatchBelowAutograd,
        _DisableAutocast,
        _ExcludeDispatchKeyGuard,
        _dispatch_keys,
        _dispatch_tls_local_exclude_set,
    ):
        setattr(extension, function.__name__, function)
    for name in _SWITCHES:
        setattr(extension, name, _jit_switch)
    for name in _SCRIPT_TYPES:
        setattr(extension, name, getattr(sys.modules[_PACKAGE], name))
    for name in ("_jit_can_fuse_on_cpu", "_jit_can_fuse_on_gpu"):
        setattr(extension, name, _jit_can_fuse)
    # A name of a module is found there by an import, although the extension is no package.
    parts: dict[str, Any] = {"__name__": _PACKAGE}
    _lazy.submodules(parts, "_levels", "_event_tree")
    for name, part in (("_functorch", "_levels"), ("_profiler", "_event_tree")):
        setattr(extension, name, parts[part])
        sys.modules[f"{extension.__name__}.{name}"] = parts[part]
