"""Conventions of the special functions: limits, dtypes, overloads, errors, derivatives, names.

The expected values at the ends of the domains are PyTorch's; those inside are checked in
``test_special_values``.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

import pullback as torch
from pullback import special

INF, NAN = math.inf, math.nan


def doubles(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def same(got: torch.Tensor, expected: list[float], tolerance: float = 1e-12) -> None:
    """Equal but for rounding; NaN equals NaN."""
    got = got.tolist()
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        close = a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= tolerance * abs(b)
        assert close, (got, expected)


# At -inf, -1, -0.0, 0.0, 1, inf and NaN.
ENDS = {
    "airy_ai": [
        NAN,
        0.5355608832923522,
        0.3550280538878172,
        0.3550280538878172,
        0.1352924163128814,
        NAN,
    ],
    "bessel_j0": [NAN, 0.7651976865579666, 1.0, 1.0, 0.7651976865579666, NAN],
    "bessel_j1": [NAN, -0.4400505857449335, -0.0, 0.0, 0.4400505857449335, NAN],
    "bessel_y0": [NAN, NAN, -INF, -INF, 0.08825696421567697, NAN],
    "bessel_y1": [NAN, NAN, -INF, -INF, -0.7812128213002887, NAN],
    "entr": [-INF, -INF, 0.0, 0.0, 0.0, -INF],
    "erfcx": [INF, 5.008980080762283, 1.0, 1.0, 0.427583576155807, 0.0],
    "i0": [NAN, 1.2660658777520084, 1.0, 1.0, 1.2660658777520084, NAN],
    "i0e": [0.0, 0.46575960759364043, 1.0, 1.0, 0.46575960759364043, 0.0],
    "i1": [NAN, -0.565159103992485, 0.0, 0.0, 0.565159103992485, NAN],
    "i1e": [0.0, -0.2079104153497085, 0.0, 0.0, 0.2079104153497085, 0.0],
    "log_ndtr": [-INF, -1.8410216450092636, -math.log(2), -math.log(2), -0.17275377902344988, 0.0],
    "modified_bessel_k0": [NAN, NAN, INF, INF, 0.42102443824070834, 0.0],
    "modified_bessel_k1": [NAN, NAN, INF, INF, 0.6019072301972346, 0.0],
    "scaled_modified_bessel_k0": [NAN, NAN, INF, INF, 1.1444630798068947, 0.0],
    "scaled_modified_bessel_k1": [NAN, NAN, INF, INF, 1.6361534862632582, 0.0],
    "ndtr": [0.0, 0.15865525393145707, 0.5, 0.5, 0.8413447460685429, 1.0],
    "ndtri": [NAN, NAN, -INF, -INF, INF, NAN],
    "spherical_bessel_j0": [0.0, math.sin(1), 1.0, 1.0, math.sin(1), 0.0],
    "erfinv": [NAN, -INF, -0.0, 0.0, INF, NAN],
    "logit": [NAN, NAN, -INF, -INF, INF, NAN],
    "sinc": [NAN, 0.0, 1.0, 1.0, 0.0, NAN],
    "digamma": [NAN, NAN, INF, -INF, -0.5772156649015329, INF],
    "gammaln": [INF, INF, INF, INF, 0.0, INF],
}


@pytest.mark.parametrize("name", ENDS)
def test_limits_are_those_of_pytorch(name: str) -> None:
    x = doubles(-INF, -1.0, -0.0, 0.0, 1.0, INF, NAN)
    for dtype, tolerance in ((torch.float64, 1e-14), (torch.float32, 1e-6)):
        same(getattr(special, name)(x.to(dtype)), [*ENDS[name], NAN], tolerance)


def test_the_namespace_is_whole() -> None:
    for name in special.__all__:
        function = getattr(special, name)
        assert callable(function)
        assert function.__name__ == f"special_{name}"
    older = ("erf", "erfc", "erfinv", "exp2", "expm1", "log1p", "sinc", "i0", "digamma", "round")
    for name in older:
        x = torch.tensor([0.25, 0.5])
        assert getattr(special, name)(x).tolist() == getattr(torch, name)(x).tolist()
    assert not hasattr(torch, "special_erf")
    assert not hasattr(torch.Tensor, "special_erf")


def test_second_names_have_the_node_of_the_first() -> None:
    x = torch.tensor([1.5, 2.5], requires_grad=True)
    nodes = {
        "psi": "DigammaBackward0",
        "expit": "SigmoidBackward0",
        "gammaln": "LgammaBackward0",
        "round": "RoundBackward1",
        "i0": "I0Backward0",
        "i0e": "SpecialI0EBackward0",
        "i1e": "SpecialI1EBackward0",
        "bessel_j0": "SpecialBesselJ0Backward0",
        "log_ndtr": "SpecialLogNdtrBackward0",
    }
    for name, node in nodes.items():
        assert getattr(special, name)(x).grad_fn.name() == node
    assert special.multigammaln(x, 2).grad_fn.name() == "MvlgammaBackward0"
    assert special.softmax(x, 0).grad_fn.name() == "SoftmaxBackward0"
    assert special.log_softmax(x, 0).grad_fn.name() == "LogSoftmaxBackward0"
    assert special.logsumexp(x, 0).grad_fn.name() == "LogsumexpBackward0"
    assert special.polygamma(1, x).grad_fn.name() == "PolygammaBackward0"
    assert special.xlogy(2.0, x).grad_fn.name() == "XlogyBackward1"
    assert special.xlog1py(x, x).grad_fn.name() == "SpecialXlog1PyBackward0"
    assert special.xlog1py(2.0, x).grad_fn.name() == "SpecialXlog1PyBackward1"
    assert special.xlog1py(x, 2.0).grad_fn.name() == "SpecialXlog1PyBackward2"


def test_integers_become_floats_and_halves_stay() -> None:
    whole = torch.tensor([1, 2])
    for name in ("airy_ai", "bessel_j0", "i0e", "ndtr", "erfinv", "sinc", "logit", "entr"):
        assert getattr(special, name)(whole).dtype is torch.float32
        assert getattr(special, name)(whole.bool()).dtype is torch.float32
    half = torch.tensor([0.25, 0.5], dtype=torch.float16)
    for name in ("entr", "i0", "i0e", "i1", "i1e", "ndtr", "erfinv", "sinc", "logit"):
        assert getattr(special, name)(half).dtype is torch.float16
        assert getattr(special, name)(half.bfloat16()).dtype is torch.bfloat16
    for name in ("airy_ai", "bessel_y1", "erfcx", "log_ndtr", "ndtri", "modified_bessel_k0"):
        with pytest.raises(NotImplementedError, match=f"\"{name}_cpu\" not implemented for 'Half'"):
            getattr(special, name)(half)
    with pytest.raises(
        NotImplementedError, match="\"entr_cpu\" not implemented for 'ComplexFloat'"
    ):
        special.entr(torch.zeros(2, dtype=torch.complex64))
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        special.bessel_j0(torch.rand(3), out=torch.empty(3, dtype=torch.int64))


def test_what_has_no_derivative_gives_constants_or_refuses_backward() -> None:
    x = torch.tensor([0.3], requires_grad=True)
    for name in ("airy_ai", "spherical_bessel_j0", "scaled_modified_bessel_k0"):
        assert not getattr(special, name)(x).requires_grad
    assert not special.legendre_polynomial_p(x, x).requires_grad
    with pytest.raises(NotImplementedError, match="the derivative for 'zeta' is not implemented"):
        special.zeta(x + 2, 3.0).backward()
    with pytest.raises(NotImplementedError, match="the derivative for 'igamma: input' is not"):
        torch.igamma(x, torch.tensor([2.0])).backward()
    other = torch.tensor([2.0], requires_grad=True)
    torch.igamma(torch.tensor([1.0]), other).backward()
    same(other.grad, [math.exp(-2)], 1e-6)


def test_polynomials_take_numbers_on_either_side() -> None:
    x = doubles(0.3, 2.0)
    same(special.chebyshev_polynomial_t(x, 3), [4 * 0.027 - 0.9, 26.0])
    same(special.chebyshev_polynomial_t(x, torch.tensor(3)), [4 * 0.027 - 0.9, 26.0])
    same(special.hermite_polynomial_h(2.0, torch.tensor([0, 1, 2, 3])), [1.0, 4.0, 14.0, 40.0])
    same(special.legendre_polynomial_p(x, 2.9), [1.5 * 0.09 - 0.5, 5.5])
    assert special.chebyshev_polynomial_u(torch.tensor([1, 2]), 2).tolist() == [3.0, 15.0]
    assert special.laguerre_polynomial_l(torch.rand(3), 2).dtype is torch.float32
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        special.chebyshev_polynomial_t(2, 3)  # type: ignore[call-overload]
    with pytest.raises(
        NotImplementedError, match="\"legendre_polynomial_p_cpu\" not implemented for 'Half'"
    ):
        special.legendre_polynomial_p(x.half(), 2)


# At -inf, -2, -1, 0, 1, 2, inf and NaN, for order 3, and for 7 at the ends of the interval.
CUBES = {
    "chebyshev_polynomial_t": ([NAN, -26.0, -1.0, 0.0, 1.0, 26.0, NAN, NAN], [-1.0, 1.0]),
    "chebyshev_polynomial_u": ([NAN, -56.0, -4.0, 0.0, 4.0, 56.0, NAN, NAN], [-8.0, 8.0]),
    "chebyshev_polynomial_v": ([NAN, -71.0, -7.0, 1.0, 1.0, 41.0, NAN, NAN], [-15.0, 1.0]),
    "chebyshev_polynomial_w": ([NAN, -41.0, -1.0, -1.0, 7.0, 71.0, NAN, NAN], [-1.0, 15.0]),
    "shifted_chebyshev_polynomial_t": (
        [NAN, -485.0, -99.0, -1.0, 1.0, 99.0, NAN, NAN],
        [-114243.0, 1.0],
    ),
    "shifted_chebyshev_polynomial_u": (
        [NAN, -980.0, -204.0, -4.0, 4.0, 204.0, NAN, NAN],
        [-235416.0, 8.0],
    ),
    "shifted_chebyshev_polynomial_v": (
        [NAN, -1079.0, -239.0, -7.0, 1.0, 169.0, NAN, NAN],
        [-275807.0, 1.0],
    ),
    "shifted_chebyshev_polynomial_w": (
        [NAN, -881.0, -169.0, -1.0, 7.0, 239.0, NAN, NAN],
        [-195025.0, 15.0],
    ),
    "hermite_polynomial_h": ([NAN, -40.0, 4.0, 0.0, -4.0, 40.0, NAN, NAN], [-464.0, 464.0]),
    "hermite_polynomial_he": ([NAN, -2.0, 2.0, 0.0, -2.0, 2.0, NAN, NAN], [20.0, -20.0]),
    "laguerre_polynomial_l": (
        [NAN, 43 / 3, 17 / 3, 1.0, -2 / 3, -1 / 3, NAN, NAN],
        [25.9765873015873, -0.04047619047619],
    ),
    "legendre_polynomial_p": ([NAN, -17.0, -1.0, 0.0, 1.0, 17.0, NAN, NAN], [-1.0, 1.0]),
}


@pytest.mark.parametrize("name", CUBES)
def test_polynomials_at_their_ends_and_of_odd_orders(name: str) -> None:
    function = getattr(special, name)
    x = doubles(-INF, -2.0, -1.0, 0.0, 1.0, 2.0, INF, NAN)
    same(function(x, 3), CUBES[name][0], 1e-10)
    same(function(doubles(-1.0, 1.0), 7), CUBES[name][1], 1e-10)
    same(function(x, 0.9), [1.0] * 8)
    same(function(x, -1), [0.0] * 8)
    same(function(x, doubles(NAN)), [0.0] * 8)
    # A recurrence ends where it overflows; where it need not, too many steps are refused.
    if name not in ("laguerre_polynomial_l", "legendre_polynomial_p"):
        assert not function(doubles(3.0), 2**62).isfinite().any()
        return
    for order in (2**62, torch.tensor([1.0, 1e17]), doubles(INF)):
        with pytest.raises(ValueError, match="orders above 16777216 are not computed"):
            function(doubles(3.0), order)


def test_hermite_polynomials_are_nan_where_no_value_is_in_range() -> None:
    assert special.hermite_polynomial_h(doubles(0.3), 512).isnan().item()
    assert special.hermite_polynomial_he(doubles(0.3), 200).isfinite().item()
    assert special.hermite_polynomial_he(torch.tensor([0.3]), 129).isnan().item()
    assert special.hermite_polynomial_he(doubles(0.3), 513).isnan().item()


def test_zeta_and_polygamma_beyond_their_domains() -> None:
    s, q = doubles(2, 1, 0.5, 2, 2.5, 2, 3), doubles(1, 1, 1, -1, -0.5, -0.5, -1.25)
    direct = sum((-1.25 + k) ** -3.0 for k in range(4000)) + 1 / (2 * 3998.25**2)
    same(
        special.zeta(s, q), [math.pi**2 / 6, INF, NAN, INF, NAN, math.pi**2 / 2 + 4, direct], 1e-10
    )
    same(special.zeta(2.0, doubles(1.0)), [math.pi**2 / 6])
    same(special.zeta(doubles(2.0), 1.0), [math.pi**2 / 6])
    # Far below 0 the terms near 0 count, not those from which the sum begins.
    near, far = (
        special.polygamma(2, doubles(-0.3 - 1e6)),
        special.polygamma(2, doubles(-0.3 - 2.0**20)),
    )
    assert near.isfinite().item()
    assert far.isfinite().item()
    same(special.polygamma(200, doubles(1.0)), [-INF])
    assert 0 < -special.polygamma(200, doubles(300.0)).item() < 1e-100
    same(special.polygamma(2, doubles(0.0, -1.0, INF, NAN)), [-INF, -INF, 0.0, NAN])
    with pytest.raises(RuntimeError, match="does not support negative n"):
        special.polygamma(-1, doubles(1.0))


def test_incomplete_gamma_functions_at_their_limits() -> None:
    a = doubles(0, 0, 1, INF, INF, 1, -1, 1, NAN)
    x = doubles(0, 1, 0, 1, INF, INF, 1, -1, 1)
    same(torch.igamma(a, x), [NAN, 1.0, 0.0, 0.0, NAN, 1.0, NAN, NAN, NAN])
    same(torch.igammac(a, x), [NAN, 0.0, 1.0, 1.0, NAN, 0.0, NAN, NAN, NAN])
    # Where both are large, neither a series nor a fraction would end soon.
    same(torch.igamma(doubles(1e12), doubles(1e12)), [0.5 + 1 / (3 * math.sqrt(2e12 * math.pi))])
    with pytest.raises(NotImplementedError, match="\"igamma_cpu\" not implemented for 'Long'"):
        torch.igamma(torch.tensor([1]), torch.tensor([1]))
    assert (
        torch.igamma(torch.tensor([1.0]).half(), torch.tensor([1.0]).half()).dtype is torch.float16
    )


def test_multivariate_gamma_refuses_what_has_no_meaning() -> None:
    same(torch.mvlgamma(doubles(0.5, 1.0, NAN, INF), 2), [INF, math.log(math.pi), NAN, INF])
    same(torch.mvlgamma(torch.tensor([1, 2]), 2), [math.log(math.pi), 0.4515827052894549], 1e-6)
    with pytest.raises(RuntimeError, match="p has to be greater than or equal to 1"):
        torch.mvlgamma(doubles(1.0), 0)
    with pytest.raises(RuntimeError, match="may not be a boolean tensor"):
        torch.mvlgamma(torch.tensor([True]), 1)
    with pytest.raises(RuntimeError, match="result type"):
        torch.tensor([1, 2]).mvlgamma_(1)


def test_logit_is_limited_by_eps() -> None:
    x = doubles(-1.0, 0.0, 0.2, 1.0, 2.0, NAN)
    edge = math.log(0.3 / 0.7)
    same(torch.logit(x, eps=0.3), [edge, edge, edge, -edge, -edge, NAN])
    same(torch.logit(x, -1.0), [NAN, -INF, math.log(0.25), INF, NAN, NAN])
    y = doubles(-0.1, 0.0, 0.2, 0.5, 0.8, 1.0, 1.1).requires_grad_()
    (free,) = torch.autograd.grad(torch.logit(y).sum(), y)
    same(free, [NAN, INF, 6.25, 4.0, 6.25, INF, NAN])
    (limited,) = torch.autograd.grad(torch.logit(y, 0.2).sum(), y)
    same(limited, [0.0, 0.0, 6.25, 4.0, 6.25, 0.0, 0.0])


def test_gradients_at_kinks_are_those_of_pytorch() -> None:
    def slope(function: Any, *numbers: float) -> torch.Tensor:
        x = doubles(*numbers).requires_grad_()
        return torch.autograd.grad(function(x).sum(), x)[0]

    same(slope(special.entr, -1.0, 0.0, 1.0), [NAN, INF, -1.0])
    same(slope(torch.sinc, 0.0, 1.0), [0.0, -1.0])
    for name in ("bessel_j1", "i1", "i1e", "modified_bessel_i1"):
        same(slope(getattr(special, name), 0.0), [0.5])
    same(slope(special.ndtri, 0.5, 2.0), [math.sqrt(2 * math.pi), NAN])
    same(slope(special.log_ndtr, -1e5, 0.0, 50.0), [1e5, math.sqrt(2 / math.pi), 0.0], 1e-9)
    x, y = doubles(0.0, 0.0, 1.0).requires_grad_(), doubles(-1.0, -2.0, -1.0).requires_grad_()
    by_x, by_y = torch.autograd.grad(special.xlog1py(x, y).sum(), (x, y))
    same(by_x, [0.0, 0.0, -INF])
    same(by_y, [NAN, 0.0, INF])


def test_products_with_logarithms_vanish_with_the_factor() -> None:
    same(
        special.xlog1py(doubles(0, 1, 0, 0, 2), doubles(-2, -1, NAN, INF, INF)),
        [0.0, -INF, NAN, 0.0, INF],
    )
    same(special.xlog1py(2, torch.tensor([1, 2])), [2 * math.log(2), 2 * math.log(3)], 1e-6)
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        special.xlog1py(2.0, 3.0)  # type: ignore[call-overload]
    a, b = doubles(INF, -INF, INF, NAN, 3.0), doubles(INF, -INF, -INF, 1.0, 3.0)
    same(torch.logaddexp2(a, b), [INF, -INF, INF, NAN, 4.0])
    with pytest.raises(NotImplementedError, match="\"logaddexp2_cpu\" not implemented for 'Long'"):
        torch.logaddexp2(torch.tensor([1]), torch.tensor([1]))


def test_common_divisors_and_multiples_have_no_sign() -> None:
    least = -(2**63)
    a, b = torch.tensor([12, -12, 0, 0, least]), torch.tensor([18, 18, 0, -5, 0])
    assert torch.gcd(a, b).tolist() == [6, 6, 0, 5, least]
    a, b = (
        torch.tensor([12, -12, 0, 0, least, 2**40, 7]),
        torch.tensor([18, 18, 0, -5, 0, 2**40 - 1, -3]),
    )
    assert torch.lcm(a, b).tolist() == [36, 36, 0, 0, 0, 2**40, 21]
    short = torch.tensor([100, -128], dtype=torch.int8)
    assert torch.lcm(short, torch.tensor([99, 0], dtype=torch.int8)).tolist() == [-84, 0]
    assert torch.gcd(short, torch.tensor([0, 0], dtype=torch.int8)).tolist() == [100, -128]
    mixed = torch.gcd(torch.tensor([250], dtype=torch.uint8), torch.tensor([100], dtype=torch.int8))
    assert (mixed.item(), mixed.dtype) == (50, torch.int16)
    for function in (torch.gcd, torch.lcm):
        with pytest.raises(NotImplementedError, match="not implemented for 'Float'"):
            function(torch.rand(2), torch.rand(2))
        with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
            function(torch.tensor([True]), torch.tensor([True]))


def test_numbers_come_apart_into_mantissa_and_exponent() -> None:
    x = doubles(0.0, -0.0, 1.0, -3.0, INF, -INF, NAN, 5e-324, 1.5 * 2.0**-1030)
    mantissa, exponent = torch.frexp(x)
    same(mantissa, [0.0, -0.0, 0.5, -0.75, INF, -INF, NAN, 0.5, 0.75])
    assert exponent.tolist() == [0, 0, 1, 2, 0, 0, 0, -1073, -1029]
    assert exponent.dtype is torch.int32
    assert torch.frexp(torch.tensor([3.0], dtype=torch.float16)).exponent.tolist() == [2]
    assert torch.frexp(doubles(3.0).requires_grad_()).mantissa.grad_fn.name() == "FrexpBackward0"
    for dtype in (torch.int64, torch.complex64):
        with pytest.raises(RuntimeError, match="only supports floating-point dtypes"):
            torch.frexp(torch.ones(2, dtype=dtype))
    y = doubles(1.0, 3.0)
    assert y.ldexp_(torch.tensor([2, -1])) is y
    same(y, [4.0, 1.5])


def test_in_place_forms_are_where_pytorch_has_them() -> None:
    both = {"sinc_", "logit_", "i0_", "gcd_", "lcm_", "ldexp_"}
    methods = {"erfinv_", "mvlgamma_", "igamma_", "igammac_", "polygamma_"}
    for name in both | methods:
        assert hasattr(torch.Tensor, name)
        assert hasattr(torch, name) == (name in both)
    assert not hasattr(torch.Tensor, "logaddexp2_")
    x = doubles(0.25, 0.5)
    for name in ("sinc", "logit", "i0", "erfinv"):
        fresh = x.clone()
        assert getattr(fresh, name + "_")() is fresh
        assert fresh.tolist() == getattr(torch, name)(x).tolist()
    assert x.clone().igamma_(x).tolist() == torch.igamma(x, x).tolist()


def test_sinc_of_complex_numbers_and_of_whole_ones() -> None:
    z = torch.sinc(torch.tensor([0, 0.5, 1j], dtype=torch.complex128))
    expected = [1, 2 / math.pi, math.sinh(math.pi) / math.pi]
    assert all(abs(a - b) < 1e-14 for a, b in zip(z.tolist(), expected, strict=True))
    # The sine of a multiple of π is 0, however large it is.
    assert torch.sinc(doubles(3.0, -1e15, 2.0**60)).abs().tolist() == [0.0, 0.0, 0.0]


def test_second_names_keep_the_arguments_of_the_first() -> None:
    x = torch.tensor([[0.123, 1.0], [2.0, 3.0]])
    assert special.round(x, decimals=1)[0, 0].item() == pytest.approx(0.1)
    assert special.softmax(x, 1, dtype=torch.float64).dtype is torch.float64
    assert special.log_softmax(x, -1, dtype=torch.float64).dtype is torch.float64
    assert special.logsumexp(x, (0, 1), keepdim=True).shape == (1, 1)
    out = torch.empty(0)
    assert special.expit(x, out=out) is out
    assert out.tolist() == torch.sigmoid(x).tolist()
    with pytest.raises(TypeError, match=r"special_erf\(\)"):
        special.erf()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"special_softmax\(\)"):
        special.softmax(x)  # type: ignore[call-arg]
