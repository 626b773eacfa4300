"""Ops that join tensors, cut them in pieces, and rearrange, repeat or fill their elements."""

from __future__ import annotations

from collections.abc import Iterator

from op_table.call import Op, call, of, of_matrix, with_, x
from op_table.shape import view_calls

TURNED = x(3, 4, layout="transposed")


def joined() -> Iterator[Op]:
    """Ops that join a list of tensors."""
    pair = [x(2, 3), x(2, 3, seed=1)]
    mixed = call([x(3), x(3, dtype="f64", seed=1)])
    yield Op(
        "cat",
        (
            call(pair),
            call([x(2, 3), x(2, 1, seed=1)], 1),
            call([TURNED, x(3, 4)], dim=-1),
            call([x(0), x(2, 3)]),
            mixed,
            call([x(2)]),
            call([x(), x()]),
            call([x(2, 3), x(2, 2)]),
            call([]),
            call([x(0), x(0)]),
        ),
        scaled=lambda n: call([x(n), x(n, seed=1)]),
    )
    yield Op(
        "stack",
        (
            call(pair),
            call(pair, -1),
            call(pair, dim=1),
            call([x(), x(seed=1)]),
            mixed,
            call([x(0), x(0)]),
            call([x(2), x(3)]),
            call([x(2)], 3),
        ),
        scaled=lambda n: call([x(n), x(n, seed=1)]),
    )
    for name in ("hstack", "vstack", "dstack", "column_stack"):
        yield Op(
            name,
            (
                call(pair),
                call([x(3), x(3, seed=1)]),
                call([x(), x(seed=1)]),
                call((x(2, 2, 2), x(2, 2, 2, seed=1))),
                mixed,
                call([x(0), x(0)]),
                call([x(2, 3), x(3, 2)]),
            ),
            scaled=lambda n: call([x(n), x(n, seed=1)]),
        )
    yield Op(
        "block_diag",
        (
            call(x(2, 3), x(3, seed=1), x(seed=2)),
            call(x(1, 2)),
            call(x(2, 2), x(0)),
            call(x(2, 2), x(2, 1, dtype="f64")),
            call(x(2, 2, 2)),
        ),
        scaled=lambda n: (
            call(x(2, 5), x(n // 5, 5, seed=1)) if n <= 100 else call(*[x(32, 32)] * 31)
        ),
    )
    yield Op(
        "cartesian_prod",
        (
            call(x(2), x(3, seed=1)),
            call(x(2)),
            call(x(2), x(1), x(2)),
            call(x(2), x(0)),
            call(x(2, 2)),
        ),
        scaled=lambda n: call(x(n // 5), x(5, seed=1)),
    )
    yield Op(
        "combinations",
        (
            call(x(4)),
            call(x(4), 3),
            call(x(3), r=2, with_replacement=True),
            call(x(2), 3),
            call(x(4), 0),
            call(x(0)),
            call(x(2, 2)),
            call(x(3), -1),
        ),
        scaled=lambda n: call(x(n)) if n <= 100 else call(x(1000)),
    )
    grids = [x(2), x(3, seed=1)], [x(2), x(), x(1)], [x(2, 2)]
    listed = [call(given, indexing=way) for given in grids for way in ("ij", "xy")]
    single = [call(*given, indexing=way) for given in grids for way in ("ij", "xy")]
    yield Op(
        "meshgrid",
        (
            *(with_(c, variant="variadic_tensors") for c in single),
            *(with_(c, variant="list_of_tensors") for c in listed),
        ),
        scaled=lambda n: call(x(n // 5), x(5, seed=1), indexing="ij"),
    )
    yield Op(
        "broadcast_tensors",
        (call(x(3, 1), x(4, seed=1)), call(x(), x(2)), call(x(2), x(3)), call(x(2))),
    )
    yield Op(
        "broadcast_shapes",
        (
            call((3, 1), (4,)),
            call((), (2,)),
            call((2,), (3,)),
            call(),
            call((0,), (1,)),
            call(3, (2, 1)),
        ),
    )


def cut() -> Iterator[Op]:
    """Ops that cut a tensor in pieces."""
    pieces = (
        call(x(5), 2),
        call(x(3, 4), 3, 1),
        call(TURNED, 2, dim=-1),
        call(x(2), 5),
        call(x(0), 2),
        call(x(), 1),
        call(x(3), 0),
    )
    listed = [with_(c, variant="list_args") for c in view_calls()["split_with_sizes"]]
    yield Op("split", (*pieces, *listed), scaled=lambda n: call(x(n), n // 2))
    yield Op("unsafe_split", pieces, scaled=lambda n: call(x(n), n // 2))
    for name in ("chunk", "unsafe_chunk"):
        yield Op(name, pieces, scaled=lambda n: call(x(n), 3))
    yield Op(
        "tensor_split",
        (
            *pieces,
            call(x(5), (1, 3)),
            call(x(3, 4), (2,), 1),
            call(x(5), (4, 2, 9)),
            call(x(5), of(2, 3, dtype="i64")),
            call(x(5), -1),
        ),
        scaled=lambda n: call(x(n), 3),
    )
    for name in ("hsplit", "vsplit", "dsplit"):
        yield Op(
            name,
            (
                call(x(4, 4, 4), 2),
                call(x(2, 4), 2),
                call(x(4), 2),
                call(x(4, 4, 4), (1, 3)),
                call(x(3, 3, 3), 2),
                call(x(), 1),
            ),
            scaled=lambda n: call(x(n // 10, 2, 5) if n <= 100 else x(100, 100, 100), (1,)),
        )


def rearranged() -> Iterator[Op]:
    """Ops that repeat, turn and cut out elements."""
    yield of_matrix(
        "repeat",
        call(x(3), 2),
        call(x(2, 3), 2, 1, 2),
        call(TURNED, (1, 2)),
        call(x(), 3),
        call(x(3), 0),
        call(x(2, 3), 2),
        call(x(3), -1),
        arguments=(2, 1),
    )
    yield of_matrix(
        "tile",
        call(x(3), (2,)),
        call(x(2, 3), (2, 1, 2)),
        call(TURNED, (2,)),
        call(x(), (3,)),
        call(x(3), (0,)),
        arguments=((2,),),
    )
    yield of_matrix(
        "repeat_interleave",
        call(x(3), 2),
        call(x(2, 3), 2, 1),
        call(x(3, 2), of(1, 0, 2, dtype="i64"), dim=0),
        call(TURNED, of(2, dtype="i64"), 1),
        call(x(), 2),
        call(x(3), 0),
        call(x(3), of(1, 2, dtype="i64")),
        call(x(3), -1),
        call(x(2), of(1, 2, dtype="i64"), output_size=3),
        arguments=(2, 1),
    )
    for name in ("flip",):
        yield of_matrix(
            name,
            call(x(5), (0,)),
            call(TURNED, (0, 1)),
            call(x(2, 3, 2), (-1, 0)),
            call(x(), ()),
            call(x(0, 2), (0,)),
            call(x(3), (0, 0)),
            call(x(3), (1,)),
            arguments=((0, 1),),
        )
    for name in ("fliplr", "flipud"):
        yield of_matrix(name, *(call(given) for given in (x(2, 3), TURNED, x(2, 2, 2), x(3), x())))
    yield of_matrix(
        "roll",
        call(x(5), 2),
        call(x(3, 4), 1, 0),
        call(TURNED, (1, -2), (0, 1)),
        call(x(3, 4), -5),
        call(x(), 1),
        call(x(0, 2), 1, 0),
        call(x(3), (1, 2)),
        call(x(3), 1, 1),
        arguments=(3, 1),
    )
    yield of_matrix(
        "rot90",
        call(x(3, 4)),
        call(x(3, 4), 2),
        call(TURNED, -1, (1, 0)),
        call(x(2, 3, 2), 3, (0, 2)),
        call(x(0, 2)),
        call(x(3)),
        call(x(2, 2), 1, (0, 0)),
    )
    for name in ("tril", "triu"):
        yield of_matrix(
            name,
            call(x(3, 4)),
            call(x(3, 4), 1),
            call(TURNED, -1),
            call(x(2, 3, 2), diagonal=5),
            call(x(0, 3)),
            call(x(3)),
        )
    yield of_matrix(
        "diag",
        call(x(3)),
        call(x(3, 4)),
        call(x(3), 1),
        call(TURNED, -1),
        call(x(0)),
        call(x(2, 2), 5),
        call(x(2, 2, 2)),
        call(x()),
    )
    yield Op(
        "diag_embed",
        (
            call(x(3)),
            call(x(2, 3), 1),
            call(x(2, 3), -1, 0, 2),
            call(TURNED, dim1=0),
            call(x(0)),
            call(x()),
            call(x(3), 0, 0, 0),
        ),
        scaled=lambda n: call(x(n // 5, 5)),
    )
    yield Op(
        "diagflat",
        (call(x(3)), call(x(2, 2), 1), call(TURNED, -2), call(x()), call(x(0))),
        scaled=lambda n: call(x(n // 5)) if n <= 100 else call(x(1000)),
    )
    yield of_matrix(
        "constant_pad_nd",
        call(x(3), (1, 2)),
        call(x(2, 3), (1, 0, 0, 1), 2),
        call(TURNED, (-1, 1), 1.5),
        call(x(0, 2), (0, 0, 1, 1)),
        call(x(3), (-2, -2)),
        call(x(3), (1,)),
        arguments=((1, 2),),
    )
    yield Op(
        "fill",
        (
            call(x(5), 2),
            call(x(2, 3), 2.5),
            call(TURNED, x()),
            call(x(), True),
            call(x(0), 1),
            call(x(3), x(1)),
        ),
        scaled=lambda n: call(x(n), 2),
    )
    yield Op(
        "zero_",
        tuple(call(given) for given in (x(5), TURNED, x(), x(0))),
        function=lambda lib: lambda given: given.clone().zero_(),
        scaled=lambda n: call(x(n)),
    )
    yield Op(
        "resize_",
        (
            call(x(6), (2, 3)),
            call(x(6), (2, 2)),
            call(x(3), ()),
            with_(call(x(2), (5,)), determined=False),
            call(x(6), (-1,)),
        ),
        function=lambda lib: lambda given, size: given.clone().resize_(size),
    )
    yield Op(
        "resize_as_",
        (call(x(6), x(2, 3)), call(x(6), x(4)), call(x(3), x(0)), call(x(3), x())),
        function=lambda lib: lambda given, other: given.clone().resize_as_(other),
    )


def ops() -> Iterator[Op]:
    """All ops of this module."""
    for family in (joined, cut, rearranged):
        yield from family()
