"""Whether two numbers or two tensors are close, and the message if not."""

from __future__ import annotations

import cmath
from typing import Any, NamedTuple

from .. import _C
from .._tensor import Tensor


class Tolerance(NamedTuple):
    """How far values may be apart: ``atol + rtol * |expected|``."""

    rtol: float
    atol: float
    equal_nan: bool

    def text(self, what: str, extra: str, absolute: Any, relative: Any) -> str:
        """The message about values that are farther apart.

        Args:
            what: what was compared.
            extra: what is said of it first.
            absolute: the greatest difference, and where it is or None.
            relative: the same by the expected value.
        """
        is_exact = self.rtol == 0 and self.atol == 0
        lines = [f"{what} are not {'equal' if is_exact else 'close'}!", "", extra]
        for kind, (value, coordinates), limit in (
            ("absolute", absolute, self.atol),
            ("relative", relative, self.rtol),
        ):
            text = f"{kind.title()} difference: {value}"
            if coordinates is not None:
                text = f"Greatest {kind} difference: {value} at index {coordinates}"
            lines.append(text if is_exact else f"{text} (up to {limit} allowed)")
        return "\n".join(lines)


def _number_text(actual: Any, expected: Any, tolerance: Tolerance, what: str) -> str:
    difference = abs(actual - expected)
    relative = float("inf") if expected == 0 else difference / abs(expected)
    extra = f"Expected {expected} but got {actual}."
    return tolerance.text(what, extra, (difference, None), (relative, None))


def compare_numbers(actual: Any, expected: Any, tolerance: Tolerance) -> str | None:
    """The message for two numbers that differ."""
    if actual == expected:
        return None
    if tolerance.equal_nan and cmath.isnan(actual) and cmath.isnan(expected):
        return None
    difference = abs(actual - expected)
    allowed = tolerance.atol + tolerance.rtol * abs(expected)
    if cmath.isfinite(difference) and difference <= allowed:
        return None
    return _number_text(actual, expected, tolerance, "Scalars")


def compare_tensors(actual: Tensor, expected: Tensor, tolerance: Tolerance) -> str | None:
    """The message for two tensors of one shape whose values differ."""
    actual, expected = actual.detach(), expected.detach()
    if actual.device.type == "meta" or expected.device.type == "meta":
        return None
    if actual.device != expected.device:
        actual, expected = actual.cpu(), expected.cpu()
    if actual.dtype != expected.dtype:
        dtype = _C.promote_types(_signed(actual.dtype), _signed(expected.dtype))
        actual, expected = actual.to(dtype), expected.to(dtype)
    if actual.layout != expected.layout:
        actual, expected = (
            one if one.layout == _C.strided else one.to_dense() for one in (actual, expected)
        )
    if actual.layout == _C.sparse_coo:
        return _coordinates(actual, expected, tolerance)
    if actual.layout != _C.strided:
        return _compressed(actual, expected, tolerance)
    return _dense(actual, expected, tolerance)


def _signed(dtype: Any) -> Any:
    """The dtype to which unsigned numbers are promoted, which have no common dtype with others."""
    return _C.int64 if dtype in (_C.uint16, _C.uint32, _C.uint64) else dtype


_SAME = Tolerance(0, 0, False)


def _coordinates(actual: Tensor, expected: Tensor, tolerance: Tolerance) -> str | None:
    for what, a, b in (
        ("sparse dimensions", actual.sparse_dim(), expected.sparse_dim()),
        ("specified values", actual._nnz(), expected._nnz()),
    ):
        if a != b:
            return f"The number of {what} in sparse COO tensors does not match: {a} != {b}"
    return _dense(actual._indices(), expected._indices(), _SAME, "Sparse COO indices") or _dense(
        actual._values(), expected._values(), tolerance, "Sparse COO values"
    )


_FORMATS = {
    _C.sparse_csr: ("CSR", "crow_indices", "col_indices"),
    _C.sparse_csc: ("CSC", "ccol_indices", "row_indices"),
    _C.sparse_bsr: ("BSR", "crow_indices", "col_indices"),
    _C.sparse_bsc: ("BSC", "ccol_indices", "row_indices"),
}


def _compressed(actual: Tensor, expected: Tensor, tolerance: Tolerance) -> str | None:
    name, *parts = _FORMATS[actual.layout]
    if actual._nnz() != expected._nnz():
        return (
            f"The number of specified values in sparse {name} tensors does not match: "
            f"{actual._nnz()} != {expected._nnz()}"
        )
    for part in parts:
        a, b = getattr(actual, part)(), getattr(expected, part)()
        found = _dense(a.to(_C.int64), b.to(_C.int64), _SAME, f"Sparse {name} {part}")
        if found is not None:
            return found
    return _dense(actual.values(), expected.values(), tolerance, f"Sparse {name} values")


def _dense(
    actual: Tensor, expected: Tensor, tolerance: Tolerance, what: str | None = None
) -> str | None:
    if actual.shape != expected.shape:
        return f"The values for attribute 'shape' do not match: {actual.shape} != {expected.shape}."
    close = _C._VariableFunctions.isclose
    if actual.dtype == _C.bcomplex32:
        # (Nothing computes with these; all of them are numbers of the wider dtype.)
        actual, expected = actual.to(_C.complex64), expected.to(_C.complex64)
    matches = close(
        actual, expected, rtol=tolerance.rtol, atol=tolerance.atol, equal_nan=tolerance.equal_nan
    )
    if bool(matches.all()):
        return None
    if actual.ndim == 0:
        return _number_text(actual.item(), expected.item(), tolerance, what or "Scalars")
    count, wrong = matches.numel(), matches.numel() - int(matches.sum())
    extra = f"Mismatched elements: {wrong} / {count} ({wrong / count:.1%})"
    a, b, matches = actual.flatten(), expected.flatten(), matches.flatten()
    if not (a.is_floating_point() or a.is_complex()):
        a, b = a.to(_C.int64), b.to(_C.int64)
    difference = (a - b).abs().masked_fill(matches, 0)
    relative = (difference / b.abs()).masked_fill(matches, 0)
    found = [_greatest(values, tuple(actual.shape)) for values in (difference, relative)]
    return tolerance.text(what or "Tensor-likes", extra, *found)


def _greatest(values: Tensor, shape: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """The greatest of the values of a flattened tensor, and its place."""
    top, flat = values.max(0)
    coordinates, rest = [], int(flat)
    for size in reversed(shape):
        rest, index = divmod(rest, size)
        coordinates.append(index)
    return top.item(), tuple(reversed(coordinates))
