"""Sizes, strides and devices of tensors whose class with ``__torch_dispatch__`` overrides them.

``Tensor._make_wrapper_subclass`` says of a tensor which facts its class gives
(``dispatch_sizes_strides_policy``, ``dispatch_device``, ``dispatch_layout``). The class is asked in
the form of ops, ``aten.sym_size.default`` and its kin. Each function here puts one question; None
as its result means that the tensor's own geometry counts, as it does where a class answers None.
"""

from __future__ import annotations

from typing import Any

from . import _C, _composite_ops


def _answer(tensor: Any, namespace: str, name: str, overload: str, *args: Any) -> Any:
    op = _composite_ops.find(name, overload, namespace)
    kind = type(tensor)
    answer = kind.__torch_dispatch__(op, (kind,), (tensor, *args), {})
    if answer is NotImplemented:
        raise TypeError(
            f"Multiple dispatch failed for 'torch.ops.{namespace}.{name}'; all __torch_dispatch__ "
            f"handlers returned NotImplemented:\n\n  - tensor subclass {kind!r}\n\nFor more "
            "information, try re-running with TORCH_LOGS=not_implemented"
        )
    return answer


def _whole(answer: Any, name: str) -> int:
    if isinstance(answer, bool) or not hasattr(answer, "__index__"):
        raise RuntimeError(f"{name} returned invalid type {type(answer).__name__}, expected int")
    return int(answer)


def _numbers(tensor: Any, name: str) -> tuple[int, ...] | None:
    answer = _answer(tensor, "aten", name, "default")
    if answer is None:
        return None
    if not isinstance(answer, (list, tuple)):
        raise RuntimeError(f"{name} must be a list or a tuple")
    return tuple(_whole(number, name) for number in answer)


def _number(tensor: Any, name: str) -> int | None:
    answer = _answer(tensor, "aten", name, "default")
    return None if answer is None else _whole(answer, name)


def shape(tensor: Any) -> _C.Size | None:
    """The sizes."""
    sizes = _numbers(tensor, "sym_size")
    return None if sizes is None else _C.Size(sizes)


def dim(tensor: Any) -> int:
    """The number of dimensions."""
    return _whole(_answer(tensor, "aten", "dim", "default"), "dim")


def _at(numbers: tuple[int, ...], wanted: int, ndim: int) -> int:
    if ndim == 0:
        raise IndexError(f"Dimension specified as {wanted} but tensor has no dimensions")
    if not -ndim <= wanted < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got "
            f"{wanted})"
        )
    at = wanted % ndim
    if at >= len(numbers):
        raise RuntimeError(
            f"the class says that the tensor has {ndim} dimensions, and gives {len(numbers)} "
            f"numbers for them: {numbers}"
        )
    return numbers[at]


def size(tensor: Any, wanted: int) -> int | None:
    """The size of one dimension."""
    ndim = dim(tensor)
    if not -ndim <= wanted < ndim:
        _at((), wanted, ndim)
    sizes = _numbers(tensor, "sym_size")
    return None if sizes is None else _at(sizes, wanted, ndim)


def length(tensor: Any) -> int | None:
    """The size of the first dimension."""
    if dim(tensor) == 0:
        raise TypeError("len() of a 0-d tensor")
    sizes = _numbers(tensor, "sym_size")
    return sizes[0] if sizes else None


def strides(tensor: Any) -> tuple[int, ...] | None:
    """The strides."""
    return _numbers(tensor, "sym_stride")


def stride(tensor: Any, wanted: int) -> int | None:
    """The stride of one dimension."""
    found = _numbers(tensor, "sym_stride")
    return None if found is None else _at(found, wanted, len(found))


def numel(tensor: Any) -> int | None:
    """The number of elements."""
    return _number(tensor, "sym_numel")


def nbytes(tensor: Any) -> int | None:
    """The number of bytes of the elements."""
    count = _number(tensor, "numel")
    return None if count is None else count * tensor.element_size()


def storage_offset(tensor: Any) -> int | None:
    """The number of elements before the first one."""
    return _number(tensor, "sym_storage_offset")


def is_contiguous(tensor: Any, format: Any = None) -> bool | None:
    """Whether the elements lie without gaps, in the order that a memory format names."""
    if format is None or format is _C.contiguous_format:
        answer = _answer(tensor, "aten", "is_contiguous", "default")
    else:
        answer = _answer(tensor, "aten", "is_contiguous", "memory_format", format)
    return None if answer is None else bool(answer)


def device(tensor: Any) -> _C.device:
    """The device."""
    return _C.device(_answer(tensor, "prim", "device", "default"))


def is_on(tensor: Any, kind: str) -> bool:
    """Whether the device is of that kind."""
    return device(tensor).type == kind


def device_index(tensor: Any) -> int:
    """The index of the device, -1 where it has none."""
    index = device(tensor).index
    return -1 if index is None else index


def layout(tensor: Any) -> _C.layout:
    """The layout."""
    answer = _answer(tensor, "prim", "layout", "default")
    if not isinstance(answer, _C.layout):
        raise RuntimeError(f"layout returned invalid type {type(answer).__name__}, expected layout")
    return answer
