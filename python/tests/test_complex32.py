"""``complex32``: two halves, stored and moved as they are, computed with as ``complex64``.

Bits of halves that are given as numbers were taken from runs of PyTorch. NumPy has no such dtype:
elsewhere results are compared with those of ``complex64``, rounded.
"""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as torch

C32 = torch.complex32
NUMBERS = [1 + 2j, 3 - 4j, 0.1 - 0.3j]
OTHERS = [0.7 - 0.2j, 1.5 + 0.25j, -8 + 5j]
REAL = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)


def numbers() -> torch.Tensor:
    return torch.tensor(NUMBERS, dtype=C32)


def others() -> torch.Tensor:
    return torch.tensor(OTHERS, dtype=C32)


def bits(t: torch.Tensor) -> list[int]:
    """The halves as the integers of their bits."""
    t = t.resolve_conj()
    parts = torch.view_as_real(t) if t.is_complex() else t
    found: list[int] = parts.contiguous().view(torch.int16).flatten().tolist()
    return found


def rounded(values: Any) -> list[int]:
    """Complex numbers of NumPy as the bits of their parts in halves."""
    values = np.asarray(values, dtype=np.complex64)
    with np.errstate(over="ignore"):
        return values.view(np.float32).astype(np.float16).view(np.int16).flatten().tolist()


# --- the dtype ------------------------------------------------------------------------------------


def test_the_dtype_has_two_names_and_the_properties_of_two_halves() -> None:
    assert torch.chalf is C32
    assert repr(C32) == str(C32) == "torch.complex32"
    assert C32.is_complex
    assert C32.is_signed
    assert not C32.is_floating_point
    assert C32.itemsize == 4
    assert C32.to_real() is torch.float16
    assert C32.to_complex() is C32
    assert torch.float16.to_complex() is C32
    assert copy.deepcopy(C32) is pickle.loads(pickle.dumps(C32)) is C32
    described = torch.finfo(C32)
    assert (described.dtype, described.max) == ("float16", 65504.0)


def test_dtypes_without_fraction_have_no_complex_dtype() -> None:
    with pytest.raises(RuntimeError, match="Unknown Complex ScalarType for Long"):
        torch.int64.to_complex()


@pytest.mark.parametrize(
    ("other", "both"),
    [
        *((dtype, C32) for dtype in (*REAL, torch.float16, C32)),
        *((dtype, torch.complex64) for dtype in (torch.float32, torch.complex64)),
        *((dtype, torch.complex128) for dtype in (torch.float64, torch.complex128)),
    ],
)
def test_promotion_goes_to_the_wider_parts(other: torch.dtype, both: torch.dtype) -> None:
    assert torch.promote_types(C32, other) is torch.promote_types(other, C32) is both
    mine, mine_0d = torch.zeros(2, dtype=C32), torch.zeros((), dtype=C32)
    its, its_0d = torch.zeros(2, dtype=other), torch.zeros((), dtype=other)
    assert torch.result_type(mine, its) is both
    assert torch.result_type(mine, its_0d) is C32
    assert torch.result_type(mine_0d, its) is torch.result_type(mine_0d, its_0d) is both
    assert torch.can_cast(other, C32)
    assert torch.can_cast(C32, other) == other.is_complex


def test_numbers_leave_the_dtype_as_it_is() -> None:
    for number in (True, 1, 1.5, 1j):
        assert torch.result_type(numbers(), number) is C32
        assert (numbers() + number).dtype is C32
    assert torch.result_type(torch.zeros(2, dtype=torch.float16), 1j) is C32
    assert (torch.ones(2, dtype=torch.float16) * 1j).tolist() == [1j, 1j]


def test_complex_numbers_are_halves_where_halves_are_the_default() -> None:
    torch.set_default_dtype(torch.float16)
    try:
        x = torch.tensor([1j])
        assert x.dtype is C32
        assert repr(x) == "tensor([0.+1.j], dtype=torch.complex32)"
        assert torch.full((1,), 1j).dtype is torch.complex64
        assert torch.result_type(torch.zeros(2, dtype=torch.int64), 1j) is C32
    finally:
        torch.set_default_dtype(torch.float32)
    with pytest.raises(TypeError, match="only floating-point types"):
        torch.set_default_dtype(C32)


# --- making and converting ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*REAL, *UNSIGNED, torch.float16, torch.bfloat16])
def test_casts_from_and_to_real_dtypes_keep_the_real_part(dtype: torch.dtype) -> None:
    source = torch.tensor([0, 1, 5]).to(dtype)
    assert source.to(C32).tolist() == [complex(value) for value in source.tolist()]
    back = torch.tensor([0, 1 + 2j, 5.0], dtype=C32).to(dtype)
    assert back.tolist() == source.tolist()
    assert numbers().to(torch.bool).all()


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_casts_of_complex_numbers_round_both_parts(dtype: torch.dtype) -> None:
    values = [1e5 - 1e-9j, 1 / 3 - 2 / 3j, 65519 + 65520j, 3e-8 + 5.96e-8j]
    assert bits(torch.tensor(values, dtype=dtype).chalf()) == rounded(values)
    assert bits(torch.tensor(values, dtype=C32)) == rounded(values)
    assert numbers().to(dtype).tolist() == numbers().tolist()


def test_chalf_keeps_the_layout_unless_told_otherwise() -> None:
    x = torch.ones(2, 3, dtype=torch.float64).t()
    assert x.chalf().dtype is C32
    assert x.chalf().stride() == (1, 3)
    assert x.chalf(memory_format=torch.contiguous_format).stride() == (2, 1)
    mine = numbers()
    assert mine.chalf() is mine
    assert torch.ones(2).to("cpu", torch.chalf).dtype is C32
    assert torch.ones(2).type(C32).type() == "torch.ComplexHalfTensor"
    with pytest.raises(TypeError, match="chalf"):
        x.chalf(foo=1)
    with pytest.raises(RuntimeError, match="required rank 4 tensor"):
        x.chalf(memory_format=torch.channels_last)


MAKERS: list[tuple[Callable[[], torch.Tensor], list[complex]]] = [
    (lambda: torch.zeros(2, dtype=C32), [0j, 0j]),
    (lambda: torch.ones(2, dtype=C32), [1 + 0j] * 2),
    (lambda: torch.full((2,), 1 + 2j, dtype=C32), [1 + 2j] * 2),
    (lambda: torch.full((1,), 1e9, dtype=C32), [complex(float("inf"), 0)]),
    (lambda: torch.scalar_tensor(1j, dtype=C32).reshape(1), [1j]),
    (lambda: torch.as_tensor([1, 2j], dtype=C32), [1, 2j]),
    (lambda: torch.asarray([1, 2j], dtype=C32), [1, 2j]),
    (lambda: torch.tensor(np.array([1, 2j]), dtype=C32), [1, 2j]),
    (lambda: torch.zeros_like(numbers()), [0j] * 3),
    (lambda: torch.full_like(torch.ones(2), 2.5, dtype=C32), [2.5, 2.5]),
    (lambda: numbers().new_tensor([1, 2]), [1, 2]),
    (lambda: numbers().new_full((1,), 3j), [3j]),
    (lambda: numbers().new_ones(1), [1]),
    (lambda: numbers().fill_(1 + 1j), [1 + 1j] * 3),
    (lambda: torch.empty(3, dtype=C32).copy_(torch.arange(3)), [0, 1, 2]),
    (lambda: torch.frombuffer(bytearray(b"\0\x3c\0\x40"), dtype=C32), [1 + 2j]),
    (lambda: torch.complex(torch.ones(1).half(), 2 * torch.ones(1).half()), [1 + 2j]),
    (lambda: torch.polar(torch.ones(1).half() * 2, torch.zeros(1).half()), [2]),
    (lambda: torch.from_dlpack(torch.ones(1, dtype=C32)), [1]),
]


@pytest.mark.parametrize(("make", "values"), MAKERS)
def test_tensors_are_made_as_of_other_dtypes(
    make: Callable[[], torch.Tensor], values: list[complex]
) -> None:
    assert make().dtype is C32
    assert make().tolist() == values


def test_what_has_no_kernel_is_refused_by_the_name_of_the_dtype() -> None:
    x, phrase = numbers(), "not implemented for 'ComplexHalf'"
    for call in (
        lambda: torch.arange(3, dtype=C32),
        lambda: torch.linspace(0, 1, 3, dtype=C32),
        lambda: torch.logspace(0, 1, 3, dtype=C32),
        lambda: torch.range(0, 3, dtype=C32),
        lambda: torch.randperm(3, dtype=C32),
        lambda: torch.dot(x, x),
        lambda: x.reshape(1, 3) @ x.reshape(3, 1),
        lambda: torch.bmm(x.reshape(1, 1, 3), x.reshape(1, 3, 1)),
        lambda: torch.cross(x, x, dim=0),
        lambda: x.lt(x),
        lambda: x.clone().random_(),
        lambda: x.unique(),
    ):
        with pytest.raises(NotImplementedError, match=phrase):
            call()
    with pytest.raises(NotImplementedError, match="Low precision dtypes not supported"):
        torch.linalg.inv(x.new_ones(2, 2))
    with pytest.raises(TypeError, match="Got unsupported ScalarType ComplexHalf"):
        x.numpy()
    with pytest.raises(NotImplementedError, match="Half, Float or Double"):
        torch.complex(torch.ones(1).bfloat16(), torch.ones(1).bfloat16())
    with pytest.raises(RuntimeError, match="Expected object of scalar type Half"):
        torch.complex(torch.ones(1).half(), torch.ones(1))
    assert bits(x) == bits(numbers())


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (lambda: torch.randn(3, dtype=C32), [-20827, 14450, 14683, -17842, 15560, -18160]),
        (lambda: torch.rand(3, dtype=C32), [14408, 12893, 14662, 14657, 13171, 14029]),
        (
            lambda: torch.zeros(3, dtype=C32).normal_(0.5, 2),
            [13486, 15986, 16219, -17330, 16840, -17888],
        ),
        (
            lambda: torch.randn(20, dtype=C32)[:4],
            [-18268, 13434, 14614, -17445, -20593, 12916, -18623, -18162],
        ),
    ],
)
def test_random_numbers_are_those_of_pytorch(
    draw: Callable[[], torch.Tensor], expected: list[int]
) -> None:
    torch.manual_seed(7)
    assert bits(draw()) == expected


# --- memory ---------------------------------------------------------------------------------------


def test_parts_and_pairs_are_views_of_halves() -> None:
    x = numbers()
    assert x.real.dtype is x.imag.dtype is torch.float16
    x.real[0], x.imag[1] = 7, 8
    assert x[:2].tolist() == [7 + 2j, 3 + 8j]
    pairs = torch.view_as_real(x)
    assert (pairs.dtype, pairs.shape) == (torch.float16, (3, 2))
    pairs.zero_()
    assert x.tolist() == [0j] * 3
    back = torch.view_as_complex(pairs)
    assert (back.dtype, back.data_ptr()) == (C32, x.data_ptr())
    with pytest.raises(RuntimeError, match="storage_offset divisible by 2"):
        torch.view_as_complex(torch.ones(5).half()[1:].reshape(2, 2))
    with pytest.raises(NotImplementedError, match="only supported for half, float and double"):
        torch.view_as_complex(torch.ones(1, 2).bfloat16())


def test_bytes_are_read_as_other_dtypes() -> None:
    x = torch.tensor([1 + 2j, 3 - 4j], dtype=C32)
    assert x.view(torch.float16).tolist() == [1, 2, 3, -4]
    assert x.view(torch.int32).tolist() == [1073757184, -1006616064]
    assert x.view(torch.int32).view(C32).tolist() == x.tolist()
    assert (x.element_size(), x.nbytes, x.untyped_storage().nbytes()) == (4, 8, 8)


def test_conj_and_neg_bits_work() -> None:
    x = numbers()
    assert x.conj().is_conj()
    assert x.conj().tolist() == [z.conjugate() for z in x.tolist()]
    assert x.conj().imag.is_neg()
    assert bits(x.conj().resolve_conj()) == bits(torch.tensor(NUMBERS).conj().chalf())
    x.conj()[0] = 5 + 6j
    assert x[0].item() == 5 - 6j
    assert (x.conj() * x).imag.tolist() == [0, 0, 0]


def test_elements_are_moved_without_being_looked_at() -> None:
    x, odd = numbers(), [0x7E01, 0x0001, 0x7C01, -0x8000, 0x3C00, -0x3FF]
    marked = torch.tensor(odd, dtype=torch.int16).view(C32)
    assert bits(marked.clone()) == odd
    assert bits(marked[[0, 2]]) == odd[:2] + odd[4:]
    assert bits(marked.flip(0).flip(0)) == odd
    assert bits(torch.cat([marked, marked])) == 2 * odd
    assert bits(torch.stack([marked, marked], 1)[:, 0]) == odd
    assert bits(marked.reshape(3, 1).expand(3, 2).t().contiguous()) == 2 * odd
    assert bits(torch.where(torch.ones(3).bool(), marked, x)) == odd
    assert bits(marked.masked_select(torch.ones(3).bool())) == odd
    assert bits(marked.gather(0, torch.arange(3))) == odd
    assert x.masked_fill(torch.tensor([True, False, False]), 1j)[0].item() == 1j
    assert x.repeat(2).roll(1)[0].item() == x[2].item()
    assert torch.tril(x.repeat(3, 1))[0].tolist() == [1 + 2j, 0, 0]
    large = torch.arange(5000).chalf().reshape(50, 100)
    assert torch.equal(large.t().contiguous().t(), large)


def test_tensors_are_shown_read_and_kept() -> None:
    x = torch.tensor([1 + 2j, 3.5 - 0.25j], dtype=C32)
    assert repr(x) == "tensor([1.0000+2.0000j, 3.5000-0.2500j], dtype=torch.complex32)"
    assert x[0].item() == complex(x[0]) == 1 + 2j
    assert int(torch.tensor(2, dtype=C32)) == 2
    assert bool(x[0])
    with pytest.raises(RuntimeError, match="without overflow"):
        float(x[0])
    for kept in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert kept.dtype is C32
        assert bits(kept) == bits(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert x.storage().dtype is C32
        assert x.storage().tolist() == x.tolist()


# --- computing ------------------------------------------------------------------------------------

COMPUTED: list[tuple[str, Callable[[Any, Any], Any], list[int]]] = [
    ("add", lambda x, y: x + y, [16077, 16179, 17536, -15488, -14362, 17587]),
    ("sub", lambda x, y: x - y, [13516, 16486, 15872, -15296, 18445, -15027]),
    ("mul", lambda x, y: x * y, [15462, 15565, 17792, -15040, 14746, 16845]),
    ("mul by a number", lambda x, y: x * 0.1, [11878, 12902, 13516, -18842, 8478, -22610]),
    ("add a number", lambda x, y: x + 0.1j, [15360, 16435, 16896, -15411, 11878, -19865]),
    (
        "mul by a complex number",
        lambda x, y: x * (0.1 + 0.3j),
        [-18432, 14336, 15872, 14336, 11879, 0],
    ),
    ("abs", lambda x, y: x.abs(), [16505, 17664, 13583]),
    ("sgn", lambda x, y: x.sgn(), [14120, 15144, 14541, -17818, 13583, -17513]),
    ("neg", lambda x, y: -x, [-17408, -16384, -15872, 17408, -20890, 13517]),
    (
        "polar",
        lambda x, y: torch.polar(x.real, y.imag),
        [15319, -19877, 16848, 14832, 10051, -20957],
    ),
    (
        "complex",
        lambda x, y: torch.complex(x.real, y.imag),
        [15360, -19866, 16896, 13312, 11878, 17664],
    ),
    ("norm", lambda x, y: x.norm().reshape(1), [17789]),
    ("std", lambda x, y: x.std().reshape(1), [17086]),
    ("dist", lambda x, y: torch.dist(x, y).reshape(1), [18804]),
]


@pytest.mark.parametrize(("compute", "expected"), [case[1:] for case in COMPUTED])
def test_results_have_the_bits_of_pytorch(
    compute: Callable[[Any, Any], Any], expected: list[int]
) -> None:
    assert bits(compute(numbers(), others())) == expected


SCALED: list[Callable[[Any, Any], Any]] = [
    lambda x, y: torch.add(x, y, alpha=0.3),
    lambda x, y: torch.sub(x, y, alpha=0.3 + 1j),
    lambda x, y: torch.rsub(x, y, alpha=0.7),
    lambda x, y: torch.addcmul(x, x, y, value=0.3),
    lambda x, y: torch.addcdiv(x, x, y, value=-0.7),
    lambda x, y: torch.lerp(x, y, 0.3),
    lambda x, y: x.var(),
]


@pytest.mark.parametrize("compute", SCALED)
def test_results_of_several_steps_are_rounded_once(compute: Callable[[Any, Any], Any]) -> None:
    wide = compute(numbers().cfloat(), others().cfloat())
    dtype = C32 if wide.is_complex() else torch.float16
    assert bits(compute(numbers(), others())) == bits(wide.to(dtype))


def test_elements_at_listed_places_are_added_up() -> None:
    x, places = torch.zeros(2, dtype=C32), torch.zeros(3000, dtype=torch.int64)
    ones = torch.full((3000,), 1 - 1j, dtype=C32)
    # (From 2048 on halves are 2 apart: sums that were rounded each time would stop there.)
    assert x.scatter_add(0, places, ones)[0].item() == 3000 - 3000j
    assert x.index_add(0, places[:9], ones[:9], alpha=2)[0].item() == 18 - 18j
    assert x.index_put((places[:9],), ones[:9], accumulate=True)[0].item() == 9 - 9j
    assert x.put(places[:2], ones[:2]).tolist() == [1 - 1j, 0]


@pytest.mark.parametrize("name", ["div", "exp", "log", "sqrt", "sin", "tanh", "reciprocal", "pow"])
def test_functions_round_the_result_in_complex64(name: str) -> None:
    x, y = numbers(), others()
    given = (x, y) if name in ("div", "pow") else (x,)
    function = getattr(torch, name)
    expected = function(*(t.to(torch.complex64) for t in given)).chalf()
    assert bits(function(*given)) == bits(expected)
    # Views, many elements, and results in place and in `out=` take other ways to the same loops.
    wide = tuple(t.repeat(2000, 2)[:, ::2] for t in given)
    assert bits(function(*wide)[7]) == bits(expected)[:2] + bits(expected)[4:] + bits(expected)[2:4]
    into = torch.empty(0, dtype=C32)
    assert function(*given, out=into) is into
    assert bits(into) == bits(getattr(x.clone(), f"{name}_")(*given[1:])) == bits(expected)


def test_reductions_are_computed_in_single_precision() -> None:
    x = torch.full((3000,), 1 - 1j, dtype=C32)
    assert x.sum().item() == 3000 - 3000j
    assert x.mean().item() == 1 - 1j
    assert x.cumsum(0)[-1].item() == 3000 - 3000j
    assert numbers().prod().dtype is C32
    assert x.any()
    assert x.all()
    assert x.count_nonzero() == 3000
    assert (x.real.sum().item(), x.reshape(30, 100).sum(1)[0].item()) == (3000, 100 - 100j)


def test_convolutions_are_computed_in_single_precision() -> None:
    x = torch.arange(20).chalf().reshape(1, 2, 10) * (0.1 - 0.2j)
    weight = torch.randn(3, 2, 4, dtype=C32)
    for convolve in (torch.nn.functional.conv1d, torch.conv_transpose1d):
        given = weight if convolve is torch.nn.functional.conv1d else weight.transpose(0, 1)
        wide = convolve(x.cfloat(), given.cfloat()).chalf()
        assert torch.allclose(convolve(x, given), wide, rtol=2e-3, atol=2e-3)


def test_comparisons_ask_both_parts() -> None:
    x = numbers()
    y = torch.tensor([1 + 2j, 3 + 4j, float("nan")], dtype=C32)
    assert x.eq(y).tolist() == [True, False, False]
    assert x.ne(x.conj()).all()
    assert torch.equal(x, x.clone())
    assert not torch.equal(y, y)
    assert torch.equal(torch.tensor([0j], dtype=C32), -torch.tensor([0j], dtype=C32))
    assert torch.allclose(x, x + 1e-3, rtol=1e-2)
    assert not torch.allclose(x, x + 1e-1)
    assert y.isnan().tolist() == [False, False, True]
    assert y.isfinite().tolist() == [True, True, False]


def test_a_result_of_another_category_is_refused_and_changes_nothing() -> None:
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="result type ComplexHalf can't be cast"):
        x.half().add_(numbers()[:2])
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type Float"):
        x.mul_(numbers()[:2])
    assert x.tolist() == [1, 1]


# --- gradients and batches ------------------------------------------------------------------------


def test_gradients_pass_casts_and_views() -> None:
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    z = x.chalf()
    assert type(z.grad_fn).__name__ == "ToCopyBackward0"
    ((z * z.conj()).real.float() * torch.tensor([1.0, 3.0])).sum().backward()
    assert x.grad.dtype is torch.float32
    assert x.grad.tolist() == [2.0, -12.0]


def test_gradients_have_the_dtype_of_their_tensors() -> None:
    halves = torch.ones(2, 2).half().requires_grad_()
    w = numbers()[:2].requires_grad_()
    product = torch.view_as_complex(halves) * w
    (by_halves, by_w) = torch.autograd.grad(product.abs().sum(), (halves, w))
    assert (by_halves.dtype, by_w.dtype) == (torch.float16, C32)
    unit = w.detach().to(torch.complex64)
    direction = (1 + 1j) / abs(1 + 1j) * unit.abs()
    assert torch.allclose(torch.view_as_complex(by_halves).cfloat(), direction, rtol=3e-3)
    assert torch.allclose(by_w.cfloat(), unit.sgn() * abs(1 + 1j), rtol=3e-3)


def test_gradients_of_broadcast_numbers_are_summed() -> None:
    x = numbers().requires_grad_()
    factor = torch.tensor(2.0).half().requires_grad_()
    (x * factor).real.sum().backward()
    assert factor.grad.dtype is torch.float16
    assert abs(factor.grad.item() - 4.1) < 4e-3
    assert x.grad.tolist() == [2, 2, 2]


def test_tangents_are_complex_halves_too() -> None:
    from pullback.autograd import forward_ad

    with forward_ad.dual_level():
        x = forward_ad.make_dual(numbers(), others())
        value, tangent = forward_ad.unpack_dual((x * x).chalf())
        assert (value.dtype, tangent.dtype) == (C32, C32)
        assert torch.allclose(tangent, 2 * numbers() * others(), rtol=3e-3)


def test_batches_of_complex_halves_are_computed_at_once() -> None:
    x = torch.stack([numbers(), others()])
    norms = torch.func.vmap(lambda z: (z * z.conj()).real)(x)
    assert norms.dtype is torch.float16
    assert torch.equal(norms, (x * x.conj()).real)
    doubled = torch.func.vmap(lambda z: torch.view_as_complex(torch.view_as_real(z) * 2))(x)
    assert torch.equal(doubled, x + x)


def test_modules_are_converted() -> None:
    with pytest.warns(UserWarning, match="Complex modules are a new feature"):
        layer = torch.nn.Linear(2, 3).to(C32)
    assert layer.weight.dtype is C32
    assert layer.weight.requires_grad
    assert layer.state_dict()["bias"].dtype is C32
