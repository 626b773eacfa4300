"""The cases of `small.py`: what is called, on inputs of which shapes and dtypes.

A family is a generator of cases for one library. Inputs are made when a case is asked for, from
that library's own random stream. A case may name what a library lacks: the names are looked up
when it is called, so that only this case fails. Start at FAMILIES.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

# The library under test and its tensors: one table serves two libraries.
Library = Any
Tensor = Any
# Functions of a family's inputs, by name.
Table = dict[str, Callable[..., Any]]

LINE_SHAPES = [
    *[(4096, 2), (4096, 4), (2048, 8), (1000, 10), (1024, 16), (512, 17), (512, 32)],
    *[(300, 50), (256, 64), (100, 100), (128, 128), (64, 256), (32, 1000)],
]
# The shapes tried with further dtypes.
TYPED_SHAPES = [(1024, 16), (100, 100), (2048, 8)]
MATRIX_SHAPES = [(4096, 2), (2048, 8), (1000, 10), (512, 17), (256, 64), (100, 100)]
BATCH_SHAPES = [(64, 2), (64, 3), (64, 4), (32, 8), (16, 16), (4, 32), (1, 64)]
IMAGE_SHAPES = [
    *[(16, 8, 4, 4), (8, 16, 8, 8), (4, 3, 28, 28), (2, 8, 14, 14)],
    *[(64, 16, 2, 2), (32, 32, 7, 7), (1, 1, 28, 28)],
]
POINT_SIZES = [1, 4, 7, 16, 33, 100, 1000, 10000]
TENFOLD_SIZES = [1, 10, 100, 1000, 10000]

INTEGER_LINES = """sum prod max min amax amin argmax argmin any all cumsum cumprod cummax sort
    argsort topk median flip roll cat stack count_nonzero kthvalue mode diff aminmax"""
BOOLEAN_LINES = "sum any all cumsum flip roll cat count_nonzero"
FULL_REDUCTIONS = """sum mean prod max min argmax var std norm any all median nansum amax aminmax
    count_nonzero"""
UNARY = """exp log sin tanh sigmoid sqrt abs neg relu erf floor round sign rsqrt reciprocal square
    isnan expm1 log1p atan lgamma digamma cos erfinv exp2 log2 logit frac trunc tan asin sinh asinh
    i0 sgn positive logical_not isfinite"""
# Enough of them for the sizes at which only a loop's remainder differs.
UNARY_SAMPLE = "exp tanh sigmoid log"
REMAINDER_SIZES = (4, 33)
BINARY = """add sub mul div pow maximum minimum atan2 fmod remainder hypot lt eq ge logaddexp fmax
    copysign xlogy floor_divide logical_and nextafter heaviside"""
BROADCAST = "add mul div maximum pow lt"
ACTIVATIONS = """relu gelu silu elu selu celu softplus leaky_relu hardtanh hardswish hardsigmoid
    mish logsigmoid relu6 softsign tanhshrink softshrink hardshrink"""
POINT_LOSSES = """mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy
    binary_cross_entropy_with_logits kl_div soft_margin_loss poisson_nll_loss"""
DECOMPOSITIONS = "qr eigh pinv matrix_rank lu_factor eigvalsh"


@dataclass
class Case:
    """One call. The leaves are what it is differentiated by; without any, it is timed forward."""

    name: str
    forward: Callable[[], Any]
    leaves: tuple[Tensor, ...] = ()


def normal(lib: Library, *shape: int, dtype: Any = None) -> Tensor:
    """A leaf of normally distributed values."""
    return lib.randn(*shape).to(dtype or lib.float32).requires_grad_()


def in_unit_interval(lib: Library, size: int) -> Tensor:
    """A leaf of values between 0.1 and 0.9, where almost every function is smooth."""
    return (lib.rand(size) * 0.8 + 0.1).requires_grad_()


def call(module: Any, name: str, *arguments: Any, **options: Any) -> Any:
    """Calls a function by its name; a name that is missing fails when called, not before."""
    return getattr(module, name)(*arguments, **options)


def of_table(table: Table, suffix: object, given: Any, *leaves: Tensor) -> Iterator[Case]:
    """The cases of a table whose functions take all of a family's inputs as one argument."""
    for name, function in table.items():
        yield Case(f"{name} {suffix}", partial(function, given), leaves)


def reduction_table(lib: Library) -> Table:
    """Reductions of a tensor along one dimension."""
    return {
        "sum": lambda x, dim: x.sum(dim),
        "mean": lambda x, dim: x.mean(dim),
        "prod": lambda x, dim: x.prod(dim),
        "max": lambda x, dim: x.max(dim),
        "min": lambda x, dim: x.min(dim),
        "amax": lambda x, dim: x.amax(dim),
        "amin": lambda x, dim: x.amin(dim),
        "argmax": lambda x, dim: x.argmax(dim),
        "argmin": lambda x, dim: x.argmin(dim),
        "any": lambda x, dim: x.any(dim),
        "all": lambda x, dim: x.all(dim),
        "var": lambda x, dim: x.var(dim),
        "std": lambda x, dim: x.std(dim),
        "norm": lambda x, dim: x.norm(dim=dim),
        "norm1": lambda x, dim: x.norm(1, dim=dim),
        "norm3": lambda x, dim: x.norm(3, dim=dim),
        "norminf": lambda x, dim: x.norm(float("inf"), dim=dim),
        "logsumexp": lambda x, dim: x.logsumexp(dim),
        "var_mean": lambda x, dim: lib.var_mean(x, dim),
        "nansum": lambda x, dim: x.nansum(dim),
        "count_nonzero": lambda x, dim: x.count_nonzero(dim),
        "aminmax": lambda x, dim: x.aminmax(dim=dim),
        "median": lambda x, dim: x.median(dim),
        "kthvalue": lambda x, dim: x.kthvalue(1, dim),
        "mode": lambda x, dim: x.mode(dim),
        "cosine": lambda x, dim: lib.nn.functional.cosine_similarity(x, x, dim=dim),
    }


def line_table(lib: Library) -> Table:
    """Functions along one dimension that keep it: scans, sorting, normalising, copying."""
    return {
        "cumsum": lambda x, dim: x.cumsum(dim),
        "cumprod": lambda x, dim: x.cumprod(dim),
        "cummax": lambda x, dim: x.cummax(dim),
        "logcumsumexp": lambda x, dim: x.logcumsumexp(dim),
        "softmax": lambda x, dim: x.softmax(dim),
        "log_softmax": lambda x, dim: x.log_softmax(dim),
        "softmin": lambda x, dim: lib.nn.functional.softmin(x, dim),
        "sort": lambda x, dim: x.sort(dim),
        "argsort": lambda x, dim: x.argsort(dim),
        "topk": lambda x, dim: x.topk(max(1, x.shape[dim] // 2), dim),
        "topk1": lambda x, dim: x.topk(1, dim),
        "flip": lambda x, dim: x.flip(dim),
        "roll": lambda x, dim: x.roll(1, dim),
        "diff": lambda x, dim: x.diff(dim=dim),
        "normalize": lambda x, dim: lib.nn.functional.normalize(x, dim=dim),
        "glu": lambda x, dim: lib.nn.functional.glu(x, dim),
        "cat": lambda x, dim: lib.cat([x, x], dim),
        "stack": lambda x, dim: lib.stack([x, x], dim),
        "repeat_interleave": lambda x, dim: x.repeat_interleave(2, dim),
        "chunkcat": lambda x, dim: lib.cat(x.chunk(2, dim)[::-1], dim),
    }


def lines(lib: Library) -> Iterator[Case]:
    """Every function along a dimension: the rows and the columns of many shapes, the middle."""
    for name, function in (reduction_table(lib) | line_table(lib)).items():
        for shape in LINE_SHAPES:
            yield from lines_of_shape(lib, name, function, shape)
        x = normal(lib, 16, 32, 32)
        yield Case(f"{name} {tuple(x.shape)} d1 f32", partial(function, x, 1), (x,))


def lines_of_shape(
    lib: Library, name: str, function: Callable[..., Any], shape: tuple[int, int]
) -> Iterator[Case]:
    """One function along either dimension of one shape, for some shapes with every dtype."""
    dtypes = {"f32": lib.float32}
    if shape in TYPED_SHAPES:
        dtypes |= {"f64": lib.float64, "bf16": lib.bfloat16}
    for dim in (1, 0):
        if name == "glu" and shape[dim] % 2:
            continue
        for label, dtype in dtypes.items():
            x = normal(lib, *shape, dtype=dtype)
            yield Case(f"{name} {shape} d{dim} {label}", partial(function, x, dim), (x,))
        if shape in TYPED_SHAPES and name in INTEGER_LINES.split():
            x = lib.randint(-50, 50, shape)
            yield Case(f"{name} {shape} d{dim} i64", partial(function, x, dim))
        if shape in TYPED_SHAPES and name in BOOLEAN_LINES.split():
            x = lib.rand(*shape) > 0.5
            yield Case(f"{name} {shape} d{dim} bool", partial(function, x, dim))


def full_reductions(lib: Library) -> Iterator[Case]:
    """Reductions of whole tensors: of many sizes, turned over, with gaps."""
    inputs = {str(size): normal(lib, size) for size in TENFOLD_SIZES}
    inputs["T"] = normal(lib, 100, 100).t().detach().requires_grad_()
    inputs["strided"] = normal(lib, 200, 200)[::2, ::2].detach().requires_grad_()
    for name in FULL_REDUCTIONS.split():
        for label, x in inputs.items():
            yield Case(f"full {name} {label}", partial(operator.methodcaller(name), x), (x,))


def one_operand_table(lib: Library) -> Table:
    """Elementwise functions of one tensor that take further arguments."""
    functional = lib.nn.functional
    return {
        "clamp": lambda x: x.clamp(0.2, 0.7),
        "pow2": lambda x: x**2,
        "pow.5": lambda x: x**0.5,
        "pow3.3": lambda x: x**3.3,
        "2**": lambda x: 2**x,
        "dropout": lambda x: functional.dropout(x, 0.5),
        "masked_fill": lambda x: x.masked_fill(x > 0.5, 0.0),
        "nan_to_num": lambda x: x.nan_to_num(),
        "to64": lambda x: x.double(),
        "tobf": lambda x: x.bfloat16(),
        "toint": lambda x: x.int(),
        "clone": lambda x: x.clone(),
    }


def elementwise(lib: Library) -> Iterator[Case]:
    """Functions of one tensor, element by element, at many sizes; activations of both signs."""
    for size in POINT_SIZES:
        x = in_unit_interval(lib, size)
        names = UNARY_SAMPLE if size in REMAINDER_SIZES else UNARY
        for name in names.split():
            yield Case(f"{name} {size}", partial(operator.methodcaller(name), x), (x,))
        yield from of_table(one_operand_table(lib), size, x, x)
        both_signs = normal(lib, size)
        for name in ACTIVATIONS.split():
            activation = partial(call, lib.nn.functional, name, both_signs)
            yield Case(f"F.{name} {size}", activation, (both_signs,))
        threshold = partial(call, lib.nn.functional, "threshold", both_signs, 0.5, 0.0)
        yield Case(f"F.threshold {size}", threshold, (both_signs,))


def elementwise_of_two(lib: Library) -> Iterator[Case]:
    """Functions of two tensors of one shape, element by element, and losses of such."""
    table: Table = {
        "where": lambda given: lib.where(given.x > 0.5, given.x, given.y),
        "lerp": lambda given: lib.lerp(given.x, given.y, 0.3),
        "addcmul": lambda given: lib.addcmul(given.x, given.x, given.y),
        "addcdiv": lambda given: lib.addcdiv(given.x, given.x, given.y),
    }
    for size in POINT_SIZES:
        x = in_unit_interval(lib, size)
        y = (lib.rand(size) + 0.1).requires_grad_()
        for name in BINARY.split():
            yield Case(f"{name} {size}", partial(call, lib, name, x, y), (x, y))
        yield from of_table(table, size, SimpleNamespace(x=x, y=y), x, y)
        target = y.detach().clamp(0, 1)
        for name in POINT_LOSSES.split():
            for reduction in ("mean", "none"):
                loss = partial(call, lib.nn.functional, name, x, target, reduction=reduction)
                yield Case(f"{name} {reduction} {size}", loss, (x,))


def broadcasting(lib: Library) -> Iterator[Case]:
    """A matrix with a row or a column, a row with a column, and matrices that are views."""
    of_matrix: Table = {
        "add detached": lambda given: given.x + given.x.detach(),
        "exp T": lambda given: given.x.t().exp(),
        "contig T": lambda given: given.x.t().contiguous(),
        "exp strided": lambda given: given.x[::2].exp(),
        "exp colstr": lambda given: given.x[:, ::2].exp(),
        "unbind": lambda given: lib.stack(given.x.t().unbind(0)[:4]),
    }
    add_turned: Table = {"add T": lambda given: given.x.t() + given.row[:, None]}
    expand: Table = {"expand": lambda given: given.row.expand(given.shape).contiguous()}
    outer: Table = {"outer": lambda given: lib.outer(given.row, given.row)}
    for shape in MATRIX_SHAPES:
        given = matrix_inputs(lib, shape)
        x, row, column = given.x.detach().abs().requires_grad_(), given.row, given.column
        for name in BROADCAST.split():
            yield Case(f"{name} {shape}+row", partial(call, lib, name, x, row), (x, row))
            yield Case(f"{name} {shape}+col", partial(call, lib, name, x, column), (x, column))
            both = partial(call, lib, name, row, column)
            yield Case(f"{name} {shape} row+col", both, (row, column))
        yield from of_table(of_matrix, shape, given, given.x)
        yield from of_table(add_turned, shape, given, given.x, row)
        yield from of_table(expand | outer, shape, given, row)


def matrix_inputs(lib: Library, shape: tuple[int, int]) -> SimpleNamespace:
    """A matrix, a row and a column as leaves, indices, labels and masks that fit them."""
    height, width = shape
    return SimpleNamespace(
        shape=shape,
        x=normal(lib, height, width),
        row=normal(lib, width),
        column=normal(lib, height, 1),
        rows=lib.randint(0, height, (height,)),
        columns=lib.randint(0, width, (width,)),
        labels=lib.randint(0, width, (height,)),
        entries=lib.randint(0, width, (height, width)),
        mask=lib.rand(height, width) > 0.5,
        target=lib.zeros(shape),
    )


def indexing_table(lib: Library) -> Table:
    """Gathering from a matrix and scattering it."""
    zeros = lib.zeros
    return {
        "index_select0": lambda given: given.x.index_select(0, given.rows),
        "index_select1": lambda given: given.x.index_select(1, given.columns),
        "idx0": lambda given: given.x[given.rows],
        "idx1": lambda given: given.x[:, given.columns],
        "idx pair": lambda given: given.x[lib.arange(given.shape[0]), given.labels],
        "gather1": lambda given: given.x.gather(1, given.entries),
        "gather l": lambda given: given.x.gather(1, given.labels[:, None]),
        "scatter": lambda given: zeros(given.shape).scatter(1, given.entries, given.x),
        "scatter_add": lambda given: zeros(given.shape).scatter_add(1, given.entries, given.x),
        "index_add": lambda given: zeros(given.shape).index_add(0, given.rows, given.x),
        "index_copy": lambda given: zeros(given.shape).index_copy(
            0, lib.arange(given.shape[0]), given.x
        ),
        "index_fill": lambda given: given.x.index_fill(0, given.rows, 0.0),
        "index_put": lambda given: given.target.index_put((given.rows,), given.x),
        "index_put acc": lambda given: given.target.index_put(
            (given.rows,), given.x, accumulate=True
        ),
        "mask sel": lambda given: given.x[given.mask],
        "masked_fill": lambda given: given.x.masked_fill(given.mask, 0.0),
        "where": lambda given: lib.where(given.mask, given.x, 0.0),
        "masked_scatter": lambda given: given.x.masked_scatter(given.mask, given.x.detach()),
        "take": lambda given: given.x.take(given.entries),
        "embedding": lambda given: lib.nn.functional.embedding(given.rows, given.x),
        "tril": lambda given: given.x.tril(),
        "repeat": lambda given: given.x.repeat(2, 2),
        "pad": lambda given: lib.nn.functional.pad(given.x, (1, 1, 1, 1)),
        "pad1": lambda given: lib.nn.functional.pad(given.x, (1, 0)),
        "split": lambda given: lib.cat(given.x.split(64)),
    }


def search_table(lib: Library) -> Table:
    """Functions of a matrix without a gradient, and assignments to parts of one."""
    return {
        "nonzero": lambda given: given.mask.nonzero(),
        "one_hot": lambda given: lib.nn.functional.one_hot(given.labels, given.shape[1]),
        "bucketize": lambda given: lib.bucketize(given.x, lib.linspace(-2, 2, 9)),
        "searchsorted": lambda given: lib.searchsorted(given.row.detach().sort()[0], given.x),
        "unique": lambda given: given.entries.unique(),
        "bincount": lambda given: given.rows.bincount(),
        "item": lambda given: given.x[0, 0].item(),
        "setitem": lambda given: operator.setitem(given.target, (slice(None), 0), 1.0),
        "setitem m": lambda given: operator.setitem(given.target, given.mask, 1.0),
    }


def indexing(lib: Library) -> Iterator[Case]:
    """Parts of matrices: taken, put, masked, padded, searched."""
    for shape in MATRIX_SHAPES:
        given = matrix_inputs(lib, shape)
        yield from of_table(indexing_table(lib), shape, given, given.x)
        yield from of_table(search_table(lib), shape, given)


def loss_table(lib: Library) -> Table:
    """Losses of the rows of a matrix."""
    nn = lib.nn.functional
    return {
        "cross_entropy": lambda given: nn.cross_entropy(given.x, given.labels),
        "cross_entropy none": lambda given: nn.cross_entropy(
            given.x, given.labels, reduction="none"
        ),
        "ce smooth": lambda given: nn.cross_entropy(given.x, given.labels, label_smoothing=0.1),
        "ce prob": lambda given: nn.cross_entropy(given.x, lib.ones(given.shape)),
        "nll": lambda given: nn.nll_loss(given.x, given.labels),
        "multi_margin": lambda given: nn.multi_margin_loss(given.x, given.labels),
        "mlsm": lambda given: nn.multilabel_soft_margin_loss(given.x, given.mask.float()),
        "mse": lambda given: nn.mse_loss(given.x, given.x.detach()),
        "kl": lambda given: nn.kl_div(given.x, given.x.detach().softmax(1), reduction="batchmean"),
        "cos_emb": lambda given: nn.cosine_embedding_loss(
            given.x, given.x.detach(), lib.ones(given.shape[0])
        ),
        "triplet": lambda given: nn.triplet_margin_loss(
            given.x, given.x.detach().flip(0), given.x.detach().roll(1, 0)
        ),
        "margin_rank": lambda given: nn.margin_ranking_loss(
            given.x, given.x.detach(), lib.ones(given.shape)
        ),
        "hinge_emb": lambda given: nn.hinge_embedding_loss(given.x, lib.ones(given.shape)),
        "gauss nll": lambda given: nn.gaussian_nll_loss(
            given.x, given.x.detach(), lib.ones(given.shape)
        ),
        "pairwise": lambda given: nn.pairwise_distance(given.x, given.x.detach().flip(0)),
    }


def layers_of_rows(lib: Library) -> Iterator[Case]:
    """Losses, normalisations and products of a matrix of short rows."""
    nn = lib.nn.functional
    of_matrix: Table = {
        "linear": lambda given: nn.linear(given.x, lib.ones(8, given.shape[1]), lib.ones(8)),
        "gram": lambda given: given.x.t() @ given.x,
        "einsum": lambda given: lib.einsum("ij,ij->i", given.x, given.x),
    }
    of_matrix_and_row: Table = {
        "layer_norm": lambda given: nn.layer_norm(given.x, given.shape[1:], given.row, given.row),
        "rms": lambda given: nn.rms_norm(given.x, given.shape[1:], given.row),
        "batch_norm": lambda given: nn.batch_norm(given.x, None, None, given.row, given.row, True),
        "prelu": lambda given: nn.prelu(given.x, given.row),
        "mv": lambda given: given.x @ given.row,
        "addmm": lambda given: lib.addmm(
            given.row, given.x, lib.ones(given.shape[1], given.shape[1])
        ),
    }
    of_matrix_and_column: Table = {"vm": lambda given: given.column[:, 0] @ given.x}
    for shape in MATRIX_SHAPES:
        given = matrix_inputs(lib, shape)
        yield from of_table(loss_table(lib) | of_matrix, shape, given, given.x)
        yield from of_table(of_matrix_and_row, shape, given, given.x, given.row)
        yield from of_table(of_matrix_and_column, shape, given, given.x, given.column)


def product_table(lib: Library) -> Table:
    """Functions of a batch of square matrices as they come."""
    return {
        "bmm": lambda x: x @ x,
        "bmmT": lambda x: x @ x.mT,
        "trace": lambda x: x[0].trace(),
        "diagonal": lambda x: x.diagonal(0, 1, 2).contiguous(),
        "diag_embed": lambda x: x[:, 0].diag_embed(),
        "kron": lambda x: lib.kron(x[0], x[0]),
        "cdist": lambda x: lib.cdist(x, x),
        "sdpa": lambda x: lib.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None]),
    }


def positive_definite_table(lib: Library) -> Table:
    """Linear algebra of a batch of positive definite matrices."""
    return {
        "det": lambda x: lib.linalg.det(x),
        "slogdet": lambda x: lib.linalg.slogdet(x)[1],
        "inv": lambda x: lib.linalg.inv(x),
        "chol": lambda x: lib.linalg.cholesky(x),
        "svd": lambda x: lib.linalg.svd(x)[1],
        "svdvals": lambda x: lib.linalg.svdvals(x),
        "matpow": lambda x: lib.linalg.matrix_power(x, 3),
    }


def small_matrices(lib: Library) -> Iterator[Case]:
    """Products and decompositions of batches of small matrices."""
    for batch, size in BATCH_SHAPES:
        label = (batch, size)
        x, right = normal(lib, batch, size, size), normal(lib, batch, size, 3)
        positive = (x @ x.mT + lib.eye(size) * size).detach().requires_grad_()
        yield from of_table(product_table(lib), label, x, x)
        yield from of_table(positive_definite_table(lib), label, positive, positive)
        for name in DECOMPOSITIONS.split():
            yield Case(f"{name} {label}", partial(call, lib.linalg, name, positive), (positive,))
        solve = partial(call, lib.linalg, "solve", positive, right)
        yield Case(f"solve {label}", solve, (positive, right))
        if size == 3:
            yield Case(f"cross {label}", partial(call, lib.linalg, "cross", x, x), (x,))


def pooling(lib: Library) -> Iterator[Case]:
    """Pooling of small images."""
    nn = lib.nn.functional
    adaptive: Table = {
        "adapt1": lambda x: nn.adaptive_avg_pool2d(x, 1),
        "adapt2": lambda x: nn.adaptive_avg_pool2d(x, 2),
        "adaptmax1": lambda x: nn.adaptive_max_pool2d(x, 1),
        "adaptmax2": lambda x: nn.adaptive_max_pool2d(x, 2),
        "lppool": lambda x: nn.lp_pool2d(x.abs(), 2, 2),
    }
    of_rows: Table = {
        "maxpool1d": lambda x: nn.max_pool1d(x, 2),
        "avgpool1d": lambda x: nn.avg_pool1d(x, 2),
    }
    for shape in IMAGE_SHAPES:
        x = normal(lib, *shape)
        for window in (2, 3):
            if shape[-1] < window:
                continue
            for kind in ("max", "avg"):
                pool = partial(call, nn, f"{kind}_pool2d", x, window)
                yield Case(f"{kind}pool{window} {shape}", pool, (x,))
                dense = partial(pool, 1, window // 2)
                yield Case(f"{kind}pool{window}s1 {shape}", dense, (x,))
        yield from of_table(adaptive, shape, x, x)
        rows = normal(lib, shape[0] * shape[1], *shape[2:])
        yield from of_table(of_rows, shape, rows, rows)


def convolutions(lib: Library) -> Iterator[Case]:
    """Convolutions of small images, and of their rows."""
    nn = lib.nn.functional
    for shape in IMAGE_SHAPES:
        images, channels, height, width = shape
        x = normal(lib, *shape)
        settings = [(1, 0, 1, 1, 8), (3, 1, 1, 1, 8), (3, 1, 2, 1, 8)]
        if channels > 1:
            settings.append((3, 1, 1, channels, channels))
        for window, padding, stride, groups, features in settings:
            weight = normal(lib, features, channels // groups, window, window)
            bias = normal(lib, features)
            conv = partial(call, nn, "conv2d", x, weight, bias, stride, padding, 1, groups)
            name = f"conv k{window}s{stride}g{groups} {shape}"
            yield Case(name, conv, (x, weight, bias))
        weight = normal(lib, channels, 4, 2, 2)
        turned = partial(call, nn, "conv_transpose2d", x, weight, None, 2)
        yield Case(f"convT {shape}", turned, (x, weight))
        line, weight = normal(lib, images, channels, height * width), normal(lib, 8, channels, 3)
        conv = partial(call, nn, "conv1d", line, weight, None, 1, 1)
        yield Case(f"conv1d {shape}", conv, (line, weight))


def image_table(lib: Library) -> Table:
    """Functions of a batch of images alone."""
    nn = lib.nn.functional
    return {
        "IN": lambda given: nn.instance_norm(given.x),
        "LN": lambda given: nn.layer_norm(given.x, given.x.shape[1:]),
        "softmax C": lambda given: given.x.softmax(1),
        "dropout2d": lambda given: nn.dropout2d(given.x),
        "unfold": lambda given: nn.unfold(given.x, 2),
        "interp": lambda given: nn.interpolate(given.x, scale_factor=2),
        "permute": lambda given: given.x.permute(0, 2, 3, 1).contiguous(),
        "flatten": lambda given: given.x.flatten(1) * 1,
        "mean HW": lambda given: given.x.mean((2, 3)),
        "sum NHW": lambda given: given.x.sum((0, 2, 3)),
        "var HW": lambda given: given.x.var((2, 3)),
        "amax HW": lambda given: given.x.amax((2, 3)),
        "pad r": lambda given: nn.pad(given.x, (1, 1, 1, 1), mode="reflect"),
        "ce 2d": lambda given: nn.cross_entropy(
            given.x, lib.zeros(given.x[:, 0].shape, dtype=lib.long)
        ),
        "local_resp": lambda given: nn.local_response_norm(given.x, 3),
    }


def images(lib: Library) -> Iterator[Case]:
    """Normalisations, reductions and rearrangements of small images."""
    nn = lib.nn.functional
    of_images_and_channels: Table = {
        "BN": lambda given: nn.batch_norm(given.x, None, None, given.scale, given.scale, True),
        "BNeval": lambda given: nn.batch_norm(
            given.x, given.mean, given.variance, given.scale, given.scale
        ),
        "GNc": lambda given: nn.group_norm(given.x, given.x.shape[1], given.scale, given.scale),
        "add C": lambda given: given.x + given.scale[:, None, None],
    }
    for shape in IMAGE_SHAPES:
        channels = shape[1]
        x, scale = normal(lib, *shape), normal(lib, channels)
        mean, variance = lib.zeros(channels), lib.ones(channels)
        given = SimpleNamespace(x=x, scale=scale, mean=mean, variance=variance)
        yield from of_table(image_table(lib), shape, given, x)
        yield from of_table(of_images_and_channels, shape, given, x, scale)
        if channels > 1:
            grouped = partial(call, nn, "group_norm", x, max(1, channels // 4), scale, scale)
            yield Case(f"GN {shape}", grouped, (x, scale))
        if channels % 4 == 0:
            yield Case(f"pixel_shuffle {shape}", partial(call, nn, "pixel_shuffle", x, 2), (x,))


def creation(lib: Library) -> Iterator[Case]:
    """New tensors, random ones, and the way from and to lists."""
    table: Table = {
        "T.zeros": lambda given: lib.zeros(given.size),
        "T.ones": lambda given: lib.ones(given.size),
        "T.empty": lambda given: lib.empty(given.size),
        "T.rand": lambda given: lib.rand(given.size),
        "T.randn": lambda given: lib.randn(given.size),
        "T.arange": lambda given: lib.arange(given.size),
        "T.randperm": lambda given: lib.randperm(given.size),
        "full": lambda given: lib.full((given.size,), 2.0),
        "linspace": lambda given: lib.linspace(0, 1, given.size),
        "randint": lambda given: lib.randint(0, 10, (given.size,)),
        "bernoulli": lambda given: lib.bernoulli(given.chances),
        "multinomial": lambda given: lib.multinomial(given.chances, max(1, given.size // 2)),
        "multinomial r": lambda given: lib.multinomial(given.chances, given.size, True),
        "uniform_": lambda given: given.filled.uniform_(),
        "normal_": lambda given: given.filled.normal_(),
        "exponential_": lambda given: given.filled.exponential_(),
        "tensor(list)": lambda given: lib.tensor(given.numbers),
        "tolist": lambda given: given.chances.tolist(),
        "allclose": lambda given: lib.allclose(given.chances, given.chances),
    }
    for size in TENFOLD_SIZES:
        numbers = [float(number) for number in range(size)]
        given = SimpleNamespace(size=size, chances=lib.rand(size), numbers=numbers)
        given.filled = lib.empty(size)
        yield from of_table(table, size, given)
        if size <= 1000:
            yield Case(f"T.eye {size}", partial(call, lib, "eye", size))


def integers(lib: Library) -> Iterator[Case]:
    """Arithmetic of whole numbers and truth values."""
    of_integers: Table = {
        "i add": lambda x: x + x,
        "i mul": lambda x: x * 3,
        "i //": lambda x: x // 3,
        "i %": lambda x: x % 3,
        "i sum": lambda x: x.sum(),
        "i ==": lambda x: x == 3,
        "i float": lambda x: x.float(),
        "i max": lambda x: x.max(),
        "equal": lambda x: lib.equal(x, x),
        "i<<": lambda x: x << 1,
        "i/": lambda x: x / 3,
        "i**": lambda x: x**2,
    }
    of_booleans: Table = {
        "b &": lambda x: x & x,
        "b ~": lambda x: ~x,
        "b any": lambda x: x.any(),
        "b sum": lambda x: x.sum(),
    }
    for size in TENFOLD_SIZES:
        numbers = lib.arange(size)
        yield from of_table(of_integers, size, numbers)
        yield from of_table(of_booleans, size, numbers > 3)


def dtypes(lib: Library) -> Iterator[Case]:
    """The commonest arithmetic in the rarer dtypes."""
    of_numbers: Table = {
        "add": lambda x: x + x,
        "mul": lambda x: x * x,
        "mul2": lambda x: x * 2,
        "sum": lambda x: x.sum(),
        "eq": lambda x: x == x,
    }
    of_reals: Table = {"f32": lambda x: x.to(lib.float32)}
    of_complex: Table = {"abs": lambda x: x.abs()}
    of_fractions: Table = {
        "exp": lambda x: x.exp(),
        "tanh": lambda x: x.tanh(),
        "div": lambda x: x / x,
        "mean": lambda x: x.mean(),
    }
    tables = dict.fromkeys(("int32", "int8", "uint8"), of_numbers | of_reals)
    for name in ("float64", "bfloat16", "float16"):
        tables[name] = of_numbers | of_reals | of_fractions
    tables["complex64"] = of_numbers | of_complex | of_fractions
    for size in TENFOLD_SIZES:
        for dtype, table in tables.items():
            x = (lib.randn(size) * 5).abs().to(getattr(lib, dtype))
            for name, function in table.items():
                yield Case(f"{dtype} {name} {size}", partial(function, x))


def sequences(lib: Library) -> Iterator[Case]:
    """Recurrent layers and attention over short sequences."""

    def first(module: Any, *inputs: Tensor) -> Tensor:
        return module(*inputs)[0]

    for features, length, batch in [(8, 10, 4), (16, 5, 16), (32, 20, 1)]:
        for name in ("RNN", "LSTM", "GRU"):
            module, x = (
                getattr(lib.nn, name)(features, features),
                normal(lib, length, batch, features),
            )
            leaves = (x, *module.parameters())
            yield Case(f"{name} {(features, length, batch)}", partial(first, module, x), leaves)
    module, x = lib.nn.MultiheadAttention(16, 4, batch_first=True), normal(lib, 8, 10, 16)
    yield Case("mha", partial(first, module, x, x, x), (x,))


FAMILIES: list[Callable[[Library], Iterator[Case]]] = [
    lines,
    full_reductions,
    elementwise,
    elementwise_of_two,
    broadcasting,
    indexing,
    layers_of_rows,
    small_matrices,
    pooling,
    convolutions,
    images,
    creation,
    integers,
    dtypes,
    sequences,
]
