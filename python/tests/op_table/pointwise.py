"""Ops that work element by element: on one tensor, on two that broadcast, on three."""

from __future__ import annotations

from collections.abc import Iterator

from op_table.call import (
    ABOVE_ONE,
    COMPLEX,
    FLOATS,
    LIMITS,
    NONZERO,
    OWN,
    POSITIVE,
    PROBABILITY,
    REAL,
    SMALL,
    UNIT,
    WHOLE,
    Call,
    Domain,
    Op,
    as_dtype,
    call,
    of,
    with_,
    x,
)

INF, NAN = float("inf"), float("nan")
KINKS = (0.0, 0.5, 1.0, -0.5, -1.0, 1.5, 2.0, -2.5)
LARGE = with_(
    call(of(100.0, -1000.0, 12345.0, 1e6, 1e15, -1e30)), only=("f64", "f32"), gradient=False
)
# Of oscillating functions the reference keeps few digits beyond, and none in single precision.
FAR = with_(call(of(50.0, -100.0, 1000.0)), only=("f64",), gradient=False)
EXTREMES = (0.0, -0.0, INF, -INF, NAN, 1e-30, -1e-30, 40.0)
# Without poles and places outside of the domain, where every formula gives something else.
KINKS_OF = {
    **dict.fromkeys(("digamma", "lgamma"), (0.5, 1.0, -0.5, 1.5, 2.0, -2.5)),
    "acosh": (1.0, 2.0, 1.5),
}
# A range in which functions that grow like factorials stay exact enough.
MODERATE = Domain(3, 79, (1, 5))

DOMAINS = {
    **dict.fromkeys(["asin", "acos", "atanh", "erfinv"], UNIT),
    **dict.fromkeys(["log", "log10", "log2", "rsqrt", "sqrt", "lgamma", "digamma"], POSITIVE),
    "acosh": ABOVE_ONE,
    "reciprocal": NONZERO,
    "logit": PROBABILITY,
    "log1p": Domain(-13, 79, (0, 9)),
    "exp": SMALL,
    "tan": Domain(-21, 21, (-1, 1)),
}
UNARY = """abs acos acosh angle asin asinh atan atanh bitwise_not ceil conj conj_physical cos
    cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac frexp i0 imag isfinite isinf
    isnan isneginf isposinf isreal lgamma log log10 log1p log2 logical_not logit nan_to_num neg
    positive rad2deg real reciprocal resolve_conj resolve_neg round rsqrt sgn sigmoid sign
    signbit sin sinc sinh sqrt square tan tanh trunc clone alias_copy contiguous view_as_real"""


def unary_calls(
    domain: Domain = REAL, kinks: tuple[float, ...] = KINKS, large: Call = LARGE
) -> tuple[Call, ...]:
    """Shapes, layouts and exceptional elements of one argument."""
    return (
        call(x(5, domain=domain)),
        call(x(3, 4, domain=domain, layout="transposed")),
        call(x(domain=domain, seed=3)),
        call(x(0, 3, domain=domain)),
        call(x(2, 3, 2, domain=domain, layout="strided", seed=1)),
        with_(call(of(*kinks)), only=("f64", "f32", "c128"), second=False),
        with_(call(of(*EXTREMES)), only=FLOATS, gradient=False),
        # Longer than any register, with a remainder.
        call(x(37, domain=domain)),
        large,
        with_(call(of(*LIMITS)), only=WHOLE),
        with_(
            call(of(0j, 1 + 0j, -1j, complex(INF, 1), complex(NAN, 0), complex(-0.0, 2))),
            only=COMPLEX,
            gradient=False,
        ),
    )


def unary(name: str, domain: Domain = REAL, *more: Call, large: Call = LARGE) -> Op:
    """An op of one argument."""
    scaled = lambda n: call(x(n, domain=domain))  # noqa: E731
    return Op(name, (*unary_calls(domain, KINKS_OF.get(name, KINKS), large), *more), scaled=scaled)


def plain_unary() -> Iterator[Op]:
    """The ops of one argument without options."""
    more = {
        "logit": (call(x(5), 0.125), call(x(5), eps=0.25)),
        "nan_to_num": (
            call(of(INF, -INF, NAN, 1.0), 2.0, 3.0, -4.0),
            call(of(INF, -INF, NAN, 1.0), posinf=7.0),
        ),
        "clone": (call(x(2, 3, layout="transposed"), memory_format=Contiguous),),
        "contiguous": (call(x(1, 2, 2, 2), memory_format=ChannelsLast),),
        "round": tuple(
            with_(call(x(6), decimals=n), variant=f"decimals_{str(n).replace('-', 'neg_')}")
            for n in (0, 3, -3)
        ),
    }
    for name in UNARY.split():
        large = FAR if name == "sinc" else LARGE
        yield unary(name, DOMAINS.get(name, REAL), *more.get(name, ()), large=large)


Contiguous = type(OWN)(lambda lib, _: lib.contiguous_format)
ChannelsLast = type(OWN)(lambda lib, _: lib.channels_last)


def binary_calls(left: Domain = REAL, right: Domain = REAL, **options: object) -> tuple[Call, ...]:
    """Shapes that broadcast, mixed dtypes and exceptional elements of two arguments."""
    return (
        call(x(5, domain=left), x(5, domain=right, seed=2), **options),
        call(x(3, 4, domain=left), x(4, domain=right, seed=1), **options),
        call(x(3, 1, domain=left), x(4, domain=right, seed=1), **options),
        call(
            x(3, 4, domain=left, layout="transposed"),
            x(3, 1, domain=right, layout="offset"),
            **options,
        ),
        call(x(domain=left), x(3, domain=right, seed=1), **options),
        call(x(domain=left, seed=1), x(domain=right, seed=2), **options),
        call(x(0, 2, domain=left), x(1, 2, domain=right), **options),
        call(x(4, domain=left), x(4, domain=right, dtype="i32", seed=1), **options),
        call(x(37, domain=left), x(37, domain=right, seed=1), **options),
        with_(call(of(*LIMITS), of(1, 2, 3, 5, 7, 2), **options), only=WHOLE),
        call(x(4, domain=left), x(domain=right, dtype="f64", seed=1, gradient=False), **options),
        with_(
            call(
                of(0.0, 0.0, 1.0, 1.0, -1.0, 2.0, -2.0, 0.5),
                of(0.0, 1.0, 0.0, 1.0, -1.0, -2.0, 2.0, 0.5),
                **options,
            ),
            only=("f64", "f32"),
            second=False,
        ),
        with_(
            call(
                of(0.0, -0.0, INF, -INF, NAN, 1.0, INF, 0.0, -1.0, 1.0),
                of(-0.0, 0.0, INF, 1.0, 1.0, NAN, -INF, INF, 0.0, -INF),
                **options,
            ),
            only=FLOATS,
            gradient=False,
        ),
    )


def with_number(domain: Domain = REAL, **options: object) -> tuple[Call, ...]:
    """Calls whose second argument is a number."""
    return (
        call(x(4, domain=domain), 2, **options),
        call(x(2, 3, domain=domain), 2.5, **options),
        call(x(domain=domain), True, **options),
    )


def binary(
    name: str, *more: Call, left: Domain = REAL, right: Domain = REAL, number: bool = True
) -> Op:
    """An op of two arguments that broadcast."""
    scaled = lambda n: call(x(n, domain=left), x(n, domain=right, seed=2))  # noqa: E731
    numbers = with_number(left) if number else ()
    return Op(name, (*binary_calls(left, right), *numbers, *more), scaled=scaled)


COMPLEX_NUMBER = with_(call(x(3), 1.5 + 2j), only=("f32", "f64", "c64", "c128"))


def rounded(mode: str | None, variant: str) -> tuple[Call, ...]:
    """Divisions that round."""
    return (
        with_(call(x(5), x(5, domain=NONZERO), rounding_mode=mode), variant=variant),
        with_(call(x(3, 4), x(4, domain=NONZERO), rounding_mode=mode), variant=variant),
        call(x(4), 2, rounding_mode=mode),
        with_(
            call(of(5, -5, 5, -5, 0), of(3, 3, -3, -3, 2), rounding_mode=mode),
            only=(*FLOATS, *WHOLE[1:]),
        ),
    )


def two_arguments() -> Iterator[Op]:
    """The ops of two arguments."""
    yield binary(
        "add", call(x(4), x(4, seed=1), alpha=2), call(x(2, 2), 3, alpha=2), COMPLEX_NUMBER
    )
    yield binary(
        "sub", call(x(4), x(4, seed=1), alpha=2), call(x(2, 2), 3, alpha=2), COMPLEX_NUMBER
    )
    yield binary("rsub", call(x(4), x(4, seed=1), alpha=2), call(x(2, 2), 3, alpha=2))
    yield binary("mul", COMPLEX_NUMBER)
    yield binary(
        "div",
        *rounded(None, "no_rounding_mode"),
        *rounded("trunc", "trunc_rounding"),
        *rounded("floor", "floor_rounding"),
        right=NONZERO,
    )
    yield binary("true_divide", right=NONZERO)
    yield binary("floor_divide", right=NONZERO)
    signs = with_(call(of(5, -5, 5, -5, 0), of(3, 3, -3, -3, 2)), only=(*FLOATS, *WHOLE[1:]))
    by_zero = with_(call(of(5, -5, 0), of(0, 0, 0)), only=WHOLE)
    for name in ("fmod", "remainder"):
        yield binary(name, call(5, x(3, domain=NONZERO)), signs, by_zero, right=NONZERO)
    small = Domain(1, 31, (0, 3))
    yield binary(
        "pow",
        call(2, x(4, domain=small)),
        call(2.5, x(4, domain=small)),
        call(x(4), 3),
        call(x(4, domain=POSITIVE), 0.5),
        call(x(4), 0),
        with_(call(x(4, domain=NONZERO), -1), only=(*FLOATS, *COMPLEX, *WHOLE)),
        left=POSITIVE,
        right=small,
    )
    yield binary("float_power", call(2, x(4, domain=small)), left=POSITIVE, right=small)
    for name in ["eq", "ne", "lt", "le", "gt", "ge"]:
        yield binary(name)
    for name in ["bitwise_and", "bitwise_or", "bitwise_xor"]:
        yield binary(name, call(5, x(3)))
    shift = Domain(1, 15, (0, 5))
    for name in ("bitwise_left_shift", "bitwise_right_shift"):
        past_width = with_(call(of(1, 5, 7), of(8, 64, -1)), only=WHOLE[1:])
        yield binary(name, call(3, x(3, domain=shift)), past_width, right=shift)
    for name in ["logical_and", "logical_or", "logical_xor"]:
        yield binary(name, number=False)
    for name in [
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "logaddexp",
        "logaddexp2",
        "nextafter",
        "hypot",
        "heaviside",
        "gcd",
        "lcm",
    ]:
        yield binary(name, number=False)
    yield binary("atan2", number=False)
    yield binary("copysign")
    yield binary("xlogy", call(2, x(4, domain=POSITIVE)), right=POSITIVE)
    yield binary("ldexp", right=Domain(-15, 15, (-3, 5)), number=False)
    for name in ("igamma", "igammac"):
        yield binary(name, left=POSITIVE, right=POSITIVE, number=False)
    yield binary("isclose", call(x(4), x(4), 0.5, 0.25), call(x(4), x(4), equal_nan=True))
    yield Op(
        "polar",
        binary_calls(POSITIVE)[:7],
        scaled=lambda n: call(x(n, domain=POSITIVE), x(n, seed=2)),
    )
    yield Op("complex", binary_calls()[:7], scaled=lambda n: call(x(n), x(n, seed=2)))


def comparisons() -> Iterator[Op]:
    """Comparisons of whole tensors."""
    yield Op(
        "allclose",
        (
            call(x(4), x(4)),
            call(x(4), x(4, seed=1)),
            call(x(4), x(4, seed=1), 100.0, 100.0),
            call(of(NAN), of(NAN)),
            call(of(NAN), of(NAN), equal_nan=True),
            call(x(0), x(0)),
            call(x(2, 3), x(3)),
        ),
        scaled=lambda n: call(x(n), x(n)),
    )
    yield Op(
        "equal",
        (
            call(x(4), x(4)),
            call(x(4), x(4, seed=1)),
            call(x(4), x(2, 2)),
            call(x(0), x(0)),
            call(x(4), x(4, dtype="f64", gradient=False)),
            call(x(), x()),
        ),
        scaled=lambda n: call(x(n), x(n)),
    )


def limits() -> Iterator[Op]:
    """Limiting elements, and other ops of three arguments."""
    edges = with_(call(of(-1.0, 0.0, 1.0, NAN, 2.0), -1.0, 1.0), only=("f64", "f32"))
    yield Op(
        "clamp",
        (
            call(x(5), -1, 2),
            call(x(3, 4, layout="transposed"), min=0),
            call(x(4), max=1.5),
            call(x(3, 4), x(4, seed=1), x(3, 1, seed=2)),
            call(x(3), x(3, seed=1), None),
            call(x(3), None, x(3, seed=1)),
            call(x(), 3, 1),
            call(x(0), 0, 1),
            edges,
            call(x(3)),
        ),
        scaled=lambda n: call(x(n), -1, 2),
    )
    for name in ("clamp_min", "clamp_max"):
        yield Op(
            name,
            (
                call(x(5), 1),
                call(x(3, 4), 1.5),
                call(x(3, 4), x(4, seed=1)),
                call(x(), x(seed=1)),
                call(x(0), 0),
                with_(call(of(-1.0, 0.0, 1.0, NAN), 0.0), only=("f64", "f32")),
            ),
            scaled=lambda n: call(x(n), 1),
        )
    yield Op(
        "lerp",
        (
            call(x(5), x(5, seed=1), x(5, seed=2)),
            call(x(3, 4), x(4, seed=1), 0.25),
            call(x(3, 1), x(4, seed=1), x(seed=2)),
            call(x(), x(seed=1), 0.75),
            call(x(0), x(0), 0.5),
            call(x(2, 2, layout="transposed"), x(2, 2, seed=1), x(2, 2, seed=2)),
        ),
        scaled=lambda n: call(x(n), x(n, seed=1), 0.25),
    )
    for name, third in (("addcmul", REAL), ("addcdiv", NONZERO)):
        yield Op(
            name,
            (
                call(x(5), x(5, seed=1), x(5, domain=third, seed=2)),
                call(x(3, 4), x(4, seed=1), x(3, 1, domain=third, seed=2), value=2),
                call(x(), x(seed=1), x(domain=third, seed=2)),
                call(x(0), x(0), x(0, domain=third)),
                call(x(2, 3, layout="transposed"), x(seed=1), x(3, domain=third), value=1.5),
            ),
            scaled=lambda n, third=third: call(x(n), x(n, seed=1), x(n, domain=third, seed=2)),
        )
    mask = of(True, False, True, False, dtype="bool")
    yield Op(
        "where",
        (
            call(mask, x(4), x(4, seed=1)),
            call(mask, x(3, 4), x(4, seed=1)),
            call(mask, x(4), 0),
            call(mask, 1.5, x(4)),
            call(of(True, dtype="bool", shape=()), x(), x(seed=1)),
            call(mask, x(4), x(dtype="f64", gradient=False)),
            with_(call(mask), only=("f64",)),
            call(x(0, dtype="bool"), x(0), x(0)),
        ),
        scaled=lambda n: call(x(n, dtype="bool"), x(n), x(n, seed=1)),
        receiver=1,
    )
    yield Op(
        "masked_fill",
        (
            call(x(4), mask, 2),
            call(x(3, 4, layout="transposed"), mask, 0),
            call(x(3, 4), mask, x()),
            call(x(4), x(3, 4, dtype="bool"), 1),
            call(x(), of(True, dtype="bool", shape=()), 3),
            call(x(0), x(0, dtype="bool"), 1),
        ),
        scaled=lambda n: call(x(n), x(n, dtype="bool"), 2),
    )


def gamma() -> Iterator[Op]:
    """Polygamma functions and the multivariate log-gamma."""
    yield Op(
        "polygamma",
        tuple(
            with_(c, variant=f"polygamma_n_{n}")
            for n in range(5)
            for c in (
                call(n, x(5, domain=MODERATE)),
                call(n, x(2, 3, domain=MODERATE, layout="transposed")),
                call(n, x(domain=MODERATE)),
                with_(call(n, of(-0.5, -2.25, 0.0, INF, NAN)), only=("f64", "f32"), second=False),
            )
        ),
        scaled=lambda n: call(1, x(n, domain=MODERATE)),
        receiver=1,
        tolerance=10,
    )
    large = Domain(37, 95, (3, 9))
    yield Op(
        "mvlgamma",
        tuple(
            with_(c, variant=f"mvlgamma_p_{p}")
            for p in (1, 3, 5)
            for c in (
                call(x(5, domain=large), p),
                call(x(2, 3, domain=large), p=p),
                call(x(domain=large), p),
                call(x(0, domain=large), p),
            )
        ),
        scaled=lambda n: call(x(n, domain=large), 3),
    )


CASTS = "bfloat16 bool byte cdouble cfloat chalf char double float half int long short"


def casts() -> Iterator[Op]:
    """Methods that convert."""
    for name in CASTS.split():
        yield Op(
            name,
            (
                call(x(5)),
                call(x(3, 4, layout="transposed")),
                call(x()),
                call(x(0, 2)),
                call(x(2, 2), memory_format=Contiguous),
            ),
            function=lambda lib, name=name: getattr(lib.Tensor, name),
            scaled=lambda n: call(x(n)),
        )
    yield Op(
        "to",
        (
            call(x(4), as_dtype("f64")),
            call(x(4), as_dtype("i64")),
            call(x(2, 3, layout="transposed"), OWN, copy=True),
            call(x(3), "cpu"),
            call(x(3), "cpu", as_dtype("f32")),
            call(x(3), x(2, dtype="f64", gradient=False)),
            call(x(), dtype=as_dtype("c128")),
            call(x(3), OWN),
        ),
        scaled=lambda n: call(x(n), as_dtype("f64")),
    )


def ops() -> Iterator[Op]:
    """All ops of this module."""
    for family in (plain_unary, two_arguments, comparisons, limits, gamma, casts):
        yield from family()
