"""Ops that join the elements along dimensions: sums, extremes, means, order statistics, scans."""

from __future__ import annotations

import math
from collections.abc import Iterator

from op_table.call import (
    FLOATS,
    LIMITS,
    REAL,
    SMALL,
    WHOLE,
    Call,
    Domain,
    Op,
    as_dtype,
    call,
    matrix,
    of,
    with_,
    x,
)

INF, NAN = float("inf"), float("nan")


def over_all(domain: Domain = REAL, **options: object) -> tuple[Call, ...]:
    """Reductions of a whole tensor."""
    return (
        call(x(7, domain=domain), **options),
        call(x(3, 4, domain=domain, layout="transposed"), **options),
        call(x(domain=domain), **options),
        call(x(0, domain=domain), **options),
        call(x(67, domain=domain), **options),
        with_(call(of(*LIMITS), **options), only=WHOLE),
    )


def over_dim(domain: Domain = REAL, several: bool = True, **options: object) -> tuple[Call, ...]:
    """Reductions along one dimension, or several."""
    single = (
        call(x(3, 4, domain=domain), 0, **options),
        call(x(3, 4, domain=domain, layout="transposed"), dim=-1, keepdim=True, **options),
        call(x(2, 3, 2, domain=domain, layout="strided"), 1, **options),
        call(x(domain=domain), 0, **options),
        call(x(0, 3, domain=domain), 0, **options),
        call(x(0, 3, domain=domain), 1, **options),
        call(x(3, 4, domain=domain), 2, **options),
        call(x(2, 37, domain=domain), 1, **options),
        call(x(21, 3, domain=domain), 0, **options),
    )
    multiple = (
        call(x(2, 3, 2, domain=domain), (0, 2), **options),
        call(x(2, 3, 2, domain=domain), dim=(-1, 1), keepdim=True, **options),
        call(x(2, 3, domain=domain), (), **options),
        call(x(2, 3, domain=domain), (0, 0), **options),
    )
    return single + multiple if several else single


def nan_calls(**options: object) -> tuple[Call, ...]:
    """Reductions with nan, infinities and ties."""
    return (
        with_(call(of(1.0, NAN, 3.0, -INF), **options), only=("f64", "f32"), gradient=False),
        with_(call(of(2.0, 2.0, 1.0, 2.0, 1.0, 1.0), **options), only=("f64", "i64", "bf16")),
    )


def along(
    name: str, *calls: Call, domain: Domain = REAL, dim: int | None = 1, **options: object
) -> Op:
    """An op that is timed along the last dimension, or over everything."""
    arguments = () if dim is None else (dim,)
    scaled = lambda n: call(x(*matrix(n), domain=domain), *arguments, **options)  # noqa: E731
    return Op(name, calls, scaled=scaled)


def sums() -> Iterator[Op]:
    """Sums, products, means and logical reductions."""
    to_double = call(x(3, 4), dtype=as_dtype("f64")), call(x(3, 4), 1, dtype=as_dtype("f64"))
    for name in ("sum", "nansum", "mean", "nanmean"):
        yield along(name, *over_all(), *over_dim(), *to_double, *nan_calls())
    zeros = [
        with_(call(of(*values)), only=("f64", "c128", "i64")) for values in ((0, 2, 3), (0, 2, 0))
    ]
    yield along(
        "prod", *over_all(SMALL), *over_dim(SMALL, several=False), *to_double, *zeros, *nan_calls()
    )
    for name in ("all", "any"):
        yield along(name, *over_all(), *over_dim(), *nan_calls())
    yield along(
        "count_nonzero", *over_all(), *over_dim()[:1], call(x(2, 3, 2), (0, 2)), call(x(), 0)
    )
    for name in ("std", "var"):
        unbiased = [
            with_(c, variant="unbiased")
            for c in (call(x(3, 4), True), call(x(3, 4), False), call(x(3, 4), 1, False))
        ]
        calls = [settled(made) for made in (*over_all(), *over_dim(), *corrections(), *unbiased)]
        yield along(name, *calls, *nan_calls())
        yield along(f"{name}_mean", *calls)
    logsumexp = [made for made in over_dim() if made.args[1:] != ((),)]
    yield along("logsumexp", *logsumexp, call(x(4), 0), *nan_calls(dim=0))
    yield Op(
        "sum_to_size",
        (
            call(x(3, 4), 4),
            call(x(3, 4), 3, 1),
            call(x(3, 4), (1, 4)),
            call(x(3, 4), ()),
            call(x(), ()),
            call(x(0, 2), 1, 2),
            call(x(3, 4), 5),
        ),
        scaled=lambda n: call(x(*matrix(n)), matrix(n)[1]),
    )
    yield Op(
        "hash_tensor",
        (call(x(5)), call(x(3, 4), 0), call(x(3, 4), dim=1, keepdim=True), call(x()), call(x(0))),
        scaled=lambda n: call(x(n)),
    )


def settled(made: Call) -> Call:
    """A variance without the derivatives that nobody has settled.

    Those of single elements are nan, however often one derives; and the reference's gradient for
    no dimensions at all divides by the number of elements in no dimension, though the variance is
    of all.
    """
    if made.args[1:] == ((),):
        return with_(made, gradient=False)
    return with_(made, second=math.prod(made.args[0].shape) != 1)


def corrections() -> tuple[Call, ...]:
    """Variances with another divisor."""
    return (
        call(x(3, 4), dim=1, correction=0),
        call(x(3, 4), dim=0, correction=2, keepdim=True),
        call(x(3, 4), correction=1.5),
        call(x(1), correction=1),
    )


def norms() -> Iterator[Op]:
    """Norms of vectors, by PyTorch's old name, and distances."""
    yield along(
        "norm",
        *over_all(),
        *(call(x(3, 4), p) for p in (0, 1, 2, 3, 0.5, -1)),
        call(x(3, 4), 2, 1),
        call(x(3, 4), 3, dim=(0, 1), keepdim=True),
        call(x(3, 4), dim=0),
        call(x(3, 4), 1, dtype=as_dtype("c128")),
        with_(call(of(0.0, 0.0)), only=("f64",)),
        *(
            with_(c, variant="inf")
            for c in (call(x(3, 4), INF), call(x(3, 4), -INF, 0), call(of(1.0, -1.0), INF))
        ),
        *(with_(c, variant="fro") for c in (call(x(3, 4), "fro"), call(x(2, 3, 4), "fro", (1, 2)))),
        *(with_(c, variant="nuc") for c in (call(x(3, 4), "nuc"), call(x(2, 3, 4), "nuc", (1, 2)))),
        dim=None,
    )
    yield Op(
        "dist",
        (
            call(x(5), x(5, seed=1)),
            call(x(3, 4), x(4, seed=1), 1),
            call(x(3), x(3, seed=1), p=INF),
            call(x(3), x(3, seed=1), 0),
            call(x(3), x(3, seed=1), 3.5),
            call(x(3), x(3)),
            call(x(0), x(0)),
            call(x(), x(seed=1)),
        ),
        scaled=lambda n: call(x(n), x(n, seed=1)),
    )
    yield Op(
        "renorm",
        (
            call(x(3, 4), 2, 0, 1.5),
            call(x(3, 4), 1, 1, 3),
            call(x(2, 3, 2, layout="strided"), 2, -1, 100),
            call(x(3, 4, layout="transposed"), INF, 0, 1),
            call(x(0, 2), 2, 0, 1),
            call(x(3), 2, 0, 1),
            call(x(3, 4), 2, 0, -1),
        ),
        scaled=lambda n: call(x(*matrix(n)), 2, 0, 1.5),
    )


def extremes() -> Iterator[Op]:
    """Largest and smallest elements."""
    for name in ("max", "min"):
        reduced = [with_(c, variant="reduction_no_dim") for c in over_all()]
        lines = [with_(c, variant="reduction_with_dim") for c in over_dim(several=False)]
        pairs = [
            with_(c, variant="binary")
            for c in (
                call(x(4), x(4, seed=1)),
                call(x(3, 4), x(4, seed=1)),
                call(x(3, 1), x(4, dtype="i32")),
                call(x(), x(seed=1)),
                with_(call(of(1.0, NAN, 2.0), of(1.0, 1.0, NAN)), only=("f64",), second=False),
            )
        ]
        yield along(name, *reduced, *lines, *pairs, *nan_calls(), *nan_calls(dim=0))
    for name in ("amax", "amin"):
        yield along(name, *over_all(), *over_dim(), *nan_calls())
    yield Op(
        "aminmax",
        (
            *over_all(),
            call(x(3, 4), dim=0),
            call(x(3, 4, layout="transposed"), dim=-1, keepdim=True),
            call(x(), dim=0),
            call(x(0, 3), dim=1),
            call(x(0, 3), dim=0),
            *nan_calls(),
        ),
        scaled=lambda n: call(x(*matrix(n)), dim=1),
    )
    for name in ("argmax", "argmin"):
        yield along(name, *over_all(), *over_dim(several=False), *nan_calls(), *nan_calls(dim=0))
    for name in ("median", "nanmedian"):
        # What nan becomes as a whole number is the processor's affair.
        some = [made for made in over_all() if made.args[0].shape != (0,)]
        nothing = call(x(0))
        yield along(
            name,
            *some,
            with_(nothing, only=FLOATS),
            *over_dim(several=False),
            *nan_calls(),
            *nan_calls(dim=0),
            call(x(3, 4), 1),
        )
    # Of equal elements in a long line, the reference names the place of any.
    short = [made for made in over_dim(several=False) if max(made.args[0].shape, default=0) < 16]
    yield along("mode", call(x(7)), *short, *nan_calls(), call(x(3, 4), -1, True))
    yield along(
        "kthvalue",
        call(x(7), 3),
        call(x(3, 4), 2, 0),
        call(x(3, 4, layout="transposed"), 1, dim=-1, keepdim=True),
        call(x(), 1),
        call(x(3), 4),
        call(x(3), 0),
        call(x(0, 3), 1, 1),
        with_(call(of(1.0, NAN, 3.0, -INF), 3), only=("f64",)),
        dim=3,
    )
    for name in ("quantile", "nanquantile"):
        yield Op(
            name,
            (
                call(x(7), 0.25),
                call(x(3, 4), 0.5, 0),
                call(
                    x(3, 4, layout="transposed"),
                    of(0.1, 0.9, 1.0, gradient=False),
                    dim=1,
                    keepdim=True,
                ),
                *(
                    call(x(3, 4), 0.3, dim=1, interpolation=mode)
                    for mode in ("linear", "lower", "higher", "nearest", "midpoint")
                ),
                call(x(), 0.5),
                call(x(0), 0.5),
                call(x(3), 1.5),
                call(x(3), 0.5, interpolation="cubic"),
                with_(call(of(1.0, NAN, 3.0, 5.0), 0.5), only=("f64", "f32")),
            ),
            scaled=lambda n: call(x(*matrix(n)), 0.25, 1),
        )


def order() -> Iterator[Op]:
    """Sorting and what it finds."""
    ties = with_(call(of(2, 1, 2, 1, 3, 1), stable=True), only=("f64", "i64", "f32", "u8"))
    lines = (
        call(x(7)),
        call(x(3, 4), 0),
        call(x(3, 4, layout="transposed"), dim=-1, descending=True),
        call(x(2, 67), dim=1, stable=True),
        call(x()),
        call(x(0, 3)),
        call(x(3, 4), 2),
        ties,
        with_(call(of(1.0, NAN, -INF, 3.0, INF)), only=FLOATS, gradient=False),
    )
    yield along("sort", *lines, call(x(3, 4), stable=True, dim=0, descending=True))
    yield along("argsort", *lines)
    yield along(
        "msort", call(x(7)), call(x(3, 4)), call(x(2, 3, 2)), call(x()), call(x(0, 3)), dim=None
    )
    yield along(
        "topk",
        call(x(7), 3),
        call(x(3, 4), 2, 0),
        call(x(3, 4, layout="transposed"), 2, dim=-1, largest=False),
        call(x(3, 4), 4, sorted=True),
        call(x(), 1),
        call(x(3), 0),
        call(x(3), 4),
        call(x(0, 3), 2),
        with_(call(of(1.0, NAN, -INF, 3.0), 2), only=("f64", "f32")),
        dim=3,
    )
    repeated = Domain(1, 9, (0, 3))
    yield along(
        "unique",
        call(x(9, domain=repeated)),
        call(x(9, domain=repeated), return_inverse=True, return_counts=True),
        call(x(3, 4, domain=repeated), dim=0),
        call(x(2, 2, 2, domain=repeated), return_inverse=True, return_counts=True, dim=1),
        call(x(4, 2, domain=Domain(1, 3, (0, 1))), True, True, True, 0),
        call(x()),
        call(x(0)),
        with_(call(of(1.0, NAN, NAN, 1.0)), only=("f64",)),
        dim=None,
    )
    yield along(
        "unique_consecutive",
        call(of(1, 1, 0, 0, 0, 1)),
        call(of(1, 1, 0, 1), return_inverse=True, return_counts=True),
        call(of(1, 1, 1, 1, 0, 1, shape=(3, 2)), dim=0, return_inverse=True),
        call(x()),
        call(x(0)),
        dim=None,
    )


def scans() -> Iterator[Op]:
    """Running sums, products, extremes, and differences."""
    line = (
        call(x(7), 0),
        call(x(3, 4), 0),
        call(x(3, 4, layout="transposed"), dim=-1),
        call(x(2, 3, 2, layout="strided"), 1),
        call(x(), 0),
        call(x(0, 3), 0),
        call(x(3, 4), 2),
    )
    special = with_(call(of(1.0, NAN, 3.0, -INF, INF), 0), only=("f64", "f32"), gradient=False)
    ties = with_(call(of(1, 2, 2, 1, 3, 3), 0), only=("f64", "i64"))
    zeros = with_(call(of(3, 0, 2, 0, 5), 0), only=("f64", "i64", "c128"))
    typed = call(x(3, 4), 1, dtype=as_dtype("f64"))
    yield along("cumsum", *line, special, typed)
    yield along("cumprod", *line, special, zeros, typed)
    for name in ("cummax", "cummin"):
        yield along(name, *line, special, ties)
    yield along("logcumsumexp", *line, special)
    yield Op(
        "diff",
        (
            call(x(5)),
            call(x(3, 4), 2),
            call(x(3, 4), n=1, dim=0),
            call(x(3, 4), prepend=x(3, 1, seed=1), append=x(3, 2, seed=2)),
            call(x(3), 5),
            call(x(3), 0),
            call(x(0, 2), dim=0),
            call(x()),
        ),
        scaled=lambda n: call(x(n)),
    )
    for name in ("trapezoid", "trapz", "cumulative_trapezoid"):
        yield Op(
            name,
            (
                call(x(5)),
                call(x(3, 4), x(4, seed=1)),
                call(x(3, 4), dx=0.5),
                call(x(3, 4), dim=0),
                call(x(3, 4, layout="transposed"), x(3, 4, seed=1), dim=-1),
                call(x(0)),
                call(x(1)),
                call(x()),
            ),
            scaled=lambda n: call(x(n)),
        )
    yield Op(
        "gradient",
        (
            call(x(5)),
            call(x(4, 4), spacing=2.0),
            call(x(4, 4), dim=1),
            call(x(4, 5), dim=(0, 1), edge_order=2),
            call(x(4, 4), spacing=(2.0, 0.5)),
            call(x(4), spacing=(of(0.0, 1.0, 3.0, 4.5, gradient=False),)),
            call(x(4, 4), spacing=(1, 2), dim=(1, 0)),
            call(x(1)),
        ),
        scaled=lambda n: call(x(n)),
    )


def softmaxes() -> Iterator[Op]:
    """Softmax and its kin."""
    lines = (
        call(x(5), 0),
        call(x(3, 4), dim=0),
        call(x(3, 4, layout="transposed"), -1),
        call(x(2, 3, 2, layout="strided"), 1),
        call(x(), 0),
        # The reference's kernel, which knows the dtypes, is not asked about nothing.
        with_(call(x(0, 3), 1), only=FLOATS),
        call(x(3, 4), 2),
        with_(call(x(3, 4), 1, dtype=as_dtype("f64")), variant="with_dtype"),
        with_(call(x(3, 4), dim=0, dtype=as_dtype("f32")), variant="with_dtype"),
        with_(call(of(-INF, -INF), 0), only=("f64",)),
        with_(call(of(1.0, INF, NAN), 0), only=("f64",)),
    )
    for name in ("softmax", "log_softmax"):
        yield along(name, *lines)


def ops() -> Iterator[Op]:
    """All ops of this module."""
    for family in (sums, norms, extremes, order, scans, softmaxes):
        yield from family()
