"""The reductions of `torch.masked`, which skip the elements that a mask leaves out."""

from __future__ import annotations

from collections.abc import Iterator

from op_table.call import REAL, SMALL, Call, Domain, Op, as_dtype, call, of, x

MASK = of(True, False, True, True, dtype="bool")
FULL = x(3, 4, dtype="bool", seed=2)
TURNED = x(3, 4, layout="transposed")
EMPTY = of(False, False, False, False, dtype="bool")


def whole(domain: Domain = REAL) -> tuple[Call, ...]:
    """Reductions of everything or along several dimensions."""
    return (
        call(x(4, domain=domain)),
        call(x(3, 4, domain=domain), mask=MASK),
        call(x(3, 4, domain=domain), (0, 1), mask=FULL),
    )


def line(domain: Domain = REAL) -> tuple[Call, ...]:
    """Reductions along one dimension."""
    return (
        call(x(3, 4, domain=domain), 1, mask=FULL),
        call(TURNED, 0, mask=MASK),
        call(x(3, 4, domain=domain), dim=-1, mask=MASK, keepdim=True),
        call(x(3, 4, domain=domain), 1, mask=EMPTY),
        call(x(0, 3), 1),
        call(x(3, 4, domain=domain), 1, dtype=as_dtype("f64"), mask=FULL),
    )


def shapes_kept(*before: object) -> tuple[Call, ...]:
    """Ops along a dimension that keep it."""
    return (
        call(x(3, 4), *before, 1, mask=FULL),
        call(TURNED, *before, 0, mask=MASK),
        call(x(4), *before, 0),
        call(x(), *before, 0),
        call(x(3, 4), *before, 1, mask=EMPTY),
        call(x(3, 4), *before, 1, dtype=as_dtype("f64")),
    )


def timed(n: int, *before: object) -> Call:
    """The call that is timed: with a mask, along the last dimension."""
    return call(x(n // 10, 10), *before, 1, mask=x(n // 10, 10, dtype="bool"))


def ops() -> Iterator[Op]:
    """All ops of this module."""
    for name in ("sum", "mean", "amax", "amin", "prod"):
        domain = SMALL if name == "prod" else REAL
        yield Op(f"masked.{name}", (*whole(domain), *line(domain)), scaled=timed)
    for name in ("argmax", "argmin"):
        calls = (call(x(4)), call(x(3, 4), mask=FULL), *line())
        yield Op(f"masked.{name}", calls, scaled=timed)
    for name in ("std", "var"):
        more = call(x(3, 4), 1, False, mask=FULL), call(x(3, 4), 1, correction=2, mask=FULL)
        yield Op(f"masked.{name}", (*whole(), *line(), *more), scaled=timed)
    yield Op(
        "masked.norm",
        tuple(
            call(made.args[0], order, *made.args[1:], **made.kwargs)
            for order in (2.0, 1.0, float("inf"), float("-inf"), 0.0)
            for made in (*whole(), *line())
        ),
        scaled=lambda n: timed(n, 2.0),
    )
    for name in ("logsumexp", "median"):
        yield Op(f"masked.{name}", line(), scaled=timed)
    for name in ("cumsum", "cumprod", "softmax", "log_softmax", "softmin"):
        yield Op(f"masked.{name}", shapes_kept(), scaled=timed)
    normalized = (*shapes_kept(2.0), call(x(3, 4), 1.0, 1, eps=0.5, mask=FULL))
    yield Op("masked.normalize", normalized, scaled=lambda n: timed(n, 2.0))
    other = x(3, 4, seed=1)
    yield Op(
        "masked.logaddexp",
        (
            call(x(3, 4), other),
            call(x(3, 4), other, input_mask=FULL),
            call(x(3, 4), other, input_mask=MASK, other_mask=FULL),
            call(TURNED, x(4, seed=1), other_mask=EMPTY),
        ),
        scaled=lambda n: call(x(n), x(n, seed=1), input_mask=x(n, dtype="bool")),
    )
