"""Group B, bandwidth: arrays larger than the caches, whose time is that of moving bytes.

Ten million numbers unless the table says another shape; the `64k` cases fit a cache and show the
loops themselves. A row's `bytes` are those that must be moved per number: of each input once in,
of each result once out. Start at `cases`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from small_case import Library, Tensor

from suite.case import Action, Case, Cost
from suite.inputs import Inputs

N = 10_000_000
# Three arrays of these are 786 KB.
IN_CACHE = 65_536
ROWS, COLUMNS = 4096, 1024
MATRIX = ROWS * COLUMNS
IMAGES = (32, 64, 56, 56)
PIXELS = 32 * 64 * 56 * 56

Function = Callable[..., Any]
# Makes what a function works on, after the library itself.
Makes = Callable[[Inputs], tuple[Any, ...]]


def cases() -> Iterator[Case]:
    """Every case of the group."""
    yield from elementwise()
    yield from reductions()
    yield from creation_and_copies()
    yield from half_precision()
    yield from matrices()
    yield from in_cache()
    yield from normalization()
    yield from indexing()
    yield from sorting()
    yield from fused()
    yield from optimizers()


def row(
    name: str,
    makes: Makes,
    function: Function,
    bytes_per_unit: float | None,
    units: int = N,
    loop: str = "triad",
    has_comparable_result: bool = True,
) -> Case:
    """A case that calls `function(library, *inputs)`."""
    return Case(
        f"B.{name}",
        lambda inputs: partial(function, inputs.library, *makes(inputs)),
        "elem",
        units,
        Cost(bytes_per_unit, loop=loop),
        has_comparable_result=has_comparable_result,
    )


def lines(count: int = 1, dtype: str | None = None, gradient: bool = False) -> Makes:
    """Several different lines of ten million numbers."""
    return lambda inputs: tuple(
        inputs.normal(N, seed=seed, dtype=dtype, gradient=gradient) for seed in range(count)
    )


def matrix(inputs: Inputs) -> tuple[Tensor, ...]:
    """A matrix of four million numbers."""
    return (inputs.normal(ROWS, COLUMNS),)


def no_inputs(inputs: Inputs) -> tuple[Tensor, ...]:
    """For functions that make their result from nothing."""
    return ()


def line_and_zeros(inputs: Inputs) -> tuple[Tensor, ...]:
    """A line, and memory for a result."""
    return inputs.normal(N), inputs.library.zeros(N)


def elementwise() -> Iterator[Case]:
    """A result per number."""
    yield row("add", lines(2), lambda lib, a, b: a + b, 12)
    yield row(
        "add_out",
        lambda inputs: (*lines(2)(inputs), inputs.library.zeros(N)),
        lambda lib, a, b, out: lib.add(a, b, out=out),
        12,
    )
    yield row("mul_inplace", lines(), lambda lib, a: a.mul_(1.0), 8, loop="scale")
    yield row("exp", lines(), lambda lib, a: a.exp(), 8)
    yield row("exp_out", line_and_zeros, lambda lib, a, out: lib.exp(a, out=out), 8)
    yield row("tanh", lines(), lambda lib, a: a.tanh(), 8)
    yield row("tanh_out", line_and_zeros, lambda lib, a, out: lib.tanh(a, out=out), 8)
    yield row("sigmoid", lines(), lambda lib, a: a.sigmoid(), 8)
    yield row("sin", lines(), lambda lib, a: a.sin(), 8)
    yield row("log", lambda inputs: (inputs.positive(N),), lambda lib, a: a.log(), 8)
    yield row("gelu", lines(), lambda lib, a: lib.nn.functional.gelu(a), 8)
    yield row("relu", lines(), lambda lib, a: lib.nn.functional.relu(a), 8)
    yield row("pow3", lines(), lambda lib, a: a**3, 8)


def reductions() -> Iterator[Case]:
    """One result of all numbers."""
    yield row("sum", lines(), lambda lib, a: a.sum(), 4)
    yield row("sum_f64", lambda inputs: (inputs.doubles(N),), lambda lib, a: a.sum(), 8)
    yield row("max", lines(), lambda lib, a: a.max(), 4)
    yield row("argmax", lines(), lambda lib, a: a.argmax(), 4)
    yield row("var", lines(), lambda lib, a: a.var(), 4)
    yield row("norm", lines(), lambda lib, a: a.norm(), 4)


def creation_and_copies() -> Iterator[Case]:
    """Choices, comparisons, running sums, copies, new tensors, other dtypes."""
    yield row(
        "where",
        lambda inputs: (inputs.normal(N) > 0, *lines(2)(inputs)),
        lambda lib, mask, a, b: lib.where(mask, a, b),
        13,
    )
    yield row("gt", lines(), lambda lib, a: a > 0, 5)
    running_sum = partial(row, has_comparable_result=False)
    yield running_sum("cumsum", lines(), lambda lib, a: a.cumsum(0), 8)
    yield row("clone", lines(), lambda lib, a: a.clone(), 8)
    yield row("cat", lines(2), lambda lib, a, b: lib.cat((a, b)), 8, 2 * N)
    yield row("zeros", no_inputs, lambda lib: lib.zeros(N), 4)
    random = partial(row, has_comparable_result=False)
    yield random("randn", no_inputs, lambda lib: lib.randn(N), 4)
    yield random("rand", no_inputs, lambda lib: lib.rand(N), 4)
    yield row("to_f64", lines(), lambda lib, a: a.to(lib.float64), 12)
    yield row("to_bf16", lines(), lambda lib, a: a.to(lib.bfloat16), 6)


def half_precision() -> Iterator[Case]:
    """Numbers of two bytes."""
    yield row("bf16.add", lines(2, "bfloat16"), lambda lib, a, b: a + b, 6)
    yield row("bf16.sum", lines(1, "bfloat16"), lambda lib, a: a.sum(), 2)
    yield row("bf16.gelu", lines(1, "bfloat16"), lambda lib, a: lib.nn.functional.gelu(a), 4)


def matrices() -> Iterator[Case]:
    """Sums, broadcasting and softmax along a dimension, and copies in another order."""
    yield row("sum_dim0", matrix, lambda lib, a: a.sum(0), 4, MATRIX)
    yield row("sum_dim1", matrix, lambda lib, a: a.sum(1), 4, MATRIX)
    yield row(
        "bcast_add_row",
        lambda inputs: (*matrix(inputs), inputs.normal(COLUMNS)),
        lambda lib, a, b: a + b,
        8,
        MATRIX,
    )
    yield row(
        "bcast_add_col",
        lambda inputs: (*matrix(inputs), inputs.normal(ROWS, 1)),
        lambda lib, a, b: a + b,
        8,
        MATRIX,
    )
    yield row("softmax", matrix, lambda lib, a: a.softmax(-1), 8, MATRIX)
    yield row(
        "transpose_copy",
        lambda inputs: (inputs.normal(4096, 4096),),
        lambda lib, a: a.t().contiguous(),
        8,
        4096 * 4096,
    )
    yield row(
        "permute_copy",
        lambda inputs: (inputs.normal(*IMAGES),),
        lambda lib, a: a.permute(0, 2, 3, 1).contiguous(),
        8,
        PIXELS,
    )
    yield row(
        "add_transposed",
        lambda inputs: (inputs.normal(2048, 2048), inputs.normal(2048, 2048, seed=1)),
        lambda lib, a, b: a + b.t(),
        12,
        2048 * 2048,
    )


def in_cache() -> Iterator[Case]:
    """Loops over a working set that stays in a cache, so that no memory need be fetched."""

    def small(count: int = 1, dtype: str | None = None) -> Makes:
        return lambda inputs: tuple(
            inputs.normal(IN_CACHE, seed=seed, dtype=dtype) for seed in range(count)
        )

    yield row("64k.add", small(2), lambda lib, a, b: a + b, None, IN_CACHE)
    yield row("64k.exp", small(), lambda lib, a: a.exp(), None, IN_CACHE)
    yield row("64k.tanh", small(), lambda lib, a: a.tanh(), None, IN_CACHE)
    yield row("64k.gelu", small(), lambda lib, a: lib.nn.functional.gelu(a), None, IN_CACHE)
    yield row("64k.sum", small(), lambda lib, a: a.sum(), None, IN_CACHE)
    yield row("64k.bf16.add", small(2, "bfloat16"), lambda lib, a, b: a + b, None, IN_CACHE)


def normalization() -> Iterator[Case]:
    """Softmax, normalizations and a loss, with their gradients."""
    yield Case("B.softmax.bwd", softmax_backward, "elem", MATRIX, Cost(12))
    yield row(
        "layer_norm",
        lambda inputs: tuple(tensor.detach() for tensor in layer_norm_inputs(inputs)),
        layer_norm,
        8,
        MATRIX,
    )
    yield Case("B.layer_norm.bwd", layer_norm_backward, "elem", MATRIX, Cost(12))
    # Forward reads and writes once; backward reads two and writes one.
    yield Case("B.batch_norm.fwdbwd", batch_norm, "elem", PIXELS, Cost(8 + 12))
    yield Case("B.cross_entropy.fwdbwd", cross_entropy, "elem", 4096 * 1000, Cost(8))


def indexing() -> Iterator[Case]:
    """Numbers and rows from and to places that an index names."""
    yield row(
        "embedding",
        lambda inputs: (inputs.integers(50000, 64, 256), inputs.normal(50000, 128)),
        lambda lib, index, weight: lib.nn.functional.embedding(index, weight),
        8,
        64 * 256 * 128,
    )
    yield Case("B.embedding.fwdbwd", embedding_backward, "elem", 64 * 256 * 128, Cost(16))
    yield row(
        "index_select",
        lambda inputs: (inputs.normal(50000, 128), inputs.integers(50000, 40000)),
        lambda lib, a, index: a.index_select(0, index),
        8,
        40000 * 128,
    )
    yield row(
        "gather",
        lambda inputs: (*matrix(inputs), inputs.integers(COLUMNS, ROWS, COLUMNS)),
        lambda lib, a, index: a.gather(1, index),
        16,
        MATRIX,
    )
    yield row(
        "index_add",
        lambda inputs: (
            inputs.normal(5000, 128),
            inputs.integers(5000, 40000),
            inputs.normal(40000, 128, seed=1),
        ),
        lambda lib, to, index, a: to.index_add(0, index, a),
        12,
        40000 * 128,
    )
    yield row(
        "masked_fill",
        lambda inputs: (inputs.normal(N), inputs.normal(N, seed=1) > 0),
        lambda lib, a, mask: a.masked_fill(mask, 0.0),
        9,
    )
    million = 1_000_000
    yield row(
        "nonzero",
        lambda inputs: (inputs.normal(million) > 0,),
        lambda lib, a: a.nonzero(),
        5,
        million,
    )


def sorting() -> Iterator[Case]:
    """Order, and the largest."""
    million = 1_000_000

    def line(inputs: Inputs) -> tuple[Tensor, ...]:
        return (inputs.normal(million),)

    yield row("sort", line, lambda lib, a: a.sort(), 16, million)
    yield row(
        "argsort_int",
        lambda inputs: (inputs.integers(1 << 30, million),),
        lambda lib, a: a.argsort(),
        None,
        million,
    )
    yield row(
        "sort_rows",
        lambda inputs: (inputs.normal(4096, 256),),
        lambda lib, a: a.sort(-1),
        16,
        4096 * 256,
    )
    yield row("topk10", line, lambda lib, a: a.topk(10), 4, million)


def fused() -> Iterator[Case]:
    """A formula of four ops, of which a compiler could make one."""
    yield row("fused.fwd", lines(4), lambda lib, a, b, c, d: formula(a, b, c, d), 20)
    # Backward, it reads the gradient and the inputs and writes the inputs' gradients.
    yield Case("B.fused.fwdbwd", fused_backward, "elem", N, Cost(20 + 20 + 16))


def optimizers() -> Iterator[Case]:
    """Steps of one large parameter: what is read and written of it, its gradient and its state."""
    yield row(
        "adamw_step",
        partial(stepping, optimizer="AdamW", lr=1e-4),
        lambda lib, optimizer: optimizer.step(),
        28,
    )
    yield row(
        "sgd_momentum_step",
        partial(stepping, optimizer="SGD", lr=1e-6, momentum=0.9),
        lambda lib, optimizer: optimizer.step(),
        20,
    )


def backward(library: Library, inputs: Inputs, output: Tensor, *leaves: Tensor) -> Action:
    """The backward pass alone, again and again through a retained graph."""
    gradient = inputs.normal(*output.shape, seed=9)
    return lambda: library.autograd.grad(output, leaves, gradient, retain_graph=True)


def softmax_backward(inputs: Inputs) -> Action:
    """The gradient of softmax."""
    x = inputs.normal(ROWS, COLUMNS, gradient=True)
    return backward(inputs.library, inputs, x.softmax(-1), x)


def layer_norm_inputs(inputs: Inputs) -> tuple[Tensor, ...]:
    """Rows, and the weight and bias of a layer."""
    return (
        inputs.normal(ROWS, COLUMNS, gradient=True),
        inputs.normal(COLUMNS, seed=1, gradient=True),
        inputs.normal(COLUMNS, seed=2, gradient=True),
    )


def layer_norm(library: Library, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Rows normalized."""
    return library.nn.functional.layer_norm(x, (COLUMNS,), weight, bias)


def layer_norm_backward(inputs: Inputs) -> Action:
    """The gradients of rows, weight and bias."""
    leaves = layer_norm_inputs(inputs)
    return backward(inputs.library, inputs, layer_norm(inputs.library, *leaves), *leaves)


def batch_norm(inputs: Inputs) -> Action:
    """Channels normalized in training, and the gradients."""
    grad, function = inputs.library.autograd.grad, inputs.functional.batch_norm
    channels = IMAGES[1]
    x = inputs.normal(*IMAGES, gradient=True)
    weight = inputs.normal(channels, seed=1, gradient=True)
    bias = inputs.normal(channels, seed=2, gradient=True)
    gradient = inputs.normal(*IMAGES, seed=3)
    leaves = (x, weight, bias)
    return lambda: grad(function(x, None, None, weight, bias, True), leaves, gradient)


def cross_entropy(inputs: Inputs) -> Action:
    """The loss of a thousand classes, and its gradient."""
    grad, function = inputs.library.autograd.grad, inputs.functional.cross_entropy
    scores, labels = inputs.normal(4096, 1000, gradient=True), inputs.integers(1000, 4096)
    return lambda: grad(function(scores, labels), scores)


def embedding_backward(inputs: Inputs) -> Action:
    """Rows of a table looked up, and the table's gradient."""
    grad, function = inputs.library.autograd.grad, inputs.functional.embedding
    index, weight = inputs.integers(5000, 64, 256), inputs.normal(5000, 128, gradient=True)
    gradient = inputs.normal(64, 256, 128, seed=3)
    return lambda: grad(function(index, weight), weight, gradient)


def formula(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    """The formula of the `fused` cases."""
    return (a * b + c).sigmoid() * d


def fused_backward(inputs: Inputs) -> Action:
    """The formula and its gradients."""
    grad = inputs.library.autograd.grad
    leaves, gradient = lines(4, gradient=True)(inputs), inputs.normal(N, seed=5)
    return lambda: grad(formula(*leaves), leaves, gradient)


def stepping(inputs: Inputs, optimizer: str, **options: float) -> tuple[Any, ...]:
    """An optimizer of one parameter that has a gradient."""
    parameter = inputs.normal(N, gradient=True)
    parameter.grad = inputs.normal(N, seed=1)
    return (getattr(inputs.library.optim, optimizer)([parameter], **options),)
