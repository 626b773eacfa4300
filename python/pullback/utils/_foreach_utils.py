"""Lists of tensors by device and dtype, and the devices whose optimisers take whole lists.

PyTorch has these names for its own use and for libraries of optimisers.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from .. import Tensor

TensorListList: TypeAlias = list[list[Tensor | None]]
Indices: TypeAlias = list[int]

_foreach_supported_types = [Tensor]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """The types of devices where PyTorch's optimisers take whole lists by default."""
    return ["cuda"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """The types of devices where optimisers take `fused=True`."""
    return ["cpu", "cuda"]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: TensorListList, with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[TensorListList, Indices]]:
    """Parallel lists cut into groups whose tensors of the first list share device and dtype.

    A list that is empty stays so; entries of other lists may be `None`. With `with_indices` the
    indices in the lists are given too, else no indices. Raises `RuntimeError` for a first list that
    holds `None`, and for lists of different lengths.
    """
    first, *others = tensorlistlist
    if any(others_ and len(others_) != len(first) for others_ in others):
        raise RuntimeError("Tensors of the same index must be in lists of the same length")
    indices: dict[tuple[Any, Any], Indices] = {}
    for index, tensor in enumerate(first):
        if tensor is None:
            raise RuntimeError("Tensors of the first list of nested Tensor lists can't be None")
        indices.setdefault((tensor.device, tensor.dtype), []).append(index)
    return {
        key: ([[column[i] for i in rows] if column else [] for column in tensorlistlist],
              rows if with_indices else [])
        for key, rows in indices.items()
    }  # fmt: skip


def _device_has_foreach_support(device: Any) -> bool:
    return device.type in [*_get_foreach_kernels_supported_devices(), "cpu"]


def _has_foreach_support(tensors: list[Tensor | None], device: Any) -> bool:
    return _device_has_foreach_support(device) and all(
        tensor is None or type(tensor) in _foreach_supported_types for tensor in tensors
    )
