"""Linear algebra: products, decompositions, equations, norms of matrices.

Matrices are well conditioned. What a decomposition leaves free (signs, phases, the order of
eigenvalues) is taken away by a function of its factors that does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from op_table.call import COMPLEX, DTYPES, Call, Input, Library, Op, call, of, with_, x

DOUBLE = ("f64", "c128")
UNCOMPLEX = tuple(dtype for dtype in DTYPES if dtype not in COMPLEX)
WIDE = ("f32", "f64", "c64", "c128")


def numbers(count: int, seed: int) -> Iterator[float]:
    """So many odd eighths between -2 and 2."""
    state = 12345 + 7919 * seed
    for _ in range(count):
        state = (1103515245 * state + 12345) % 2**31
        yield (2 * (state // 2**12 % 16) - 15) / 8


def dense(*shape: int, seed: int = 0, **options: Any) -> Input:
    """A real matrix without structure."""
    count = 1
    for size in shape:
        count *= size
    return of(*numbers(count, seed), shape=shape, **options)


def regular(*batch_and_order: int, seed: int = 0, imaginary: bool = False) -> Input:
    """Square matrices with a dominant diagonal."""
    *batch, n = batch_and_order
    count = n * n
    for size in batch:
        count *= size
    values: list[Any] = list(numbers(count, seed))
    if imaginary:
        parts = numbers(count, seed + 1)
        values = [complex(re, im) for re, im in zip(values, parts, strict=True)]
    for at in range(0, count, n * n):
        for d in range(n):
            values[at + d * n + d] += 4 + d
    return of(*values, shape=(*batch, n, n))


def hermitian(n: int, *, seed: int = 0, imaginary: bool = False, shift: float = 8.0) -> Input:
    """A Hermitian matrix, positive definite for the usual shift."""
    parts = list(numbers(2 * n * n, seed))
    values: list[Any] = [0.0] * (n * n)
    for r in range(n):
        for c in range(r + 1):
            re, im = parts[r * n + c], parts[n * n + r * n + c] if imaginary else 0.0
            if r == c:
                values[r * n + r] = re + shift + r
            else:
                values[r * n + c] = complex(re, im) if imaginary else re
                values[c * n + r] = complex(re, -im) if imaginary else re
    return of(*values, shape=(n, n))


def squares(**kwargs: Any) -> tuple[Call, ...]:
    """Calls with one square matrix, or a batch."""
    return (
        call(regular(3), **kwargs),
        call(regular(2, 2, seed=1), **kwargs),
        with_(call(regular(3, seed=2, imaginary=True), **kwargs), only=COMPLEX),
        with_(call(x(0, 0), **kwargs), gradient=False),
        call(x(3), **kwargs),
        call(x(2, 3), **kwargs),
    )


def positives(**kwargs: Any) -> tuple[Call, ...]:
    """Calls with one Hermitian positive definite matrix. (Gradients move one triangle or both.)"""
    return (
        with_(call(hermitian(3), **kwargs), gradient=False),
        with_(call(hermitian(3, seed=1, imaginary=True), **kwargs), only=COMPLEX, gradient=False),
        call(x(3), **kwargs),
        call(x(2, 3), **kwargs),
    )


def rectangles(**kwargs: Any) -> tuple[Call, ...]:
    """Calls with one matrix of any shape."""
    return (
        call(dense(3, 2), **kwargs),
        call(dense(2, 2, 3, seed=1), **kwargs),
        call(regular(3), **kwargs),
        with_(call(regular(2, imaginary=True), **kwargs), only=COMPLEX),
        call(x(3), **kwargs),
    )


Function = Callable[[Library], Callable[..., Any]]


def composed(name: str, after: Callable[[Library, Any], Any]) -> Function:
    """A function of the results of one of ``torch.linalg``."""

    def of_library(lib: Library) -> Callable[..., Any]:
        return lambda *args, **kwargs: after(lib, getattr(lib.linalg, name)(*args, **kwargs))

    return of_library


def of_svd(lib: Library, found: Any) -> Any:
    """What does not depend on phases: the matrix with squared values, and the values."""
    k = found.S.shape[-1]
    u, vh = found.U[..., :k], found.Vh[..., :k, :]
    return (u * (found.S * found.S).unsqueeze(-2)) @ vh, found.S


def of_eig(lib: Library, found: Any) -> Any:
    """The square of the matrix by its eigenvalues and vectors."""
    w, v = found
    return lib.linalg.solve(v, (v * (w * w).unsqueeze(-2)), left=False).abs()


def of_eigh(lib: Library, found: Any) -> Any:
    """The square of the matrix, and the values."""
    w, v = found
    return (v * (w * w).unsqueeze(-2)) @ v.mH, w


def of_positive(
    name: str, after: Callable[[Library, Any], Any] = lambda lib, found: found
) -> Function:
    """An op of the positive definite matrix that its argument makes: gradients move both of its
    triangles.
    """

    def of_library(lib: Library) -> Callable[..., Any]:
        def function(a: Any, **kwargs: Any) -> Any:
            matrix = a @ a.mH + lib.eye(a.shape[-1], dtype=a.dtype, device=a.device)
            return after(lib, getattr(lib.linalg, name)(matrix, **kwargs))

        return function

    return of_library


def moved(
    name: str, after: Callable[[Library, Any], Any] = lambda lib, found: found, **kwargs: Any
) -> tuple[Call, ...]:
    """Calls with gradients of an op that takes Hermitian matrices."""
    options: dict[str, Any] = {"function": of_positive(name, after)}
    return (
        with_(call(dense(3, 3, seed=5), **kwargs), only=WIDE, **options),
        with_(call(regular(2, seed=6, imaginary=True), **kwargs), only=COMPLEX, **options),
    )


def of_factor(name: str) -> Function:
    """An op of the Cholesky factor, with a real diagonal, in its last argument's lower triangle."""

    def of_library(lib: Library) -> Callable[..., Any]:
        def function(*args: Any, upper: bool = False) -> Any:
            *others, a = args
            diagonal = a.diagonal(dim1=-2, dim2=-1).real.to(a.dtype)
            factor = a.tril(-1) + lib.diag_embed(diagonal)
            return getattr(lib, name)(*others, factor.mH if upper else factor, upper=upper)

        return function

    return of_library


def factored(name: str, *others: Input) -> tuple[Call, ...]:
    """Calls with the gradients of Cholesky factors. (Of any other matrix PyTorch gives gradients to
    the triangle that is not read, too, and takes a diagonal that no factor has.)
    """
    factors = (regular(3), WIDE), (regular(3, seed=2, imaginary=True), COMPLEX)
    return tuple(
        with_(call(*others, factor, upper=upper), function=of_factor(name), only=only)
        for factor, only in factors
        for upper in (False, True)
    )


def of_polar(lib: Library, found: Any) -> Any:
    """Both factors."""
    return found.U, found.H


def of_ldl(lib: Library, found: Any) -> Any:
    """The equation that the factors solve."""
    ld, pivots = found[:2]
    return lib.linalg.ldl_solve(ld, pivots, lib.ones_like(ld))


def of_reflections(name: str) -> Function:
    """``orgqr`` or ``ormqr`` with the reflections of the matrix itself."""

    def of_library(lib: Library) -> Callable[..., Any]:
        def function(a: Any, *others: Any, **kwargs: Any) -> Any:
            reflections, tau = lib.geqrf(a)
            return getattr(lib, name)(reflections, tau, *others, **kwargs)

        return function

    return of_library


def of_lu(name: str) -> Function:
    """An op with the LU factorisation of its first argument."""

    def of_library(lib: Library) -> Callable[..., Any]:
        def function(a: Any, b: Any, **kwargs: Any) -> Any:
            lu, pivots = lib.linalg.lu_factor(a)
            if name == "lu_solve":
                return lib.lu_solve(b, lu, pivots, **kwargs)
            return lib.linalg.lu_solve(lu, pivots, b, **kwargs)

        return function

    return of_library


def unpacked(lib: Library) -> Callable[..., Any]:
    """The parts of an LU factorisation."""
    return lambda a, **kwargs: lib.lu_unpack(*lib.linalg.lu_factor_ex(a)[:2], **kwargs)


def products() -> Iterator[Op]:
    """Products of matrices and vectors."""
    a, b, c = dense(2, 3), dense(3, 2, seed=1), dense(2, 2, seed=2)
    many, more = dense(2, 2, 3), dense(2, 3, 2, seed=1)
    yield Op("mm", (call(a, b), call(a, a), call(x(2, 0), x(0, 2)), call(x(3), x(3))))
    yield Op(
        "bmm",
        (
            call(many, more),
            call(many, many),
            call(a, b),
            with_(call(many, dense(2, 3, 3, seed=2)), variant="triton_optimized"),
        ),
    )
    yield Op("mv", (call(a, dense(3)), call(a, dense(2)), call(a, b)))
    yield Op(
        "dot", (call(dense(3), dense(3, seed=1)), call(x(0), x(0)), call(x(2), x(3)), call(a, a))
    )
    yield Op("vdot", (call(x(3), x(3, seed=1)), call(x(0), x(0)), call(x(2), x(3))))
    yield Op("outer", (call(x(2), x(3)), call(x(2), x(0)), call(x(2, 2), x(2))))
    yield Op("inner", (call(a, dense(4, 3)), call(dense(3), dense(3, seed=1)), call(a, b)))
    yield Op("kron", (call(a, b), call(x(2), x(2, 2)), call(x(2, 2), x(0, 2))))
    yield Op(
        "matmul",
        (call(a, b), call(many, dense(3)), call(dense(3), more), call(a, a), call(x(), x(2))),
    )
    yield Op("tensordot", (call(a, b, 1), call(many, more, dims=([2, 0], [1, 0])), call(a, a, 1)))
    yield Op(
        "addmm",
        (
            call(c, a, b),
            call(c, a, b, beta=2, alpha=3),
            call(dense(2), a, b),
            call(c, a, a),
            with_(call(dense(1, 2), a, b, beta=-1), variant="decomposed"),
        ),
    )
    yield Op(
        "addmv",
        (
            call(dense(2), a, dense(3)),
            call(dense(2), a, dense(3), beta=0),
            call(dense(2), a, dense(2)),
        ),
    )
    yield Op(
        "addr",
        (
            call(x(2, 3), x(2), x(3)),
            call(x(2, 3), x(2), x(3), beta=2, alpha=3),
            call(x(2, 3), x(3), x(2)),
        ),
    )
    yield Op(
        "addbmm", (call(c, many, more), call(c, many, more, beta=2, alpha=3), call(c, many, many))
    )
    yield Op(
        "baddbmm",
        (
            call(dense(2, 2, 2), many, more),
            call(c, many, more, beta=2, alpha=3),
            call(c, many, many),
        ),
    )
    yield Op(
        "einsum",
        (
            call("ij,jk->ik", a, b),
            call("bij,bjk->b", many, more),
            call("ii->i", c),
            call("ij,jk", a, a),
        ),
    )
    yield Op("trace", (call(c), call(a), call(x(0, 0)), call(x(2))))
    yield Op(
        "cdist", (call(a, dense(4, 3, seed=3)), call(a, dense(4, 3, seed=3), p=1.0), call(a, b))
    )
    yield Op("cov", (call(a), call(dense(5)), call(a, correction=0), call(many)))
    yield Op(
        "corrcoef",
        # (The coefficient of one variable is 1: its gradient is rounding alone.)
        (call(a), with_(call(dense(5)), gradient=False), call(many)),
    )
    yield Op(
        "linalg.multi_dot",
        (call([a, b]), call([dense(3), b, a]), call([a, b, dense(2, 1)]), call([a]), call([a, a])),
    )
    yield Op(
        "linalg.vecdot",
        (call(a, dense(2, 3, seed=1)), call(a, dense(3), dim=1), call(a, a, dim=0), call(a, b)),
    )
    yield Op("linalg.cross", (call(a, dense(2, 3, seed=1)), call(b, b, dim=0), call(c, c)))
    yield Op("linalg.vander", (call(x(3)), call(x(2, 2), N=3), call(x())))
    yield Op("linalg.diagonal", (call(a), call(many, offset=1), call(x(3))))


def decompositions() -> Iterator[Op]:
    """Factors of matrices."""
    yield Op("linalg.svd", rectangles(), function=composed("svd", of_svd), tolerance=20)
    yield Op("svd", rectangles(), function=old_svd, tolerance=20)
    yield Op("linalg.svdvals", rectangles(), tolerance=20)
    yield Op(
        "linalg.qr",
        (
            *rectangles(),
            call(dense(3, 2), mode="r"),
            call(dense(2, 3), mode="complete"),
            call(dense(3, 2), mode="x"),
        ),
        tolerance=20,
    )
    yield Op("linalg.eig", squares(), function=composed("eig", of_eig), tolerance=50)
    yield Op(
        "linalg.eigvals",
        squares(),
        function=composed("eigvals", lambda lib, w: (w * w).sum(-1)),
        tolerance=20,
    )
    yield Op(
        "linalg.eigh",
        (*positives(), *moved("eigh", of_eigh)),
        function=composed("eigh", of_eigh),
        tolerance=20,
    )
    yield Op("linalg.eigvalsh", (*positives(), *moved("eigvalsh")), tolerance=20)
    yield Op("linalg.cholesky", (*positives(), *moved("cholesky")), tolerance=10)
    yield Op("linalg.cholesky_ex", (*positives(), *moved("cholesky_ex")), tolerance=10)
    yield Op("linalg.lu", rectangles(), tolerance=10)
    yield Op("linalg.lu_factor", rectangles(), tolerance=10)
    yield Op(
        "linalg.lu_factor_ex",
        (*rectangles(), with_(call(of(0.0, 0.0, 0.0, 0.0, shape=(2, 2))), gradient=False)),
        tolerance=10,
    )
    yield Op("lu", rectangles(), tolerance=10)
    yield Op(
        "lu_unpack",
        (
            call(dense(3, 2)),
            call(regular(3)),
            # (Empty factors have no gradient: PyTorch gives them a history and refuses to go back.)
            with_(call(regular(3), unpack_data=False), gradient=False),
        ),
        function=unpacked,
        tolerance=10,
    )
    yield Op(
        "linalg.ldl_factor", positives(), function=composed("ldl_factor", of_ldl), tolerance=20
    )
    yield Op(
        "linalg.ldl_factor_ex",
        positives(),
        function=composed("ldl_factor_ex", of_ldl),
        tolerance=20,
    )
    yield Op("linalg.ldl_solve", positives(), function=composed("ldl_factor", of_ldl), tolerance=20)
    yield Op("geqrf", rectangles(), tolerance=10)
    yield Op(
        "linalg.householder_product",
        (
            call(dense(3, 2)),
            call(regular(3)),
            call(dense(2, 3)),
            # (Reflections that are given have gradients; `geqrf` has none.)
            with_(
                call(dense(3, 2), dense(2, seed=3)),
                function=lambda lib: lib.linalg.householder_product,
                only=WIDE,
            ),
        ),
        function=of_reflections("orgqr"),
        tolerance=20,
    )
    yield Op(
        "ormqr",
        (
            call(dense(3, 2), dense(3, 2, seed=4)),
            call(dense(3, 2), dense(2, 3), left=False),
            call(dense(3, 2), dense(3, 1), transpose=True),
            call(dense(3, 2), dense(2, 2)),
            *(
                with_(
                    call(dense(3, 2), dense(2, seed=3), dense(3, 2, seed=4), transpose=transpose),
                    function=lambda lib: lib.ormqr,
                    only=WIDE,
                )
                for transpose in (False, True)
            ),
        ),
        function=of_reflections("ormqr"),
        tolerance=20,
    )
    yield Op(
        "linalg.polar",
        (call(dense(3, 2)), call(regular(3)), call(dense(2, 3))),
        function=composed("polar", of_polar),
        tolerance=20,
    )
    yield Op("linalg.matrix_sqrth", (*positives(), *moved("matrix_sqrth")), tolerance=20)
    for name in ("svd_lowrank", "pca_lowrank"):
        yield Op(
            name,
            (call(dense(4, 3), 3), call(dense(3, 4), 2), call(dense(3, 3), 5)),
            function=of_lowrank(name),
            tolerance=50,
        )


def old_svd(lib: Library) -> Callable[..., Any]:
    """The singular values of the old form, and the matrix."""

    def function(a: Any) -> Any:
        u, s, v = lib.svd(a)
        return (u * (s * s).unsqueeze(-2)) @ v.mH, s

    return function


def of_lowrank(name: str) -> Function:
    """The values, which do not depend on the random projection if there are enough."""

    def of_library(lib: Library) -> Callable[..., Any]:
        def function(a: Any, q: int) -> Any:
            return getattr(lib, name)(a, q, niter=30)[1]

        return function

    return of_library


def equations() -> Iterator[Op]:
    """Systems of equations, inverses and what is made of them."""
    b, vector = dense(3, 2, seed=5), dense(3, seed=6)
    three, two = regular(3), regular(2, 2, seed=1)
    systems = (
        call(three, b),
        call(two, dense(2, 2, 1)),
        with_(call(regular(3, imaginary=True), b), only=COMPLEX),
        call(three, dense(2, 2)),
        call(dense(3, 2), b),
    )
    yield Op(
        "linalg.solve",
        (*systems, call(three, vector), call(three, dense(2, 3), left=False)),
        tolerance=20,
    )
    yield Op("linalg.solve_ex", (*systems, call(three, vector)), tolerance=20)
    triangular = tuple(
        with_(made, kwargs={"upper": upper}) for made in systems for upper in (True, False)
    )
    more = (
        call(three, dense(2, 3), upper=True, left=False),
        call(three, b, upper=False, unitriangular=True),
        call(three, dense(2, 3, 1), upper=True),
    )
    yield Op("linalg.solve_triangular", (*triangular, *more), tolerance=20)
    yield Op(
        "triangular_solve",
        (
            call(b, three),
            call(b, three, upper=False, transpose=True),
            call(b, three, unitriangular=True),
            call(dense(2, 1), three),
        ),
        tolerance=20,
    )
    yield Op(
        "cholesky_solve",
        (
            with_(call(b, three), only=UNCOMPLEX, gradient=False),
            with_(call(b, three, upper=True), only=UNCOMPLEX, gradient=False),
            call(dense(2, 1), three),
            *factored("cholesky_solve", b),
        ),
        tolerance=20,
    )
    yield Op(
        "cholesky_inverse",
        (
            *(
                with_(made, only=UNCOMPLEX, gradient=False)
                for made in squares()
                if made.only != COMPLEX
            ),
            with_(call(three, upper=True), only=UNCOMPLEX, gradient=False),
            *factored("cholesky_inverse"),
        ),
        tolerance=20,
    )
    yield Op(
        "linalg.lu_solve",
        (*systems[:4], call(three, dense(2, 3), left=False), call(three, b, adjoint=True)),
        function=of_lu("linalg.lu_solve"),
        tolerance=20,
    )
    yield Op("lu_solve", systems[:4], function=of_lu("lu_solve"), tolerance=20)
    for name in (
        "linalg.inv",
        "linalg.inv_ex",
        "linalg.det",
        "linalg.slogdet",
        "logdet",
        "linalg.matrix_exp",
    ):
        yield Op(name if name != "linalg.matrix_exp" else "matrix_exp", squares(), tolerance=20)
    yield Op(
        "linalg.matrix_power",
        tuple(with_(made, args=(*made.args, n)) for made in squares() for n in (0, 1, 3, -2)),
        tolerance=50,
    )
    yield Op(
        "linalg.pinv",
        (
            *rectangles(),
            call(dense(3, 2), rtol=0.5),
            call(dense(3, 2), atol=0.1),
            *(with_(made, variant="hermitian") for made in moved("pinv", hermitian=True)),
            with_(
                call(dense(3, 2), dense(2, 3, seed=1)),
                function=lambda lib: lambda a, b: lib.linalg.pinv(a @ b),
                only=WIDE,
                variant="singular",
            ),
        ),
        tolerance=50,
    )
    yield Op("pinverse", rectangles(), tolerance=50)
    least = tuple(
        call(dense(m, n), dense(m, 2, seed=8), driver=driver)
        for driver in ("gels", "gelsy", "gelsd", "gelss", "none")
        for m, n in ((4, 2), (2, 4), (3, 3))
    )
    yield Op(
        "linalg.lstsq",
        (
            *least,
            call(dense(4, 2), dense(4)),
            call(dense(4, 2), dense(3, 1)),
            with_(
                call(dense(4, 2), dense(4, 2, seed=8)),
                function=lambda lib: lambda a, b: lib.linalg.lstsq(a, b).solution,
                only=WIDE,
                variant="grad_oriented",
            ),
        ),
        tolerance=100,
    )
    yield Op(
        "linalg.tensorinv",
        (
            call(of(*regular(4).elements("f64"), shape=(2, 2, 4))),
            call(regular(3), ind=1),
            call(dense(2, 3, 4)),
        ),
        tolerance=20,
    )
    yield Op(
        "linalg.tensorsolve",
        (
            call(of(*regular(4).elements("f64"), shape=(2, 2, 4)), dense(2, 2)),
            call(three, vector),
            call(dense(2, 3), vector),
        ),
        tolerance=20,
    )


def norms() -> Iterator[Op]:
    """Norms, condition numbers, ranks."""
    a, many = dense(3, 2), dense(2, 3, 2, seed=3)
    inf = float("inf")
    orders = [1, -1, 2, -2, inf, -inf, "fro", "nuc"]
    yield Op(
        "linalg.matrix_norm",
        (
            *(call(a, ord) for ord in orders),
            *(call(many, ord, dim=(0, 2), keepdim=True) for ord in orders),
            call(a, 3),
            call(dense(3), 1),
            call(a, 1, dim=(0, 0)),
        ),
        tolerance=20,
    )
    yield Op(
        "linalg.norm",
        (
            *(call(a, ord) for ord in orders),
            *(call(dense(3), ord) for ord in (1, 2, 3, 0, inf, -inf)),
            call(many),
            call(many, 2),
            call(many, 1, dim=1),
            call(many, 1, dim=(0, 1)),
            call(many, 1, dim=(0, 1, 2)),
            call(a, "foo"),
            *(
                with_(call(zeros, *ord), variant="subgradients_at_zero", second=False)
                for zeros in (of(0.0, 0.0), of(0.0, 0.0, 0.0, 0.0, shape=(2, 2)))
                for ord in ((), (1,), (inf,))
            ),
        ),
        tolerance=20,
    )
    yield Op(
        "linalg.vector_norm",
        (
            *(call(a, ord) for ord in (1, 2, 3, 0.5, 0, inf, -inf)),
            call(many, 2, dim=(0, 2), keepdim=True),
            call(many, 2, dim=5),
        ),
        tolerance=4,
    )
    yield Op(
        "linalg.cond",
        (
            *(call(regular(3), p) for p in (None, *orders)),
            call(a),
            call(a, 1),
            call(regular(3), 3),
            with_(call(of(0.0, 0.0, 0.0, 0.0, shape=(2, 2)), 1), gradient=False),
            with_(call(of(1.0, 1.0, 1.0, 1.0, shape=(2, 2)), "fro"), gradient=False),
        ),
        tolerance=50,
    )
    yield Op(
        "linalg.matrix_rank",
        (
            call(a),
            call(many),
            call(of(1.0, 2.0, 2.0, 4.0, shape=(2, 2))),
            call(a, atol=100.0),
            call(regular(3), rtol=0.5),
            with_(call(hermitian(3), hermitian=True), only=WIDE, variant="hermitian"),
            call(dense(3)),
        ),
    )


def ops() -> Iterator[Op]:
    """All ops of this module."""
    for family in (products, decompositions, equations, norms):
        yield from family()
