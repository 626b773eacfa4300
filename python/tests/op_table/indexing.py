"""Ops that read and write elements at places: gather, scatter, masks, searches, histograms,
crosses.
"""

from __future__ import annotations

from collections.abc import Iterator

from op_table.call import (
    SMALL,
    Domain,
    Input,
    Op,
    call,
    index,
    of,
    with_,
    x,
)

TURNED = x(3, 4, layout="transposed")
MASK = of(True, False, True, False, dtype="bool")
NAN = float("nan")


def places(n: int, size: int | None = None) -> Input:
    """So many places within a size, all of them different if there are enough."""
    return x(n, dtype="i64", domain=Domain(whole=(0, (size or n) - 1)))


def reading() -> Iterator[Op]:
    """Reading at places."""
    yield Op(
        "gather",
        (
            call(x(3, 4), 0, index(0, 2, 1, 0, shape=(1, 4))),
            call(TURNED, 1, index(3, 0, 0, 1, 1, 2, shape=(3, 2))),
            call(x(3), -1, index(0, 0, 2)),
            call(x(), 0, index(0, shape=())),
            call(x(3), 0, index()),
            call(x(3), 0, index(3)),
            call(x(3), 0, of(0, dtype="i32")),
            call(x(3, 4), 0, index(0, 1)),
            call(x(3), 0, index(0, 1), sparse_grad=False),
        ),
        scaled=lambda n: call(x(n), 0, places(n)),
    )
    yield Op(
        "index_select",
        (
            call(x(3, 4), 0, index(2, 0, 2)),
            call(TURNED, 1, of(3, 1, dtype="i32")),
            call(x(), 0, index(0)),
            call(x(3), 0, index()),
            call(x(3), 0, index(3)),
            call(x(3), 0, index(-1)),
            call(x(3), 0, index(0, 1, shape=(1, 2))),
        ),
        scaled=lambda n: call(x(n), 0, places(n)),
    )
    yield Op(
        "take",
        (
            call(x(3, 4), index(0, 11, -1)),
            call(TURNED, index(5, 1, shape=(1, 2))),
            call(x(), index(0)),
            call(x(3), index()),
            call(x(3), index(3)),
        ),
        scaled=lambda n: call(x(n), places(n)),
    )
    yield Op(
        "take_along_dim",
        (
            call(x(3, 4), index(0, 2, 1, 0, shape=(1, 4)), 0),
            call(x(3, 4), index(0, 5, 11)),
            call(TURNED, index(3, 0, 1, shape=(3, 1)), dim=1),
            call(x(3), index(3), 0),
        ),
        scaled=lambda n: call(x(n), places(n), 0),
    )
    yield Op(
        "masked_select",
        (
            call(x(4), MASK),
            call(TURNED, MASK),
            call(x(4), x(3, 4, dtype="bool")),
            call(x(), of(True, dtype="bool", shape=())),
            call(x(0), x(0, dtype="bool")),
            call(x(4), index(0, 1, 1, 0)),
        ),
        scaled=lambda n: call(x(n), x(n, dtype="bool")),
    )
    values = of(0, 2, 0, 3, 0, 1, shape=(2, 3))
    yield Op(
        "nonzero",
        (
            call(values),
            call(x()),
            call(of(0, shape=())),
            call(x(0, 2)),
            with_(call(values, as_tuple=True)),
        ),
        scaled=lambda n: call(x(n, domain=SMALL)),
    )
    yield Op(
        "nonzero_static",
        (
            call(values, size=2),
            call(values, size=5),
            call(values, size=4, fill_value=7),
            call(values, size=0),
            call(values, size=-1),
        ),
        scaled=lambda n: call(x(n, domain=SMALL), size=n // 2),
    )
    yield Op(
        "argwhere",
        (call(values), call(x()), call(of(0, shape=())), call(x(0, 2))),
        scaled=lambda n: call(x(n, domain=SMALL)),
    )


def slices_written() -> Iterator[Op]:
    """Writing slices at places of one dimension."""
    into = x(4, 3), x(2, 3, seed=1)
    added = (
        call(into[0], 0, index(1, 3), into[1]),
        call(into[0], 0, index(2, 2), into[1]),
        call(TURNED, 1, of(0, 3, dtype="i32"), x(3, 2, seed=1)),
        call(x(), 0, index(0), x(seed=1)),
        call(x(4), 0, index(), x(0)),
        call(x(4), 0, index(4), x(1)),
        call(x(4, 3), 0, index(0), x(1, 2)),
        call(x(4), 0, index(0, 1), x(2, dtype="f64", gradient=False)),
    )
    large = lambda n: call(x(n), 0, places(n), x(n, seed=1))  # noqa: E731
    alpha = call(*(x(4, 3), 0, index(1, 1), x(2, 3, seed=1)), alpha=2)
    yield Op("index_add", (*added, alpha), scaled=large)
    unequal = [made for made in added if made is not added[1]]
    yield Op("index_copy", tuple(unequal), scaled=large)
    yield Op(
        "index_fill",
        (
            call(x(4, 3), 0, index(1, 3), 2),
            call(TURNED, -1, index(0, 0), 1.5),
            call(x(4), 0, index(1), x(seed=1)),
            call(x(), 0, index(0), 3),
            call(x(4), 0, index(), 1),
            call(x(4), 0, index(4), 1),
            call(x(4), 0, of(1, dtype="i32"), 1),
        ),
        scaled=lambda n: call(x(n), 0, places(n), 2),
    )
    yield Op(
        "index_reduce",
        tuple(
            with_(c, variant=how)
            for how in ("prod", "mean", "amax", "amin")
            for c in (
                call(x(4, 3), 0, index(1, 3, 1), x(3, 3, seed=1), how),
                call(x(4, 3), 0, index(1, 1), x(2, 3, seed=1), how, include_self=False),
                call(TURNED, 1, of(0, 3, dtype="i32"), x(3, 2, seed=1), how),
                call(x(4), 0, index(4), x(1), how),
            )
        ),
        scaled=lambda n: call(x(n), 0, places(n), x(n, seed=1), "amax"),
    )
    yield Op(
        "index_put",
        (
            call(x(4, 3), (index(1, 3), index(0, 2)), x(2, seed=1)),
            call(x(4, 3), (index(1, 1),), x(3, seed=1), accumulate=True),
            call(TURNED, (index(0, 2),), x(seed=1)),
            call(x(4), (MASK,), x(2, seed=1)),
            call(x(4), (index(-1),), x(1, seed=1), True),
            call(x(4), (index(4),), x(1)),
            call(x(4), (index(0, 1),), x(3)),
            call(x(4), (index(0),), x(1, dtype="c128", gradient=False)),
        ),
        scaled=lambda n: call(x(n), (places(n),), x(n, seed=1)),
    )
    yield Op(
        "put",
        (
            call(x(3, 4), index(0, 11, -2), x(3, seed=1)),
            call(x(3, 4), index(1, 1), x(2, seed=1), accumulate=True),
            call(TURNED, index(5), x(1, seed=1)),
            call(x(3), index(), x(0)),
            call(x(3), index(3), x(1)),
            call(x(3), index(0, 1), x(3)),
        ),
        scaled=lambda n: call(x(n), places(n), x(n, seed=1)),
    )


def elements_written() -> Iterator[Op]:
    """Writing elements at places along a dimension."""
    at = index(0, 2, 1, 0, 1, 1, shape=(2, 3))
    distinct = index(0, 2, 1, 1, 0, 2, shape=(2, 3))
    source = x(2, 3, seed=1)
    large = lambda n: call(x(n), 0, places(n), x(n, seed=1))  # noqa: E731
    plain = (
        call(x(3, 3), 0, distinct, source),
        call(TURNED, 1, distinct, source),
        call(x(3), 0, index(), x(0)),
        call(x(), 0, index(0, shape=()), x(seed=1)),
        call(x(3), 0, index(3), x(1)),
        call(x(3), 0, of(0, dtype="i32"), x(1)),
        call(x(3), 0, index(0), x(1, dtype="f64", gradient=False)),
    )
    yield Op(
        "scatter",
        (
            *plain,
            call(x(3, 3), 0, distinct, 2),
            call(x(3, 3), 0, at, source, reduce="add"),
            call(x(3, 3), 0, at, source, reduce="multiply"),
            call(x(3, 3), 0, at, 2, reduce="add"),
        ),
        scaled=large,
    )
    yield Op("scatter_add", (*plain, call(x(3, 3), 0, at, source)), scaled=large)
    yield Op(
        "scatter_reduce",
        tuple(
            with_(c, variant=how)
            for how in ("sum", "mean", "amin", "amax", "prod")
            for c in (
                call(x(3, 3), 0, at, source, how),
                call(x(3, 3), 0, at, source, reduce=how, include_self=False),
                call(TURNED, 1, distinct, source, how),
                call(x(3), 0, index(3), x(1), how),
            )
        ),
        scaled=lambda n: call(x(n), 0, places(n), x(n, seed=1), "sum"),
    )
    yield Op(
        "masked_scatter",
        (
            call(x(4), MASK, x(3, seed=1)),
            call(TURNED, MASK, x(6, seed=1)),
            call(x(4), x(3, 4, dtype="bool"), x(12, seed=1)),
            call(x(), of(True, dtype="bool", shape=()), x(1, seed=1)),
            call(x(4), MASK, x(1)),
            call(x(0), x(0, dtype="bool"), x(0)),
        ),
        scaled=lambda n: call(x(n), x(n, dtype="bool"), x(n, seed=1)),
    )


def searching() -> Iterator[Op]:
    """Membership, places in sorted sequences, counts."""
    steps = of(-3, 0, 1, 1, 4, gradient=False)
    yield Op(
        "searchsorted",
        (
            call(steps, x(3, 2)),
            call(steps, 1),
            call(steps, of(1, 0, 9), right=True),
            call(steps, of(1, 4), side="right", out_int32=True),
            call(of(1, 3, 0, 2, shape=(2, 2)), of(2, 1, shape=(2, 1))),
            call(of(4, 1, 3), of(2, 3), sorter=index(1, 2, 0)),
            call(steps, of(1, 1), side="left", right=True),
            call(x(0), x(2)),
            with_(call(of(1.0, 2.0, NAN), of(NAN, 1.5)), only=("f64", "f32")),
        ),
        scaled=lambda n: call(steps, x(n)),
    )
    yield Op(
        "bucketize",
        (
            call(x(3, 2), steps),
            call(1, steps),
            call(of(1, 4), steps, right=True, out_int32=True),
            call(x(2), x(0)),
            call(x(2), x(2, 2)),
        ),
        scaled=lambda n: call(x(n), steps),
    )
    yield Op(
        "isin",
        (
            call(x(5), x(3)),
            call(x(2, 3), 1),
            call(3, x(4)),
            call(x(5), x(2), assume_unique=True),
            call(x(5), x(2), invert=True),
            call(x(0), x(2)),
            call(x(2), x(0)),
        ),
        scaled=lambda n: call(x(n), steps),
    )
    whole = Domain(1, 9, (0, 5))
    yield Op(
        "bincount",
        (
            call(x(6, domain=whole)),
            call(x(6, domain=whole), minlength=9),
            call(x(4, domain=whole), x(4, dtype="f64", gradient=False)),
            call(x(4, domain=whole), x(4, dtype="i32")),
            call(x(0)),
            call(of(1, -1)),
            call(x(2, 2, domain=whole)),
        ),
        scaled=lambda n: call(x(n, dtype="i64", domain=whole)),
    )
    yield Op(
        "histc",
        (
            call(x(9)),
            call(x(9), 4),
            call(x(3, 3), bins=4, min=-2, max=2),
            call(of(1, 1, 1), 3),
            call(x(0), 3),
            call(x(3), 0),
            call(x(3), 3, 2, 1),
            with_(call(of(1.0, NAN), 3), only=("f64",)),
        ),
        scaled=lambda n: call(x(n), 10),
    )
    yield Op(
        "histogram",
        (
            call(x(9), 4),
            call(x(9), bins=4, range=(-2.0, 2.0)),
            call(x(9), of(-3.0, 0.0, 1.0, 4.0, gradient=False)),
            call(x(6), 3, weight=x(6, seed=1), density=True),
            call(x(0), 3),
            call(x(3), 0),
            call(x(3, 3), 2),
        ),
        scaled=lambda n: call(x(n), 10),
    )
    yield Op(
        "histogramdd",
        (
            call(x(6, 2), (3, 2)),
            call(x(6, 2), 2),
            call(x(6, 2), (3, 2), range=(-2.0, 2.0, -1.0, 1.0)),
            call(x(6, 2), (3, 2), weight=x(6, seed=1), density=True),
            call(x(6, 2), [of(-3.0, 0.0, 4.0), of(-3.0, 4.0)]),
        ),
        scaled=lambda n: call(x(n // 2, 2), (10, 10)),
    )
    yield Op(
        "unravel_index",
        (
            call(x(5, domain=whole), (2, 3)),
            call(x(2, 2, domain=whole), (3, 2, 1)),
            call(x(domain=whole), (9,)),
            call(x(0), (2, 2)),
            call(x(2, domain=whole), 6),
            call(of(7), (2, 3)),
        ),
        scaled=lambda n: call(x(n, dtype="i64", domain=Domain(whole=(0, 99))), (10, 10)),
    )


def vectors() -> Iterator[Op]:
    """Cross products and reading out single numbers."""
    yield Op(
        "cross",
        (
            call(x(3), x(3, seed=1)),
            call(x(2, 3), x(2, 3, seed=1), 1),
            call(x(3, 2, layout="strided"), x(3, 2, seed=1), dim=0),
            call(x(1, 3), x(2, 3, seed=1)),
            call(x(0, 3), x(0, 3)),
            call(x(2), x(2)),
            call(x(2, 4), x(2, 4)),
        ),
        scaled=lambda n: call(x(n // 3, 3), x(n // 3, 3, seed=1), 1),
    )
    yield Op("item", (call(x()), call(x(1, 1)), call(x(2)), call(x(0))))


def getitem() -> Iterator[Op]:
    """Subscripts."""
    keys = (
        1,
        -1,
        (slice(None), 1),
        (Ellipsis, slice(0, 4, 2)),
        (None, 0),
        index(0, 2),
        (index(0, 2), index(1, 3)),
        (slice(1, None), index(3, 0)),
        (index(0, 1, shape=(2, 1)), index(1, 3)),
        of(True, False, True, dtype="bool"),
        x(3, 4, dtype="bool"),
        (of(True, False, True, dtype="bool"), 2),
        True,
        [0, 2],
        3,
        index(3),
        of(True, False, dtype="bool"),
        (0, 0, 0),
        slice(2, 1),
        (index(0, 2), None, index(1, 3)),
    )
    calls = [call(given, key) for given in (x(3, 4), TURNED) for key in keys]
    large = lambda n: call(x(n), slice(1, None, 2))  # noqa: E731
    yield Op("__getitem__", (*calls, call(x(), Ellipsis), call(x(), 0)), scaled=large)


def ops() -> Iterator[Op]:
    """All ops of this module."""
    for family in (reading, slices_written, elements_written, searching, vectors, getitem):
        yield from family()
