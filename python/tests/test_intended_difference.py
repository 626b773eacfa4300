"""Where results differ from PyTorch's on purpose: each is held against what it should be.

`op_table/failing.tsv` names these tests beside the rows and columns that differ. What is expected
comes from mathematics (differences, mpmath, the part that is not masked), not from the library.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import mpmath
import pytest

import pullback as torch

if TYPE_CHECKING:
    from collections.abc import Callable

MASK = torch.tensor([[True, False, True, True], [False] * 4, [False, False, True, False]])


def _data(dtype: torch.dtype = torch.float64) -> torch.Tensor:
    torch.manual_seed(3)
    return torch.randn(3, 4, dtype=dtype)


def test_as_strided_scatter_has_the_gradient_of_what_it_gives() -> None:
    # The elements of src at (0, 1) and (1, 0) go to one place: the last one stays.
    x, src = torch.randn(6).double(), torch.randn(2, 2).double()
    given = (x.requires_grad_(), src.requires_grad_())

    def scatter(x: torch.Tensor, src: torch.Tensor) -> torch.Tensor:
        return torch.as_strided_scatter(x, src, (2, 2), (1, 1), 1)

    assert scatter(*given)[2] == src[1, 0]
    assert torch.autograd.gradcheck(scatter, given)
    assert torch.autograd.gradgradcheck(scatter, given)


@pytest.mark.parametrize(
    "product",
    [
        lambda x: torch.cumprod(x, 1, dtype=torch.float64),
        lambda x: torch.masked.cumprod(x, 1, dtype=torch.float64),
    ],
)
def test_cumprod_in_a_real_dtype_has_the_gradient_of_the_product_of_real_parts(
    product: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    x = _data(torch.complex128).requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = product(x)
        assert torch.equal(result, x.detach().real.cumprod(1))
        assert torch.autograd.gradcheck(product, (x,))
        assert torch.autograd.gradgradcheck(product, (x,))


def test_volumes_are_interpolated_bicubically() -> None:
    """Along each dimension as images are."""
    torch.manual_seed(0)
    line, across = torch.randn(5), torch.randn(4)
    volume = (line[:, None, None] * across[None, :, None] * torch.ones(3)).reshape(1, 1, 5, 4, 3)
    points = torch.rand(1, 2, 3, 2, 3) * 2 - 1
    found = torch.grid_sampler_3d(volume, points, 2, 1, True)

    def along(values: torch.Tensor, where: torch.Tensor) -> torch.Tensor:
        image = values.reshape(1, 1, -1, 1)
        at = torch.stack([torch.zeros_like(where), where], -1).reshape(1, 1, -1, 2)
        return torch.grid_sampler_2d(image, at, 2, 1, True).reshape(where.shape)

    expected = along(line, points[0, ..., 2]) * along(across, points[0, ..., 1])
    torch.testing.assert_close(found[0, 0], expected)


@pytest.mark.parametrize("function", [torch.masked.std, torch.masked.var])
@pytest.mark.parametrize("order", [1, 2])
def test_masked_spread_has_zero_gradients_where_nothing_counts(
    function: Callable[..., torch.Tensor], order: int
) -> None:
    x = _data().requires_grad_()
    result = function(x, 1, unbiased=False, mask=MASK)
    derivative = torch.autograd.grad(result[0], x, create_graph=True)[0]
    if order == 2:
        derivative = torch.autograd.grad(derivative.square().sum(), x)[0]
    plain = x.detach()[0, [0, 2, 3]].requires_grad_()
    of_part = plain.var(unbiased=False)
    of_part = of_part.sqrt() if function is torch.masked.std else of_part
    expected = torch.autograd.grad(of_part, plain, create_graph=True)[0]
    if order == 2:
        expected = torch.autograd.grad(expected.square().sum(), plain)[0]
    assert torch.allclose(derivative[0, [0, 2, 3]], expected)
    assert (derivative[~MASK] == 0).all()
    everything = torch.autograd.grad(function(x, 1, unbiased=False, mask=MASK)[2], x)[0]
    assert (everything[~MASK] == 0).all()


def test_masked_logaddexp_has_zero_second_derivatives_where_nothing_counts() -> None:
    x, y = _data().requires_grad_(), (_data() + 1).requires_grad_()
    result = torch.masked.logaddexp(x, y, input_mask=MASK, other_mask=MASK)
    first = torch.autograd.grad(result[MASK].sum(), (x, y), create_graph=True)
    second = torch.autograd.grad(first[0].square().sum(), (x, y))
    p = torch.sigmoid(x.detach() - y.detach())
    expected = torch.where(MASK, 2 * p * p * (1 - p), 0.0)
    assert torch.allclose(second[0], expected)
    assert torch.allclose(second[1], -expected)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16])
def test_masked_logsumexp_of_nothing_is_the_least_value(dtype: torch.dtype) -> None:
    result = torch.masked.logsumexp(torch.ones(3, 4, dtype=dtype), 1, mask=MASK)
    assert result.dtype == dtype
    assert result[1].item() == torch.iinfo(dtype).min


def test_masked_median_gives_the_dtype_that_is_asked_for_and_no_order_of_complex_numbers() -> None:
    x = _data(torch.float32)
    result = torch.masked.median(x, 1, dtype=torch.float64, mask=MASK)
    assert result.dtype == torch.float64
    assert result[2] == x[2, 2]
    with pytest.raises(NotImplementedError, match=r"not implemented for torch.complex64"):
        torch.masked.median(x.to(torch.complex64), 1, mask=MASK)


def test_masked_normalize_of_halves_knows_eps() -> None:
    x = _data().half()
    result = torch.masked.normalize(x, 2.0, 1, mask=MASK)
    assert (result[1] == 0).all()
    expected = torch.masked.normalize(x.double(), 2.0, 1, mask=MASK)
    assert torch.allclose(result[MASK].double(), expected[MASK], rtol=1e-3)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_polygamma_and_its_gradient_vanish_at_infinity(order: int) -> None:
    x = torch.tensor([1e300, float("inf")], dtype=torch.float64, requires_grad=True)
    y = torch.polygamma(order, x)
    y.sum().backward()
    assert abs(mpmath.psi(order, mpmath.mpf(10) ** 300)) < 1e-299
    assert y.abs().max() < 1e-299
    assert x.grad is not None
    assert x.grad.abs().max() == 0


def test_renorm_has_a_finite_slope_at_ties() -> None:
    x = torch.tensor([[3 + 4j, 5.0, 1.0]], dtype=torch.complex64, requires_grad=True)
    y = torch.renorm(x, float("inf"), 0, 1.0)
    assert torch.allclose(y.detach(), x.detach() / 5)
    y.abs().sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    # Of the part without a tie the slope is that of dividing by 5.
    assert torch.allclose(x.grad[0, 2], torch.tensor(0.2 + 0j))


def test_sinc_of_whole_numbers_is_zero_and_halves_keep_their_gradients() -> None:
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
        assert torch.sinc(torch.tensor([0, 1, 2, 100], dtype=dtype)).tolist() == [1, 0, 0, 0]
    for dtype, bound in ((torch.float16, 2e-3), (torch.bfloat16, 2e-2)):
        x = torch.linspace(-2.9, 2.9, 30, dtype=dtype, requires_grad=True)
        torch.sinc(x).sum().backward()
        assert x.grad is not None
        for at, slope in zip(x.tolist(), x.grad.tolist(), strict=True):
            exact = mpmath.diff(mpmath.sincpi, at)
            assert abs(slope - exact) <= bound * (1 + abs(exact))


def test_zeta_of_an_exponent_beyond_all_is_that_of_its_limit() -> None:
    exponents = torch.tensor([float("inf"), float("inf"), 1e300], dtype=torch.float64)
    bases = torch.tensor([2.0, float("inf"), 3.0], dtype=torch.float64)
    assert mpmath.zeta(1000, 2) < 1e-300
    assert torch.special.zeta(exponents, bases).tolist() == [0.0, 0.0, 0.0]
    whole = torch.special.zeta(torch.tensor([2**62]), torch.tensor([3]))
    assert whole.tolist() == [0.0]


@pytest.mark.parametrize("name", ["bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"])
def test_derivatives_of_bessel_functions_are_those_of_mathematics(name: str) -> None:
    kind = mpmath.besselj if "j" in name else mpmath.bessely
    order = int(name[-1])
    points = [0.3, 1.7, 4.9, 11.0, 37.5]
    x = torch.tensor(points, dtype=torch.float64, requires_grad=True)
    first = torch.autograd.grad(getattr(torch.special, name)(x).sum(), x, create_graph=True)[0]
    second = torch.autograd.grad(first.sum(), x)[0]
    for derivative, got in ((1, first), (2, second)):
        for at, value in zip(points, got.tolist(), strict=True):
            exact = kind(order, mpmath.mpf(at), derivative=derivative)
            assert abs(value - exact) <= 1e-14 * (1 + abs(exact))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_exponentials_of_half_precision_matrices_do_not_overflow_within(dtype: torch.dtype) -> None:
    rows = [[2.375, -1.375, -1.625], [0.375, 3.375, -0.375], [1.125, 0.625, 5.875]]
    x = torch.tensor(rows, dtype=dtype, requires_grad=True)
    result = torch.matrix_exp(x)
    result.sum().backward()
    # The derivative in the direction E is the block beside the diagonal of the exponential of
    # [[A, E], [0, A]] (N. J. Higham, Functions of Matrices, 2008, theorem 3.6); the gradient of the
    # sum is that of the transposed matrix in the direction of ones.
    turned = mpmath.matrix(rows).T
    whole = mpmath.expm(
        mpmath.matrix(
            [[*turned[i, :], 1, 1, 1] for i in range(3)]
            + [[0, 0, 0, *turned[i, :]] for i in range(3)]
        )
    )
    for found, expected in [
        (result, [[whole[c, r] for c in range(3)] for r in range(3)]),
        (x.grad, [[whole[r, 3 + c] for c in range(3)] for r in range(3)]),
    ]:
        assert found is not None
        exact = torch.tensor([[float(e) for e in row] for row in expected], dtype=torch.float64)
        error = (found.double() - exact).abs().max() / exact.abs().max()
        assert error < torch.finfo(dtype).eps
