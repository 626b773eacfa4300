"""Values, gradients, dtypes and classes of error of ops at their limits.

What the registry's samples cannot show: given dtypes of complex numbers, infinite inputs, empty
tensors, half precision. Expected values come from mathematics where it decides, else from calls of
PyTorch 2.15.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch
from pullback.nn import functional as F

inf, nan = math.inf, math.nan


def gradient(f: Callable[[Any], Any], x: Any) -> Any:
    x = x.detach().requires_grad_()
    return torch.autograd.grad(f(x).sum(), x)[0]


def second(f: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
    """The derivatives of the gradient's sum by the input and by the cotangent."""
    x = x.detach().requires_grad_()
    y = f(x)
    cotangent = torch.ones_like(y, requires_grad=True)
    (first,) = torch.autograd.grad(y, x, cotangent, create_graph=True)
    by = torch.autograd.grad(first.sum(), (x, cotangent), allow_unused=True)
    return by[0], by[1]


def same(got: Any, expected: list[Any]) -> bool:
    return bool(torch.equal(got.isnan(), torch.tensor(expected).isnan())) and bool(
        (got.nan_to_num(7.5) == torch.tensor(expected, dtype=got.dtype).nan_to_num(7.5)).all()
    )


# Limits.


@pytest.mark.parametrize(
    ("dtype", "limits", "expected"),
    [
        (torch.uint8, {"min": -1, "max": 2}, [1, 2]),
        (torch.uint8, {"min": -1}, [1, 100]),
        (torch.uint8, {"max": 300}, [1, 100]),
        (torch.int8, {"max": 300}, [1, 100]),
        (torch.int8, {"min": -300, "max": 50}, [1, 50]),
        (torch.int32, {"min": -(2**40)}, [1, 100]),
    ],
)
def test_limits_beyond_an_integer_dtype_limit_nothing(
    dtype: Any, limits: dict[str, int], expected: list[int]
) -> None:
    x = torch.tensor([1, 100], dtype=dtype)
    assert torch.clamp(x, **limits).tolist() == expected
    assert x.clone().clamp_(**limits).tolist() == expected


def test_limits_that_leave_no_number_of_the_dtype_are_refused() -> None:
    x = torch.tensor([1, 100], dtype=torch.int8)
    for call in (
        lambda: torch.clamp(x, min=128),
        lambda: torch.clamp_max(x, -300),
        lambda: x.clamp_(min=300),
        lambda: torch.clamp(torch.empty(0, dtype=torch.uint8), max=-1),
    ):
        with pytest.raises(RuntimeError, match="outside the representable range of"):
            call()


# Gradients.


def test_the_gradient_of_a_product_in_another_dtype_is_that_of_the_converted_factors() -> None:
    z = torch.tensor([1 + 2j, 2 - 1j], dtype=torch.complex128)
    by_all = gradient(lambda z: torch.prod(z, dtype=torch.float64), z)
    assert by_all.tolist() == [2 + 0j, 1 + 0j]
    by_line = gradient(lambda z: torch.prod(z, 0, dtype=torch.float64), z)
    assert by_line.tolist() == [2 + 0j, 1 + 0j]
    # 1 + x for the first, x for the second.
    running = gradient(lambda z: torch.cumprod(z, 0, dtype=torch.float64), z)
    assert running.tolist() == [3 + 0j, 1 + 0j]


def test_the_power_of_a_whole_number_has_the_logarithm_of_double_precision() -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64)
    expected = [3 * math.log(3), 9 * math.log(3)]
    for f in (lambda x: torch.pow(3, x), lambda x: 3**x):
        assert gradient(f, x).tolist() == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("values", [[inf], [nan], [[inf], [2.0]]])
def test_a_running_product_of_one_factor_is_the_factor(values: list[Any]) -> None:
    x = torch.tensor(values)
    assert (gradient(lambda x: torch.cumprod(x, -1), x) == 1).all()


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_the_mean_of_nothing_has_second_derivatives() -> None:
    x = torch.empty(0, dtype=torch.float64)
    means = [
        torch.mean,
        lambda x: x.view(2, 0).mean(1),
        lambda x: torch.var_mean(x)[1],
        lambda x: torch.std_mean(x)[1],
    ]
    for f in means:
        _, by_cotangent = second(f, x)
        assert (by_cotangent == 0).all()


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_variance_without_freedom_has_no_second_derivative(shape: tuple[int, ...]) -> None:
    x = torch.full(shape, 2.0, dtype=torch.float64)
    for f in (torch.var, lambda x: torch.var_mean(x)[0]):
        assert gradient(f, x).isnan().all()
        assert second(f, x)[0] is None
    x = torch.tensor([1.0, 2.0], dtype=torch.float64)
    assert gradient(lambda x: torch.var(x, correction=2), x).tolist() == [inf, inf]


def test_group_norm_of_no_image_has_a_gradient() -> None:
    x = torch.ones(0, 4, 3)
    by = gradient(lambda x: torch.native_group_norm(x, None, None, 0, 4, 3, 2, 1e-5)[0], x)
    assert by.shape == (0, 4, 3)


def test_nextafter_passes_the_gradient_to_where_it_starts() -> None:
    a, b = torch.tensor([1.0], requires_grad=True), torch.tensor([2.0], requires_grad=True)
    assert [g.item() for g in torch.autograd.grad(torch.nextafter(a, b).sum(), (a, b))] == [1, 0]


# Values.


@pytest.mark.parametrize(
    ("z", "expected"),
    [
        (complex(inf, 1), complex(math.pi / 2, inf)),
        (complex(-inf, -1), complex(-math.pi / 2, -inf)),
        (complex(1, inf), complex(0, inf)),
        (complex(inf, -inf), complex(math.pi / 4, -inf)),
    ],
)
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_the_arc_sine_of_infinite_numbers(z: complex, expected: complex, dtype: Any) -> None:
    got = torch.asin(torch.tensor([z], dtype=dtype)).item()
    assert (got.real, got.imag) == (pytest.approx(expected.real), expected.imag)


def test_asinh_at_infinity() -> None:
    got = torch.asinh(torch.tensor([complex(1, inf), complex(inf, 1)], dtype=torch.complex128))
    assert got.tolist() == [complex(inf, math.pi / 2), complex(inf, 0)]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_nextafter_counts_in_half_precision(dtype: Any) -> None:
    tiny, most = torch.finfo(dtype).smallest_normal, torch.finfo(dtype).max
    a = torch.tensor([0.0, -0.0, 1.0, 1.0, -1.0, inf, most, nan, 1.0, 2.0], dtype=dtype)
    b = torch.tensor([1.0, -1.0, 2.0, 0.0, 0.0, 0.0, inf, 1.0, nan, 2.0], dtype=dtype)
    got = torch.nextafter(a, b)
    assert got.dtype == dtype
    eps = torch.finfo(dtype).eps
    expected = [tiny * eps, -tiny * eps, 1 + eps, 1 - eps / 2, -1 + eps / 2, most, inf, nan, nan, 2]
    assert same(got, expected)


def test_ldexp_keeps_the_dtype_of_its_mantissas_and_rounds_once() -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        by = torch.tensor([1, 2], dtype=torch.int32)
        got = torch.ldexp(torch.tensor([1.0, 2.0], dtype=dtype), by)
        assert (got.tolist(), got.dtype) == ([2.0, 8.0], dtype)
    half = torch.ldexp(torch.tensor([2.0**-24], dtype=torch.float16), torch.tensor([30]))
    assert half.item() == 64
    for dtype, least in ((torch.float32, -149), (torch.float64, -1074)):
        x = torch.tensor([2.0**least, 2.0**100, 1.0], dtype=dtype)
        got = torch.ldexp(x, torch.tensor([-least + 3, least - 100, 5000]))
        assert got.tolist() == [8.0, 2.0**least, inf]
    assert torch.ldexp(torch.tensor([1]), torch.tensor([-1])).item() == 0.5
    x = torch.tensor([1.0, 2.0])
    assert x.ldexp_(torch.tensor([1, 2])) is x
    assert x.tolist() == [2, 8]


def test_the_median_of_no_whole_numbers_is_the_smallest_there_is() -> None:
    for f in (torch.median, torch.nanmedian):
        assert f(torch.empty(0, dtype=torch.int64)).item() == -(2**63)
        assert f(torch.empty(0, dtype=torch.int32)).item() == -(2**31)
        assert f(torch.empty(0, dtype=torch.uint8)).item() == 0


def test_take_along_dim_goes_round() -> None:
    x = torch.tensor([5.0, 6.0, 7.0])
    assert torch.take_along_dim(x, torch.tensor([7, -1, -6, 100]), 0).tolist() == [6, 7, 5, 6]
    with pytest.raises(RuntimeError, match="out of bounds"):
        torch.take_along_dim(x, torch.tensor([7]))


def test_argsort_writes_where_it_is_told() -> None:
    out = torch.empty(0, dtype=torch.int64)
    assert torch.argsort(torch.tensor([3.0, 2.0]), stable=True, out=out) is out
    assert out.tolist() == [1, 0]


def test_transposing_a_number_gives_the_number() -> None:
    x = torch.tensor(2.0)
    assert x.mT is x
    assert x.mH is x
    assert torch.tensor(1 + 2j).mH.item() == 1 - 2j
    with pytest.raises(RuntimeError, match="only supported on matrices"):
        _ = torch.ones(2).mT


# Refusals.

number, empty = torch.tensor([1.0, 2.0]), torch.empty(0)
int32 = torch.tensor([0], dtype=torch.int32)
yes = torch.tensor([True])
far = torch.tensor([5])


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        (RuntimeError, lambda: torch.amax(empty)),
        (RuntimeError, lambda: torch.amin(torch.empty(0, 3))),
        (IndexError, lambda: torch.amin(torch.empty(3, 0), (0, 1))),
        (RuntimeError, lambda: torch.aminmax(empty)),
        (IndexError, lambda: torch.aminmax(empty, dim=0)),
        (IndexError, lambda: torch.index_add(number, 0, far, torch.ones(1))),
        (IndexError, lambda: torch.index_reduce(number, 0, far, torch.ones(1), "prod")),
        (IndexError, lambda: torch.put(number, torch.tensor([0, 1]), torch.ones(1))),
        (TypeError, lambda: torch.argsort(torch.tensor([1j, 2]))),
        (TypeError, lambda: torch.argsort(torch.tensor([1j, 2]), stable=True)),
        (NotImplementedError, lambda: torch.signbit(torch.tensor([1j]))),
        (NotImplementedError, lambda: torch.bincount(yes)),
        (NotImplementedError, lambda: torch.bincount(number)),
        (NotImplementedError, lambda: torch.bincount(torch.tensor([1j]))),
        (IndexError, lambda: torch.ops.aten.slice(torch.tensor(1.0), 0, 0, 1)),
        (RuntimeError, lambda: torch.index_copy(number, 0, int32, torch.ones(1))),
        (IndexError, lambda: torch.index_fill(number, 0, int32, 5.0)),
        (NotImplementedError, lambda: torch.scatter_reduce(yes, 0, far - 5, yes, "mean")),
        (NotImplementedError, lambda: torch.index_reduce(yes, 0, far - 5, yes, "amax")),
        (NotImplementedError, lambda: torch.round(torch.tensor([1]), decimals=1)),
        (RuntimeError, lambda: torch.norm(number, 2, dtype=torch.complex128)),
        (RuntimeError, lambda: torch.norm(number.double(), "nuc", dtype=torch.float32)),
        (RuntimeError, lambda: torch.linalg.vector_norm(number.double(), 2, dtype=torch.float32)),
        (NotImplementedError, lambda: torch.linalg.vector_norm(far, 2, dtype=torch.float32)),
        (NotImplementedError, lambda: torch.cumsum(yes, 0, dtype=torch.bool)),
        (NotImplementedError, lambda: torch.cumprod(yes, 0, dtype=torch.bool)),
    ],
)
def test_refusals_have_the_class_that_programs_catch(
    kind: type[Exception], call: Callable[[], Any]
) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call()
    assert type(caught.value) is kind


class Unwilling(torch.Tensor):
    """Answers every call with a TypeError."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise TypeError("unwilling")


class Willing:
    """Joins a sum from the right."""

    def __radd__(self, other: Any) -> str:
        return "joined"


def test_operators_of_one_operand_pass_on_a_type_error() -> None:
    x = torch.ones(2).as_subclass(Unwilling)
    for f in (lambda x: -x, lambda x: +x, abs, lambda x: ~x):
        with pytest.raises(TypeError, match="unwilling"):
            f(x)


def test_adding_in_place_of_what_is_unwilling_asks_the_other_operand() -> None:
    x: Any = torch.ones(2).as_subclass(Unwilling)
    with pytest.raises(TypeError, match="unsupported operand"):
        x += 1
    x += Willing()
    assert x == "joined"


# Sampling of images.


def test_grid_sample_looks_outside_as_it_is_told() -> None:
    image = torch.arange(12.0).view(1, 1, 3, 4)
    places = torch.tensor([[[[-1.0, -1], [0.3, 0.2]], [[1.5, -2], [nan, 0]]]])
    expected = {
        ("bilinear", "zeros", True): [0, 6.75, 0, nan],
        ("bilinear", "zeros", False): [0, 7.3, 0, nan],
        ("bilinear", "border", True): [0, 6.75, 3, 4],
        ("bilinear", "reflection", False): [0, 7.3, 6.5, 4],
        ("nearest", "zeros", True): [0, 6, 0, 0],
        ("nearest", "reflection", True): [0, 6, 6, 4],
        ("bicubic", "zeros", False): [-0.234375, 8.240264892578125, 0, nan],
        ("bicubic", "border", True): [0, 7.016626834869385, 3.03515625, nan],
        ("bicubic", "reflection", False): [-0.9375, 7.699742794036865, 6.59375, nan],
    }
    for (mode, outside, align), values in expected.items():
        got = F.grid_sample(image, places, mode, outside, align).flatten().tolist()
        assert got == pytest.approx(values, abs=1e-6, nan_ok=True), (mode, outside, align)


def test_grid_sample_does_not_read_what_lies_outside() -> None:
    image = torch.tensor([[[[1.0, inf], [2.0, nan]]]])
    places = torch.tensor([[[[-3.0, 0.0], [-1.0, 0.0], [1e30, inf]]]])
    for mode in ("bilinear", "nearest"):
        got = F.grid_sample(image, places[:, :, :1], mode, align_corners=False)
        assert got.item() == 0
    assert F.grid_sample(image, places, "nearest", align_corners=False)[..., 2].item() == 0
    by = gradient(
        lambda p: F.grid_sample(image[..., :1], p, "nearest", align_corners=False), places
    )
    assert (by == 0).all()


def test_grid_sample_has_no_gradient_by_places_that_were_moved_to_the_border() -> None:
    image = torch.arange(12.0).view(1, 1, 3, 4)
    places = torch.tensor([[[[-1.5, 0.1], [0.1, 1.5], [1.0, -1.0], [0.1, 0.2]]]])
    by = gradient(
        lambda p: F.grid_sample(image, p, padding_mode="border", align_corners=True), places
    )
    # A step to the right is 1 and one down 4, of two and three steps from -1 to 1.
    assert by[0, 0].tolist() == [[0, 4], [1.5, 0], [0, 0], [1.5, 4]]


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("outside", ["zeros", "border", "reflection"])
def test_gradients_of_grid_sample_are_the_same_with_and_without_history(
    mode: str, outside: str
) -> None:
    torch.manual_seed(3)
    image = torch.randn(2, 3, 4, 5, dtype=torch.float64, requires_grad=True)
    places = (torch.rand(2, 3, 2, 2, dtype=torch.float64) * 3 - 1.5).requires_grad_()
    for align in (False, True):
        out = F.grid_sample(image, places, mode, outside, align)
        weights = torch.randn_like(out)
        plain = torch.autograd.grad(out, (image, places), weights, retain_graph=True)
        again = torch.autograd.grad(out, (image, places), weights, create_graph=True)
        for a, b in zip(plain, again, strict=True):
            assert torch.allclose(a, b, rtol=1e-12, atol=1e-12)


def test_affine_grids_of_one_element_are_centred() -> None:
    theta = torch.tensor([[[1.0, 0.0, 0.5], [0.0, 2.0, 0.0]]])
    with pytest.warns(UserWarning, match="See the documentation of affine_grid for details"):
        got = F.affine_grid(theta, (1, 1, 1, 3), align_corners=True)
    assert got.flatten().tolist() == [-0.5, 0, 0.5, 0, 1.5, 0]
    got = F.affine_grid(theta, (1, 1, 2, 3), align_corners=False)
    assert got[0, 0, :, 0].tolist() == pytest.approx([-1 / 6, 0.5, 7 / 6])
    assert got[0, :, 0, 1].tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("kind", "theta", "size"),
    [
        (NotImplementedError, torch.ones(1, 2, 3), (1, 1, 2)),
        (ValueError, torch.ones(2, 3), (1, 1, 2, 2)),
        (ValueError, torch.ones(1, 2, 3), (1, 1, 0, 2)),
        (ValueError, torch.ones(1, 2, 3).long(), (1, 1, 2, 2)),
    ],
)
def test_affine_grids_of_other_shapes_are_refused(
    kind: type[Exception], theta: Any, size: tuple[int, ...]
) -> None:
    with pytest.raises(kind):
        F.affine_grid(theta, size, align_corners=False)


def test_resizing_without_aliasing_rounds_bytes_as_its_weights_do() -> None:
    image = torch.arange(12.0).view(1, 1, 3, 4)
    resize = torch._C._nn._upsample_bilinear2d_aa
    got = resize(image, (2, 2), False).flatten().tolist()
    assert got == pytest.approx([31 / 14, 53 / 14, 101 / 14, 123 / 14], rel=1e-6)
    assert resize((image * 20).byte(), (2, 2), False).tolist() == [[[[44, 76], [144, 176]]]]
    up = resize((image * 20).byte(), (5, 6), False)
    assert up[0, 0, 1].tolist() == [32, 42, 55, 69, 82, 92]


# Segments, masks, chunks.


@pytest.mark.parametrize(
    ("reduce", "values", "with_ten"),
    [
        ("sum", [3, 0, 7], [13, 10, 17]),
        ("mean", [1.5, nan, 3.5], [6.5, 10, 8.5]),
        ("max", [2, -inf, 4], [10, 10, 10]),
        ("min", [1, inf, 3], [1, 10, 3]),
        ("prod", [2, 1, 12], [20, 10, 120]),
    ],
)
def test_empty_segments_give_what_takes_part_in_nothing(
    reduce: str, values: list[float], with_ten: list[float]
) -> None:
    data, lengths = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([2, 0, 2])
    assert same(torch.segment_reduce(data, reduce, lengths=lengths), values)
    assert same(torch.segment_reduce(data, reduce, offsets=torch.tensor([0, 2, 2, 4])), values)
    assert same(torch.segment_reduce(data, reduce, lengths=lengths, initial=10), with_ten)
    half = torch.segment_reduce(data.half(), reduce, lengths=lengths)
    assert half.dtype == torch.float16
    assert same(half, values)


@pytest.mark.parametrize(
    ("reduce", "initial", "expected"),
    [
        ("max", None, [0, 0.5, 0.5, 0, 1]),
        ("max", 3, [0, 0.5, 0.5, 0, 0]),
        ("prod", None, [9, 3, 3, 2, 0]),
        ("prod", 3, [27, 9, 9, 6, 0]),
        ("mean", 1, [1 / 3, 1 / 3, 1 / 3, 0.5, 0.5]),
    ],
)
def test_gradients_of_segments(reduce: str, initial: Any, expected: list[float]) -> None:
    data, lengths = torch.tensor([1.0, 3.0, 3.0, 0.0, 2.0]), torch.tensor([3, 0, 2])
    got = gradient(
        lambda x: torch.segment_reduce(x, reduce, lengths=lengths, initial=initial), data
    )
    assert got.tolist() == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore:.*batching rule")
def test_segments_in_batches() -> None:
    data, lengths = torch.arange(8.0).view(2, 4), torch.tensor([3, 1])
    got = torch.vmap(lambda x: torch.segment_reduce(x, "sum", lengths=lengths))(data)
    assert got.tolist() == [[3, 3], [15, 7]]
    lengths = torch.tensor([[3, 1], [2, 2]])
    each = torch.vmap(lambda n: torch.segment_reduce(data[0], "sum", lengths=n))
    assert each(lengths).tolist() == [[3, 3], [1, 5]]
    with pytest.raises(RuntimeError, match="negative value"):
        each(torch.tensor([[3, 1], [5, -1]]))


def test_masked_places_need_not_exist() -> None:
    x, mask = torch.arange(6.0).view(2, 3), torch.tensor([True, False, True])
    places = [torch.tensor([0, 5, 1]), torch.tensor([1, 7, 2])]
    assert torch._unsafe_masked_index(x, mask, places, -9.0).tolist() == [1, -9, 5]
    add = torch._unsafe_masked_index_put_accumulate
    added = add(x, mask, places, torch.tensor([10.0, 20.0, 30.0]))
    assert added.tolist() == [[0, 11, 2], [3, 4, 35]]


def test_chunks_are_filled_up_and_laid_side_by_side() -> None:
    a, b = torch.arange(10.0).view(5, 2), torch.arange(6.0).view(2, 3)
    expected = [[0, 1, 2, 3, 4, 5, 0, 1, 2], [6, 7, 8, 9, 0, 0, 3, 4, 5]]
    assert torch._chunk_cat([a, b], 0, 2).tolist() == expected
    assert torch._chunk_cat([torch.arange(3.0)], 0, 4).tolist() == [[0], [1], [2], [0]]
    for tensors, count in (([], 2), ([a], 0), ([a, b.long()], 2), ([torch.ones(0, 2)], 2)):
        with pytest.raises(RuntimeError, match="_chunk_cat expects"):
            torch._chunk_cat(tensors, 0, count)


# Norms, attention, the rest.


def test_batch_norm_with_running_statistics_moves_them() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    mean, var = torch.zeros(2), torch.ones(2)
    out, saved, spread, reserve = torch.ops.aten._batch_norm_with_update(
        x, None, None, mean, var, 0.5, 0.0
    )
    assert out.tolist() == [[-1, -1], [1, 1]]
    assert (saved.tolist(), spread.tolist()) == ([2, 4], [1, 0.5])
    assert (mean.tolist(), var.tolist()) == ([1, 2], [1.5, 4.5])
    assert (reserve.numel(), reserve.dtype) == (0, torch.uint8)
    again = torch._native_batch_norm_legit(x, None, None, mean, var, False, 0.5, 0.0)
    assert [tuple(t.shape) for t in again] == [(2, 2), (0,), (0,)]
    plain = torch._native_batch_norm_legit(x, None, None, True, 0.5, 0.0)
    assert plain[0].tolist() == out.tolist()
    with pytest.raises(ValueError, match="evaluation mode"):
        torch._native_batch_norm_legit(x, None, None, False, 0.5, 0.0)


def test_batch_norm_has_a_gradient_under_its_other_names() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 7.0], [0.0, 1.0]], dtype=torch.float64)
    weight = torch.tensor([2.0, 3.0], dtype=torch.float64)

    def f(x: Any, w: Any) -> Any:
        stats = torch.zeros(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64)
        return torch.ops.aten._batch_norm_with_update(x, w, None, *stats, 0.1, 1e-3)[0]

    inputs = x.requires_grad_(), weight.requires_grad_()
    assert torch.autograd.gradcheck(f, inputs)
    assert torch.autograd.gradgradcheck(f, inputs)


def test_rows_that_attend_to_nothing_give_zeros_and_no_nan() -> None:
    safe = torch.ops.aten._safe_softmax.default
    x = torch.tensor([[0.0, 0.0], [-inf, -inf]])
    assert safe(x, -1).tolist() == [[0.5, 0.5], [0, 0]]
    assert (gradient(lambda x: safe(x, -1) * torch.tensor([1.0, 2.0]), x)[1] == 0).all()
    assert safe(torch.tensor([nan, -inf]), 0).isnan().all()


def test_attention_on_the_cpu_gives_the_logarithms_of_its_sums() -> None:
    attend = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, 2, n, 4, dtype=torch.float64) for n in (3, 5, 5))
    for causal in (False, True):
        out, sums = attend(query, key, value, 0.0, causal)
        expected = F.scaled_dot_product_attention(query, key, value, is_causal=causal)
        assert torch.allclose(out, expected)
        assert sums.shape == (1, 2, 3)
        assert not sums.requires_grad
    scores = query @ key.transpose(-1, -2) / 2
    assert torch.allclose(attend(query, key, value)[1], scores.logsumexp(-1))
    out, sums = attend(query, key, value, attn_mask=torch.full((3, 5), -inf, dtype=torch.float64))
    assert (out == 0).all()
    assert (sums == 0).all()
    shared = attend(query, key[:, :1], value[:, :1])[0]
    assert torch.allclose(
        shared, attend(query, *(t[:, :1].repeat(1, 2, 1, 1) for t in (key, value)))[0]
    )
    inputs = [t.clone().requires_grad_() for t in (query, key, value)]
    assert torch.autograd.gradcheck(lambda *a: attend(*a)[0], inputs)
    assert torch.autograd.gradgradcheck(lambda *a: attend(*a)[0], inputs)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_of_many_scores_is_that_of_its_parts_together(causal: bool, masked: bool) -> None:
    attend = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    torch.manual_seed(0)
    shapes = [(2, 2, 800, 3), (2, 1, 801, 3), (2, 1, 801, 3)]
    inputs = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes]
    mask = torch.randn(2, 1, 800, 801, dtype=torch.float64) if masked else None

    def formula(query, key, value):
        scores = query @ key.transpose(-1, -2) / 3**0.5
        if mask is not None:
            scores = scores + mask
        if causal:
            scores = scores.masked_fill(torch.ones(800, 801).triu(1).bool(), -inf)
        return scores.softmax(-1) @ value, scores.logsumexp(-1)

    out, sums = attend(*inputs, is_causal=causal, attn_mask=mask)
    expected, expected_sums = formula(*inputs)
    assert torch.allclose(out, expected)
    assert torch.allclose(sums, expected_sums)
    grad = torch.randn_like(out)
    once = [torch.autograd.grad(t, inputs, grad, create_graph=True) for t in (out, expected)]
    twice = [torch.autograd.grad(sum(t.square().sum() for t in ts), inputs) for ts in once]
    for one, other in [*zip(*once, strict=True), *zip(*twice, strict=True)]:
        assert torch.allclose(one, other)
    needed = inputs[0].detach().requires_grad_()
    out = attend(needed, *(t.detach() for t in inputs[1:]), is_causal=causal, attn_mask=mask)[0]
    assert torch.allclose(
        torch.autograd.grad(out, needed, grad)[0],
        once[1][0],
    )


def test_pooling_puts_gradients_back_by_its_own_name() -> None:
    image = torch.tensor([[[[1.0, 2.0], [4.0, 3.0]]]])
    _, places = torch._C._nn.max_pool2d_with_indices(image, [2])
    back = torch.ops.aten.max_pool2d_with_indices_backward
    got = back(torch.ones(1, 1, 1, 1), image, [2], [], [0], [1], False, places)
    assert got.tolist() == [[[[0, 0], [1, 0]]]]
    with pytest.raises(RuntimeError, match="expected dtype"):
        back(torch.ones(1, 1, 1, 1).double(), image, [2], [], [0], [1], False, places)


def test_division_by_its_old_name() -> None:
    x = torch.tensor([1.0, 2.0])
    assert x.__rdiv__(3).tolist() == [3, 1.5]
    assert torch.tensor([1, 2]).__rdiv__(3).tolist() == [3, 1.5]
    assert gradient(lambda x: x.__rdiv__(3), x).tolist() == [-3, -0.75]


def test_dropout_backward_writes_where_it_is_told() -> None:
    out = torch.empty(0)
    mask = torch.tensor([True, False])
    torch.ops.aten.native_dropout_backward.out(torch.ones(2), mask, 2.0, out=out)
    assert out.tolist() == [2, 0]


@pytest.mark.parametrize("shape", [(2, 1, 4, 5), (2, 3, 1, 1)])
def test_strides_of_images_that_both_orders_fit(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    last = torch.channels_last
    assert x.is_contiguous()
    assert x.is_contiguous(memory_format=last)
    assert x.contiguous(memory_format=last) is x
    # (A conversion goes by the order that the strides speak for: of these, rows first.)
    turned = x.to(memory_format=last)
    assert turned.data_ptr() != x.data_ptr()
    assert turned.stride() == (x[0].numel(), 1, shape[3] * shape[1], shape[1])
    assert turned.to(memory_format=last) is turned
    assert turned.contiguous() is turned
    assert turned.to(memory_format=torch.contiguous_format).stride() == x.stride()
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        x[0].contiguous(memory_format=last)


def test_what_is_contiguous_is_given_back_itself() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    assert x.contiguous() is x
    assert x.contiguous(memory_format=torch.contiguous_format) is x
    assert x.t().contiguous() is not x
    assert x.t().contiguous().stride() == (3, 1)
    assert x.resolve_conj() is x
    assert x.resolve_neg() is x
    turned = torch.randn(2, dtype=torch.complex64).conj()
    assert turned.contiguous().is_conj()
    assert not turned.resolve_conj().is_conj()
    with torch.profiler.profile() as profile:
        x.contiguous()
    assert any(event.name == "aten::contiguous" for event in profile.events())
