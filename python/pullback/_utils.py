"""How pickles make tensors: the functions that PyTorch's files name as ``torch._utils``.

And what else programs look for in that module: numbers of devices here, the rest in ``_dense.py``.

Their names and arguments are part of the file format. None believes its arguments: sizes and
strides must lie inside of the storage, and indices of sparse tensors are checked.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _C
from ._dense import ExceptionWrapper as ExceptionWrapper
from ._dense import KeyErrorMessage as KeyErrorMessage
from ._dense import _flatten_dense_tensors as _flatten_dense_tensors
from ._dense import _take_tensors as _take_tensors
from ._dense import _unflatten_dense_tensors as _unflatten_dense_tensors
from ._sparse import of_parts
from ._tensor import Tensor, _set_state

if TYPE_CHECKING:
    from .nn import Parameter

__all__: list[str] = []


# The number of bytes beyond the file's own that may be walked through.
_SPARE = 1 << 20


def _shown(value: Any) -> str:
    """A value of a file for a message. A collection is not walked: it may unfold without end."""
    if type(value) in (str, bytes):
        return repr(value[:99])
    if value is None or type(value) in (bool, float) or isinstance(value, type):
        return repr(value)
    if type(value) is int:
        return repr(value) if value.bit_length() < 300 else f"an int of {value.bit_length()} bits"
    return f"an object of {type(value)}"


def _check_held(tensor: Any, spare: int = 0) -> None:
    """Refuses what is no tensor, and one of a few bytes that shows them without end.

    Args:
        tensor: the tensor.
        spare: how many bytes it may show more than once.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"expected a tensor, not {_shown(tensor)}")
    if tensor.layout is _C.strided and tensor.device.type != "meta":
        held = tensor.untyped_storage().nbytes()
        if tensor.numel() * tensor.dtype.itemsize > held + spare:
            raise RuntimeError(f"{tensor.numel()} elements cannot come from {held} bytes")


def _element_size(dtype: Any) -> int:
    """How many bytes an element has."""
    return int(dtype.itemsize)


def _finish(tensor: Tensor, requires_grad: bool, metadata: Any) -> Tensor:
    for name in metadata or {}:
        if name not in ("conj", "neg"):
            raise RuntimeError(f"a tensor's metadata {_shown(name)} is not known")
    # (Detached: there is no base to be a view of.)
    if metadata and metadata.get("conj"):
        tensor = tensor._conj().detach()
    if metadata and metadata.get("neg"):
        tensor = tensor._neg_view().detach()
    if requires_grad:
        tensor.requires_grad = True
    return tensor


def _over(storage: Any, dtype: Any, offset: int, size: Any, stride: Any) -> Tensor:
    """A tensor over a storage; one on ``meta``, where no memory is, only has the geometry."""
    if storage.device.type == "meta":
        made: Tensor = _C._VariableFunctions.empty_strided(size, stride, dtype=dtype, device="meta")
        return made
    return _C._tensor_over(storage, dtype, offset, list(size), list(stride))


def _rebuild_tensor(storage: Any, offset: int, size: Any, stride: Any) -> Tensor:
    """A tensor over a storage with a dtype: the form of the oldest files."""
    return _over(storage._untyped_storage, storage.dtype, offset, size, stride)


def _rebuild_tensor_v2(
    storage: Any,
    storage_offset: int,
    size: Sequence[int],
    stride: Sequence[int],
    requires_grad: bool,
    backward_hooks: Any,
    metadata: Any = None,
) -> Tensor:
    """A tensor over a storage with a dtype."""
    tensor = _rebuild_tensor(storage, storage_offset, size, stride)
    made: Tensor = _with_hooks(_finish(tensor, requires_grad, metadata), backward_hooks)
    return made


def _rebuild_tensor_v3(
    storage: Any,
    storage_offset: int,
    size: Sequence[int],
    stride: Sequence[int],
    requires_grad: bool,
    backward_hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    """A tensor of a dtype that has no class of storages."""
    untyped = getattr(storage, "_untyped_storage", storage)
    tensor = _over(untyped, dtype, storage_offset, size, stride)
    made: Tensor = _with_hooks(_finish(tensor, requires_grad, metadata), backward_hooks)
    return made


def _with_hooks(tensor: Any, hooks: Any) -> Any:
    # Files of today hold an empty dictionary.
    if hooks:
        tensor._backward_hooks = hooks
    return tensor


def _rebuild_sparse_tensor(layout: Any, data: tuple[Any, ...]) -> Tensor:
    """A sparse tensor: indices and values, sizes, and whether coordinates are in order."""
    if layout is _C.sparse_coo:
        indices, values, size, *rest = data
        # (Short ones may be expanded, as gradients are.)
        _check_held(indices, _SPARE)
        _check_held(values, _SPARE)
        return of_parts(layout, size, indices, values, bool(rest[0]) if rest else False)
    if layout in (_C.sparse_csr, _C.sparse_csc, _C.sparse_bsr, _C.sparse_bsc):
        compressed, plain, values, size = data
        for part in (compressed, plain, values):
            _check_held(part, _SPARE)
        return of_parts(layout, size, compressed, plain, values)
    raise NotImplementedError(f"rebuilding sparse tensor for layout {_shown(layout)}")


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Parameter:
    """A parameter."""
    from .nn.parameter import Parameter

    made: Parameter = _with_hooks(Parameter(data, requires_grad), backward_hooks)
    return made


def _rebuild_parameter_with_state(
    data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any
) -> Parameter:
    """A parameter with attributes."""
    parameter = _rebuild_parameter(data, requires_grad, backward_hooks)
    _set_state(parameter, state)
    return parameter


def _restored(device: Any) -> Any:
    """The device to which a tensor from a device is loaded."""
    from .serialization import _location_of, _serialization_tls

    return _location_of(_serialization_tls.map_location, device)


def _rebuild_device_tensor_from_cpu_tensor(
    data: Tensor, dtype: Any, device: Any, requires_grad: bool
) -> Tensor:
    """A tensor of a device that has no storages."""
    _check_held(data)
    tensor = data.to(dtype=dtype, device=_restored(device))
    tensor.requires_grad = requires_grad
    return tensor


def _rebuild_device_tensor_from_numpy(
    data: Any, dtype: Any, device: Any, requires_grad: bool
) -> Tensor:
    """The same of an array.

    Raises:
        TypeError: for anything else: what says of itself where its memory is, is not believed.
    """
    numpy = sys.modules.get("numpy")
    if numpy is None or type(data) is not numpy.ndarray:
        raise TypeError(f"expected an array of NumPy, not {_shown(data)}")
    return _rebuild_device_tensor_from_cpu_tensor(_C.from_numpy(data), dtype, device, requires_grad)


_rebuild_xla_tensor = _rebuild_device_tensor_from_numpy


def _rebuild_meta_tensor_no_storage(
    dtype: Any, size: Sequence[int], stride: Sequence[int], requires_grad: bool
) -> Tensor:
    """A tensor without memory."""
    made: Tensor = _C._VariableFunctions.empty_strided(
        list(size), list(stride), dtype=dtype, device="meta", requires_grad=requires_grad
    )
    return made


def _rebuild_wrapper_subclass(
    cls: type[Tensor],
    dtype: Any,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int,
    layout: Any,
    device: Any,
    requires_grad: bool,
) -> Tensor:
    """A tensor of a class that dispatches all ops itself; its attributes follow."""
    made: Tensor = _C.TensorBase._make_wrapper_subclass(
        cls,
        size,
        strides=stride,
        storage_offset=storage_offset,
        dtype=dtype,
        layout=layout,
        device=_restored(device),
        requires_grad=requires_grad,
    )
    return made


def _get_available_device_type() -> str | None:
    """The kind of device that there is besides main memory; None if there is none."""
    from .cuda import device_count

    return "cuda" if device_count() > 0 else None


def _get_all_device_indices() -> list[int]:
    """The indices of all devices."""
    from .cuda import device_count

    return list(range(device_count()))


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a device.

    Args:
        device: a device, its name or number; ``None`` for the current one.
        optional: whether ``None`` and devices without a number are allowed.
        allow_cpu: whether main memory is, which is -1.

    Raises:
        ValueError: for what is not allowed.
    """
    from .cuda import current_device

    if isinstance(device, int):
        return device
    chosen = _C.device(device) if isinstance(device, str) else device
    if isinstance(chosen, _C.device):
        if chosen.type == "cpu":
            if allow_cpu:
                return -1
            raise ValueError(f"Expected a non cpu device, but got: {chosen}")
        if chosen.index is not None:
            return int(chosen.index)
    if not optional:
        raise ValueError(
            f"Expected a torch.device with a specified index or an integer, but got:{device}"
        )
    return current_device()


def _rebuild_qtensor(*args: Any) -> Tensor:
    """Quantized tensors are not supported.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError("the file holds a quantized tensor, which pullback does not support")


def _rebuild_nested_tensor(
    buffer: Tensor, sizes: Tensor, strides: Tensor, storage_offsets: Tensor
) -> Tensor:
    """A nested tensor of the strided layout, from a file as PyTorch writes it.

    Args:
        buffer: the elements of all components.
        sizes: the sizes of each component, a row of integers.
        strides: its strides, likewise.
        storage_offsets: where it begins.

    Raises:
        RuntimeError: for components that do not lie within the buffer.
    """
    from .nested._strided import from_buffer

    return from_buffer(buffer, sizes, strides, storage_offsets)


def _rebuild_njt(parts: dict[str, Any]) -> Tensor:
    """A nested tensor of the jagged layout, from a file as PyTorch writes it.

    Args:
        parts: the values, offsets and lengths, which dimension is ragged, bounds of the lengths and
            whether it requires grad, by the names of PyTorch's constructor.

    Raises:
        RuntimeError: for offsets and lengths that do not lie within the values.
    """
    return _rebuild_nested_jagged(
        parts["values"],
        parts["offsets"],
        parts.get("lengths"),
        parts.get("_ragged_idx", 1),
        bool(parts.get("requires_grad", False)),
        parts.get("_metadata_cache"),
    )


def _rebuild_nested_jagged(
    values: Tensor,
    offsets: Tensor,
    lengths: Tensor | None,
    ragged: int,
    requires_grad: bool,
    bounds: dict[str, Any] | None = None,
) -> Tensor:
    """A nested tensor of the jagged layout, from a file."""
    from .nested._jagged import rebuild

    return rebuild(values, offsets, lengths, ragged, requires_grad, bounds)


def _rebuild_nested_strided(parts: list[Tensor], like: Tensor, requires_grad: bool) -> Tensor:
    """A nested tensor of the strided layout, from a file."""
    from .nested._strided import rebuild

    return rebuild(parts, like, requires_grad)


def _get_device_module(device_type: str) -> Any:
    """The namespace of a type of device, as ``torch.cuda``.

    Raises:
        RuntimeError: for a type that has none.
    """
    import importlib

    found = getattr(importlib.import_module(__package__), device_type, None)
    if found is None:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as "
            f"'torch.{device_type}'."
        )
    return found
