"""Calls of ``torch.sparse.FloatTensor`` and its kin, and of ``x.new`` for a list of coordinates.

They take indices and values, whose dtype the result has, with or without a size; or a size alone,
in which nothing is specified.
"""

from __future__ import annotations

from typing import Any

from . import _C
from ._sparse import sparse_coo_tensor
from ._tensor import Tensor

_FORMS = """, but expected one of:
 * (*, torch.device device = None)
 * (Tensor indices, Tensor values, *, torch.device device = None)
 * (Tensor indices, Tensor values, tuple of ints size, *, torch.device device = None)
 * (tuple of ints size, *, torch.device device = None)
"""


def make(called: str, dtype: _C.dtype, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """The sparse tensor of a call of ``called``; ``dtype`` is that of one without values.

    Raises:
        TypeError: other arguments.
        RuntimeError: another device than the CPU; indices that are not int64 or do not fit.
    """
    given = dict(kwargs)
    _check_device(given.pop("device", None))
    if args and all(_is_size(arg) for arg in args) and not given:
        return sparse_coo_tensor(tuple(args), dtype=dtype)
    if len(args) == 1 and isinstance(args[0], _C.Size):
        given["size"], args = args[0], ()
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        raise TypeError(
            f"{called}(sequence) only accepts sizes.  Please use torch.sparse_coo_tensor() or "
            "construct a strided tensor and convert it to sparse via to_sparse."
        )
    if len(args) > 3:
        raise TypeError(f"new() takes 3 positional arguments but {len(args)} were given")
    names = ("indices", "values", "size")
    by_name = dict(zip(names, args, strict=False))
    if by_name.keys() & given.keys() or given.keys() - set(names):
        raise _refusal(args, kwargs)
    indices, values, size = ((by_name | given).get(name) for name in names)
    if isinstance(indices, Tensor) and isinstance(values, Tensor):
        if size is None or _are_sizes(size):
            return _of_parts(indices, values, size)
    elif indices is None and values is None and (size is None or _are_sizes(size)):
        return sparse_coo_tensor((0,) if size is None else tuple(size), dtype=dtype)
    raise _refusal(args, kwargs)


def _of_parts(indices: Tensor, values: Tensor, size: Any) -> Tensor:
    if indices.dtype is not _C.int64:
        found = indices.type().rpartition(".")[2].removesuffix("Tensor")
        raise RuntimeError(f"expected scalar type Long but found {found}")
    parts = (indices, values) if size is None else (indices, values, tuple(size))
    return sparse_coo_tensor(*parts)


def _is_size(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, (bool, Tensor))


def _are_sizes(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(map(_is_size, value))


def _check_device(device: Any) -> None:
    if device is not None and _C.device(device).type != "cpu":
        raise RuntimeError(
            "legacy constructor expects device type: cpu but device type: "
            f"{_C.device(device).type} was passed"
        )


def _refusal(args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    named = [f"{name}={type(value).__name__}" for name, value in kwargs.items()]
    given = ", ".join([*(type(arg).__name__ for arg in args), *named])
    return TypeError(f"new() received an invalid combination of arguments - got ({given}){_FORMS}")
