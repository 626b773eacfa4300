"""A slow model of tensors with gradients, in NumPy: values, and each element's whole derivative.

An :class:`Array` is two NumPy arrays: the values, and their derivatives by every element of the one
leaf, which is a last dimension more. Both are views in the same way, so that what a write through
a view changes is NumPy's answer and not ours. There is no graph and no backward pass: a gradient
of a sum is a sum of derivatives. Memory carries what a program can ask of it besides: how often it
was written (``version``), and whether a write is recorded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
LEAF = 6
"""Elements of the leaf."""


@dataclass
class Memory:
    """What several views share."""

    version: int = 0
    recorded: bool = False
    """Whether anything in it depends on the leaf."""
    is_split: bool = False
    """Whether views of it were made that refuse writes."""


@dataclass
class Array:
    """Values of a shape, and derivatives of that shape and ``LEAF``."""

    values: Values
    slopes: Values
    memory: Memory = field(default_factory=Memory)
    counter: Memory | None = None
    """Whose version counts: that of the memory that a detached array shares."""

    @property
    def version(self) -> int:
        """How often the memory was written."""
        return (self.counter or self.memory).version

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return self.values.shape

    def repeats(self) -> bool:
        """Whether two elements are the same memory."""
        sizes = zip(self.values.shape, self.values.strides, strict=True)
        return self.values.size > 0 and any(n > 1 and step == 0 for n, step in sizes)

    def view(self, values: Values, slopes: Values) -> Array:
        """A view of the same memory."""
        return Array(values, slopes, self.memory, self.counter)

    def detached(self) -> Array:
        """The same values as a constant: writes to it change values and nobody's derivatives."""
        slopes = np.zeros((*self.values.shape, LEAF))
        return Array(self.values, slopes, Memory(), self.counter or self.memory)

    def wrote(self, *, recorded: bool) -> None:
        """Counts a write."""
        (self.counter or self.memory).version += 1
        self.memory.recorded |= recorded


def leaf() -> tuple[Values, Array]:
    """The leaf's numbers, and an array that is a copy of it."""
    numbers = np.array([-2.0, -1.0, 0.5, 1.0, 2.0, 3.0]).reshape(2, 3)
    return numbers, Array(numbers.copy(), np.eye(LEAF).reshape(2, 3, LEAF), Memory(recorded=True))


def constant(shape: tuple[int, ...]) -> Array:
    """Numbers that depend on nothing."""
    count = int(np.prod(shape))
    values = (np.arange(count, dtype=np.float64) % 5 - 2).reshape(shape)
    return Array(values, np.zeros((*shape, LEAF)))


def fresh(values: Any, slopes: Any, *sources: Array) -> Array:
    """A result with memory of its own."""
    recorded = any(source.memory.recorded for source in sources)
    values = np.array(values, dtype=np.float64)
    if not recorded:
        return Array(values, np.zeros((*values.shape, LEAF)))
    return Array(values, np.array(slopes), Memory(recorded=recorded))


def binary(name: str, a: Array, b: Array) -> tuple[Values, Values]:
    """The values and slopes of an operation of two arrays, broadcast."""
    shape = np.broadcast_shapes(a.shape, b.shape)
    # (Slopes keep their last dimension; missing ones come before the others.)
    x, y = np.broadcast_to(a.values, shape), np.broadcast_to(b.values, shape)
    dx, dy = _broadcast_slopes(a, shape), _broadcast_slopes(b, shape)
    if name == "add":
        return x + y, dx + dy
    if name == "sub":
        return x - y, dx - dy
    if name == "mul":
        return x * y, dx * y[..., None] + dy * x[..., None]
    if name == "copy":
        return y.copy(), dy.copy()
    if name == "maximum":
        share = np.where(x > y, 1.0, np.where(x < y, 0.0, 0.5))[..., None]
        return np.maximum(x, y), dx * share + dy * (1 - share)
    raise ValueError(name)


def _broadcast_slopes(a: Array, shape: tuple[int, ...]) -> Values:
    missing = len(shape) - len(a.shape)
    slopes = a.slopes.reshape((1,) * missing + a.slopes.shape)
    return np.broadcast_to(slopes, (*shape, LEAF))


UNARY: dict[str, tuple[Any, Any]] = {
    "neg": (lambda x: -x, lambda x: -np.ones_like(x)),
    "square": (lambda x: x * x, lambda x: 2 * x),
    "relu": (lambda x: np.maximum(x, 0), lambda x: (x > 0) * 1.0),
    "abs": (np.abs, np.sign),
    "sin": (np.sin, np.cos),
    "tanh": (np.tanh, lambda x: 1 - np.tanh(x) ** 2),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), None),
    "half": (lambda x: x * 0.5, lambda x: np.full_like(x, 0.5)),
}


def unary(name: str, a: Array) -> tuple[Values, Values]:
    """The values and slopes of an operation of one array."""
    function, slope = UNARY[name]
    with np.errstate(over="ignore"):
        values = function(a.values)
        at = values * (1 - values) if slope is None else slope(a.values)
    return values, a.slopes * at[..., None]
