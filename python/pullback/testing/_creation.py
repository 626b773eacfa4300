"""Random tensors for tests."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _C

if TYPE_CHECKING:
    from .._tensor import Tensor

# For each kind of dtype the numbers that are drawn where none are asked for.
_WHOLE = (-9, 10)
_FLOATING = (-9, 9)


def _bounds(
    low: Any, high: Any, least: float, most: float, usual: tuple[float, float], dtype: Any
) -> tuple[Any, Any]:
    """The interval that is drawn from, within what the dtype holds.

    Raises:
        ValueError: for bounds that are ``nan``, in the wrong order, or beyond the dtype.
    """
    low, high = usual[0] if low is None else low, usual[1] if high is None else high
    if any(isinstance(value, float) and math.isnan(value) for value in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low!r} and high={high!r}")
    if low == high and dtype in _FLOATS:
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is "
            "deprecated since 2.1 and will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=3,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < least or low >= most:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} "
            f"only supports [{least}, {most})"
        )
    return min(max(low, least), most), min(max(high, least), most)


_FLOATS = (
    _C.float16, _C.bfloat16, _C.float32, _C.float64,
    _C.complex32, _C.bcomplex32, _C.complex64, _C.complex128,
)  # fmt: skip
_INTEGERS = (
    _C.uint8, _C.int8, _C.int16, _C.int32, _C.int64, _C.uint16, _C.uint32, _C.uint64,
)  # fmt: skip


def _whole(shape: tuple[int, ...], dtype: Any, device: Any, low: Any, high: Any) -> Tensor:
    from .. import iinfo, randint

    if dtype == _C.bool:
        least, most, usual = 0, 2, (0, 2)
    else:
        limits = iinfo(dtype)
        # (Bounds are 64 bits: the greatest number of those is never drawn.)
        least, most, usual = limits.min, min(limits.max, 2**63 - 2) + 1, _WHOLE
    low, high = _bounds(low, high, least, most, usual, dtype)
    return randint(math.ceil(low), math.ceil(high), shape, dtype=dtype, device=device)


def _floating(shape: tuple[int, ...], dtype: Any, device: Any, low: Any, high: Any) -> Tensor:
    from .. import empty, finfo

    limits = finfo(dtype)
    low, high = _bounds(low, high, limits.min, limits.max, _FLOATING, dtype)
    result = empty(shape, dtype=dtype, device=device)
    parts = _C._VariableFunctions.view_as_real(result) if result.is_complex() else result
    if high - low >= limits.max:
        parts.uniform_(low / 2, high / 2).mul_(2)
    else:
        parts.uniform_(low, high)
    return result


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of numbers drawn from ``[low, high)``, all equally likely.

    Without bounds they are 0 or 1 for bools, 0 to 9 for ``uint8`` and other unsigned numbers, -9 to
    9 for others; bounds beyond the dtype are moved to its least and greatest number.

    Args:
        shape: sizes, or one sequence of them.
        dtype: the dtype.
        device: the device.
        low: the least number.
        high: what all numbers are below.
        requires_grad: whether it requires grad.
        noncontiguous: whether it takes every second element of its memory, if it has two elements.
        exclude_zero: whether zeros become the least positive normal number, or 1.
        memory_format: how it lies in memory.

    Raises:
        ValueError: for bounds in the wrong order or beyond the dtype, ``noncontiguous`` with
            ``memory_format``, and ``requires_grad`` for bools and whole numbers.
        TypeError: for a dtype that numbers cannot be drawn of.
    """
    from .. import finfo

    only = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    sizes = tuple(only)
    is_whole = dtype == _C.bool or dtype in _INTEGERS
    _check(noncontiguous, memory_format, requires_grad and is_whole, dtype)
    is_apart = noncontiguous and math.prod(sizes) > 1
    drawn = (*sizes[:-1], 2 * sizes[-1]) if is_apart else sizes
    if is_whole:
        result = _whole(drawn, dtype, device, low, high)
    elif dtype in _FLOATS:
        result = _floating(drawn, dtype, device, low, high)
    else:
        raise TypeError(
            f"The requested dtype '{dtype}' is not supported by torch.testing.make_tensor()."
        )
    if is_apart:
        # (From the second element on, so that a wrong beginning is seen too.)
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = 1 if is_whole else finfo(dtype).tiny
    return result.requires_grad_(requires_grad) if not is_whole else result


def _check(noncontiguous: bool, memory_format: Any, wants_grad: bool, dtype: Any) -> None:
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"{noncontiguous=} and {memory_format=}"
        )
    if wants_grad:
        raise ValueError(
            "`requires_grad=True` is not supported for boolean and integral dtypes, but got "
            f"{dtype=}"
        )
