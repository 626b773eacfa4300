"""Questions about dtypes, under the name of PyTorch's private module, which programs import."""

from __future__ import annotations

from typing import Any

from . import _C

__all__ = [
    "alert_not_deterministic",
    "corresponding_complex_dtype",
    "corresponding_real_dtype",
    "dtype_to_type",
    "is_boolean_dtype",
    "is_complex_dtype",
    "is_contiguous_or_false",
    "is_float_dtype",
    "is_integer_dtype",
]

_COMPLEX = {
    _C.float16: _C.complex32,
    _C.bfloat16: _C.bcomplex32,
    _C.float32: _C.complex64,
    _C.float64: _C.complex128,
}


def corresponding_complex_dtype(dtype: _C.dtype) -> _C.dtype:
    """The complex dtype whose parts are of a real floating one.

    Raises:
        KeyError: for other dtypes.
    """
    return _COMPLEX[dtype]


def corresponding_real_dtype(dtype: _C.dtype) -> _C.dtype:
    """The dtype of the parts of a complex one.

    Raises:
        KeyError: for other dtypes.
    """
    if not dtype.is_complex:
        raise KeyError(dtype)
    return dtype.to_real()


def is_boolean_dtype(dtype: _C.dtype) -> bool:
    """Whether the dtype is bool."""
    return dtype is _C.bool


def is_integer_dtype(dtype: _C.dtype) -> bool:
    """Whether the dtype is of whole numbers other than bool."""
    return not (dtype.is_floating_point or dtype.is_complex or dtype is _C.bool)


def is_float_dtype(dtype: _C.dtype) -> bool:
    """Whether the dtype is real and floating."""
    return dtype.is_floating_point


def is_complex_dtype(dtype: _C.dtype) -> bool:
    """Whether the dtype is complex."""
    return dtype.is_complex


def is_contiguous_or_false(a: Any) -> bool:
    """Whether the elements of a tensor lie in order, without gaps."""
    return bool(a.is_contiguous())


def alert_not_deterministic(caller: str) -> None:
    """Raises an error for an op that is not deterministic, if only deterministic ops are allowed.

    Raises:
        RuntimeError: with ``use_deterministic_algorithms(True)``; a warning if that was
            ``warn_only``.
    """
    import warnings

    from . import (
        are_deterministic_algorithms_enabled,
        is_deterministic_algorithms_warn_only_enabled,
    )

    if not are_deterministic_algorithms_enabled():
        return
    text = (
        f"{caller} does not have a deterministic implementation, but you set "
        "'torch.use_deterministic_algorithms(True)'"
    )
    if not is_deterministic_algorithms_warn_only_enabled():
        raise RuntimeError(text)
    warnings.warn(text, stacklevel=2)


def dtype_to_type(dtype: _C.dtype) -> type:
    """The type of Python's numbers that a dtype's elements are: bool, int, float or complex."""
    if dtype is _C.bool:
        return bool
    if dtype.is_complex:
        return complex
    return float if dtype.is_floating_point else int
