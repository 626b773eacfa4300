"""``assert_close``: containers are walked to pairs of leaves, each is compared by its kind.

First the whole structure is walked, so that what differs there is told before any value; then the
pairs are compared in order, and the first that differs is the error.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from .. import _C
from .._tensor import Tensor
from ._value import Tolerance, compare_numbers, compare_tensors

Path = tuple[Any, ...]
Message = str | Callable[[str], str] | None


class Mismatch(Exception):
    """Something that differs, on its way to the caller's error.

    Args:
        kind: the class of the error.
        text: what differs.
        path: the keys and numbers that lead to it.
    """

    def __init__(self, kind: type[Exception], text: str, path: Path) -> None:
        super().__init__(text)
        self.kind, self.text, self.path = kind, text, path

    def error(self, message: Message) -> Exception:
        """The error, with the caller's message."""
        text = self.text
        if self.path:
            where = "".join(str([key]) for key in self.path)
            text += f"\n\nThe failure occurred for item {where}"
        if message is not None:
            text = message(text) if callable(message) else message
        return self.kind(text)


class Options(NamedTuple):
    """The conditions under which values count as equal; see :func:`assert_close`."""

    allow_subclasses: bool
    rtol: float | None
    atol: float | None
    equal_nan: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool


class Pair(NamedTuple):
    """Two leaves and how they are compared; the comparison gives what differs, if anything."""

    compare: Callable[[], str | None]
    path: Path


_PRECISIONS: dict[Any, tuple[float, float]] = {
    _C.float16: (1e-3, 1e-5),
    _C.bfloat16: (1.6e-2, 1e-5),
    _C.float32: (1.3e-6, 1e-5),
    _C.float64: (1e-7, 1e-7),
    _C.complex32: (1e-3, 1e-5),
    _C.bcomplex32: (1.6e-2, 1e-5),
    _C.complex64: (1.3e-6, 1e-5),
    _C.complex128: (1e-7, 1e-7),
}
# Values of other dtypes are equal or not.
_EXACT = (0.0, 0.0)
_NUMBER_DTYPES = {int: _C.int64, float: _C.float64, complex: _C.complex128}


def _tolerance(dtypes: Sequence[Any], options: Options, path: Path) -> Tolerance:
    if (options.rtol is None) != (options.atol is None):
        missing = "rtol" if options.rtol is None else "atol"
        raise Mismatch(
            ValueError,
            f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.",
            path,
        )
    if options.rtol is not None and options.atol is not None:
        return Tolerance(options.rtol, options.atol, options.equal_nan)
    pairs = [_PRECISIONS.get(dtype, _EXACT) for dtype in dtypes]
    return Tolerance(max(r for r, _ in pairs), max(a for _, a in pairs), options.equal_nan)


def _numpy() -> Any:
    """NumPy, if the program has loaded it."""
    return sys.modules.get("numpy")


def _scalar(value: Any, python: tuple[type, ...], name: str) -> Any:
    """A number of Python or NumPy as one of Python; None for anything else."""
    if isinstance(value, python):
        return value
    numpy = _numpy()
    kind = None if numpy is None else getattr(numpy, name, None)
    return value.item() if kind is not None and isinstance(value, kind) else None


def _bools(actual: Any, expected: Any) -> Callable[[], str | None] | None:
    a, b = (_scalar(value, (bool,), "bool_") for value in (actual, expected))
    if a is None or b is None:
        return None
    return lambda: None if a is b else f"Booleans mismatch: {a} is not {b}"


def _numbers(
    actual: Any, expected: Any, options: Options, path: Path
) -> Callable[[], str | None] | None:
    a, b = (_scalar(value, (int, float, complex), "number") for value in (actual, expected))
    if a is None or b is None:
        return None
    kinds = [next(t for t in (int, float, complex) if isinstance(v, t)) for v in (a, b)]
    tolerance = _tolerance([_NUMBER_DTYPES[kind] for kind in kinds], options, path)

    def compare() -> str | None:
        if options.check_dtype and type(a) is not type(b):
            return f"The (d)types do not match: {type(a)} != {type(b)}."
        return compare_numbers(a, b, tolerance)

    return compare


def _tensor(value: Any) -> Tensor | None:
    from .. import as_tensor

    if isinstance(value, Tensor):
        return value
    with contextlib.suppress(Exception):
        return as_tensor(value)
    return None


def _tensors(
    actual: Any, expected: Any, options: Options, path: Path
) -> Callable[[], str | None] | None:
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if not related or (not options.allow_subclasses and type(actual) is not type(expected)):
        return None
    a, b = _tensor(actual), _tensor(expected)
    if a is None or b is None:
        return None
    tolerance = _tolerance([a.dtype, b.dtype], options, path)
    return lambda: _attributes(a, b, options) or compare_tensors(a, b, tolerance)


def _attributes(actual: Tensor, expected: Tensor, options: Options) -> str | None:
    """The first attribute that differs."""
    strided = actual.layout == expected.layout == _C.strided
    for name, is_asked in (
        ("shape", True),
        ("layout", options.check_layout),
        ("stride()", options.check_stride and strided),
        ("device", options.check_device),
        ("dtype", options.check_dtype),
    ):
        if not is_asked:
            continue
        values = [
            one.stride() if name == "stride()" else getattr(one, name) for one in (actual, expected)
        ]
        if values[0] != values[1]:
            return f"The values for attribute '{name}' do not match: {values[0]} != {values[1]}."
    return None


def _leaf(actual: Any, expected: Any, options: Options, path: Path) -> Pair:
    if actual is None or expected is None:
        same = actual is expected
        return Pair(lambda: None if same else f"None mismatch: {actual} is not {expected}", path)
    compare = (
        _bools(actual, expected)
        or _numbers(actual, expected, options, path)
        or _tensors(actual, expected, options, path)
    )
    if compare is None:
        raise Mismatch(
            TypeError,
            "No comparison pair was able to handle inputs of type "
            f"{type(actual)} and {type(expected)}.",
            path,
        )
    return Pair(compare, path)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _pairs(actual: Any, expected: Any, options: Options, path: Path) -> Iterator[Pair]:
    """The pairs of leaves, in order."""
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            raise Mismatch(
                AssertionError,
                f"The length of the sequences mismatch: {len(actual)} != {len(expected)}",
                path,
            )
        for index in range(len(actual)):
            yield from _pairs(actual[index], expected[index], options, (*path, index))
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        for key in _keys(actual, expected, path):
            yield from _pairs(actual[key], expected[key], options, (*path, key))
    elif (
        dataclasses.is_dataclass(actual)
        and type(actual) is type(expected)
        and not isinstance(actual, (type, Tensor))
    ):
        yield from _fields(actual, expected, options, path)
    else:
        yield _leaf(actual, expected, options, path)


def _keys(actual: Mapping[Any, Any], expected: Mapping[Any, Any], path: Path) -> list[Any]:
    missing, additional = set(expected) - set(actual), set(actual) - set(expected)
    if missing or additional:
        raise Mismatch(
            AssertionError,
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {_sorted(missing)}\n"
            f"Additional keys in the actual mapping: {_sorted(additional)}",
            path,
        )
    return _sorted(actual)


def _sorted(keys: Any) -> list[Any]:
    """The keys in order, where they have one."""
    with contextlib.suppress(TypeError):
        return sorted(keys)
    return list(keys)


def _fields(actual: Any, expected: Any, options: Options, path: Path) -> Iterator[Pair]:
    """A data class whose own comparison says yes or no is a leaf; others are walked."""
    try:
        equal = actual == expected
    except RuntimeError:
        equal = None
    if isinstance(equal, bool):
        yield Pair(lambda: None if equal else f"{actual} != {expected}", path)
        return
    for field in dataclasses.fields(actual):
        if field.compare:
            values = getattr(actual, field.name), getattr(expected, field.name)
            yield from _pairs(*values, options, (*path, field.name))


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Message = None,
) -> None:
    """Checks that ``|actual - expected| <= atol + rtol * |expected|``, element by element.

    Sequences, mappings and data classes are walked; numbers, bools, None, tensors and what makes a
    tensor are compared. Where no tolerance is given it goes by the dtype, the wider one of two:
    ``(rtol, atol)`` is (1.6e-2, 1e-5) for ``bfloat16``, (1e-3, 1e-5) for ``float16``, (1.3e-6,
    1e-5) for ``float32``, (1e-7, 1e-7) for ``float64``, the same for complex numbers of these
    parts, and (0, 0) for others.

    Args:
        actual: what a program gave.
        expected: what it was to give.
        allow_subclasses: whether one may be of a class derived from the other's.
        rtol: the relative tolerance; with it ``atol``.
        atol: the absolute tolerance; with it ``rtol``.
        equal_nan: whether two ``nan`` are close.
        check_device: whether devices must be the same.
        check_dtype: whether dtypes, and types of numbers, must be the same.
        check_layout: whether layouts must be the same.
        check_stride: whether strides must be the same.
        msg: the error's message in place of the one that is made, or a function of that one.

    Raises:
        AssertionError: if something differs: the first of it, with its place.
        TypeError: for what cannot be compared.
        ValueError: for one tolerance without the other.
    """
    options = Options(
        allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_layout,
        check_stride,
    )  # fmt: skip
    found: Mismatch | None = None
    try:
        for pair in list(_pairs(actual, expected, options, ())):
            text = pair.compare()
            if text is not None:
                raise Mismatch(AssertionError, text, pair.path)
    except Mismatch as mismatch:
        found = mismatch
    if found is not None:
        _raise(found.error(msg))


def _raise(error: Exception) -> NoReturn:
    raise error


_OLD_PRECISIONS = {_C.float16: (1e-3, 1e-3), _C.float32: (1e-4, 1e-5), _C.float64: (1e-5, 1e-8)}


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """The older :func:`assert_close`: dtypes may differ, ``nan`` are equal, tolerances are wider.

    Args:
        actual: a tensor, or what makes one.
        expected: a tensor, or what makes one.
        rtol: the relative tolerance; with it ``atol``.
        atol: the absolute tolerance; with it ``rtol``.
        equal_nan: whether two ``nan`` are close.
        msg: the error's message.

    Raises:
        AssertionError: if something differs.
    """
    from .. import tensor

    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a "
        "future release. Please use `torch.testing.assert_close()` instead.",
        FutureWarning,
        stacklevel=2,
    )
    given = actual if isinstance(actual, Tensor) else tensor(actual)
    wanted = expected if isinstance(expected, Tensor) else tensor(expected, dtype=given.dtype)
    if rtol is None and atol is None:
        pairs = [_OLD_PRECISIONS.get(one.dtype, _EXACT) for one in (given, wanted)]
        rtol, atol = max(r for r, _ in pairs), max(a for _, a in pairs)
    assert_close(
        given, wanted, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None
    )
