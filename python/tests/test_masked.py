"""``pullback.masked``: each function against a plain loop over the elements that count."""

from __future__ import annotations

import doctest
import importlib
import itertools
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback import masked

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
COMPLEX = [torch.complex64, torch.complex128]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
TOLERANCE = {
    torch.float16: 4e-3,
    torch.bfloat16: 3e-2,
    torch.float32: 2e-6,
    torch.complex64: 2e-6,
    torch.float64: 1e-13,
    torch.complex128: 1e-13,
}
SHAPE = (2, 3, 4)
MASKS = [(2, 3, 4), (3, 4), (4,), (3, 1), (2, 1, 1), (1,), ()]
DIMS: list[Any] = [None, (), 0, 1, -1, (0, 2), (-1, 1), (2, 0, 1)]


def data(dtype: torch.dtype, shape: tuple[int, ...] = SHAPE, seed: int = 0) -> torch.Tensor:
    """Numbers of the dtype, none of them zero, in memory that is not contiguous."""
    rng = np.random.default_rng(seed)
    if dtype.is_floating_point or dtype.is_complex:
        values = rng.uniform(0.5, 2, shape) * rng.choice([-1, 1], shape)
        if dtype.is_complex:
            values = values + 1j * rng.uniform(-1, 1, shape)
    else:
        values = rng.integers(1, 6, shape)
        if dtype.is_signed:
            values = values * rng.choice([-1, 1], shape)
    x = torch.from_numpy(np.array(values)).to(dtype)
    return x.flip(0).transpose(0, -1).contiguous().transpose(0, -1) if x.ndim > 1 else x


def masks(shapes: list[tuple[int, ...]] = MASKS) -> Iterator[torch.Tensor]:
    """Masks that broadcast to ``SHAPE``, some of them without a true element in some lines."""
    rng = np.random.default_rng(1)
    for shape in shapes:
        yield torch.from_numpy(np.array(rng.random(shape) < 0.6))
    some = np.zeros(SHAPE, dtype=bool)
    some[1, :, 2] = some[0, 2, :] = True
    yield torch.from_numpy(some)


def exact(x: torch.Tensor) -> np.ndarray[Any, Any]:
    """The elements in the widest dtype of their kind."""
    kind = torch.complex128 if x.is_complex() else torch.float64
    is_exact = not (x.is_floating_point() or x.is_complex())
    return x.detach().to(torch.int64 if is_exact else kind).numpy()


def axes(dim: Any, ndim: int) -> tuple[int, ...]:
    if dim is None or dim == ():
        return tuple(range(ndim))
    return tuple(sorted(d % ndim for d in (dim if isinstance(dim, tuple) else (dim,))))


def by_line(
    function: Callable[[np.ndarray[Any, Any]], Any],
    x: torch.Tensor,
    mask: torch.Tensor | None,
    dim: Any,
    keepdim: bool,
) -> np.ndarray[Any, Any]:
    """What ``function`` makes of the elements that count of each line, in a plain loop."""
    values = exact(x)
    flags = np.ones(values.shape, bool) if mask is None else mask.bool().numpy()
    flags = np.broadcast_to(flags, values.shape)
    reduced = axes(dim, values.ndim)
    kept = [axis for axis in range(values.ndim) if axis not in reduced]
    shape = [values.shape[axis] for axis in kept]
    lines = values.transpose(*kept, *reduced).reshape(math.prod(shape), -1)
    line_flags = flags.transpose(*kept, *reduced).reshape(math.prod(shape), -1)
    found = [function(line[flag]) for line, flag in zip(lines, line_flags, strict=True)]
    if keepdim:
        shape = [1 if axis in reduced else values.shape[axis] for axis in range(values.ndim)]
    return np.array(found).reshape(shape)


def product(v: Any) -> Any:
    result: Any = 1
    for one in v:
        result = result * one
    return result


def variance(correction: float) -> Callable[[Any], Any]:
    def of(v: Any) -> Any:
        if len(v) == 0 or len(v) <= correction:
            return math.nan
        return sum(abs(v - v.mean()) ** 2) / (len(v) - correction)

    return of


def order(p: float) -> Callable[[Any], Any]:
    def of(v: Any) -> Any:
        sizes = abs(v)
        if len(v) == 0:
            return math.inf if p < 0 else 0
        if p == 0:
            return (sizes != 0).sum()
        if math.isinf(p):
            return sizes.max() if p > 0 else sizes.min()
        return (sizes**p).sum() ** (1 / p)

    return of


REDUCTIONS: list[tuple[str, tuple[Any, ...], dict[str, Any], Callable[[Any], Any], list[Any]]] = [
    ("sum", (), {}, sum, FLOATS + COMPLEX + INTEGERS),
    ("prod", (), {}, product, [*FLOATS[2:], *COMPLEX, torch.int64]),
    ("mean", (), {}, lambda v: v.mean() if len(v) else math.nan, FLOATS + COMPLEX),
    ("amax", (), {}, lambda v: v.max() if len(v) else -math.inf, FLOATS),
    ("amin", (), {}, lambda v: v.min() if len(v) else math.inf, FLOATS),
    ("var", (), {}, variance(1), FLOATS + COMPLEX),
    ("var", (False,), {}, variance(0), FLOATS + COMPLEX),
    ("var", (), {"correction": 1.5}, variance(1.5), FLOATS[2:]),
    ("std", (True,), {}, lambda v: variance(1)(v) ** 0.5, FLOATS + COMPLEX),
    ("std", (), {"correction": 0}, lambda v: variance(0)(v) ** 0.5, FLOATS),
    (
        "logsumexp",
        (),
        {},
        lambda v: np.log(np.exp(v).sum()) if len(v) else -math.inf,
        FLOATS + COMPLEX,
    ),
    *(("norm", (p,), {}, order(p), FLOATS + COMPLEX) for p in (0, 0.5, 1, 2, 3.5, math.inf)),
    *(("norm", (p,), {}, order(p), FLOATS + COMPLEX) for p in (-math.inf, -1, -2.5)),
]


def call(name: str, x: torch.Tensor, dim: Any, args: tuple[Any, ...], **kwargs: Any) -> Any:
    """Calls a reduction; the order of ``norm`` comes before the dimension, all else after it."""
    given = (*args, dim) if name == "norm" else (dim, *args)
    return getattr(masked, name)(x, *given, **kwargs)


@pytest.mark.parametrize(
    ("name", "args", "options", "function", "dtypes"),
    REDUCTIONS,
    ids=[f"{row[0]}{row[1]}{row[2]}" for row in REDUCTIONS],
)
def test_reductions_are_of_the_elements_that_count(
    name: str, args: Any, options: Any, function: Any, dtypes: Any
) -> None:
    for dtype, dim, keepdim in itertools.product(dtypes, DIMS, (False, True)):
        x = data(dtype)
        for mask in [None, *masks()]:
            found = call(name, x, dim, args, mask=mask, keepdim=keepdim, **options)
            expected = by_line(function, x, mask, dim, keepdim)
            np.testing.assert_allclose(
                exact(found), expected, rtol=TOLERANCE.get(dtype, 0), atol=TOLERANCE.get(dtype, 0)
            )


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("name", ["amax", "amin", "argmax", "argmin", "median"])
def test_elements_are_picked_from_those_that_count(name: str, dtype: torch.dtype) -> None:
    pick = {
        "amax": max,
        "amin": min,
        "median": lambda v: sorted(v)[(len(v) - 1) // 2],
        "argmax": lambda v: v.argmax(),
        "argmin": lambda v: v.argmin(),
    }[name]
    x = data(dtype)
    places = torch.arange(2).reshape(2, 1, 1) + torch.arange(3)[:, None] + torch.arange(4)
    every_second = places % 2 == 0
    last = torch.tensor([True, False, True, True])
    for dim in (0, 1, -1):
        for mask in [every_second] if dim >= 0 else [every_second, last]:
            found = getattr(masked, name)(x, dim, mask=mask, keepdim=True)
            if name.startswith("arg"):
                # The indices count what is masked out too: they show the element itself.
                least = masked.amin if name == "argmin" else masked.amax
                picked = torch.take_along_dim(x, found.to(torch.int64), dim)
                assert torch.equal(picked, least(x, dim, mask=mask, keepdim=True))
                valid = torch.broadcast_to(mask, x.shape)
                assert torch.take_along_dim(valid, found.to(torch.int64), dim).all()
            else:
                assert (exact(found) == by_line(pick, x, mask, dim, True)).all()
            assert found.dtype is dtype


def test_of_equal_elements_the_first_that_counts_is_pointed_to() -> None:
    mask = torch.tensor([False, True, False, True, True])
    for dtype in FLOATS:
        x = torch.tensor([9, -math.inf, 9, -math.inf, -math.inf], dtype=dtype)
        assert masked.argmax(x, 0, mask=mask).item() == 1
        assert masked.argmin(-x, mask=mask).item() == 1
        x[3] = math.nan
        assert masked.argmax(x, 0, mask=mask).item() == masked.argmin(x, 0, mask=mask).item() == 3
        x[0] = math.nan
        assert masked.argmax(x, mask=mask, keepdim=True).tolist() == [3]
    for dtype in INTEGERS:
        least, greatest = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        x = torch.tensor([5, least, 5, least, least], dtype=dtype)
        assert masked.argmax(x, mask=mask).item() == 1
        x = torch.tensor([5, greatest, 5, greatest, greatest], dtype=dtype)
        assert masked.argmin(x, 0, mask=mask).item() == 1


def test_indices_without_dimension_are_those_of_the_flat_tensor() -> None:
    x = data(torch.float64)
    mask = x < 1
    flat = np.where(mask.numpy(), x.numpy(), -math.inf)
    assert masked.argmax(x, mask=mask).item() == flat.argmax()
    assert masked.argmax(x, mask=mask, keepdim=True).shape == (1, 1, 1)
    assert masked.argmin(x, None, keepdim=None, dtype=torch.int64).item() == x.numpy().argmin()


# --- what keeps the shape ---------------------------------------------------------------------


def along_line(
    function: Callable[[Any, Any], Any], x: torch.Tensor, mask: torch.Tensor | None, dim: int
) -> np.ndarray[Any, Any]:
    values = exact(x)
    flags = np.ones(values.shape, bool) if mask is None else mask.bool().numpy()
    flags = np.moveaxis(np.broadcast_to(flags, values.shape), dim, -1)
    moved = np.moveaxis(values, dim, -1)
    result = np.zeros(moved.shape, complex if x.is_complex() else float)
    for index in np.ndindex(*moved.shape[:-1]):
        result[index] = function(moved[index], flags[index])
    return np.moveaxis(result, -1, dim)


def running(combine: Callable[[Any, Any], Any], start: int) -> Callable[[Any, Any], Any]:
    def of(line: Any, flag: Any) -> Any:
        total: Any = start
        result = []
        for value, is_valid in zip(line, flag, strict=True):
            total = combine(total, value) if is_valid else total
            result.append(total)
        return result

    return of


def weights(sign: int) -> Callable[[Any, Any], Any]:
    def of(line: Any, flag: Any) -> Any:
        if not flag.any():
            return np.full(line.shape, math.nan)
        powers = np.where(flag, np.exp(sign * line), 0)
        return powers / powers.sum()

    return of


def log_weights(line: Any, flag: Any) -> Any:
    with np.errstate(divide="ignore"):
        return np.log(weights(1)(line, flag))


def scaled(p: float) -> Callable[[Any, Any], Any]:
    return lambda line, flag: np.where(flag, line, 0) / max(order(p)(line[flag]), 1e-12)


NORMALIZATIONS: list[tuple[str, tuple[Any, ...], Any, list[Any]]] = [
    ("softmax", (), weights(1), FLOATS),
    ("softmin", (), weights(-1), FLOATS),
    ("log_softmax", (), log_weights, FLOATS),
    ("cumsum", (), running(lambda a, b: a + b, 0), FLOATS + COMPLEX + INTEGERS),
    ("cumprod", (), running(lambda a, b: a * b, 1), FLOATS + COMPLEX + [torch.int64]),
    *(("normalize", (p,), scaled(p), FLOATS + COMPLEX) for p in (1, 2, 0.5, math.inf, -1)),
]


@pytest.mark.parametrize(
    ("name", "args", "function", "dtypes"),
    NORMALIZATIONS,
    ids=[f"{row[0]}{row[1]}" for row in NORMALIZATIONS],
)
def test_what_keeps_the_shape_looks_at_the_elements_that_count(
    name: str, args: Any, function: Any, dtypes: Any
) -> None:
    for dtype, dim in itertools.product(dtypes, (0, 1, -1)):
        x = data(dtype)
        for mask in [None, *masks()]:
            found = getattr(masked, name)(x, *args, dim, mask=mask)
            assert found.dtype is dtype
            expected = along_line(function, x, mask, dim)
            scale = TOLERANCE.get(dtype, 0) * 4
            np.testing.assert_allclose(exact(found), expected, rtol=scale, atol=scale)


def test_logaddexp_leaves_out_what_is_masked_on_either_side() -> None:
    for dtype in FLOATS:
        x, y = data(dtype), data(dtype, (3, 4), seed=2)
        for mask, other in itertools.product([None, *masks()], [None, *masks(MASKS[1:4])][:4]):
            found = masked.logaddexp(x, y, input_mask=mask, other_mask=other)
            left = np.where(True if mask is None else mask.numpy(), exact(x), -math.inf)
            right = np.where(True if other is None else other.numpy(), exact(y), -math.inf)
            scale = TOLERANCE[dtype]
            np.testing.assert_allclose(
                exact(found), np.logaddexp(left, right), rtol=scale, atol=scale
            )
    x = torch.tensor([1.0, 2.0])
    assert masked.logaddexp(x, x.double()).dtype is torch.float32
    assert masked.logaddexp(x, x, dtype=torch.float64).dtype is torch.float64


# --- dtypes -----------------------------------------------------------------------------------


def test_dtypes_of_results() -> None:
    mask = torch.tensor([True, False, True])
    for dtype in [torch.bool, *INTEGERS]:
        x = torch.tensor([1, 0, 1], dtype=dtype)
        assert masked.sum(x, mask=mask).dtype is torch.int64
        assert masked.prod(x, 0, mask=mask).dtype is torch.int64
        if dtype is torch.bool:
            continue
        for name in ("amax", "amin", "argmax", "argmin", "median", "logsumexp"):
            assert getattr(masked, name)(x, 0, mask=mask).dtype is dtype, name
        assert masked.cumsum(x, 0, mask=mask).dtype is dtype
        assert masked.cumprod(x, 0, mask=mask).dtype is dtype
        assert masked.var(x, mask=mask).dtype is masked.std(x, mask=mask).dtype is torch.float32
        assert masked.mean(x, dtype=torch.float64, mask=mask).dtype is torch.float64
    for dtype in COMPLEX:
        x = data(dtype, (3,))
        assert masked.var(x, mask=mask).dtype is masked.mean(x, mask=mask).dtype is dtype
        assert masked.norm(x, mask=mask).dtype is dtype.to_real()
        assert masked.normalize(x, 2, 0, mask=mask).dtype is dtype


@pytest.mark.parametrize(
    "name", ["sum", "prod", "amax", "amin", "argmax", "mean", "median", "var", "std", "logsumexp"]
)
def test_the_dtype_that_is_asked_for_is_given(name: str) -> None:
    mask = torch.tensor([True, False, True])
    for given, wanted in (
        (torch.float32, torch.float64),
        (torch.float64, torch.bfloat16),
        (torch.int32, torch.float32),
    ):
        found = getattr(masked, name)(data(given, (3,)), 0, mask=mask, dtype=wanted)
        assert found.dtype is wanted
    if name in ("sum", "prod", "amax", "argmax"):
        x = torch.tensor([1, 2, 3], dtype=torch.int16)
        assert getattr(masked, name)(x, 0, mask=mask, dtype=torch.int32).dtype is torch.int32


def test_elements_are_converted_before_the_operation() -> None:
    mask = torch.tensor([True, True, False])
    x = torch.tensor([100, 100, 1], dtype=torch.int8)
    assert masked.sum(x, dtype=torch.int8, mask=mask).item() == 200 - 256
    assert masked.cumsum(x, 0, mask=mask).tolist() == [100, 200 - 256, 200 - 256]
    assert masked.cumsum(x, 0, mask=mask, dtype=torch.int32).tolist() == [100, 200, 200]
    for name in ("softmax", "softmin", "log_softmax"):
        function = getattr(masked, name)
        for dtype in INTEGERS:
            x = torch.tensor([3, 4, 0], dtype=dtype)
            found = function(x, 0, dtype=torch.float64, mask=mask)
            assert torch.equal(found, function(x.double(), 0, mask=mask))


def test_what_is_masked_out_does_not_count_in_logsumexp_of_integers() -> None:
    mask = torch.tensor([True] + [False] * 99)
    for dtype in INTEGERS:
        for value in (0, 7, torch.iinfo(dtype).min):
            x = torch.full((100,), 3, dtype=dtype)
            x[0] = value
            assert masked.logsumexp(x, mask=mask).item() == value
        assert masked.logsumexp(x, mask=~mask[:1]).item() == torch.iinfo(dtype).min


def test_sums_of_half_precision_do_not_overflow_in_between() -> None:
    x = torch.tensor([60000.0, 60000.0, 1.0, 59000.0], dtype=torch.float16)
    mask = torch.tensor([True, True, False, True])
    assert masked.mean(x, mask=mask).item() == 59680  # 59666.67 in steps of 32
    assert masked.std(x[:2] - x[3], correction=0).item() == 0
    assert (
        masked.std(torch.tensor([500.0, -500.0] * 2, dtype=torch.float16), 0, False).item() == 500
    )
    many = torch.zeros(70000, dtype=torch.float16)
    many[0] = 35000
    assert masked.mean(many, mask=torch.ones(1, dtype=torch.bool)).item() == 0.5


# --- identities and lines without elements that count -----------------------------------------


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX, *INTEGERS, torch.bool])
def test_lines_without_elements_that_count_give_the_identity(dtype: torch.dtype) -> None:
    x = torch.ones(2, 3, dtype=dtype)
    mask = torch.zeros(3, dtype=torch.bool)
    assert masked.sum(x, 1, mask=mask).tolist() == [0, 0]
    assert masked.prod(x, 1, mask=mask).tolist() == [1, 1]
    if dtype is not torch.bool and not dtype.is_complex:
        kind = torch.finfo if dtype.is_floating_point else torch.iinfo
        is_float = dtype.is_floating_point
        least = -math.inf if is_float else kind(dtype).min
        greatest = math.inf if is_float else kind(dtype).max
        assert masked.amax(x, 1, mask=mask).tolist() == [least] * 2
        assert masked.amin(x, 1, mask=mask).tolist() == [greatest] * 2
        assert masked.argmax(x, 1, mask=mask).tolist() == [0, 0]
        assert masked.argmin(x, 1, mask=mask).tolist() == [0, 0]
        assert masked.logsumexp(x, 1, mask=mask).tolist() == [least] * 2
    if dtype.is_floating_point or dtype.is_complex:
        assert masked.norm(x, 2, 1, mask=mask).tolist() == [0, 0]
        assert masked.norm(x, -math.inf, 1, mask=mask).tolist() == [math.inf] * 2
        assert masked.mean(x, 1, mask=mask).isnan().all()
        assert masked.var(x, 1, mask=mask).isnan().all()
        assert masked.std(x, 1, mask=mask).isnan().all()
        assert masked.normalize(x, 2, 1, mask=mask).tolist() == [[0] * 3] * 2
    if dtype.is_floating_point:
        assert masked.median(x, 1, mask=mask).isnan().all()


def test_identities_by_name() -> None:
    for dtype in (torch.float16, torch.float64):
        x = torch.zeros((), dtype=dtype)
        for name, value in (
            ("sum", 0),
            ("cumsum", 0),
            ("prod", 1),
            ("cumprod", 1),
            ("amax", -math.inf),
            ("torch.masked.argmin", math.inf),
            ("logaddexp", -math.inf),
            ("logsumexp", -math.inf),
            ("norm", 0),
        ):
            identity = masked._reduction_identity(name, x)
            assert identity is not None
            assert identity.dtype is dtype
            assert identity.item() == value
        for name in ("mean", "var", "std"):
            assert masked._reduction_identity(name, x) is None
    small = torch.zeros((), dtype=torch.uint8)
    assert masked._reduction_identity("amax", small).item() == 0  # type: ignore[union-attr]
    assert masked._reduction_identity("amin", small).item() == 255  # type: ignore[union-attr]
    median = masked._reduction_identity("median", small)
    assert median is not None
    assert median.dtype is torch.float32
    with pytest.raises(NotImplementedError, match=r"identity of amax on torch\.bool input"):
        masked._reduction_identity("amax", small.bool())
    with pytest.raises(NotImplementedError, match="identity of dot"):
        masked._reduction_identity("dot", small)


def test_results_know_which_of_their_elements_count() -> None:
    x, mask = torch.ones(2, 3), torch.tensor([[True, False, True], [False] * 3])
    assert masked._output_mask(masked.sum, x, 1, mask=mask).tolist() == [True, False]
    assert masked._output_mask(masked.norm, x, 2, 0, mask=mask).tolist() == [True, False, True]
    assert masked._output_mask(masked.amax, x, mask=mask, keepdim=True).tolist() == [[True]]
    kept = masked._output_mask(masked.softmax, x, 1, mask=mask[:1])
    assert kept.tolist() == [[True, False, True]] * 2
    filled = masked._combine_input_and_mask(masked.prod, x * 5, mask)
    assert filled.tolist() == [[5, 1, 5], [1, 1, 1]]
    for op in (torch.sum.__class__, "sum"):
        with pytest.raises(ValueError, match="expected masked operation"):
            masked._output_mask(op, x, mask=mask)  # type: ignore[arg-type]


# --- shapes -----------------------------------------------------------------------------------


def test_tensors_without_dimensions() -> None:
    x, yes, no = torch.tensor(2.0), torch.tensor(True), torch.tensor(False)
    for dim in (None, (), 0, -1, (0,)):
        assert masked.sum(x, dim, mask=yes).item() == masked.amax(x, dim, mask=yes).item() == 2
        assert masked.sum(x, dim, mask=no).item() == 0
        assert masked.prod(x, dim, mask=no, keepdim=True).item() == 1
        assert masked.mean(x, dim, mask=yes).item() == masked.norm(x, 2, dim, mask=yes).item() == 2
        assert masked.var(x, dim, False, mask=yes).item() == 0
        assert math.isnan(masked.var(x, dim, mask=yes).item())
        assert masked.logsumexp(x, dim, mask=no).item() == -math.inf
    for dim in (0, -1):
        assert masked.softmax(x, dim, mask=yes).item() == 1
        assert masked.cumsum(x, dim, mask=no).item() == 0
        assert masked.median(x, dim, mask=yes).item() == 2
        assert masked.normalize(x, 2, dim, mask=yes).item() == 1
    assert masked.argmax(x, mask=yes).item() == masked.argmin(x, 0, mask=no).item() == 0
    assert masked.logaddexp(x, x, input_mask=no).item() == 2


def test_tensors_without_elements() -> None:
    x, mask = torch.empty(0, 3), torch.tensor([True, False, True])
    for given in (None, mask):
        assert masked.sum(x, 0, mask=given).tolist() == [0, 0, 0]
        assert masked.prod(x, 0, mask=given).tolist() == [1, 1, 1]
        assert masked.mean(x, 0, mask=given).isnan().tolist() == [True] * 3
        assert masked.var(x, 0, mask=given).isnan().tolist() == [True] * 3
        assert masked.logsumexp(x, 0, mask=given).tolist() == [-math.inf] * 3
        assert masked.norm(x, 2, 0, mask=given).tolist() == [0, 0, 0]
        for name in ("sum", "prod", "amax", "amin", "argmax", "mean", "median", "var", "std"):
            assert getattr(masked, name)(x, 1, mask=given).shape == (0,)
            assert getattr(masked, name)(x, 1, mask=given, keepdim=True).shape == (0, 1)
        for name in ("softmax", "softmin", "log_softmax", "cumsum", "cumprod"):
            assert getattr(masked, name)(x, 0, mask=given).shape == (0, 3)
        assert masked.normalize(x, 2, 1, mask=given).shape == (0, 3)
        for name in ("amax", "amin", "argmax", "argmin", "median"):
            with pytest.raises(IndexError, match="Expected reduction dim"):
                getattr(masked, name)(x, 0, mask=given)


def test_masks_of_numbers_are_true_where_they_are_not_zero() -> None:
    x = data(torch.float64)
    for mask in masks():
        numbers = mask.to(torch.int32) * 3 - 0
        assert torch.equal(masked.sum(x, 1, mask=numbers), masked.sum(x, 1, mask=mask))
        assert torch.equal(
            masked.softmax(x, 1, mask=numbers.double()).nan_to_num(7),
            masked.softmax(x, 1, mask=mask).nan_to_num(7),
        )


def test_inputs_and_masks_are_left_as_they_are() -> None:
    x = data(torch.float32)
    before, mask = x.clone(), x > 0
    kept = mask.clone()
    for name in ("sum", "prod", "amax", "argmin", "mean", "var", "logsumexp"):
        getattr(masked, name)(x, 1, mask=mask)
        getattr(masked, name)(x.expand(2, 2, 3, 4), 1, mask=mask)
    for name in ("softmax", "cumsum", "median"):
        getattr(masked, name)(x, 1, mask=mask)
    assert torch.equal(x, before)
    assert torch.equal(mask, kept)


# --- errors -----------------------------------------------------------------------------------


X = torch.ones(2, 3)
ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: masked.sum(X, 2), IndexError, r"expected to be in range of \[-2, 1\], but got 2"),
    (lambda: masked.sum(X, -3), IndexError, "Dimension out of range"),
    (lambda: masked.sum(X, -(2**63)), IndexError, "Dimension out of range"),
    (lambda: masked.prod(X, 2**70), IndexError, "Dimension out of range"),
    (lambda: masked.cumsum(X, 2), IndexError, "Dimension out of range"),
    (lambda: masked.softmax(torch.tensor(1.0), 1), IndexError, r"\[-1, 0\], but got 1"),
    (lambda: masked.mean(X, (0, 0)), RuntimeError, "dim=0 appears multiple times"),
    (lambda: masked.norm(X, 2, (0, -2)), RuntimeError, "appears multiple times"),
    (lambda: masked.sum(X, 1.5), TypeError, "must be an int or a tuple of ints, not 1.5"),  # type: ignore[arg-type]
    (lambda: masked.sum(X, (True,)), TypeError, "must be an int"),
    (lambda: masked.softmax(X, None), TypeError, "'dim' must be one int, not None"),  # type: ignore[arg-type]
    (lambda: masked.cumprod(X, (0, 1)), TypeError, "'dim' must be one int"),  # type: ignore[arg-type]
    (lambda: masked.argmax(X, (0,)), TypeError, "must be int, not tuple"),  # type: ignore[arg-type]
    (lambda: masked.sum([1.0]), TypeError, "'input' .*must be Tensor, not list"),  # type: ignore[arg-type]
    (lambda: masked.var(1.0), TypeError, "must be Tensor, not float"),  # type: ignore[arg-type]
    (lambda: masked.logaddexp(X, 1.0), TypeError, "'other' must be Tensor"),  # type: ignore[arg-type]
    (lambda: masked.sum(X, mask=[True]), TypeError, "'mask' must be Tensor, not list"),  # type: ignore[arg-type]
    (lambda: masked.sum(X, mask=X[None]), IndexError, "dimensionality higher than of the input"),
    (lambda: masked.sum(X, mask=X[:, :2]), RuntimeError, "must match the existing size"),
    (lambda: masked.softmax(X[0], 0, mask=X[:, :1]), IndexError, "broadcastable mask"),
    (lambda: masked._input_mask(X), ValueError, "requires explicit mask"),
    (lambda: masked.mean(X.int()), ValueError, "mean.*Input dtype must be .*torch.int32"),
    (lambda: masked.mean(X, dtype=torch.int8), ValueError, "Optional dtype .*torch.int8"),
    (lambda: masked.var(X, 0, True, correction=1), AssertionError, "Only one of unbiased"),
    (lambda: masked.std(X > 0), NotImplementedError, "bool"),
    (lambda: masked.norm(X.int(), 2), NotImplementedError, "floating point or complex"),
    (lambda: masked.norm(X, "fro"), TypeError, "must be Number, not str"),  # type: ignore[arg-type]
    (lambda: masked.norm(X, None), TypeError, "must be Number, not NoneType"),
    (lambda: masked.softmax(X.int(), 0), NotImplementedError, "not implemented for 'Int'"),
    (lambda: masked.amax(X > 0, mask=X > 0), NotImplementedError, "identity of amax on torch.bool"),
    (lambda: masked.amin(X * 1j, mask=X > 0), TypeError, "complex numbers have no order"),
    (lambda: masked.amax(X * 1j), NotImplementedError, "not implemented for 'ComplexFloat'"),
    (lambda: masked.median(X * 1j), NotImplementedError, "median is not implemented"),
    (
        lambda: masked.median(X.int(), 1, mask=X < 1),
        ValueError,
        "expects no fully masked out rows if dtype is not floating point",
    ),
    (lambda: masked.logsumexp(X > 0, mask=X > 0), NotImplementedError, "identity of logsumexp"),
]


@pytest.mark.parametrize("index", range(len(ERRORS)))
def test_bad_input_is_refused(index: int) -> None:
    function, kind, phrase = ERRORS[index]
    with pytest.raises(kind, match=phrase):
        function()


class _SaysSparse(torch.Tensor):
    """Says of itself that it is sparse."""

    layout = torch.sparse_csc  # type: ignore[assignment]


def test_sparse_layouts_are_refused_by_name() -> None:
    sparse = X.as_subclass(_SaysSparse)
    for name in ("sum", "prod", "amax", "amin", "mean"):
        phrase = f"masked {name} expects strided, sparse_coo or sparse_csr tensor .got torch.spar"
        with pytest.raises(ValueError, match=phrase):
            getattr(masked, name)(sparse, 0)
    for name in ("softmax", "cumsum", "argmax", "median", "logsumexp"):
        with pytest.raises(ValueError, match=f"{name} expects strided tensor .got torch.sparse_cs"):
            getattr(masked, name)(sparse, 0)
    for call_it in (
        lambda: masked.var(sparse),
        lambda: masked.normalize(sparse, 2, 0),
        lambda: masked.logaddexp(X, sparse),
    ):
        with pytest.raises(ValueError, match=r"expects strided tensor .got torch\.sparse_csc"):
            call_it()


def test_the_package_is_loaded_when_it_is_used() -> None:
    program = (
        "import sys, pullback; first = 'pullback.masked._mask' in sys.modules\n"
        "pullback.masked.sum; print(first, 'pullback.masked._mask' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True"], done.stderr


@pytest.mark.filterwarnings("ignore:.*prototype stage:UserWarning")
@pytest.mark.parametrize("name", ["_extremum", "_reduction", "_normalization", "_tensor"])
def test_examples_are_true(name: str) -> None:
    module = importlib.import_module(f"pullback.masked.{name}")
    result = doctest.testmod(module)
    assert result.attempted > 10
    assert result.failed == 0


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "logsumexp"])
def test_what_is_no_dtype_is_refused(name: str) -> None:
    operands: list[Any] = [0] if name == "logsumexp" else []
    function = getattr(torch.masked, name)
    with pytest.raises(TypeError, match="must be torch\\.dtype, not int"):
        function(torch.tensor([2.0, 3.0]), *operands, dtype=1)
