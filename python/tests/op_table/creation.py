"""Ops that make a tensor of sizes, of ranges, or like another one."""

from __future__ import annotations

from collections.abc import Iterator

from op_table.call import OWN, Call, Late, Op, as_dtype, call, of, with_, x

TURNED = x(3, 4, layout="transposed")


def creation() -> Iterator[Op]:
    """Tensors made from sizes and other tensors."""
    kinds = Late(lambda lib, _: lib.preserve_format)
    for name in ("zeros", "ones", "empty"):
        calls = (
            call(2, 3),
            call((2, 3), dtype=OWN),
            call(0),
            call(()),
            call(2, 3, dtype=as_dtype("c64")),
            call(-1),
            call(2, requires_grad=True),
        )
        yield made(name, *calls)
    yield made("full", call((2, 3), 2), call((3,), 2.5, dtype=OWN), call((), True), call((2,), 1j))
    for name in ("zeros_like", "ones_like", "empty_like", "rand_like", "randn_like"):
        yield made(
            name,
            call(x(2, 3)),
            call(TURNED),
            call(x(2), dtype=as_dtype("f64")),
            call(x()),
            call(x(0, 2)),
            call(TURNED, memory_format=kinds),
        )
    yield made(
        "full_like", call(x(2, 3), 2), call(TURNED, 2.5), call(x(2), 1, dtype=as_dtype("f64"))
    )
    yield made(
        "randint_like", call(x(2, 3), 5), call(TURNED, 2, 7), call(x(3), 4, dtype=as_dtype("i64"))
    )
    for name in ("new_zeros", "new_ones", "new_empty"):
        yield made(name, call(x(2), (2, 3)), call(x(2), 3), call(x(), ()), call(x(2), 2, dtype=OWN))
    yield made("new_full", call(x(2), (2, 3), 2), call(x(2), (3,), 2.5), call(x(), (), True))
    strided = (2, 3), (1, 2)
    yield made(
        "new_empty_strided", call(x(2), *strided), call(x(2), (), ()), call(x(2), (2,), (0,))
    )
    yield made("empty_strided", call(*strided, dtype=OWN), call((0,), (1,)), call((2,), (1, 2)))
    yield made("empty_permuted", call((2, 3), (1, 0), dtype=OWN), call((2, 3), (0, 0)))
    yield made("scalar_tensor", call(2), call(2.5, dtype=OWN), call(True), call(1j))
    yield made("eye", call(3), call(2, 4, dtype=OWN), call(0), call(3, 1), call(-1))
    yield made(
        "arange",
        call(5),
        call(1, 7, 2, dtype=OWN),
        call(0.0, 1.0, 0.25),
        call(3, 0, -1),
        call(3, 0),
        call(0, 3, 0),
        call(2, dtype=OWN),
    )
    ends = (
        call(0, 4, 5, dtype=OWN),
        call(-1.5, 3, steps=4),
        call(2, 1, 1),
        call(0, 1, 0),
        call(0, 1, -1),
        call(1, 9, 5, dtype=as_dtype("c128")),
    )
    tensors = [
        with_(c, variant="tensor_overload", gradient=False)
        for c in (
            call(of(1.0, shape=(), dtype="f32"), of(3.0, shape=(), dtype="f32"), 5),
            call(of(1.0, shape=(), dtype="f32"), 3, 4, dtype=OWN),
            call(1, of(3.0, shape=(), dtype="f32"), steps=3),
        )
    ]
    yield made("linspace", *ends, *tensors)
    yield made("logspace", *ends, *tensors, call(0, 3, 4, 2.0), call(0, 3, 4, base=3))
    for name in ("tril_indices", "triu_indices"):
        yield made(
            name,
            call(3, 4),
            call(3, 3, 1),
            call(4, 2, -1, dtype=as_dtype("i32")),
            call(0, 2),
            call(-1, 2),
        )


def made(name: str, *calls: Call) -> Op:
    """An op that makes a tensor; of one that leaves the elements open only the form is compared."""
    if "empty" in name:
        calls = tuple(with_(c, determined=False) for c in calls)
    return Op(name, calls, scaled=SCALED.get(name))


SCALED = {
    **dict.fromkeys(("zeros", "ones", "empty", "arange"), lambda n: call(n)),
    **dict.fromkeys(
        ("zeros_like", "ones_like", "empty_like", "rand_like", "randn_like"), lambda n: call(x(n))
    ),
    **dict.fromkeys(("new_zeros", "new_ones", "new_empty"), lambda n: call(x(2), n)),
    **dict.fromkeys(("linspace", "logspace"), lambda n: call(0, 1, n)),
    "full": lambda n: call((n,), 2.0),
    "full_like": lambda n: call(x(n), 2),
    "randint_like": lambda n: call(x(n), 5),
    "new_full": lambda n: call(x(2), (n,), 2),
    "eye": lambda n: call(5 if n <= 100 else 1000),
    "tril_indices": lambda n: call(5 if n <= 100 else 1000, 5 if n <= 100 else 1000),
    "triu_indices": lambda n: call(5 if n <= 100 else 1000, 5 if n <= 100 else 1000),
}


def ops() -> Iterator[Op]:
    """All ops of this module."""
    return creation()
