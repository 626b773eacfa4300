"""Tensors as DLPack capsules: memory shared with other libraries."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from .. import _C
from .._dlpack import from_dlpack
from .._tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self

__all__ = ["DLDeviceType", "ReadOnlyTensorWrapper", "from_dlpack", "to_dlpack"]


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


class ReadOnlyTensorWrapper(Tensor):
    """A tensor's memory for consumers that must not write to it.

    The wrapper shows the memory of the tensor it is made of, and can be exported by DLPack, always
    as read-only, and nothing else: whatever asks it for more gets an error. A lazy clone stays one
    when it is exported so.

    Args:
        tensor: the tensor.

    Raises:
        TypeError: for what is no tensor.
        RuntimeError: for everything but the export.

    Example::

        >>> import numpy
        >>> from pullback.utils.dlpack import ReadOnlyTensorWrapper
        >>> numpy.from_dlpack(ReadOnlyTensorWrapper(pullback.ones(2))).flags.writeable
        False
    """

    @staticmethod
    def __new__(cls, tensor: Tensor) -> Self:
        """The wrapper of a tensor."""
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"ReadOnlyTensorWrapper expected a Tensor, but got {type(tensor).__name__}"
            )
        return tensor.as_subclass(cls)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        raise RuntimeError(
            f"{cls.__name__} only supports DLPack export; "
            f"'{getattr(func, '__name__', func)}' is not allowed. "
            "Unwrap the tensor to operate on its data."
        )

    def __dlpack__(self, *, max_version: tuple[int, int] | None = None, **options: Any) -> Any:
        """A capsule that says that its consumer must not write."""
        options["read_only"] = True
        with _C.DisableTorchFunctionSubclass():
            return super().__dlpack__(max_version=max_version or (1, 0), **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The device, as :meth:`Tensor.__dlpack_device__` returns it."""
        with _C.DisableTorchFunctionSubclass():
            return super().__dlpack_device__()
