"""Arguments taken apart for devices, and results put together: tensors in tuples, lists, dicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import _C, Tensor
from . import comm

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["gather", "scatter", "scatter_kwargs"]


def _is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """For each device its part of each tensor along ``dim``, and of all else the thing itself.

    Args:
        inputs: a tensor, or tuples, lists and dicts of tensors and other things.
        target_gpus: the devices, as numbers, devices or names.
        dim: the dimension along which tensors are taken apart.

    Returns:
        As many as there are devices, but for tensors with fewer rows.
    """
    if isinstance(inputs, Tensor):
        return comm.scatter(inputs, target_gpus, None, dim)
    if isinstance(inputs, (tuple, list)) and len(inputs) > 0:
        columns = zip(*(scatter(each, target_gpus, dim) for each in inputs), strict=False)
        if _is_namedtuple(inputs):
            return [type(inputs)(*column) for column in columns]
        return list(columns) if isinstance(inputs, tuple) else [list(column) for column in columns]
    if isinstance(inputs, dict) and len(inputs) > 0:
        columns = zip(*(scatter(item, target_gpus, dim) for item in inputs.items()), strict=False)
        return [type(inputs)(column) for column in columns]
    return [inputs for _ in target_gpus]


def scatter_kwargs(
    inputs: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    target_gpus: Sequence[Any],
    dim: int = 0,
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """`scatter` of positional and keyword arguments.

    Where one of the two has fewer parts, it is filled up with empty ones.
    """
    args = list(scatter(inputs, target_gpus, dim)) if inputs else []
    named = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    args.extend(() for _ in range(len(named) - len(args)))
    named.extend({} for _ in range(len(args) - len(named)))
    return tuple(args), tuple(named)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """The results of devices on one: tensors in tuples, lists and dicts put together along ``dim``.

    Args:
        outputs: one result for each device, all of the same kind.
        target_device: a device, its name or number, ``"cpu"`` or -1.
        dim: the dimension along which tensors are put together.

    Raises:
        AssertionError: for tensors in main memory.
        ValueError: for dicts of other keys.
    """
    first = outputs[0]
    if isinstance(first, Tensor):
        assert all(output.device.type != "cpu" for output in outputs), (
            "Gather function not implemented for CPU tensors"
        )
        return _C._comm_gather(list(outputs), dim, comm._target(target_device))
    if first is None:
        return None
    if isinstance(first, dict):
        if not all(len(first) == len(each) for each in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)(
            (key, gather([each[key] for each in outputs], target_device, dim)) for key in first
        )
    columns = (gather(column, target_device, dim) for column in zip(*outputs, strict=True))
    return type(first)(*columns) if _is_namedtuple(first) else type(first)(columns)
