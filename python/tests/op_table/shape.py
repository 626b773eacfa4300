"""Ops that show the same elements in another shape, their copies, and writes of slices."""

from __future__ import annotations

from collections.abc import Iterator

from op_table.call import Call, Op, as_dtype, call, of_matrix, with_, x

TURNED = x(3, 4, layout="transposed")


def with_copy(name: str, *calls: Call, arguments: tuple[object, ...] = ()) -> Iterator[Op]:
    """A view, and the op that makes a copy of it."""
    yield of_matrix(name, *calls, arguments=arguments)
    yield of_matrix(f"{name}_copy", *calls, arguments=arguments)


def view_calls() -> dict[str, tuple[Call, ...]]:
    """The views that have a copying form, by name."""
    two = call(x(3, 4), 0, 1), call(x(2, 3, 2, layout="strided"), -1, 0), call(x(), 0, -1)
    return {
        "as_strided": (
            call(x(6), (2, 2), (1, 2)),
            call(x(6), (3,), (0,), 2),
            call(x(6), (), (), 5),
            call(TURNED, (2, 2), (4, 1), 1),
            call(x(6), (4, 3), (1, 1)),
            call(x(6), (4,), (3,)),
            call(x(6), (2,), (-1,)),
            call(x(6), (0,), (1,)),
        ),
        "diagonal": (
            call(x(3, 4)),
            call(x(3, 4), 1),
            call(x(2, 3, 2), -1, 0, 2),
            call(TURNED, offset=5),
            call(x(0, 3)),
            call(x(3)),
            call(x(3, 3), 0, 1, 1),
        ),
        "expand": (
            call(x(3, 1), (3, 4)),
            call(x(1, 4), (2, -1, 4)),
            call(x(), (2, 3)),
            call(x(3, 1), (-1, 0)),
            call(x(3), (4,)),
            call(x(3), (-1, 3)),
        ),
        "narrow": (
            call(x(3, 4), 1, 1, 2),
            call(TURNED, 0, 0, 3),
            call(x(5), 0, -2, 2),
            call(x(5), 0, 2, 0),
            call(x(5), 0, 3, 3),
            call(x(), 0, 0, 1),
        ),
        "permute": (
            call(x(2, 3, 2), (2, 0, 1)),
            call(x(3, 4), (-1, 0)),
            call(x(), ()),
            call(x(3, 4), (0, 0)),
            call(x(0, 3), (1, 0)),
            call(x(3, 4), (0,)),
        ),
        "squeeze": (
            call(x(1, 3, 1)),
            call(x(1, 3, 1), 0),
            call(x(1, 3), 1),
            call(x()),
            call(x(), 0),
            call(x(1, 3), 2),
            with_(call(x(1, 3, 1, 2), (0, 2)), variant="multiple"),
            with_(call(x(1, 3, 1, 2), (0, 1)), variant="multiple"),
            with_(call(x(1, 3), ()), variant="multiple"),
        ),
        "t": (call(x(3, 4)), call(x(3)), call(x()), call(x(0, 2)), call(x(2, 2, 2))),
        "transpose": (*two, call(x(0, 3), 0, 1), call(x(3, 4), 0, 2)),
        "unfold": (
            call(x(6), 0, 2, 2),
            call(x(3, 4), 1, 3, 1),
            call(TURNED, 0, 1, 2),
            call(x(6), 0, 0, 1),
            call(x(6), 0, 7, 1),
            call(x(6), 0, 2, 0),
            call(x(), 0, 1, 1),
        ),
        "unsqueeze": (call(x(3), 0), call(TURNED, -1), call(x(), 0), call(x(0), 1), call(x(3), 2)),
        "view": (
            call(x(6), (2, 3)),
            call(x(3, 4), (-1, 2)),
            call(x(), (1, 1)),
            call(x(0, 3), (3, 0)),
            call(TURNED, (12,)),
            call(x(6), (-1, 4)),
            call(x(4), as_dtype("i16")),
        ),
        "unbind": (
            call(x(3, 2)),
            call(TURNED, 1),
            call(x(2, 3), dim=-1),
            call(x(0, 2)),
            call(x()),
            call(x(2, 0)),
        ),
        "split_with_sizes": (
            call(x(5), (2, 3)),
            call(x(3, 4), (1, 0, 3), 1),
            call(TURNED, (2, 1), dim=0),
            call(x(0), (0,)),
            call(x(5), (2, 2)),
            call(x(), (1,)),
        ),
    }


COPIED = {
    "as_strided": ((3, 3), (1, 1)),
    "expand": None,
    "narrow": (1, 1, 2),
    "permute": ((1, 0),),
    "transpose": (0, 1),
    "unfold": (1, 2, 1),
    "unsqueeze": (0,),
    "view": ((-1,),),
    "split_with_sizes": None,
}


def views() -> Iterator[Op]:
    """Views with their copying forms, and those without one."""
    for name, calls in view_calls().items():
        arguments = COPIED.get(name, ())
        if name == "as_strided":
            partial = with_(call(x(6), (2,), (2,), 1), variant="partial_views")
            yield of_matrix(name, *calls, partial, arguments=arguments)
            yield of_matrix("as_strided_copy", *calls, arguments=arguments)
        elif name in ("expand", "split_with_sizes"):
            apart = (call(x(3, 1), 3, 4),) if name == "expand" else ()
            yield Op(name, (*calls, *apart))
            yield Op(f"{name}_copy", calls)
        else:
            yield from with_copy(name, *calls, arguments=arguments)
    for name in ("H", "T", "mH", "mT"):
        yield of_matrix(
            name,
            *(call(given) for given in (x(3, 4), TURNED, x(0, 2), x(2, 2, 3), x(3), x())),
        )
    yield Op(
        "expand_as",
        (call(x(3, 1), x(3, 4, seed=1)), call(x(), x(2)), call(x(3), x(2, 3)), call(x(3), x(4))),
    )
    yield Op(
        "broadcast_to",
        (
            call(x(3, 1), (3, 4)),
            call(x(), (2,)),
            call(x(3), (2, 3)),
            call(x(3), (4,)),
            call(x(1), (0,)),
        ),
    )
    yield of_matrix(
        "flatten",
        call(x(2, 3, 2)),
        call(x(2, 3, 2), 1),
        call(TURNED, start_dim=0, end_dim=-1),
        call(x()),
        call(x(0, 2)),
        call(x(2, 3), 1, 0),
    )
    yield of_matrix("ravel", call(x(2, 3)), call(TURNED), call(x()), call(x(0, 2)))
    yield of_matrix(
        "reshape",
        call(x(6), (2, 3)),
        call(TURNED, (-1,)),
        call(x(), (1,)),
        call(x(0), (0, 3)),
        call(x(6), (4, -1)),
        call(x(0), (-1, 0)),
        arguments=((-1,),),
    )
    yield Op(
        "reshape_as", (call(x(6), x(2, 3)), call(TURNED, x(12)), call(x(6), x(4)), call(x(), x(1)))
    )
    yield Op(
        "view_as", (call(x(6), x(2, 3)), call(x(), x(1)), call(TURNED, x(12)), call(x(0), x(0, 2)))
    )
    yield of_matrix(
        "unflatten",
        call(x(6), 0, (2, 3)),
        call(x(3, 4), -1, (2, -1)),
        call(x(6), 0, (4, 2)),
        call(x(0), 0, (0, 2)),
        arguments=(1, (1, -1)),
    )
    yield of_matrix(
        "movedim",
        call(x(2, 3, 2), 0, 2),
        call(x(2, 3, 2), (0, 1), (-1, 0)),
        call(x(), 0, 0),
        call(x(2, 3), 0, 2),
        call(x(2, 3), (0, 0), (0, 1)),
        arguments=(0, 1),
    )
    yield of_matrix(
        "select",
        call(x(3, 4), 0, 1),
        call(TURNED, 1, -1),
        call(x(3), 0, 2),
        call(x(3), 0, 3),
        call(x(), 0, 0),
        call(x(0, 2), 0, 0),
        arguments=(0, 0),
    )
    yield Op(
        "slice",
        (
            call(x(6), 0, 1, 5, 2),
            call(TURNED, 1, -2, None),
            call(x(6), 0, 4, 2),
            call(x(6), 0, 0, 9223372036854775807, 1),
            call(x(6), 0, 0, 6, 0),
            call(x(), 0),
        ),
        function=lambda lib: lib.ops.aten.slice,
        scaled=lambda n: call(x(n), 0, 1, n - 1, 2),
    )
    yield Op(
        "view_as_complex",
        (call(x(3, 2)), call(x(2)), call(x(3)), call(x(0, 2)), call(x(2, 3))),
        scaled=lambda n: call(x(n // 2, 2)),
    )
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        yield of_matrix(
            name,
            *(call(given) for given in (x(3), x(), x(2, 3), x(2, 3, 2), x(0))),
            call([x(3), x()]),
            call(x(3), x(seed=1)),
        )


def scatters() -> Iterator[Op]:
    """Ops that write a slice of a copy."""
    yield of_matrix(
        "as_strided_scatter",
        call(x(6), x(2, 2, seed=1), (2, 2), (1, 2)),
        call(x(6), x(3, seed=1), (3,), (2,), 1),
        call(x(3, 4), x(2, seed=1), (2,), (1,)),
        call(x(6), x(3), (2,), (1,)),
        arguments=(x(3, seed=1), (3,), (1,)),
    )
    yield Op(
        "diagonal_scatter",
        (
            call(x(3, 4), x(3, seed=1)),
            call(x(3, 3), x(2, seed=1), 1),
            call(x(2, 3, 2), x(3, 2, seed=1), 0, 0, 2),
            call(x(3, 3), x(2)),
        ),
        scaled=lambda n: call(x(n // 5, 5), x(min(n // 5, 5), seed=1)),
    )
    yield Op(
        "select_scatter",
        (
            call(x(3, 4), x(4, seed=1), 0, 1),
            call(TURNED, x(3, seed=1), 1, -1),
            call(x(3), x(seed=1), 0, 0),
            call(x(3, 4), x(3), 0, 0),
            call(x(3), x(), 0, 3),
        ),
        scaled=lambda n: call(x(n // 5, 5), x(5, seed=1), 0, 1),
    )
    yield Op(
        "slice_scatter",
        (
            call(x(6), x(2, seed=1), 0, 1, 5, 2),
            call(TURNED, x(3, 2, seed=1), 1, 2),
            call(x(6), x(6, seed=1)),
            call(x(6), x(3), 0, 0, 2),
            call(x(6), x(0), 0, 4, 2),
        ),
        scaled=lambda n: call(x(n), x(n - 2, seed=1), 0, 1, n - 1),
    )


def ops() -> Iterator[Op]:
    """All ops of this module."""
    yield from views()
    yield from scatters()
