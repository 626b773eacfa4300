"""Special functions against numbers of many digits, within the bounds that their source states.

Errors are in units of the last place (ULP) of the exact value; of functions that swing, of their
amplitude where that is larger. Single precision is computed in double, so it is right but for the
last rounding.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np
import pytest

import pullback as torch

Exact = Callable[..., Any]
Points = Callable[[np.random.Generator], np.ndarray]
LARGEST = mp.mpf("1.797693134862315708e308")


class Case(NamedTuple):
    """A function of one number, its exact twin, where to look, the bound; if it swings, how far."""

    name: str
    exact: Exact
    points: list[Points]
    bound: float
    amplitude: Exact | None = None


def flat(low: float, high: float, n: int = 80) -> Points:
    return lambda rng: rng.uniform(low, high, n)


def steep(low: float, high: float, n: int = 60, sign: float = 1.0) -> Points:
    return lambda rng: sign * np.exp(rng.uniform(np.log(low), np.log(high), n))


def near(place: float, low: float = 1e-14, high: float = 1e-2) -> Points:
    return lambda rng: (
        place
        + np.concatenate(
            [sign * np.exp(rng.uniform(np.log(low), np.log(high), 15)) for sign in (-1, 1)]
        )
    )


def these(*numbers: float) -> Points:
    return lambda rng: np.array(numbers)


def bessel_amplitude(order: int) -> Exact:
    def amplitude(x: Any) -> Any:
        x = abs(x)
        return mp.hypot(mp.besselj(order, x), mp.bessely(order, x)) if x > 0.5 else mp.mpf(0)

    return amplitude


def airy_amplitude(x: Any) -> Any:
    return mp.hypot(mp.airyai(x), mp.airybi(x)) if x < -2 else mp.mpf(0)


def digamma_amplitude(x: Any) -> Any:
    return 1 + abs(mp.log(1 - x)) if x < 0 else mp.mpf(0)


def log_gamma(x: Any) -> Any:
    return mp.re(mp.loggamma(x)) if x > 0 else mp.log(abs(mp.gamma(x)))


def log_gamma_amplitude(x: Any) -> Any:
    """Near the zeros above -16 an error is absolute, below it is one of ``ln Γ(-x)``."""
    return mp.mpf(0) if x > 0 else mp.mpf(2) ** -8 if x > -16 else mp.re(mp.loggamma(-x))


def normal(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def log_normal(x: Any) -> Any:
    return mp.log(normal(x)) if x < 5 else mp.log1p(-normal(-x))


def quantile(p: Any) -> Any:
    """By Newton's steps from what is to be checked, which double its digits each."""
    y = mp.mpf(float(torch.special.ndtri(torch.tensor(float(p), dtype=torch.float64))))
    for _ in range(3):
        y -= (normal(y) - p) * mp.sqrt(2 * mp.pi) * mp.exp(y * y / 2)
    return y


SMALL = these(5e-324, 1e-310, 2.3e-308, 1e-300, 1e-20)
WAVES = [flat(-8, 8), near(8), steep(8, 1e3), steep(1e3, 1e15, 30), SMALL]
POSITIVE_WAVES = [flat(1e-3, 8), near(1), near(8), steep(1e-300, 1e-3), steep(8, 1e15)]
EVERYWHERE = [flat(-9, 9), near(8), steep(1e-10, 1e4), steep(1e-10, 1e4, sign=-1), SMALL]
ABOVE = [flat(1e-3, 9), near(1), steep(1e-300, 1e-3), steep(9, 700)]

# Bounds of functions that are computed in single precision.
SINGLES = {"erf": 0.75}

CASES = [
    Case(
        "bessel_j0",
        lambda x: mp.besselj(0, x),
        [*WAVES, near(2.404825557695773)],
        4,
        bessel_amplitude(0),
    ),
    Case(
        "bessel_j1",
        lambda x: mp.besselj(1, x),
        [*WAVES, near(3.831705970207512)],
        4,
        bessel_amplitude(1),
    ),
    Case("bessel_y0", lambda x: mp.bessely(0, x), POSITIVE_WAVES, 4, bessel_amplitude(0)),
    Case("bessel_y1", lambda x: mp.bessely(1, x), POSITIVE_WAVES, 4, bessel_amplitude(1)),
    Case("spherical_bessel_j0", lambda x: mp.sin(x) / x, WAVES, 2),
    Case(
        "i0",
        lambda x: mp.besseli(0, x),
        [*EVERYWHERE[:2], flat(9, 700), flat(700, 713.9, 20), SMALL],
        4,
    ),
    Case(
        "i1",
        lambda x: mp.besseli(1, x),
        [*EVERYWHERE[:2], flat(9, 700), flat(700, 713.9, 20), SMALL],
        4,
    ),
    Case("i0e", lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), EVERYWHERE, 2),
    Case("i1e", lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), EVERYWHERE, 3),
    Case("modified_bessel_k0", lambda x: mp.besselk(0, x), [*ABOVE, flat(690, 745, 20)], 4),
    Case("modified_bessel_k1", lambda x: mp.besselk(1, x), [*ABOVE, flat(690, 745, 20)], 4),
    Case("scaled_modified_bessel_k0", lambda x: mp.besselk(0, x) * mp.exp(x), ABOVE, 4),
    Case("scaled_modified_bessel_k1", lambda x: mp.besselk(1, x) * mp.exp(x), ABOVE, 4),
    Case(
        "airy_ai",
        mp.airyai,
        [flat(-8, 3), flat(2, 103), flat(103, 107, 10), steep(8, 1e10, sign=-1)],
        4,
        airy_amplitude,
    ),
    Case("erf", mp.erf, [flat(-6, 6), flat(-1.2, 1.2), near(1), steep(1e-300, 1), SMALL], 1),
    Case(
        "erfc",
        lambda x: mp.erfc(x),
        [flat(-6, 26), flat(-1, 1), near(0.5), near(-0.5), steep(1e-300, 1), flat(26, 27, 20)],
        2,
    ),
    Case(
        "gammaln",
        log_gamma,
        [
            *[flat(0, 3), flat(3, 20), near(1), near(2), near(0.5), near(3), near(8)],
            *[steep(1e-300, 1), steep(8, 1e305), steep(1e-300, 0.5, sign=-1)],
            *[flat(-16, 0, 200), near(-2.4570247382208006), near(-2.7476826467274127), near(-3)],
            *[near(-4.0), near(-3.955294284858598), flat(-170, -16)],
        ],
        3,
        log_gamma_amplitude,
    ),
    Case(
        "erfcx",
        lambda x: mp.exp(x * x) * mp.erfc(x),
        [flat(-26.6, 10), near(2), steep(1e-20, 1e100)],
        4,
    ),
    Case(
        "erfinv",
        mp.erfinv,
        [flat(-1, 1), near(0.875), near(1 - 1e-2, 1e-9, 9e-3), steep(1e-300, 1), these(1 - 2**-53)],
        4,
    ),
    Case("ndtr", normal, [flat(-38, 9), flat(-2, 2), flat(-38.5, -37, 10), SMALL], 4),
    Case("log_ndtr", log_normal, [flat(-50, 15), flat(-2, 2), steep(1, 1e6, sign=-1)], 4),
    Case(
        "ndtri",
        quantile,
        [flat(0, 1), near(0.0625), near(0.5, 1e-14, 0.4), steep(5e-324, 0.1), these(1 - 2**-53)],
        4,
    ),
    Case("entr", lambda x: -x * mp.log(x), [flat(0, 3), near(1), steep(1e-300, 1e300)], 2),
    Case(
        "logit",
        lambda x: mp.log(x / (1 - x)),
        [flat(0, 1), near(0.5), near(0.25), near(0.75), steep(1e-300, 0.1)],
        4,
    ),
    Case(
        "sinc",
        lambda x: mp.sinpi(x) / (mp.pi * x),
        [flat(-9, 9), near(1), near(-7), near(1e6), steep(1e-300, 1e14)],
        4,
    ),
    Case(
        "digamma",
        mp.digamma,
        [flat(0, 20), near(1.4616321449683622), steep(1e-300, 1e300), flat(-20, 0)],
        4,
        digamma_amplitude,
    ),
]


def units(got: float, exact: Any, size: Any, dtype: torch.dtype) -> float:
    """How far a number is from the exact one, in units of the last place of ``size``."""
    digits, least = (53, -1022) if dtype is torch.float64 else (24, -126)
    if abs(exact) > LARGEST * (1 if dtype is torch.float64 else mp.mpf(2) ** -896):
        return 0.0 if abs(got) == np.inf else np.inf
    if not np.isfinite(got) or size == 0:
        return 0.0 if got == exact else np.inf
    exponent = max(int(mp.floor(mp.log(size, 2))), least)
    return float(abs(mp.mpf(got) - exact) / mp.mpf(2) ** (exponent - digits + 1))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_values_are_within_the_bound(case: Case) -> None:
    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    wide = np.concatenate([points(rng) for points in case.points])
    with np.errstate(over="ignore"):
        singles = wide.astype(np.float32)
    function = getattr(torch.special, case.name)
    for dtype, x, bound in (
        (torch.float64, wide, case.bound),
        # One rounding, and one of a number just beside the middle of two; or what is documented.
        (torch.float32, singles[::3], SINGLES.get(case.name, 0.5 + 1e-6)),
    ):
        values = function(torch.tensor(x.tolist(), dtype=dtype)).tolist()
        with mp.workdps(50):
            for place, value in zip(x.tolist(), values, strict=True):
                if dtype is torch.float32 and not np.isfinite(place):
                    continue
                if place == 0 or (case.name == "erfinv" and abs(place) == 1):
                    continue
                if case.name in ("ndtri", "logit") and place == 1:
                    continue
                if case.name == "gammaln" and place < 0 and place == np.floor(place):
                    assert value == np.inf, "a pole"
                    continue
                exact = mp.re(case.exact(mp.mpf(place)))
                size = abs(exact)
                if case.amplitude is not None:
                    size = max(size, case.amplitude(mp.mpf(place)))
                error = units(value, exact, size, dtype)
                assert error <= bound, (dtype, place, value, mp.nstr(exact, 20), error)


def check_pairs(name: str, exact: Exact, a: Any, b: Any, bound: Callable[[Any], float]) -> None:
    """A function of two numbers; the bound depends on the exact value."""
    x, y = (torch.tensor([float(v) for v in part], dtype=torch.float64) for part in (a, b))
    values = getattr(torch.special, name)(x, y).tolist()
    with mp.workdps(50):
        for first, second, value in zip(x.tolist(), y.tolist(), values, strict=True):
            right = mp.re(exact(mp.mpf(first), mp.mpf(second)))
            error = units(value, right, abs(right), torch.float64)
            assert error <= bound(right), (first, second, value, mp.nstr(right, 20), error)


def test_xlog1py_is_within_two_units() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.uniform(-5, 5, 200), rng.uniform(-1, 5, 200)
    check_pairs("xlog1py", lambda x, y: x * mp.log1p(y), a, b, lambda _: 2)


def hurwitz(s: Any, q: Any) -> Any:
    """The sum to ``q + 40`` and the Euler-Maclaurin formula."""
    at = q + 40
    total = mp.fsum((q + k) ** -s for k in range(40)) + at ** (1 - s) / (s - 1) + at**-s / 2
    term = s * at ** (-s - 1)
    for j in range(1, 30):
        total += mp.bernoulli(2 * j) / mp.factorial(2 * j) * term
        term *= (s + 2 * j - 1) * (s + 2 * j) / at**2
    return total


def test_zeta_is_within_eight_units() -> None:
    rng = np.random.default_rng(2)
    s = np.concatenate([rng.uniform(1.001, 40, 120), 1 + np.exp(rng.uniform(-20, -4, 30))])
    check_pairs("zeta", hurwitz, s, np.exp(rng.uniform(-7, 9, 150)), lambda _: 8)


def test_polygamma_is_within_eight_units_above_zero() -> None:
    rng = np.random.default_rng(3)
    for n in (1, 2, 3, 7, 20):
        x = np.exp(rng.uniform(-5, 6, 40))
        values = torch.special.polygamma(n, torch.tensor(x.tolist(), dtype=torch.float64)).tolist()
        with mp.workdps(50):
            for place, value in zip(x.tolist(), values, strict=True):
                right = (-1) ** (n + 1) * mp.factorial(n) * hurwitz(mp.mpf(n + 1), mp.mpf(place))
                error = units(value, right, abs(right), torch.float64)
                assert error <= 8, (n, place, value, error)


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gamma_functions_are_within_their_bound(name: str) -> None:
    rng = np.random.default_rng(4)
    a = np.concatenate(
        [np.exp(rng.uniform(-7, 4, 60)), rng.uniform(1, 200, 40), np.exp(rng.uniform(3, 9, 40))]
    )
    x = np.concatenate(
        [
            np.exp(rng.uniform(-4, 4, 60)),
            rng.uniform(1, 300, 40),
            a[100:] * rng.uniform(0.6, 1.4, 40),
        ]
    )

    def exact(a: Any, x: Any) -> Any:
        ends = (0, x) if name == "gammainc" else (x, mp.inf)
        return mp.gammainc(a, *ends, regularized=True)

    # The exponent of the common factor is a rounded difference, whose error its power multiplies.
    check_pairs(name, exact, a, x, lambda right: 64 + 4 * abs(float(mp.log(right))))


def test_polynomials_are_exact_to_a_few_units_for_each_order() -> None:
    rng = np.random.default_rng(5)
    twins = {
        "chebyshev_polynomial_t": mp.chebyt,
        "chebyshev_polynomial_u": mp.chebyu,
        "hermite_polynomial_h": mp.hermite,
        "laguerre_polynomial_l": lambda n, x: mp.laguerre(n, 0, x),
        "legendre_polynomial_p": mp.legendre,
    }
    for name, twin in twins.items():
        for n in (0, 1, 2, 5, 8, 20):
            x = rng.uniform(-1, 1, 10)
            values = getattr(torch.special, name)(torch.tensor(x.tolist(), dtype=torch.float64), n)
            exact = [twin(n, mp.mpf(place)) for place in x.tolist()]
            size = max(1.0, *(abs(float(v)) for v in exact))
            for value, right in zip(values.tolist(), exact, strict=True):
                assert abs(value - right) <= 4e-16 * (n + 1) * size, (name, n, value)
