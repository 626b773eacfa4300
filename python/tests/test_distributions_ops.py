"""Gamma, Dirichlet, Poisson and binomial draws: streams, gradients, layouts and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import pytest

import pullback as torch

# Draw and dtype -> PyTorch's numbers for the seed 5, and the next uniform number of the stream.
RECORDED: dict[str, tuple[list[float], float]] = {
    "poisson float32": ([0.0, 1.0, 2.0, 11.0, 9.0, 250.0], 0.04969513416290283),
    "_standard_gamma float32": (
        [
            7.989670591790343e-10,
            1.3533694744110107,
            0.052179716527462006,
            1.2268868684768677,
            26.731056213378906,
            10068.896484375,
        ],
        0.2638806700706482,
    ),
    "_sample_dirichlet float32": (
        [
            5.684378523440614e-10,
            0.9628759026527405,
            0.03712407872080803,
            0.00012151178816566244,
            0.002647463930770755,
            0.9972310066223145,
        ],
        0.2638806700706482,
    ),
    "binomial float32": ([0.0, 4.0, 50.0, 294.0, 53.0, 3.0], 0.9809269309043884),
    "binomial large float32": (
        [11.0, 16.0, 26.0, 37.0, 37.0, 51.0, 61.0, 63.0, 64.0, 73.0, 92.0, 86.0],
        0.39689087867736816,
    ),
    "poisson float64": ([0.0, 1.0, 2.0, 11.0, 9.0, 250.0], 0.04969513416290283),
    "_standard_gamma float64": (
        [
            7.989671426851121e-10,
            1.3533695566710968,
            0.052179723242106346,
            1.226886820936731,
            26.731057734112692,
            10068.89654715927,
        ],
        0.2638806700706482,
    ),
    "_sample_dirichlet float64": (
        [
            5.684376589629697e-10,
            0.962875919928873,
            0.03712407950268928,
            0.00012151178586791944,
            0.002647463896409395,
            0.9972310243177226,
        ],
        0.2638806700706482,
    ),
    "binomial float64": ([0.0, 4.0, 50.0, 294.0, 53.0, 3.0], 0.9809269309043884),
    "binomial large float64": (
        [11.0, 16.0, 26.0, 37.0, 37.0, 51.0, 61.0, 63.0, 64.0, 73.0, 92.0, 89.0],
        0.42039555311203003,
    ),
    "poisson float16": ([0.0, 1.0, 2.0, 11.0, 9.0, 250.0], 0.04969513416290283),
    "poisson bfloat16": ([0.0, 1.0, 2.0, 11.0, 9.0, 250.0], 0.04969513416290283),
    "poisson turned": ([1.0, 0.0, 3.0, 11.0, 27.0, 91.0], 0.16613507270812988),
}

DRAWS: dict[str, Callable[[Any], Any]] = {
    "poisson": lambda d: torch.poisson(
        torch.tensor([[0.0, 0.5, 3.0], [9.9, 10.0, 250.0]], dtype=d)
    ),
    "_standard_gamma": lambda d: torch._standard_gamma(shapes(d)),
    "_sample_dirichlet": lambda d: torch._sample_dirichlet(shapes(d)),
    "binomial": lambda d: torch.binomial(
        torch.tensor([[0.0, 5.0, 50.0], [1000.0, 77.0, 3.0]], dtype=d),
        torch.tensor([0.3, 0.7, 1.0], dtype=d),
    ),
    "binomial large": lambda d: torch.binomial(
        torch.tensor(100.0, dtype=d), torch.linspace(0.1, 0.9, 12, dtype=d)
    ),
}


def shapes(dtype: Any) -> Any:
    return torch.tensor([[0.05, 0.5, 1.0], [2.5, 30.0, 1e4]], dtype=dtype)


@pytest.mark.parametrize("case", [case for case in RECORDED if "turned" not in case])
def test_draws_are_those_of_pytorch_for_the_seed(case: str) -> None:
    name, dtype = case.rsplit(" ", 1)
    torch.manual_seed(5)
    found = DRAWS[name](getattr(torch, dtype))
    numbers, after = RECORDED[case]
    assert found.dtype == getattr(torch, dtype)
    tolerance = 0 if "gamma" not in name and "dirichlet" not in name else 1e-7
    if dtype == "float64":
        tolerance = min(tolerance, 1e-15)
    assert found.reshape(-1).tolist() == pytest.approx(numbers, rel=tolerance, abs=0)
    assert torch.rand(()).item() == after


def test_a_transposed_input_is_drawn_for_row_by_row() -> None:
    rates = torch.tensor([[0.5, 3.0, 30.0], [1.0, 12.0, 100.0]])
    torch.manual_seed(5)
    turned = torch.poisson(rates.t())
    torch.manual_seed(5)
    assert torch.equal(turned, torch.poisson(rates.t().contiguous()))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_drawn_in_single_precision_and_rounded(dtype: Any) -> None:
    a = torch.tensor([0.5, 1.0, 2.5, 16.0], dtype=dtype)
    for draw in (torch._standard_gamma, torch._sample_dirichlet):
        torch.manual_seed(3)
        found = draw(a)
        torch.manual_seed(3)
        assert found.dtype == dtype
        assert torch.equal(found, draw(a.float()).to(dtype))
    torch.manual_seed(3)
    found = torch.binomial(torch.tensor(64.0, dtype=dtype), torch.tensor([0.25, 0.5], dtype=dtype))
    torch.manual_seed(3)
    assert torch.equal(
        found, torch.binomial(torch.tensor(64.0), torch.tensor([0.25, 0.5])).to(dtype)
    )


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (0, 3)])
def test_shapes_without_elements_and_without_dimensions_keep_their_shape(shape: Any) -> None:
    a = torch.ones(shape)
    for draw in (torch.poisson, torch._standard_gamma, torch._sample_dirichlet):
        assert draw(a).shape == a.shape
    assert torch.binomial(a, a).shape == a.shape


def test_a_generator_gives_the_numbers_of_its_own_stream() -> None:
    a = torch.full((5,), 3.0)
    for draw in (torch.poisson, torch._standard_gamma, torch._sample_dirichlet):
        first = draw(a, generator=torch.Generator().manual_seed(9))
        torch.manual_seed(9)
        assert torch.equal(first, draw(a))


def test_what_no_draw_could_end_for_is_nan_or_refused() -> None:
    nan = float("nan")
    assert torch._standard_gamma(torch.tensor([nan, -1.0])).isnan().all()
    assert torch.binomial(torch.tensor([nan, 3.0]), torch.tensor([0.5, nan])).isnan().all()
    assert torch._standard_gamma(torch.zeros(2)).tolist() == [torch.finfo(torch.float32).tiny] * 2
    assert torch.poisson(torch.tensor([0.0, float("inf")])).tolist() == [0.0, float("inf")]
    for rate in (-1.0, nan):
        with pytest.raises(RuntimeError, match="invalid Poisson rate, expected rate to be non-neg"):
            torch.poisson(torch.tensor([1.0, rate]))


def test_dtypes_without_fractions_are_refused() -> None:
    whole = torch.tensor([1, 2])
    with pytest.raises(NotImplementedError, match="\"poisson_cpu\" not implemented for 'Long'"):
        torch.poisson(whole)
    with pytest.raises(NotImplementedError, match="\"gamma_cpu\" not implemented for 'Long'"):
        torch._standard_gamma(whole)
    with pytest.raises(
        ValueError, match="only supports floating-point dtypes for count, got: Long"
    ):
        torch.binomial(whole, torch.ones(2))
    with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
        torch.binomial(torch.ones(2), torch.ones(2, dtype=torch.float64))


def test_counts_have_a_gradient_of_zero_and_samples_none_of_the_second_order() -> None:
    rate = torch.tensor([1.0, 2.0], requires_grad=True)
    torch.poisson(rate).sum().backward()
    assert rate.grad.tolist() == [0.0, 0.0]
    (gradient,) = torch.autograd.grad(torch._standard_gamma(rate).sum(), rate, create_graph=True)
    with pytest.raises(NotImplementedError, match="_standard_gamma_grad' is not implemented"):
        gradient.sum().backward()
    with pytest.raises(NotImplementedError, match="aten::binomial is not implemented"):
        torch.binomial(rate, rate / 4).sum().backward()


def test_vmap_draws_as_its_randomness_says() -> None:
    a = torch.full((3, 4), 2.0)
    for draw in (torch.poisson, torch._standard_gamma, torch._sample_dirichlet):
        torch.manual_seed(1)
        different = torch.vmap(draw, randomness="different")(a)
        torch.manual_seed(1)
        assert torch.equal(different, draw(a))
        with pytest.raises(RuntimeError, match="randomness error mode"):
            torch.vmap(draw)(a)
        same = torch.vmap(lambda _, draw=draw: draw(a[0]), randomness="same")(a)
        assert torch.equal(same[0], same[1])
        with pytest.raises(RuntimeError, match="same randomness with a batched tensor input"):
            torch.vmap(draw, randomness="same")(a)
    assert torch.vmap(torch._sample_dirichlet, randomness="different")(torch.ones(3)).min() > 0.9
    counts = torch.vmap(torch.binomial, randomness="different")(a, torch.tensor([0.0, 1.0, 1.0]))
    assert counts.tolist() == [[0.0] * 4, [2.0] * 4, [2.0] * 4]


def gamma_gradient(a: float, x: float) -> float:
    """How a gamma number moves with its shape, by differences of many digits."""
    with mpmath.workdps(40):
        slope = mpmath.diff(lambda s: mpmath.gammainc(s, 0, x, regularized=True), a)
        density = (
            mpmath.mpf(x) ** (mpmath.mpf(a) - 1) * mpmath.exp(-mpmath.mpf(x)) / mpmath.gamma(a)
        )
        return float(-slope / density)


def dirichlet_gradient(x: float, alpha: float, total: float) -> float:
    """The same of a beta number and its first parameter, divided by ``1 - x``."""
    with mpmath.workdps(40):
        beta = mpmath.mpf(total) - alpha
        x_ = mpmath.mpf(x)
        slope = mpmath.diff(lambda s: mpmath.betainc(s, beta, 0, x_, regularized=True), alpha)
        density = x_ ** (alpha - 1) * (1 - x_) ** (beta - 1) / mpmath.beta(alpha, beta)
        return float(-slope / density / (1 - x_))


@pytest.mark.parametrize(
    ("a", "x"),
    [
        (0.001, 1e-30), (0.05, 1e-8), (0.3, 0.1), (0.3, 2.0), (1.0, 0.2), (1.0, 1.0), (1.0, 6.0),
        (4.5, 0.5), (4.5, 4.4), (4.5, 5.2), (4.5, 30.0), (60.0, 40.0), (60.0, 60.3), (60.0, 61.0),
        (60.0, 95.0), (101.0, 70.0), (150.0, 149.5), (150.0, 200.0), (400.0, 300.0), (400.0, 410.0),
    ],
)  # fmt: skip
def test_gamma_numbers_move_with_their_shape_as_their_distribution_says(a: float, x: float) -> None:
    found = torch._standard_gamma_grad(
        torch.tensor(a, dtype=torch.float64), torch.tensor(x, dtype=torch.float64)
    )
    assert found.item() == pytest.approx(gamma_gradient(a, x), rel=1e-11)


@pytest.mark.parametrize(
    ("x", "alpha", "total"),
    [
        (1e-12, 0.1, 0.3), (0.01, 0.5, 1.0), (0.4, 0.5, 1.0), (0.6, 0.5, 1.0), (0.9999, 0.2, 0.3),
        (0.1, 2.0, 3.5), (0.5, 2.0, 3.5), (0.9, 2.0, 3.5), (0.3, 30.0, 100.0), (0.31, 30.0, 100.0),
        (0.2, 2.0, 300.0), (0.999, 250.0, 250.5), (0.5, 150.0, 320.0), (0.45, 150.0, 320.0),
        (0.2, 101.0, 600.0),
    ],
)  # fmt: skip
def test_shares_move_with_their_concentration_as_their_distribution_says(
    x: float, alpha: float, total: float
) -> None:
    found = torch._dirichlet_grad(
        *(torch.tensor(v, dtype=torch.float64) for v in (x, alpha, total))
    )
    assert found.item() == pytest.approx(dirichlet_gradient(x, alpha, total), rel=1e-10)


def test_single_precision_gradients_are_the_double_ones_rounded() -> None:
    a, x = torch.tensor([0.5, 3.0, 200.0]), torch.tensor([0.25, 4.0, 190.0])
    found = torch._standard_gamma_grad(a, x)
    assert found.dtype == torch.float32
    exact = torch._standard_gamma_grad(a.double(), x.double())
    assert torch.equal(found, exact.float())
    shares = x / (x + 100)
    found = torch._dirichlet_grad(shares, a, a + 2)
    assert torch.equal(
        found, torch._dirichlet_grad(*(v.double() for v in (shares, a, a + 2))).float()
    )


def test_gradients_of_a_point_of_the_simplex_add_up_to_zero_and_follow_the_differences() -> None:
    # With all else fixed, a share of two is a beta number, whose quantiles move as differences say.
    a = torch.tensor([1.5, 2.5], dtype=torch.float64, requires_grad=True)
    torch.manual_seed(2)
    point = torch._sample_dirichlet(a)
    (of_first,) = torch.autograd.grad(point[0], a, retain_graph=True)
    (of_sum,) = torch.autograd.grad(point.sum(), a)
    x = point[0].item()
    assert of_sum.abs().max() < 1e-15
    assert of_first[0].item() == pytest.approx(dirichlet_gradient(x, 1.5, 4.0) * (1 - x), rel=1e-10)
    assert of_first[1].item() == pytest.approx(-dirichlet_gradient(1 - x, 2.5, 4.0) * x, rel=1e-10)
