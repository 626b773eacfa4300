"""The ops that layers lower to: normalisation, sampling of images, attention, and PyTorch's
internal names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from op_table.call import (
    NONZERO,
    OWN,
    POSITIVE,
    SMALL,
    UNIT,
    Domain,
    Library,
    Op,
    as_dtype,
    call,
    index,
    of,
    with_,
    x,
)


def aten(name: str) -> Callable[[Library], Callable[..., object]]:
    """The function of an op that is public only below the namespace of ops."""
    return lambda lib: getattr(lib.ops.aten, name)


def norms() -> Iterator[Op]:
    """Batch, layer and group norm as functions of several results."""
    image, scale, shift = x(3, 2, 2), x(2, seed=1), x(2, seed=2)
    mean, variance = x(2, gradient=False), x(2, domain=POSITIVE, gradient=False)
    evaluated = (
        call(image, scale, shift, mean, variance, False, 0.1, 1e-5),
        call(image, None, None, mean, variance, False, 0.1, 1e-5),
    )
    trained = (
        call(image, scale, shift, mean, variance, True, 0.1, 1e-5),
        call(x(2, 2, 3, 2, layout="transposed"), scale, None, mean, variance, True, 0.5, 1e-3),
    )
    large = lambda n: call(x(n // 10, 2, 5), scale, shift, mean, variance, True, 0.1, 1e-5)  # noqa: E731
    bare = call(image, scale, shift, None, None, True, 0.1, 1e-5)
    yield Op("native_batch_norm", (*trained, *evaluated, bare), scaled=large, tolerance=8)
    legit = (*trained, *evaluated, call(image, scale, shift, True, 0.1, 1e-5))
    yield Op("_native_batch_norm_legit", legit, scaled=large, tolerance=8)
    yield Op(
        "_batch_norm_with_update",
        (
            call(image, scale, shift, mean, variance, 0.1, 1e-5),
            call(image, None, None, mean, variance, 0.1, 1e-5),
        ),
        function=aten("_batch_norm_with_update"),
        tolerance=8,
    )
    yield Op(
        "native_layer_norm",
        (
            call(x(3, 4), (4,), x(4, seed=1), x(4, seed=2), 1e-5),
            call(x(2, 3, 2), (3, 2), None, None, 1e-5),
            call(x(3, 4, layout="transposed"), (4,), x(4, seed=1), None, 0.5),
            call(x(0, 4), (4,), None, None, 1e-5),
            call(x(3, 4), (3,), None, None, 1e-5),
        ),
        scaled=lambda n: call(x(n // 10, 10), (10,), x(10, seed=1), x(10, seed=2), 1e-5),
        tolerance=8,
    )
    yield Op(
        "native_group_norm",
        (
            call(x(2, 4, 3), x(4, seed=1), x(4, seed=2), 2, 4, 3, 2, 1e-5),
            call(x(2, 4, 3), None, None, 2, 4, 3, 4, 1e-5),
            call(x(0, 4, 3), None, None, 0, 4, 3, 2, 1e-5),
            call(x(2, 4, 3), None, None, 2, 4, 3, 3, 1e-5),
        ),
        scaled=lambda n: call(x(n // 10, 2, 5), x(2), x(2), n // 10, 2, 5, 2, 1e-5),
        tolerance=8,
    )


def images() -> Iterator[Op]:
    """Sampling at grids, resizing, gradients of pooling."""
    for name, size in (("grid_sampler_2d", (3, 4)), ("grid_sampler_3d", (2, 3, 2))):
        grid = x(1, *size, len(size), domain=UNIT, seed=1)
        given = x(1, 2, *size)
        modes = [(m, p, a) for m in (0, 1, 2) for p in (0, 1, 2) for a in (False, True)]
        wide = x(1, *size, len(size), domain=SMALL, seed=2)
        yield Op(
            name,
            (
                *(call(given, grid, *mode) for mode in modes),
                *(
                    call(given, wide, mode, padding, False)
                    for mode in (0, 1)
                    for padding in (0, 1, 2)
                ),
                call(x(0, 2, *size), x(0, *size, len(size)), 0, 0, False),
                call(given, x(2, *size, len(size)), 0, 0, False),
            ),
            scaled=None,
            tolerance=8,
        )
    for name in ("_upsample_bilinear2d_aa",):
        yield Op(
            name,
            (
                call(x(1, 2, 4, 4), (2, 3), False),
                call(x(1, 2, 3, 3), (5, 4), True),
                call(x(1, 1, 4, 4), (2, 2), False, 0.5, 0.5),
                call(x(1, 1, 4, 4), (0, 2), False),
            ),
            function=aten(name),
            scaled=lambda n: call(
                x(1, 1, 2, 5) if n <= 100 else x(1, 1, 1000, 1000), (5, 2), False
            ),
            tolerance=8,
        )
    places = index(0, 3, 4, 7, 8, 11, shape=(1, 1, 2, 3))
    yield Op(
        "max_pool2d_with_indices_backward",
        (
            call(
                x(1, 1, 2, 3, seed=1), x(1, 1, 4, 6), (2, 2), (2, 2), (0, 0), (1, 1), False, places
            ),
            call(
                x(1, 2, 3, seed=1),
                x(1, 4, 6),
                (2, 2),
                (2, 2),
                (0, 0),
                (1, 1),
                False,
                index(*range(6), shape=(1, 2, 3)),
            ),
        ),
        function=aten("max_pool2d_with_indices_backward"),
    )


def attention() -> Iterator[Op]:
    """Attention and softmax as PyTorch's internal names have them."""
    query, key, value = x(1, 2, 3, 4), x(1, 2, 5, 4, seed=1), x(1, 2, 5, 4, seed=2)
    flash = "_scaled_dot_product_flash_attention_for_cpu"
    mask = x(3, 5, seed=3, gradient=False)
    yield Op(
        f"torch.ops.aten.{flash}",
        (
            call(query, key, value),
            call(query, key, value, 0.0, True),
            call(query, key, value, scale=0.25),
            call(query, key, value, attn_mask=mask),
        ),
        function=aten(flash),
        tolerance=8,
    )
    yield Op(
        "torch.ops.aten._safe_softmax.default",
        (
            call(x(3, 4), 1),
            call(x(3, 4, layout="transposed"), 0),
            call(x(), 0),
            with_(call(of(float("-inf"), float("-inf")), 0), only=("f64", "f32")),
            call(x(3, 4), 1, OWN),
            call(x(3, 4), 1, as_dtype("f32")),
        ),
        function=lambda lib: lib.ops.aten._safe_softmax.default,
        scaled=lambda n: call(x(n // 10, 10), 1),
    )
    yield Op(
        "_softmax_backward_data",
        (
            call(x(3, 4), x(3, 4, domain=POSITIVE, seed=1), 1, OWN),
            call(x(3, 4, layout="transposed"), x(3, 4, domain=POSITIVE, seed=1), 0, OWN),
            call(x(), x(domain=POSITIVE), 0, OWN),
        ),
        scaled=lambda n: call(x(n // 10, 10), x(n // 10, 10, domain=POSITIVE), 1, OWN),
    )


def gpu_only() -> Iterator[Op]:
    """Names of PyTorch that need a GPU: called here so that the reference itself says so."""
    query = x(1, 4, 2, 8)
    forward = call(query, query, query, None, None, 4, 4, 0.0, False, False)
    name = "_flash_attention_forward"
    yield Op(f"torch.ops.aten.{name}", (forward,), function=aten(name))
    name = "_efficient_attention_forward"
    efficient = call(query, query, query, None, None, None, None, None, 0.0, 0)
    yield Op(f"torch.ops.aten.{name}", (efficient,), function=aten(name))
    scale = x(dtype="f32", domain=POSITIVE, gradient=False)
    matrix = x(16, 16), x(16, 16, layout="transposed")
    yield Op(
        "torch._scaled_mm", (call(*matrix, scale, scale),), function=lambda lib: lib._scaled_mm
    )
    second = call(*matrix, [scale], [0], [0], [scale], [0], [0], None, None)
    yield Op("torch._scaled_mm_v2", (second,), function=lambda lib: lib._scaled_mm_v2)
    source = "template <typename T> T {}({}) {{ return {}; }}"
    jiterated = {
        "unary": (source.format("f", "T x", "x * x"), 1, 1),
        "binary": (source.format("f", "T x, T y", "x + y"), 2, 1),
        "4inputs_with_extra_args": (
            source.format("f", "T a, T b, T c, T d", "a + b + c + d"),
            4,
            1,
        ),
        "binary_return_by_ref": (
            "template <typename T> void f(T x, T y, T& z) { z = x + y; }",
            2,
            1,
        ),
        "2inputs_2outputs": (
            "template <typename T> void f(T x, T y, T& a, T& b) { a = x; b = y; }",
            2,
            2,
        ),
    }
    for name, (text, count, outputs) in jiterated.items():
        yield Op(
            f"jiterator_{name}",
            (call(*(x(3, seed=i) for i in range(count))),),
            function=lambda lib, text=text, outputs=outputs: made_by_jiterator(lib, text, outputs),
        )


def made_by_jiterator(lib: Library, text: str, outputs: int) -> Callable[..., object]:
    """A function made of source text, where the library can do that."""
    make = lib.cuda.jiterator
    if outputs == 1 and "&" not in text:
        return make._create_jit_fn(text)
    return make._create_multi_output_jit_fn(text, outputs)


def internals() -> Iterator[Op]:
    """Reflected operators and other names that begin with an underscore."""
    reflected = {
        "__radd__": NONZERO,
        "__rsub__": NONZERO,
        "__rmul__": NONZERO,
        "__rdiv__": NONZERO,
        "__rmod__": NONZERO,
        "__rpow__": SMALL,
        "__rand__": NONZERO,
        "__ror__": NONZERO,
        "__rxor__": NONZERO,
    }
    for name, domain in reflected.items():
        yield Op(
            name,
            (
                call(x(5, domain=domain), 3),
                call(x(2, 3, domain=domain, layout="transposed"), 2),
                call(x(domain=domain), 2),
                call(x(0, domain=domain), 1),
                call(x(3, domain=domain), 2.5),
                call(x(3, domain=domain), True),
                call(x(3, domain=domain), x(3, domain=NONZERO, seed=1)),
                call(x(2, 3, domain=domain), x(3, domain=NONZERO, seed=1)),
            ),
            scaled=lambda n, domain=domain: call(x(n, domain=domain), 3),
        )
    yield Op(
        "__rmatmul__",
        (
            call(x(3, 4), x(2, 3, seed=1)),
            call(x(3), x(3, seed=1)),
            call(x(2, 3, 4), x(2, 3, seed=1)),
            call(x(3, 4), x(3, seed=1)),
            call(x(3, 4, layout="transposed"), x(2, 3, seed=1)),
            call(x(3, 4), x(2, 2)),
            call(x(3, 0), x(2, 3)),
        ),
        scaled=lambda n: call(
            x(2, 5) if n <= 100 else x(1000, 1000), x(5, 2) if n <= 100 else x(1, 1000)
        ),
    )
    yield Op(
        "_chunk_cat",
        (
            call([x(3, 2), x(4, 2, seed=1)], 0, 2),
            call([x(2, 3), x(2, 5, seed=1)], 1, 2),
            call([x(3)], 0, 1),
            call([x(3, 2)], 0, 0),
        ),
        scaled=lambda n: call([x(n), x(n, seed=1)], 0, 2),
    )
    unsafe = x(3, 4), (index(0, 2, 1), index(1, 3, 0))
    mask = of(True, False, True, dtype="bool")
    yield Op(
        "_unsafe_masked_index",
        (
            call(unsafe[0], mask, unsafe[1], 2),
            call(x(4), mask, (index(0, 9, -1),), 0),
            call(x(4, 3, layout="transposed"), mask, (index(0, 2, 1),), 1),
        ),
    )
    yield Op(
        "_unsafe_masked_index_put_accumulate",
        (
            call(unsafe[0], mask, unsafe[1], x(3, seed=1)),
            call(x(4), mask, (index(0, 1, 0),), x(3, seed=1)),
        ),
    )
    lengths = of(2, 0, 3, dtype="i64")
    offsets = of(0, 2, 2, 5, dtype="i64")
    reductions = ("sum", "mean", "max", "min", "prod")
    yield Op(
        "_segment_reduce",
        tuple(
            with_(c, variant=variant)
            for variant, given in (("lengths", lengths), ("offsets", offsets))
            for how in reductions
            for c in (
                call(x(5), how, **{variant: given}, initial=1.0),
                call(x(5, 2), how, **{variant: given}, axis=0, unsafe=True, initial=0.5),
            )
        ),
        function=lambda lib: lib.segment_reduce,
        scaled=lambda n: call(x(n), "sum", lengths=x(n, dtype="i64", domain=Domain(whole=(1, 1)))),
    )
    yield Op(
        "native_dropout_backward",
        (
            call(x(5), of(True, False, True, True, False, dtype="bool"), 2.0),
            call(x(2, 3, layout="transposed"), x(2, 3, dtype="bool"), 1.25),
            call(x(0), x(0, dtype="bool"), 2.0),
        ),
        function=aten("native_dropout_backward"),
        scaled=lambda n: call(x(n), x(n, dtype="bool"), 2.0),
    )


def sparse() -> Iterator[Op]:
    """Ops on sparse layouts, given dense inputs that are made sparse; results are shown dense."""
    zeros = of(0, 2, 0, 3, 0, 1, shape=(2, 3))
    yield Op(
        "to_sparse",
        (
            call(zeros),
            call(x(3)),
            call(zeros, 1),
            call(x(2, 0)),
            call(zeros, layout=type(OWN)(lambda lib, _: lib.sparse_csr)),
        ),
        function=lambda lib: lambda t, *a, **k: t.to_sparse(*a, **k).to_dense(),
        scaled=lambda n: call(x(n // 5, 5)),
    )
    dense = x(3, 4, seed=1)
    yield Op(
        "sparse.mm",
        (
            call(zeros, dense),
            *(
                with_(call(zeros, dense, how), variant="reduce")
                for how in ("sum", "mean", "amax", "amin")
            ),
        ),
        function=lambda lib: lambda a, b, *how: lib.sparse.mm(a.to_sparse_csr(), b, *how),
    )
    yield Op(
        "sparse.sampled_addmm",
        (
            call(zeros, x(2, 4), x(4, 3, seed=1)),
            call(zeros, x(2, 4), x(4, 3, seed=1), beta=0.5, alpha=2),
        ),
        function=lambda lib: (
            lambda a, b, c, **k: lib.sparse.sampled_addmm(a.to_sparse_csr(), b, c, **k).to_dense()
        ),
    )


def ops() -> Iterator[Op]:
    """All ops of this module."""
    for family in (norms, images, attention, gpu_only, internals, sparse):
        yield from family()
