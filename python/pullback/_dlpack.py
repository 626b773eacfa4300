"""Tensors from the memory of other libraries, by DLPack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _C

if TYPE_CHECKING:
    from ._tensor import Tensor

__all__ = ["from_dlpack"]


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of another library's array, or of a DLPack capsule.

    Args:
        ext_tensor: what has ``__dlpack__``, or a capsule, which can be taken once.
        device: where the memory must be.
        copy: whether it must be a copy, or must not; by default, only what cannot be shared is.

    Raises:
        AssertionError: for a capsule with ``device`` or ``copy``, and for what is no device.
        BufferError: if the other library cannot do what is asked for.
        RuntimeError: for a device that is not available.
    """
    if device is None and copy is None:
        return _C.from_dlpack(ext_tensor)
    if not hasattr(ext_tensor, "__dlpack__"):
        raise AssertionError(
            "device and copy kwargs not supported when ext_tensor is already a DLPack capsule."
        )
    options: dict[str, Any] = {"max_version": (1, 0)}
    if copy is not None:
        options["copy"] = copy
    if device is not None:
        if not isinstance(device, (str, _C.device)):
            raise AssertionError(f"from_dlpack: unsupported device type: {type(device)}")
        wanted = _C.device(device)
        if wanted.type != "cpu":
            _C._VariableFunctions.empty((0,), device=wanted)
            raise BufferError(f"Cannot pack tensors on {wanted}")
        options["dl_device"] = (1, 0)
    return _C.from_dlpack(ext_tensor.__dlpack__(**options))
