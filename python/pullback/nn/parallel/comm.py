"""Copies of tensors between devices: parts on each, sums of all.

All of them have gradients: those of parts and copies come back to the tensor, those of sums and of
tensors put together go to each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import _C
from ...cuda import _number_of, current_device, device_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ... import Tensor

__all__ = [
    "broadcast",
    "broadcast_coalesced",
    "gather",
    "reduce_add",
    "reduce_add_coalesced",
    "scatter",
]


def _numbers(devices: Sequence[Any] | None) -> list[int]:
    """The numbers of the given devices, or of all devices."""
    return list(range(device_count())) if devices is None else [_number_of(d) for d in devices]


def _device_of(number: int) -> str:
    return "cpu" if number < 0 else f"cuda:{number}"


def _check_absent(name: str, value: Any) -> None:
    """Refuses an argument that a target implies already."""
    if value is not None:
        raise RuntimeError(
            f"'{name}' must not be specified when 'out' is specified, but got {name}={value}"
        )


def scatter(
    tensor: Tensor,
    devices: Sequence[Any] | None = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Sequence[Any] | None = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """Parts of ``tensor`` along ``dim``, the i-th on ``devices[i]``.

    Args:
        tensor: what is taken apart. A part that is on its device already shares its memory.
        devices: numbers, devices or their names; all devices if it is not given.
        chunk_sizes: how many rows each part has; else all have as many, but for the last one, and
            there may be fewer parts than devices.
        dim: the dimension.
        streams: has no meaning here, and must be ``None``.
        out: tensors to write the parts into, in place of making some; not with the arguments
            ``devices`` and ``chunk_sizes``, which they say.

    Raises:
        RuntimeError: for sizes that do not fit, and devices that are not there.
        NotImplementedError: for streams.
    """
    if streams is not None:
        raise NotImplementedError("scatter(): simulated devices have no streams")
    if out is None:
        sizes = None if chunk_sizes is None else list(chunk_sizes)
        return tuple(_C._comm_scatter(tensor, _numbers(devices), sizes, dim))
    _check_absent("devices", devices)
    _check_absent("chunk_sizes", chunk_sizes)
    parts = tensor.split_with_sizes([target.size(dim) for target in out], dim)
    return tuple(target.copy_(part) for target, part in zip(out, parts, strict=True))


def gather(
    tensors: Sequence[Tensor],
    dim: int = 0,
    destination: Any = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The tensors, which are on devices, one after the other along ``dim``.

    Args:
        tensors: of one shape, but for ``dim``; 0-dim ones become a vector, with a warning.
        dim: the dimension.
        destination: where the result is: a device, its name or number, ``"cpu"`` or -1; this
            thread's device if it is not given.
        out: a tensor to write the result into, in place of making one.

    Raises:
        RuntimeError: for tensors in main memory, and shapes that differ.
    """
    if out is not None:
        _check_absent("destination", destination)
        return out.copy_(_C._comm_gather(list(tensors), dim, _target(out.device)))
    return _C._comm_gather(list(tensors), dim, _target(destination))


def _target(destination: Any) -> int:
    """The number of the device that results are wanted on; -1 for main memory."""
    from ... import device

    if destination is None:
        return current_device()
    if isinstance(destination, int):
        return destination
    named = device(destination)
    return -1 if named.type == "cpu" else _number_of(named)


def broadcast(
    tensor: Tensor,
    devices: Sequence[Any] | None = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """A copy of ``tensor`` on each device; where it is already, the tensor itself.

    Args:
        tensor: what is copied.
        devices: numbers, devices or their names.
        out: tensors to write into, in place of making some; not together with ``devices``.

    Raises:
        RuntimeError: unless exactly one of ``devices`` and ``out`` is given.
    """
    if (devices is None) == (out is None):
        raise RuntimeError(
            "Exactly one of 'devices' and 'out' must be specified, "
            f"but got devices={devices} and out={out}"
        )
    if out is not None:
        return tuple(target.copy_(tensor) for target in out)
    return tuple(tensor.to(_device_of(number)) for number in _numbers(devices))


def broadcast_coalesced(
    tensors: Sequence[Tensor], devices: Sequence[Any], buffer_size: int = 10485760
) -> tuple[tuple[Tensor, ...], ...]:
    """For each device a copy of all ``tensors``.

    ``buffer_size`` says how much is sent at once, which is nobody's concern here.
    """
    return tuple(tuple(t.to(_device_of(number)) for t in tensors) for number in _numbers(devices))


def reduce_add(inputs: Sequence[Tensor], destination: Any = None) -> Tensor:
    """The sum of tensors of one shape, which are on devices.

    Args:
        inputs: the tensors, added up in this order.
        destination: the device of the sum; this thread's device if it is not given.

    Raises:
        AssertionError: for tensors in main memory.
        ValueError: for shapes that differ.
        RuntimeError: without tensors.
    """
    if not inputs:
        raise RuntimeError("reduce_add expects at least one tensor")
    for index, tensor in enumerate(inputs):
        assert tensor.device.type != "cpu", (
            f"reduce_add expects all inputs to be on GPUs, but input {index} is on CPU"
        )
        if tensor.shape != inputs[0].shape:
            got, expected = ("x".join(str(n) for n in t.shape) for t in (tensor, inputs[0]))
            raise ValueError(f"input {index} has invalid size: got {got}, but expected {expected}")
    target_device = _device_of(_target(destination))
    total = inputs[0].to(target_device)
    for tensor in inputs[1:]:
        total = total + tensor.to(target_device)
    return total


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Tensor]], destination: Any = None, buffer_size: int = 10485760
) -> tuple[Tensor, ...]:
    """For each index of the lists, which are one per device, the sum of the tensors there."""
    return tuple(reduce_add(tensors, destination) for tensors in zip(*inputs, strict=True))
