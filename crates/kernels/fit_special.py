"""Computes the tables of ``src/special/table/``: polynomials for smooth functions, in pieces.

``python fit_special.py FOLDER`` (with mpmath) writes them again. Each is the Chebyshev interpolant
of the function that its line below names, in powers of ``t`` in ``-1..1``; its degree is the least
whose error is below ``2^-56`` of the function. Temme's coefficients are exact series, rounded.
What loops without branches compute with (``error``, ``angle``) is one polynomial each for a whole
interval, in powers of its variable; where its first coefficient dominates, with what rounding took
from that.
What singles are computed with (``single.rs``) are quotients of polynomials of small relative error.
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath as mp

mp.mp.dps = 50
Function = Callable[[Any], Any]


def interpolant(f: Function, low: Any, high: Any, degree: int) -> list[Any]:
    """Powers of ``t`` of the polynomial that meets ``f`` at the Chebyshev points."""
    n = degree + 1
    angles = [mp.pi * (2 * k + 1) / (2 * n) for k in range(n)]
    values = [f((low + high) / 2 + (high - low) / 2 * mp.cos(a)) for a in angles]
    series = [
        2 * mp.fsum(v * mp.cos(j * a) for v, a in zip(values, angles, strict=True)) / n
        for j in range(n)
    ]
    series[0] /= 2
    before, now = [mp.mpf(1)], [mp.mpf(0), mp.mpf(1)]
    powers = [mp.mpf(0)] * n
    for j in range(n):
        for i, c in enumerate(before):
            powers[i] += series[j] * c
        doubled = [mp.mpf(0)] + [2 * c for c in now]
        for i, c in enumerate(before):
            doubled[i] -= c
        before, now = now, doubled
    return powers


def error(f: Function, low: Any, high: Any, powers: list[Any]) -> Any:
    """The largest error on a piece over the largest value."""
    worst, size = mp.mpf(0), mp.mpf(0)
    for k in range(1, 24):
        t = -1 + mp.mpf(2 * k) / 24 + mp.mpf(k) / 1000
        value = f((low + high) / 2 + (high - low) / 2 * t)
        worst = max(worst, abs(mp.polyval(powers[::-1], t) - value))
        size = max(size, abs(value))
    return worst / size


def table(name: str, text: str, f: Function, low: float, high: float, pieces: int) -> str:
    """A table as Rust."""
    low_, width = mp.mpf(low), (mp.mpf(high) - mp.mpf(low)) / pieces
    ends = [(low_ + i * width, low_ + (i + 1) * width) for i in range(pieces)]
    degree = 6
    rows = []
    for a, b in ends:
        powers = interpolant(f, a, b, degree)
        while error(f, a, b, powers) > mp.mpf(2) ** -56:
            degree += 1
            powers = interpolant(f, a, b, degree)
    rows = [[float(c) for c in interpolant(f, a, b, degree)] for a, b in ends]
    worst = max(
        float(error(f, a, b, [mp.mpf(c) for c in row]))
        for (a, b), row in zip(ends, rows, strict=True)
    )
    print(name, pieces, degree, f"{worst:.1e}", flush=True)
    return rust(name, text, low, high, rows)


def lines(row: list[float]) -> list[str]:
    """The numbers of a row, four to a line."""
    return [
        "            " + " ".join(f"{c!r}," for c in row[i : i + 4]) for i in range(0, len(row), 4)
    ]


def rust(name: str, text: str, low: float, high: float, rows: list[list[float]]) -> str:
    """The declaration of a table."""
    out = [f"/// {text}", "#[rustfmt::skip]"]
    out.append(f"pub(crate) static {name}: Pieces<{len(rows[0])}> = Pieces {{")
    out.append(f"    low: {low!r},")
    out.append(f"    scale: {len(rows) / (high - low)!r},")
    out.append("    rows: &[")
    for row in rows:
        out.append("        [")
        out.extend(lines(row))
        out.append("        ],")
    out.append("    ],")
    out.append("};")
    return "\n".join(out)


def modulus(order: int, sign: int) -> Function:
    """``P + sign Q`` of Hankel's expansions by ``z = 1 / x``, DLMF 10.17."""

    def f(z: Any) -> Any:
        x = 1 / mp.mpf(z)
        chi = x - mp.pi * (2 * order + 1) / 4
        j, y, scale = mp.besselj(order, x), mp.bessely(order, x), mp.sqrt(mp.pi * x / 2)
        p = scale * (j * mp.cos(chi) + y * mp.sin(chi))
        q = scale * (y * mp.cos(chi) - j * mp.sin(chi))
        return p + sign * q

    return f


def ndtri_tail(z: Any) -> Any:
    """``-ndtri(p) / r`` by ``z = 1 / r`` where ``r = sqrt(-2 ln p)``."""
    r = 1 / mp.mpf(z)
    log_p = -r * r / 2
    y = mp.findroot(
        lambda y: mp.log(mp.erfc(y / mp.sqrt(2)) / 2) - log_p,
        r - mp.log(2 * mp.pi * r * r) / (2 * r),
    )
    return y / r


def ndtri_centre(u: Any) -> Any:
    """``ndtri(1/2 + q) / q`` by ``u = q^2``."""
    q = mp.sqrt(mp.mpf(u))
    return mp.sqrt(2) * mp.erfinv(2 * q) / q


def airy_decay(w: Any) -> Any:
    """``2 sqrt(pi) x^(1/4) e^zeta Ai(x)`` by ``w = 1 / zeta``."""
    zeta = 1 / mp.mpf(w)
    x = (3 * zeta / 2) ** (mp.mpf(2) / 3)
    return mp.airyai(x) * 2 * mp.sqrt(mp.pi) * mp.sqrt(mp.sqrt(x)) * mp.exp(zeta)


def airy_wave(sign: int) -> Function:
    """``P + sign Q`` of DLMF 9.7.9 by ``w = 1 / zeta``."""

    def f(w: Any) -> Any:
        with mp.workdps(70):
            zeta = 1 / mp.mpf(w)
            x = (3 * zeta / 2) ** (mp.mpf(2) / 3)
            scale = mp.sqrt(mp.pi) * mp.sqrt(mp.sqrt(x))
            a, b = mp.airyai(-x) * scale, mp.airybi(-x) * scale
            c, s = mp.cos(zeta - mp.pi / 4), mp.sin(zeta - mp.pi / 4)
            p, q = a * c - b * s, a * s + b * c
            return p + sign * q

    return f


def log_part(u: Any) -> Any:
    """``(m - ln(1 + m)) / m^2``."""
    u = mp.mpf(u)
    return (u - mp.log1p(u)) / u**2 if u else mp.mpf(1) / 2


TWO_PI = 2 / mp.pi


def root(f: Function) -> Function:
    """A function of ``x`` as one of ``x^2``."""
    return lambda u: f(mp.sqrt(mp.mpf(u)))


ROOT = mp.findroot(mp.digamma, mp.mpf("1.4616"))


def quotient(f: Function, low: Any, high: Any, degrees: tuple[int, int]) -> list[list[Any]]:
    """Coefficients of ``P / Q`` with ``Q(0) = 1`` whose relative error is nearly the least.

    Weighted least squares of ``P - f Q`` at Chebyshev points: each round divides by the last ``Q``
    (Sanathanan and Koerner 1963) and weighs points by their errors so far (Lawson 1961).
    """
    count, (n, m) = 120, degrees
    angles = [mp.pi * (2 * k + 1) / (2 * count) for k in range(count)]
    points = [(low + high) / 2 + (high - low) / 2 * mp.cos(a) for a in angles]
    values = [f(x) for x in points]
    weights, under = [mp.mpf(1)] * count, [mp.mpf(1)] * count
    best: tuple[Any, list[list[Any]]] | None = None
    for _ in range(12):
        size = n + 1 + m
        matrix, right = mp.matrix(size, size), mp.matrix(size, 1)
        for x, y, weight, q in zip(points, values, weights, under, strict=True):
            row = [x**i for i in range(n + 1)] + [-y * x**j for j in range(1, m + 1)]
            scale = weight / (q * y) ** 2
            for i in range(size):
                right[i] += scale * row[i] * y
                for j in range(size):
                    matrix[i, j] += scale * row[i] * row[j]
        found = list(mp.lu_solve(matrix, right))
        parts = [found[: n + 1], [mp.mpf(1), *found[n + 1 :]]]
        over = [mp.polyval(parts[0][::-1], x) for x in points]
        under = [mp.polyval(parts[1][::-1], x) for x in points]
        errors = [abs(p / q / y - 1) for p, q, y in zip(over, under, values, strict=True)]
        if best is None or max(errors) < best[0]:
            best = max(errors), parts
        weights = [w * (e / max(errors) + 0.02) for w, e in zip(weights, errors, strict=True)]
        total = mp.fsum(weights) / count
        weights = [w / total for w in weights]
    assert best is not None
    print(degrees, f"2^{float(mp.log(best[0], 2)):.1f}", flush=True)
    return best[1]


def rational(name: str, text: str, parts: list[list[Any]]) -> str:
    """The declaration of a quotient."""
    over, under = ([float(c) for c in part] for part in parts)
    out = [f"/// {text}", "#[rustfmt::skip]"]
    out.append(f"pub(crate) static {name}: Rational<{len(over)}, {len(under)}> = Rational {{")
    for word, row in (("over", over), ("under", under)):
        out.extend([f"    {word}: [", *(line[4:] for line in lines(row)), "    ],"])
    return "\n".join([*out, "};"])


def erfinv_centre(v: Any) -> Any:
    """``erfinv(x) / x`` by ``v = 0.875^2 - x^2``."""
    x = mp.sqrt(mp.mpf("0.765625") - v)
    return mp.erfinv(x) / x


def erfinv_tail(t: Any) -> Any:
    """``erfinv(x)`` by ``t = sqrt(-2 ln((1 - x) / 2)) - 2.25``."""
    return mp.erfinv(1 - 2 * mp.exp(-((t + mp.mpf("2.25")) ** 2) / 2))


def scaled_bessel(order: int) -> Function:
    """``e^-x I(x)`` of order 0; of order 1 by ``x``."""
    return lambda x: mp.exp(-x) * mp.besseli(order, x) / x**order


def scaled_bessel_far(order: int) -> Function:
    """``sqrt(x) e^-x I(x)`` by ``1 / x``."""
    return lambda z: mp.exp(-1 / z) * mp.besseli(order, 1 / z) / mp.sqrt(z)


# From 0.875 to the single before 1 (and as much beyond both as does not matter).
TAIL_ENDS = (mp.mpf("0.1"), mp.mpf("3.66"))
RATIONALS: list[tuple[str, str, Function, Any, Any, tuple[int, int]]] = [
    (
        "ERFCX",
        "`erfcx(x)` up to 10.3.",
        lambda x: mp.exp(x * x) * mp.erfc(x),
        mp.mpf(0),
        mp.mpf("10.3"),
        (7, 8),
    ),
    (
        "ERFCX_FAR",
        "`x erfcx(x)` by `1/x²`, `x` from 10.3 upwards.",
        lambda z: mp.exp(1 / z) * mp.erfc(1 / mp.sqrt(z)) / mp.sqrt(z),
        mp.mpf(0),
        1 / mp.mpf("10.3") ** 2,
        (3, 3),
    ),
    (
        "I0E",
        "`e^-x I0(x)` up to 8.",
        scaled_bessel(0),
        mp.mpf(0),
        mp.mpf(8),
        (9, 9),
    ),
    (
        "I0E_FAR",
        "`sqrt(x) e^-x I0(x)` by `1/x`, `x` from 8 upwards.",
        scaled_bessel_far(0),
        mp.mpf(0),
        mp.mpf("0.125"),
        (7, 7),
    ),
    (
        "I1E",
        "`e^-x I1(x) / x` up to 8.",
        scaled_bessel(1),
        mp.mpf(0),
        mp.mpf(8),
        (9, 9),
    ),
    (
        "I1E_FAR",
        "`sqrt(x) e^-x I1(x)` by `1/x`, `x` from 8 upwards.",
        scaled_bessel_far(1),
        mp.mpf(0),
        mp.mpf("0.125"),
        (7, 7),
    ),
    (
        "ATANH",
        "`2 atanh(s) / s` by `s²` up to 1/9.",
        lambda z: 2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z),
        mp.mpf(0),
        mp.mpf(1) / 9,
        (8, 0),
    ),
    (
        "ERFINV_CENTRE",
        "`erfinv(x) / x` by `0.875² - x²`.",
        erfinv_centre,
        mp.mpf(0),
        mp.mpf("0.765625"),
        (5, 4),
    ),
    (
        "ERFINV_TAIL",
        "`erfinv(x)` by `sqrt(-2 ln((1 - x) / 2)) - 2.25`.",
        erfinv_tail,
        *TAIL_ENDS,
        (5, 4),
    ),
]

QUOTIENT = """/// A quotient of two polynomials, lowest coefficients first.
pub(crate) struct Rational<const N: usize, const M: usize> {
    pub(crate) over: [f64; N],
    pub(crate) under: [f64; M],
}
"""


FILES: dict[str, list[tuple[str, str, Function, float, float, int]]] = {
    "bessel_small": [
        ("J0", "`J0(x)`.", lambda x: mp.besselj(0, x), 0.0, 8.0, 8),
        ("J1", "`J1(x) / x`.", lambda x: mp.besselj(1, x) / x, 0.0, 8.0, 8),
        (
            "Y0_LOG",
            "`Y0(x) - 2/π ln(x) J0(x)` by `x²`.",
            root(lambda x: mp.bessely(0, x) - TWO_PI * mp.log(x) * mp.besselj(0, x)),
            0.0,
            1.0,
            1,
        ),
        (
            "Y1_LOG",
            "`(Y1(x) - 2/π (ln(x) J1(x) - 1/x)) / x` by `x²`.",
            root(
                lambda x: (mp.bessely(1, x) - TWO_PI * (mp.log(x) * mp.besselj(1, x) - 1 / x)) / x
            ),
            0.0,
            1.0,
            1,
        ),
    ],
    "bessel_single": [
        ("J0", "`J0(x)` by `x²`.", root(lambda x: mp.besselj(0, x)), 0.0, 64.0, 1),
        ("J1", "`J1(x) / x` by `x²`.", root(lambda x: mp.besselj(1, x) / x), 0.0, 64.0, 1),
        (
            "Y0_LOG",
            "`Y0(x) - 2/π ln(x) J0(x)` by `x²`.",
            root(lambda x: mp.bessely(0, x) - TWO_PI * mp.log(x) * mp.besselj(0, x)),
            0.0,
            64.0,
            1,
        ),
        (
            "Y1_LOG",
            "`(Y1(x) - 2/π (ln(x) J1(x) - 1/x)) / x` by `x²`.",
            root(
                lambda x: (mp.bessely(1, x) - TWO_PI * (mp.log(x) * mp.besselj(1, x) - 1 / x)) / x
            ),
            0.0,
            64.0,
            1,
        ),
        ("SUM0", "`P + Q` of order 0 by `1/x`, DLMF 10.17.", modulus(0, 1), 0.0, 0.125, 1),
        ("DIFFERENCE0", "`P - Q` of order 0 by `1/x`.", modulus(0, -1), 0.0, 0.125, 1),
        ("SUM1", "`P + Q` of order 1 by `1/x`.", modulus(1, 1), 0.0, 0.125, 1),
        ("DIFFERENCE1", "`P - Q` of order 1 by `1/x`.", modulus(1, -1), 0.0, 0.125, 1),
    ],
    "bessel_middle": [
        ("Y0", "`Y0(x)`.", lambda x: mp.bessely(0, x), 1.0, 8.0, 14),
        ("Y1", "`Y1(x)`.", lambda x: mp.bessely(1, x), 1.0, 8.0, 14),
    ],
    "bessel_large": [
        ("SUM0", "`P + Q` of order 0 by `1/x`, DLMF 10.17.", modulus(0, 1), 0.0, 0.125, 2),
        ("DIFFERENCE0", "`P - Q` of order 0 by `1/x`.", modulus(0, -1), 0.0, 0.125, 2),
        ("SUM1", "`P + Q` of order 1 by `1/x`.", modulus(1, 1), 0.0, 0.125, 2),
        ("DIFFERENCE1", "`P - Q` of order 1 by `1/x`.", modulus(1, -1), 0.0, 0.125, 2),
    ],
    "modified_i": [
        ("I0E", "`e^-x I0(x)`.", lambda x: mp.exp(-x) * mp.besseli(0, x), 0.0, 8.0, 8),
        ("I1E", "`e^-x I1(x) / x`.", lambda x: mp.exp(-x) * mp.besseli(1, x) / x, 0.0, 8.0, 8),
        (
            "I0E_LARGE",
            "`sqrt(x) e^-x I0(x)` by `1/x`.",
            lambda z: mp.exp(-1 / z) * mp.besseli(0, 1 / z) / mp.sqrt(z),
            0.0,
            0.125,
            4,
        ),
        (
            "I1E_LARGE",
            "`sqrt(x) e^-x I1(x)` by `1/x`.",
            lambda z: mp.exp(-1 / z) * mp.besseli(1, 1 / z) / mp.sqrt(z),
            0.0,
            0.125,
            4,
        ),
    ],
    "modified_k": [
        ("I0", "`I0(x)` by `x²`.", root(lambda x: mp.besseli(0, x)), 0.0, 1.0, 1),
        ("I1", "`I1(x) / x` by `x²`.", root(lambda x: mp.besseli(1, x) / x), 0.0, 1.0, 1),
        (
            "K0_LOG",
            "`K0(x) + ln(x) I0(x)` by `x²`.",
            root(lambda x: mp.besselk(0, x) + mp.log(x) * mp.besseli(0, x)),
            0.0,
            1.0,
            1,
        ),
        (
            "K1_LOG",
            "`(K1(x) - ln(x) I1(x) - 1/x) / x` by `x²`.",
            root(lambda x: (mp.besselk(1, x) - mp.log(x) * mp.besseli(1, x) - 1 / x) / x),
            0.0,
            1.0,
            1,
        ),
        (
            "K0E",
            "`sqrt(x) e^x K0(x)` by `1/x`.",
            lambda z: mp.exp(1 / z) * mp.besselk(0, 1 / z) / mp.sqrt(z),
            0.0,
            1.0,
            8,
        ),
        (
            "K1E",
            "`sqrt(x) e^x K1(x)` by `1/x`.",
            lambda z: mp.exp(1 / z) * mp.besselk(1, 1 / z) / mp.sqrt(z),
            0.0,
            1.0,
            8,
        ),
    ],
    "normal": [
        ("ERFCX", "`erfcx(x)`.", lambda x: mp.exp(x * x) * mp.erfc(x), 0.0, 2.0, 8),
        (
            "ERFCX_LARGE",
            "`x erfcx(x)` by `1/x`.",
            lambda z: mp.exp(1 / (z * z)) * mp.erfc(1 / z) / z,
            0.0,
            0.5,
            8,
        ),
    ],
    "quantile": [
        ("CENTRE", "`ndtri(1/2 + q) / q` by `q²`.", ndtri_centre, 0.0, 0.203125, 13),
        (
            "TAIL",
            "`-ndtri(p) / r` by `1/r`, where `r = sqrt(-2 ln p)`.",
            ndtri_tail,
            0.025,
            0.45,
            17,
        ),
    ],
    "airy": [
        ("AI", "`Ai(x)`.", mp.airyai, -8.0, 2.0, 20),
        (
            "DECAY",
            "`2 sqrt(π) x^(1/4) e^ζ Ai(x)` by `1/ζ`, `ζ = 2/3 x^(3/2)`.",
            airy_decay,
            0.0,
            0.5625,
            9,
        ),
        ("WAVE_SUM", "`P + Q` of DLMF 9.7.9 by `1/ζ`.", airy_wave(1), 0.0, 0.0703125, 1),
        ("WAVE_DIFFERENCE", "`P - Q` of DLMF 9.7.9 by `1/ζ`.", airy_wave(-1), 0.0, 0.0703125, 1),
    ],
    "gamma": [
        ("GAMMA", "`Γ(x)`.", mp.gamma, 1.0, 2.0, 4),
        (
            "LOG_GAMMA",
            "`ln Γ(1 + x) / x`.",
            lambda x: mp.loggamma(1 + x) / x if x else -mp.euler,
            -0.5,
            0.5,
            4,
        ),
        (
            "DIGAMMA",
            "`ψ(x) / (x - x0)` with the zero `x0` of `ψ`.",
            lambda x: mp.digamma(x) / (x - ROOT),
            1.0,
            2.0,
            4,
        ),
        ("LOG_PART", "`(m - ln(1 + m)) / m²`.", log_part, -0.5, 1.0, 6),
    ],
}


def temme(orders: int, powers: int) -> list[list[Fraction]]:
    """Coefficients of ``c_k(eta)``, DLMF 8.12.9 and 8.12.10, as power series."""
    n = powers + 2 * orders + 4
    # mu' mu = eta (1 + mu) with mu = eta + ...
    mu = [Fraction(0), Fraction(1)]
    for m in range(2, n):
        known = sum((i * mu[i] * mu[m + 1 - i - 0] for i in range(2, m)), Fraction(0))
        mu.append((mu[m - 1] - known) / (m + 1))
    # 1 / mu = (1 / eta) * inverse.
    shifted = mu[1:]
    inverse = [Fraction(1)]
    for m in range(1, n - 1):
        inverse.append(-sum((shifted[i] * inverse[m - i] for i in range(1, m + 1)), Fraction(0)))
    c = inverse[1:]
    out = [c[:powers]]
    for _ in range(1, orders):
        # c'/eta has the term c_1 / eta, which a multiple of 1 / mu takes away.
        derived = [Fraction(j) * c[j] for j in range(1, len(c))]
        g = derived[0]
        c = [derived[j] - g * inverse[j] for j in range(1, min(len(derived), len(inverse)))]
        out.append(c[:powers])
    return out


def powers_of(f: Function, low: Any, high: Any, degree: int) -> list[Any]:
    """Powers of ``x`` of the polynomial that meets ``f`` at the Chebyshev points."""
    n = degree + 1
    angles = [mp.pi * (2 * k + 1) / (2 * n) for k in range(n)]
    points = [(low + high) / 2 + (high - low) / 2 * mp.cos(a) for a in angles]
    matrix = mp.matrix(n, n)
    for i, x in enumerate(points):
        for j in range(n):
            matrix[i, j] = x**j
    return list(mp.lu_solve(matrix, mp.matrix([f(x) for x in points])))


def polynomial(
    name: str, text: str, f: Function, low: Any, high: Any, degree: int, has_low: bool
) -> str:
    """The declaration of a polynomial."""
    with mp.workdps(70):
        powers = powers_of(f, mp.mpf(low), mp.mpf(high), degree)
        ends = [mp.mpf(low) + (mp.mpf(high) - low) * mp.mpf(k) / 200 for k in range(1, 200)]
        worst = max(abs(mp.polyval(powers[::-1], x) - f(x)) for x in ends)
        print(name, degree, f"2^{float(mp.log(worst, 2)):.1f}", flush=True)
    row = [float(c) for c in powers]
    out = [f"/// {text}", "#[rustfmt::skip]"]
    out.append(f"pub(crate) static {name}: [f64; {len(row)}] = [")
    out.extend(line[8:] for line in lines(row))
    out.append("];")
    if has_low:
        out.append(f"/// What the first number of `{name}` lacks.")
        out.append(f"pub(crate) const {name}_LOW: f64 = {float(powers[0] - row[0])!r};")
    return "\n".join(out)


def scaled_erfc(t: Any) -> Any:
    """``(1 + 2x) erfcx(x)`` by ``t = (x - 4) / (x + 4)``."""
    x = 4 * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def over_cube(f: Function) -> Function:
    """``(f(x) - x) / x^3`` by ``x^2``."""

    def rest(z: Any) -> Any:
        x = mp.sqrt(z)
        return (f(x) / x - 1) / z

    return rest


TINY = mp.mpf("1e-20")
POLYNOMIALS: dict[str, list[tuple[str, str, Function, Any, Any, int, bool]]] = {
    "error": [
        (
            "ERFC",
            "`(1 + 2x) e^(x²) erfc(x)` by `(x - 4) / (x + 4)`, `x` up to 28.",
            scaled_erfc,
            -1,
            mp.mpf("0.75"),
            24,
            True,
        ),
        (
            "ERF",
            "`erf(x) / x - 1` by `x²` up to 1.",
            lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
            TINY,
            1,
            12,
            False,
        ),
    ],
    "angle": [
        (
            "ATAN",
            "`(atan(t) / t - 1) / t²` by `t²`, `t` up to `tan(π/8)`.",
            over_cube(mp.atan),
            TINY,
            mp.mpf("0.1717"),
            12,
            False,
        ),
        (
            "ASIN",
            "`(asin(s) / s - 1) / s²` by `s²`, `s` up to 1/2.",
            over_cube(mp.asin),
            TINY,
            mp.mpf("0.25"),
            13,
            False,
        ),
    ],
}


def log_gamma_pairs() -> str:
    """``ln Γ(1 + x)`` on 64 pieces of ``-1/2..1/2``, the first number of each as a pair."""
    degree = 9
    rows, low = [], []
    for i in range(64):
        a = mp.mpf(i) / 64 - mp.mpf(1) / 2
        powers = interpolant(lambda x: mp.loggamma(1 + x), a, a + mp.mpf(1) / 64, degree)
        rows.append([float(c) for c in powers])
        low.append(float(powers[0] - rows[-1][0]))
    out = [rust("LOG_GAMMA_NEAR", "`ln Γ(1 + x)`.", -0.5, 0.5, rows)]
    out.append("/// What the first number of each row of `LOG_GAMMA_NEAR` lacks.")
    out.append("#[rustfmt::skip]")
    out.append("pub(crate) static LOG_GAMMA_NEAR_LOW: [f64; 64] = [")
    out.extend(line[8:] for line in lines(low))
    return "\n".join([*out, "];"])


def stirling(z: Any) -> Any:
    """``x (ln Γ(x) - (x - 1/2) ln x + x - ln(2π)/2)`` by ``z = 1/x^2``, DLMF 5.11.1."""
    x = 1 / mp.sqrt(z)
    return x * (mp.loggamma(x) - (x - 0.5) * mp.log(x) + x - mp.log(2 * mp.pi) / 2)


def log_gamma_middle(x: Any) -> Any:
    """``ln Γ(x) / ((x - 1) (x - 2))``."""
    if x == 1:
        return mp.euler
    if x == 2:
        return 1 - mp.euler
    return mp.loggamma(x) / ((x - 1) * (x - 2))


HEAD = """//! Made by `fit_special.py`, which says how; not to be edited.

use super::Pieces;
"""


def main() -> None:
    """Writes every file, or those named."""
    folder = pathlib.Path(sys.argv[1])
    for file, entries in FILES.items():
        if len(sys.argv) > 2 and file not in sys.argv[2:]:
            continue
        tables = [table(*entry) for entry in entries]
        (folder / f"{file}.rs").write_text(HEAD + "\n" + "\n\n".join(tables) + "\n")
    for file, polynomials in POLYNOMIALS.items():
        if len(sys.argv) == 2 or file in sys.argv[2:]:
            texts = [polynomial(*entry) for entry in polynomials]
            head = HEAD.replace("\nuse super::Pieces;\n", "")
            (folder / f"{file}.rs").write_text(head + "\n" + "\n\n".join(texts) + "\n")
    if len(sys.argv) == 2 or "log_gamma" in sys.argv[2:]:
        text = "`ln Γ(x) / ((x - 1) (x - 2))`."
        middle = table("LOG_GAMMA_MIDDLE", text, log_gamma_middle, 0.5, 3.0, 10)
        beyond = table("LOG_GAMMA_BEYOND", "`ln Γ(x)`.", mp.loggamma, 3.0, 8.0, 10)
        text = "`x (ln Γ(x) - (x - 1/2) ln x + x - ln(2π)/2)` by `1/x²`, `x` from 8 upwards."
        far = polynomial("STIRLING", text, stirling, mp.mpf("1e-9"), mp.mpf(1) / 64, 8, False)
        all_ = "\n\n".join([middle, beyond, far, log_gamma_pairs()])
        (folder / "log_gamma.rs").write_text(HEAD + "\n" + all_ + "\n")
    if len(sys.argv) == 2 or "single" in sys.argv[2:]:
        with mp.workdps(80):
            quotients = [rational(name, text, quotient(*rest)) for name, text, *rest in RATIONALS]
        head = HEAD.replace("use super::Pieces;\n", QUOTIENT)
        (folder / "single.rs").write_text(head + "\n" + "\n\n".join(quotients) + "\n")
    if len(sys.argv) > 2 and "temme" not in sys.argv[2:]:
        return
    rows = temme(12, 18)
    out = ["/// `c_k(η)` of DLMF 8.12.9 by powers of `η`.", "#[rustfmt::skip]"]
    out.append(f"pub(crate) static TEMME: [[f64; 18]; {len(rows)}] = [")
    for row in rows:
        out.append("        [")
        out.extend(lines([float(c) for c in row]))
        out.append("        ],")
    out.append("];")
    (folder / "temme.rs").write_text(
        HEAD.replace("\nuse super::Pieces;\n", "") + "\n" + "\n".join(out) + "\n"
    )


main()
