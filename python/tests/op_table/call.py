"""Calls as data: inputs made by a formula, and the arguments of one call.

An input is written down without a tensor library: a shape, a range of values and a layout. Its
elements are odd sixteenths (or whole numbers), exact in every floating dtype from bfloat16 up,
never zero and never halfway between whole numbers, so that no kink is hit by accident; kinks are
asked for with `of(...)`. Both libraries build it from the same Python list.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

# A tensor library or what it makes: the table serves any that has PyTorch's names.
Library = Any
Tensor = Any

DTYPES = {
    "bool": "bool",
    "u8": "uint8",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "c64": "complex64",
    "c128": "complex128",
}
# A dtype that only results have.
ALL_DTYPES = DTYPES | {"c32": "complex32"}
SHORT = {long: short for short, long in ALL_DTYPES.items()}
FLOATS = ("f16", "bf16", "f32", "f64")
COMPLEX = ("c64", "c128")
WHOLE = ("u8", "i8", "i16", "i32", "i64")


@dataclass(frozen=True)
class Domain:
    """Where the elements lie: in sixteenths for floating dtypes, as they are for integers."""

    low: int = -63
    high: int = 63
    whole: tuple[int, int] = (-4, 9)


REAL = Domain()
POSITIVE = Domain(1, 79, (1, 9))
UNIT = Domain(-15, 15, (-1, 1))
PROBABILITY = Domain(1, 15, (0, 1))
ABOVE_ONE = Domain(17, 95, (1, 9))
NONZERO = Domain(9, 79, (1, 9))
SMALL = Domain(-31, 31, (-2, 2))


def spread(position: int, low: int, high: int) -> int:
    """The whole number of a range that stands at a position: all of them once before any again."""
    span = high - low + 1
    step = max(1, round(span * 0.618))
    while math.gcd(step, span) != 1:
        step += 1
    return low + position * step % span


LIMITS = ("smallest", "next", "middle", "zero", "one", "largest")


def limits(dtype: str) -> list[int]:
    """The smallest and largest numbers of an integer dtype, and some between."""
    bits = int(dtype[1:])
    low, high = (0, 2**bits - 1) if dtype == "u8" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return [low, low + 1, high // 2 + 1, 0, 1, high]


@dataclass(frozen=True)
class Input:
    """A tensor argument: shape, range of its elements, layout, and dtype if not the run's own."""

    shape: tuple[int, ...]
    domain: Domain = REAL
    dtype: str | None = None
    layout: str = "plain"
    # Given elements; `LIMITS` stands for the smallest and largest whole numbers of the dtype.
    values: tuple[Any, ...] | None = None
    seed: int = 0
    gradient: bool = True

    def span(self, dtype: str) -> tuple[int, int]:
        """The smallest and largest of the whole numbers that elements are made of."""
        if dtype == "bool":
            return 0, 4
        if dtype in WHOLE:
            low, high = self.domain.whole
            return max(low, 0) if dtype == "u8" else low, high
        return (self.domain.low - 1) // 2, (self.domain.high - 1) // 2

    def element(self, position: int, dtype: str) -> bool | int | float | complex:
        """The element at a position of the row-major order, exact in the dtype."""
        span = self.span(dtype)
        number = spread(position + 5 * self.seed, *span)
        if dtype == "bool":
            return number > 1
        if dtype in WHOLE:
            return number
        real = (2 * number + 1) / 16
        if dtype.startswith("c"):
            return complex(real, (2 * spread(position + 5 * self.seed + 3, *span) + 1) / 16)
        return real

    def elements(self, dtype: str) -> list[Any]:
        """All elements, as numbers that suit the dtype."""
        if self.values is None:
            return self.repeated(math.prod(self.shape), dtype)
        if self.values == LIMITS:
            return limits(dtype)
        kind = bool if dtype == "bool" else int if dtype in WHOLE else None
        return [kind(value) if kind else value for value in self.values]

    def repeated(self, count: int, dtype: str) -> list[Any]:
        """So many elements of the formula, which begins again after all numbers of its range."""
        low, high = self.span(dtype)
        first = [self.element(i, dtype) for i in range(min(count, high - low + 1))]
        return (first * (count // max(len(first), 1) + 1))[:count]

    def build(self, lib: Library, run_dtype: str) -> Tensor:
        """The tensor, without history."""
        dtype = self.dtype or run_dtype
        made = getattr(lib, ALL_DTYPES[dtype])
        elements = self.elements(dtype)
        if self.layout == "transposed":
            turned = (*self.shape[:-2], self.shape[-1], self.shape[-2])
            return lib.tensor(elements, dtype=made).reshape(turned).transpose(-1, -2)
        if self.layout == "strided":
            wide = [element for element in elements for _ in range(2)]
            shape = (*self.shape[:-1], 2 * self.shape[-1])
            return lib.tensor(wide, dtype=made).reshape(shape)[..., ::2]
        if self.layout == "offset":
            whole = lib.tensor(elements[:1] + elements, dtype=made)
            return whole[1:].reshape(self.shape)
        return lib.tensor(elements, dtype=made).reshape(self.shape)


def x(*shape: int, **options: Any) -> Input:
    """An input of a shape."""
    return Input(shape, **options)


def of(*values: Any, shape: tuple[int, ...] | None = None, **options: Any) -> Input:
    """An input of given elements, one-dimensional unless a shape is given."""
    return Input(shape if shape is not None else (len(values),), values=values, **options)


def index(*values: int, shape: tuple[int, ...] | None = None) -> Input:
    """An input of given places."""
    return of(*values, shape=shape, dtype="i64")


@dataclass(frozen=True)
class Late:
    """An argument that the library must make: a dtype, a generator."""

    make: Callable[[Library, str], Any]


# The dtype of the run itself.
OWN = Late(lambda lib, dtype: getattr(lib, DTYPES[dtype]))


def as_dtype(name: str) -> Late:
    """A dtype by its short name."""
    return Late(lambda lib, _: getattr(lib, DTYPES[name]))


@dataclass(frozen=True)
class Call:
    """One call of an op: arguments, and where they are of use."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    variant: str = ""
    # The dtypes it is meant for; none given: all.
    only: Sequence[str] = ()
    gradient: bool = True
    # Whether second gradients are a rule there: at kinks they are an accident of the formula.
    second: bool = True
    # What is called, if it is not what the row's name says.
    function: Callable[[Library], Callable[..., Any]] | None = None
    # Whether elements are determined (`empty` gives any).
    determined: bool = True


def call(*args: Any, **kwargs: Any) -> Call:
    """A call with these arguments; `with_` sets what is not an argument."""
    return Call(args, kwargs)


def with_(made: Call, **options: Any) -> Call:
    """The same call with other properties."""
    return replace(made, **options)


def shown(call: Call) -> str:
    """A call in short: the shapes of its tensors and what else is given."""
    return ", ".join(
        [word(argument) for argument in call.args]
        + [f"{name}={word(argument)}" for name, argument in call.kwargs.items()]
    )


def word(argument: Any) -> str:
    """An argument in short."""
    if isinstance(argument, list | tuple):
        words = ", ".join(word(item) for item in argument)
        return f"[{words}]" if isinstance(argument, list) else f"({words})"
    if not hasattr(argument, "shape"):
        return "dtype" if hasattr(argument, "make") else repr(argument)
    if argument.values is not None:
        text = f"tensor({list(argument.values)})"
    else:
        text = "x" + "x".join(map(str, argument.shape))
    layout = "" if argument.layout == "plain" else f" {argument.layout}"
    return f"{text}{layout}{f' {argument.dtype}' if argument.dtype else ''}"


def inputs(value: Any) -> Iterator[Input]:
    """The inputs within an argument, in order."""
    if isinstance(value, Input):
        yield value
    elif isinstance(value, dict):
        yield from inputs(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from inputs(item)


def filled(value: Any, given: Callable[[Any], Any]) -> Any:
    """The argument with its inputs and late values replaced."""
    if isinstance(value, Input | Late):
        return given(value)
    if isinstance(value, dict):
        return {key: filled(item, given) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(filled(item, given) for item in value)
    return value


@dataclass(frozen=True)
class Op:
    """The calls of one row, by the row's name."""

    name: str
    calls: tuple[Call, ...]
    function: Callable[[Library], Callable[..., Any]] | None = None
    # The call that is timed, for a number of elements; none: its time does not depend on a size.
    scaled: Callable[[int], Call] | None = None
    # Which argument is `self` where the method is called.
    receiver: int = 0
    # Relative tolerance as a multiple of the dtype's usual one, for ops that amplify rounding.
    tolerance: float = 1.0


def matrix(n: int) -> tuple[int, ...]:
    """The shape of so many elements in lines, for ops along a dimension."""
    return (n // 1000, 1000) if n >= 1000 else (n // 5, 5)


def of_matrix(name: str, *calls: Call, arguments: tuple[Any, ...] = ()) -> Op:
    """An op timed on a matrix, with arguments that suit every size."""
    return Op(name, calls, scaled=lambda n: call(x(*matrix(n)), *arguments))
