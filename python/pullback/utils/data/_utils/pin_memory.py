"""A batch in memory that a device can copy from, under the name of PyTorch's module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .... import Tensor
from ..collate import _rebuild_mapping

__all__ = ["pin_memory"]


def pin_memory(data: Any, device: Any = None) -> Any:
    """All tensors of a batch by ``Tensor.pin_memory``, in the same containers.

    Args:
        data: a tensor, or mappings, sequences and objects with a method ``pin_memory``; other
            things stay as they are.
        device: for which device.
    """
    if isinstance(data, Tensor):
        return data.pin_memory(device)
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return _rebuild_mapping(data, {key: pin_memory(data[key], device) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(item, device) for item in data))
    if isinstance(data, Sequence):
        items = [pin_memory(item, device) for item in data]
        return tuple(items) if isinstance(data, tuple) else items
    return data
