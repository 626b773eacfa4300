"""The functions of `torch.special` that have no twin among the core ops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from op_table.call import POSITIVE, PROBABILITY, SMALL, Domain, Op, call, of, with_, x
from op_table.pointwise import FAR, KINKS_OF, MODERATE, binary, unary, unary_calls

WIDE = Domain(-127, 127, (-8, 8))
DOMAINS = {
    "entr": POSITIVE,
    "ndtri": PROBABILITY,
    # Further out, half precision leaves nothing of the reference's sum.
    "ndtr": SMALL,
    **dict.fromkeys(
        [
            "bessel_y0",
            "bessel_y1",
            "modified_bessel_k0",
            "modified_bessel_k1",
            "scaled_modified_bessel_k0",
            "scaled_modified_bessel_k1",
        ],
        POSITIVE,
    ),
}
UNARY = """airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 entr erfcx i0e i1 i1e log_ndtr
    modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 ndtr ndtri
    scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0"""
POLYNOMIALS = """chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v
    chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l
    legendre_polynomial_p shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u
    shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w"""
# Where the reference itself rounds between, in the dtype of the elements.
TOLERANCES = {"i1e": 16.0, "i1": 8.0}
DEGREE = Domain(whole=(0, 6))


def ops() -> Iterator[Op]:
    """All ops of this module."""
    for name in UNARY.split():
        wide = call(x(9, domain=DOMAINS.get(name, WIDE), seed=4))
        op = unary(f"special.{name}", DOMAINS.get(name, WIDE), wide, large=FAR)
        yield replace(op, tolerance=TOLERANCES.get(name, 2.0))
    for name in POLYNOMIALS.split():
        yield Op(
            f"special.{name}",
            (
                call(x(5, domain=SMALL), x(5, dtype="i64", domain=DEGREE)),
                call(x(2, 3, domain=SMALL), 3),
                call(x(3, 1, domain=SMALL), x(4, dtype="i64", domain=DEGREE)),
                call(0.5, x(4, dtype="i64", domain=DEGREE)),
                call(x(domain=SMALL), 2),
                call(x(0), 2),
                call(x(3, domain=SMALL), x(3, domain=Domain(1, 79, (0, 5)), seed=1)),
                with_(call(of(1.0, -1.0, 0.0, 2.0), 5), only=("f64", "f32")),
                with_(call(x(3), 40), only=("f64",)),
                call(x(3), -1),
            ),
            scaled=lambda n: call(x(n, domain=SMALL), 3),
            tolerance=4,
        )
    yield binary("special.xlog1py", call(2, x(4, domain=POSITIVE)), right=POSITIVE)
    above_one = Domain(19, 95, (2, 9))
    yield binary("special.zeta", call(2, x(4, domain=POSITIVE)), left=above_one, right=POSITIVE)
    zeroth = [
        with_(made, args=(0, *made.args), variant="special_polygamma_n_0")
        for made in unary_calls(MODERATE, KINKS_OF["digamma"])
    ]
    yield Op(
        "special.polygamma",
        tuple(zeroth),
        scaled=lambda n: call(0, x(n, domain=MODERATE)),
        tolerance=10,
    )
