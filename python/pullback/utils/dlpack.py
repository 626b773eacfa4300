"""Tensors as DLPack capsules: memory shared with other libraries."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from .._dlpack import from_dlpack

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(enum.IntEnum):
    """The numbers of devices in DLPack."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule that shares the tensor's memory; it can be taken once.

    Raises:
        BufferError: if the tensor requires grad.
    """
    return tensor.__dlpack__()
