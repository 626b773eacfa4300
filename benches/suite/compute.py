"""Group C, compute: products, convolutions, decompositions and transforms, bound by arithmetic.

Every case carries the operations that its mathematics needs; a backward pass of a product needs
two more products of the same size. Start at `cases`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from small_case import Library, Tensor

from suite.case import Action, Case, Cost
from suite.inputs import Inputs

Makes = Callable[[Inputs], tuple[Any, ...]]
Function = Callable[..., Any]


def cases() -> Iterator[Case]:
    """Every case of the group."""
    yield from products()
    yield from layers()
    yield from convolutions()
    yield from pooling()
    yield from attention()
    yield from linear_algebra()
    yield from transforms()


def row(
    name: str,
    makes: Makes,
    function: Function,
    operations: float | None = None,
    dtype: str = "f32",
    traffic: float | None = None,
) -> Case:
    """A case that calls `function(library, *inputs)`."""

    def prepare(inputs: Inputs) -> Action:
        return partial(function, inputs.library, *makes(inputs))

    return Case(f"C.{name}", prepare, cost=Cost(traffic, operations, dtype))


def products() -> Iterator[Case]:
    """Products of matrices: sizes, dtypes, layouts, batches."""

    def product(library: Library, a: Tensor, b: Tensor) -> Tensor:
        return a @ b

    def squares(size: int, dtype: str | None = None) -> Makes:
        return lambda inputs: (
            inputs.normal(size, size, dtype=dtype),
            inputs.normal(size, size, seed=1, dtype=dtype),
        )

    for size in (16, 64, 128, 256, 512, 1024, 2048):
        yield row(f"matmul.f32.{size}", squares(size), product, 2 * size**3)
    for size in (128, 1024):
        yield row(f"matmul.f64.{size}", partial(doubles, size=size), product, 2 * size**3, "f64")
    for size in (256, 1024, 2048):
        of_halves = squares(size, "bfloat16")
        yield row(f"matmul.bf16.{size}", of_halves, product, 2 * size**3, "bf16")
    # Whole numbers of eight bytes have no faster products than doubles.
    yield row("matmul.i64.256", integers, product, 2 * 256**3, "f64")
    yield row("matmul.f32.nt.1024", squares(1024), lambda lib, a, b: a @ b.t(), 2 * 1024**3)
    yield row(
        "matmul.f32.skinny",
        lambda inputs: (inputs.normal(8, 1024), inputs.normal(1024, 1024, seed=1)),
        product,
        2 * 8 * 1024**2,
    )
    yield row(
        "matvec.4096",
        lambda inputs: (inputs.normal(4096, 4096), inputs.normal(4096, seed=1)),
        product,
        2 * 4096**2,
        traffic=4 * 4096**2,
    )
    yield row(
        "bmm.64x128x64x128",
        lambda inputs: (inputs.normal(64, 128, 64), inputs.normal(64, 64, 128, seed=1)),
        lambda lib, a, b: lib.bmm(a, b),
        2 * 64 * 128 * 64 * 128,
    )
    yield row(
        "bmm.1024x16",
        lambda inputs: (inputs.normal(1024, 16, 16), inputs.normal(1024, 16, 16, seed=1)),
        lambda lib, a, b: lib.bmm(a, b),
        2 * 1024 * 16**3,
    )
    yield row(
        "einsum.bhqk",
        lambda inputs: (inputs.normal(4, 128, 8, 64), inputs.normal(4, 128, 8, 64, seed=1)),
        lambda lib, a, b: lib.einsum("bqhd,bkhd->bhqk", a, b),
        2 * 4 * 8 * 128 * 128 * 64,
    )


def doubles(inputs: Inputs, size: int) -> tuple[Tensor, ...]:
    """Two square matrices of double precision."""
    return inputs.doubles(size, size), inputs.doubles(size, size, seed=1)


def integers(inputs: Inputs) -> tuple[Tensor, ...]:
    """Two square matrices of whole numbers."""
    return inputs.integers(100, 256, 256), inputs.integers(100, 256, 256, seed=1)


def layers() -> Iterator[Case]:
    """A linear layer."""

    def plain(inputs: Inputs) -> tuple[Tensor, ...]:
        return inputs.normal(64, 784), inputs.normal(512, 784), inputs.normal(512)

    operations = 2 * 64 * 784 * 512
    yield row(
        "linear.fwd", plain, lambda lib, x, w, b: lib.nn.functional.linear(x, w, b), operations
    )
    yield Case("C.linear.fwdbwd", linear_backward, cost=Cost(operations=3 * operations))


def linear_backward(inputs: Inputs) -> Action:
    """The layer and the gradients of its input, weight and bias."""
    grad, linear = inputs.library.autograd.grad, inputs.functional.linear
    x = inputs.normal(64, 784, gradient=True)
    weight = inputs.normal(512, 784, seed=1, gradient=True)
    bias, gradient = inputs.normal(512, gradient=True), inputs.normal(64, 512, seed=2)
    leaves = (x, weight, bias)
    return lambda: grad(linear(x, weight, bias), leaves, gradient)


@dataclass(frozen=True)
class Convolution:
    """The sizes of a convolution of images, or of lines where `dims` is 1."""

    images: int
    channels: int
    side: int
    features: int
    window: int
    stride: int
    padding: int
    groups: int = 1
    dims: int = 2

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Images, channels, and their sides."""
        return (self.images, self.channels, *[self.side] * self.dims)

    @property
    def weight_shape(self) -> tuple[int, ...]:
        """Features, channels of a group, and the window's sides."""
        return (self.features, self.channels // self.groups, *[self.window] * self.dims)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Images, features, and the sides of the result."""
        side = (self.side + 2 * self.padding - self.window) // self.stride + 1
        return (self.images, self.features, *[side] * self.dims)

    @property
    def operations(self) -> int:
        """A product and a sum for each number of the result and each weight of its feature."""
        return 2 * math.prod(self.output_shape) * math.prod(self.weight_shape[1:])

    @property
    def traffic(self) -> int:
        """The bytes of input, weight and result."""
        shapes = (self.input_shape, self.weight_shape, self.output_shape)
        return 4 * sum(math.prod(shape) for shape in shapes)

    def function(self, inputs: Inputs, gradient: bool) -> tuple[Callable[[], Tensor], Any]:
        """The convolution as a call without arguments, and its two inputs."""
        convolve = inputs.functional.conv1d if self.dims == 1 else inputs.functional.conv2d
        x = inputs.normal(*self.input_shape, gradient=gradient)
        weight = inputs.normal(*self.weight_shape, seed=1, scale=0.1, gradient=gradient)
        options = (None, self.stride, self.padding, 1, self.groups)
        return lambda: convolve(x, weight, *options), (x, weight)

    def forward(self, inputs: Inputs) -> Action:
        """The convolution alone."""
        return self.function(inputs, gradient=False)[0]

    def backward(self, inputs: Inputs) -> Action:
        """The convolution and the gradients of input and weight."""
        convolve, leaves = self.function(inputs, gradient=True)
        grad, gradient = inputs.library.autograd.grad, inputs.normal(*self.output_shape, seed=2)
        return lambda: grad(convolve(), leaves, gradient)


CONVOLUTIONS = {
    "conv2d.stem7x7s2": Convolution(8, 3, 224, 64, 7, 2, 3),
    "conv2d.64x56": Convolution(8, 64, 56, 64, 3, 1, 1),
    "conv2d.128x28": Convolution(8, 128, 28, 128, 3, 1, 1),
    "conv2d.512x7": Convolution(8, 512, 7, 512, 3, 1, 1),
    "conv2d.1x1.256x28": Convolution(8, 256, 28, 64, 1, 1, 0),
    "conv2d.dw32x112": Convolution(8, 32, 112, 32, 3, 1, 1, groups=32),
    "conv1d.64x4096": Convolution(8, 64, 4096, 64, 9, 1, 4, dims=1),
}


def convolutions() -> Iterator[Case]:
    """Layers of well-known networks, forward and with gradients."""
    for name, sizes in CONVOLUTIONS.items():
        traffic, operations = sizes.traffic, sizes.operations
        yield Case(f"C.{name}.fwd", sizes.forward, cost=Cost(traffic, operations))
        yield Case(f"C.{name}.fwdbwd", sizes.backward, cost=Cost(3 * traffic, 3 * operations))
    operations = 3 * 2 * 8 * 64 * 32 * 28 * 28 * 16
    yield Case("C.conv_transpose2d.fwdbwd", transposed_convolution, cost=Cost(None, operations))


def transposed_convolution(inputs: Inputs) -> Action:
    """A transposed convolution and its gradients."""
    grad, convolve = inputs.library.autograd.grad, inputs.functional.conv_transpose2d
    x = inputs.normal(8, 64, 28, 28, gradient=True)
    weight = inputs.normal(64, 32, 4, 4, seed=1, scale=0.1, gradient=True)
    gradient = inputs.normal(8, 32, 56, 56, seed=2)
    return lambda: grad(convolve(x, weight, None, 2, 1), (x, weight), gradient)


def pooling() -> Iterator[Case]:
    """Windows of two by two; what they move bounds them, not what they compute."""
    numbers = 8 * 64 * 112 * 112
    for name in ("max_pool2d", "avg_pool2d"):
        # The result has a quarter of the numbers; backward reads that and writes all again.
        yield Case(f"C.{name}.fwd", partial(pool, name=name), cost=Cost(5 * numbers))
        yield Case(f"C.{name}.fwdbwd", partial(pool_backward, name=name), cost=Cost(11 * numbers))


def pool(inputs: Inputs, name: str) -> Action:
    """The pooling alone."""
    function, x = getattr(inputs.functional, name), inputs.normal(8, 64, 112, 112)
    return lambda: function(x, 2)


def pool_backward(inputs: Inputs, name: str) -> Action:
    """The pooling and its gradient."""
    grad, function = inputs.library.autograd.grad, getattr(inputs.functional, name)
    x, gradient = (
        inputs.normal(8, 64, 112, 112, gradient=True),
        inputs.normal(8, 64, 56, 56, seed=1),
    )
    return lambda: grad(function(x, 2), x, gradient)


def attention() -> Iterator[Case]:
    """Attention of 4 sequences of 256 places with 8 heads of 64 features."""
    # Two products of 256 x 256 x 64 a head; where a place sees only those before it, half of them.
    full = 2 * 2 * 4 * 8 * 256 * 256 * 64
    causal = partial(attend, causal=True)
    causal_backward = partial(attend_backward, causal=True)
    full_backward = partial(attend_backward, causal=False)
    # Backward has five products for the forward's two.
    yield Case("C.sdpa.causal.fwd", causal, cost=Cost(None, full // 2))
    yield Case("C.sdpa.causal.fwdbwd", causal_backward, cost=Cost(None, full // 2 * 7 // 2))
    yield Case("C.sdpa.full.fwdbwd", full_backward, cost=Cost(None, full * 7 // 2))


def queries(inputs: Inputs, gradient: bool) -> list[Tensor]:
    """Query, key and value."""
    return [inputs.normal(4, 8, 256, 64, seed=seed, gradient=gradient) for seed in range(3)]


def attend(inputs: Inputs, causal: bool) -> Action:
    """The attention alone."""
    function, given = inputs.functional.scaled_dot_product_attention, queries(inputs, False)
    return lambda: function(*given, is_causal=causal)


def attend_backward(inputs: Inputs, causal: bool) -> Action:
    """The attention and its gradients."""
    grad, function = inputs.library.autograd.grad, inputs.functional.scaled_dot_product_attention
    given, gradient = queries(inputs, True), inputs.normal(4, 8, 256, 64, seed=5)
    return lambda: grad(function(*given, is_causal=causal), given, gradient)


@dataclass(frozen=True)
class Decomposition:
    """A function of linear algebra, its inputs (with gradients or without), its operations."""

    function: Function
    inputs: Callable[[Inputs, bool], tuple[Tensor, ...]]
    operations: int

    def forward(self, inputs: Inputs) -> Action:
        """The function alone."""
        return partial(self.function, inputs.library, *self.inputs(inputs, False))

    def backward(self, inputs: Inputs) -> Action:
        """The function, and the gradients of the sum of its results."""
        library, given = inputs.library, self.inputs(inputs, True)

        def both() -> Any:
            output = self.function(library, *given)
            results = output if isinstance(output, tuple | list) else (output,)
            return library.autograd.grad(sum(result.sum() for result in results), given)

        return both


def singular_values(library: Library, matrix: Tensor) -> tuple[Tensor, ...]:
    """The decomposition without the signs of its vectors, which are free."""
    return tuple(part.abs() for part in library.linalg.svd(matrix, full_matrices=False))


def eigenvalues(library: Library, matrix: Tensor) -> tuple[Tensor, ...]:
    """The decomposition without the signs of its vectors, which are free."""
    values, vectors = library.linalg.eigh(matrix)
    return values, vectors.abs()


def square(size: int) -> Callable[[Inputs, bool], tuple[Tensor, ...]]:
    """Any square matrix."""
    return lambda inputs, gradient: (inputs.normal(size, size, gradient=gradient),)


def positive(size: int) -> Callable[[Inputs, bool], tuple[Tensor, ...]]:
    """A positive definite matrix."""
    return lambda inputs, gradient: (inputs.positive_definite(size, gradient),)


def system(inputs: Inputs, gradient: bool) -> tuple[Tensor, ...]:
    """A positive definite matrix and eight right-hand sides."""
    return inputs.positive_definite(512, gradient), inputs.normal(512, 8, gradient=gradient)


DECOMPOSITIONS = {
    "svd256": Decomposition(singular_values, square(256), 22 * 256**3),
    "eigh256": Decomposition(eigenvalues, positive(256), 9 * 256**3),
    "cholesky512": Decomposition(lambda lib, a: lib.linalg.cholesky(a), positive(512), 512**3 // 3),
    "solve512": Decomposition(lambda lib, a, b: lib.linalg.solve(a, b), system, 2 * 512**3 // 3),
    "qr512": Decomposition(lambda lib, a: tuple(lib.linalg.qr(a)), square(512), 8 * 512**3 // 3),
    "inv512": Decomposition(lambda lib, a: lib.linalg.inv(a), positive(512), 2 * 512**3),
    "det256": Decomposition(lambda lib, a: lib.linalg.slogdet(a), positive(256), 2 * 256**3 // 3),
}


def linear_algebra() -> Iterator[Case]:
    """Decompositions of one matrix, and a batch of small systems."""
    for name, kind in DECOMPOSITIONS.items():
        yield Case(f"C.linalg.{name}.fwd", kind.forward, cost=Cost(operations=kind.operations))
        yield Case(f"C.linalg.{name}.fwdbwd", kind.backward)
    yield row(
        "linalg.batched_solve_64x16",
        lambda inputs: (
            inputs.library.stack([inputs.positive_definite(16) for _ in range(64)]),
            inputs.normal(64, 16, 1),
        ),
        lambda lib, a, b: lib.linalg.solve(a, b),
        64 * 2 * 16**3 // 3,
    )


def transforms() -> Iterator[Case]:
    """Fourier transforms: five operations for each number and each halving of the length."""
    million = 1 << 20
    yield row(
        "fft.c64.2^20",
        lambda inputs: (inputs.complex(million),),
        lambda lib, x: lib.fft.fft(x),
        5 * 20 * million,
    )
    yield row(
        "rfft.f32.1024x1024",
        lambda inputs: (inputs.normal(1024, 1024),),
        lambda lib, x: lib.fft.rfft(x),
        1024 * 5 * 10 * 1024 // 2,
    )
    yield row(
        "fft2.512",
        lambda inputs: (inputs.complex(512, 512),),
        lambda lib, x: lib.fft.fft2(x),
        5 * 18 * 512 * 512,
    )
