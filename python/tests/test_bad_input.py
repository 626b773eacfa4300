"""Whatever a function is given, it answers or raises; it never panics, crashes or hangs.

Every function and method of the registry is called with many wrong and a few right arguments. What
is asked here is only that errors are of known classes and are not reported as bugs, and that a
refused call in place leaves its tensor as it was; that the errors are the right ones is asked by
the tests of arguments and by the refused samples of each op.
"""

from __future__ import annotations

import itertools
import random
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import pullback as torch
from pullback import _C

RAISED = (
    TypeError,
    ValueError,
    RuntimeError,
    IndexError,
    NotImplementedError,
    OverflowError,
    KeyError,
    BufferError,
)
HUGE = 2**62
# Each test takes one of so many functions: a failure leaves the others tested.
PARTS = 8
# They stop the interpreter's threads, ask the system, or end the process: not for random arguments.
LEFT_OUT = {"set_num_threads", "set_num_interop_threads", "from_file"}


def values() -> list[Any]:
    matrix = torch.arange(6.0).reshape(2, 3)
    return [
        matrix,
        matrix.t(),
        torch.arange(3),
        torch.tensor(2),
        torch.tensor([True, False, True]),
        torch.empty(0),
        torch.empty(2, 0, 3),
        torch.tensor(1.5, requires_grad=True),
        torch.ones(2, 3, dtype=torch.complex64),
        torch.ones(3).expand(2, 3),
        torch.ones(2, 3, dtype=torch.float16),
        torch.tensor([HUGE, -HUGE]),
        [matrix, matrix],
        [],
        None,
        True,
        0,
        -1,
        7,
        HUGE,
        1.5,
        float("nan"),
        2j,
        "mean",
        [1, 2],
        [-1],
        (HUGE, HUGE),
        torch.float64,
        torch.int8,
        object(),
    ]


def calls(count: int) -> Iterator[tuple[Any, ...]]:
    """No argument, each value alone, and random pairs and triples."""
    yield ()
    for value in values():
        yield (value,)
    chooser = random.Random(0)
    for _ in range(count):
        yield tuple(chooser.choice(values()) for _ in range(chooser.choice((2, 2, 3, 4))))


def state(tensor: Any) -> tuple[Any, ...]:
    """All that a call may change of a tensor. The values are texts, in which NaN equals NaN."""
    return (
        str(tensor.detach().tolist()),
        tuple(tensor.shape),
        tensor.stride(),
        tensor.storage_offset(),
        tensor.dtype,
        tensor.requires_grad,
        tensor._version,
        tensor.grad_fn,
    )


def check(
    name: str,
    function: Callable[..., Any],
    args: Sequence[Any],
    names: dict[str, Any] | None = None,
) -> None:
    """Calls; an error is of a known class and leaves the tensor of a call in place alone."""
    is_inplace = name.endswith("_") and not name.endswith("__")
    target = args[0] if is_inplace and args and isinstance(args[0], torch.Tensor) else None
    before = None if target is None else state(target)
    refusal = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(*args, **(names or {}))
    except RAISED as error:
        refusal = error
    if refusal is not None:
        call = f"{name}{args!r}{names}: {refusal}"
        assert "bug in pullback" not in str(refusal), call
        assert target is None or state(target) == before, call


NAMESPACES = [_C._VariableFunctions, _C._nn, _C._linalg]
FUNCTIONS = sorted(
    {
        (namespace.__name__, name, function)
        for namespace in NAMESPACES
        for name, function in vars(namespace).items()
        if callable(function) and not name.startswith("__") and name not in LEFT_OUT
    },
    key=lambda entry: entry[:2],
)


@pytest.mark.parametrize("start", range(PARTS))
def test_functions_answer_or_raise(start: int) -> None:
    for namespace, name, function in itertools.islice(FUNCTIONS, start, None, PARTS):
        for args in calls(40):
            check(f"{namespace}.{name}", function, args)


METHODS = sorted(
    name
    for name in dir(torch.Tensor)
    if not name.startswith("__") and callable(getattr(torch.Tensor, name))
)


@pytest.mark.parametrize("start", range(PARTS))
def test_methods_answer_or_raise(start: int) -> None:
    for name in itertools.islice(METHODS, start, None, PARTS):
        receivers = itertools.cycle(values()[:12])
        for args in calls(40):
            check(name, getattr(torch.Tensor, name), (next(receivers).clone(), *args))


# Arguments of the right kind, most of them with values that fit no call.
WHOLE = [0, 1, 2, 3, -1, -2, 7, -7, 2**40, HUGE, 2**63 - 1, -(2**63)]
REAL = [0.0, 0.5, 1.0, -1.0, 3.7, 1e30, float("inf"), float("nan"), -float("inf"), 1e-45]


def tensors() -> list[Any]:
    return [
        torch.arange(6.0).reshape(2, 3),
        torch.arange(9.0, dtype=torch.float64).reshape(3, 3),
        torch.arange(3.0),
        torch.ones(3, 3),
        torch.ones(2, 3, requires_grad=True),
        torch.tensor(2.5),
        torch.tensor([0, 1, 2]),
        torch.tensor([[0, -1, 5], [2, 1, 0]]),
        torch.tensor([True, False, True]),
        torch.tensor([HUGE, -(2**63), 2**63 - 1]),
        torch.tensor([float("nan"), float("inf"), -1e30]),
        torch.ones(2, 3, dtype=torch.complex64),
        torch.ones(2, 3, 4),
        torch.ones(1, 2, 4, 4),
        torch.ones(1, 2, 3, 4, 4),
        torch.ones(3, dtype=torch.bfloat16),
        torch.ones(3, dtype=torch.uint8),
        torch.ones(3).expand(2, 3),
        torch.empty(0),
        torch.empty(2, 0, 3),
        torch.empty(0, 2**40),
    ]


def argument(kind: str, choose: random.Random) -> Any:
    """Something of the kind that a schema names: often extreme, now and then of another kind."""
    if kind.endswith("?"):
        return None if choose.random() < 0.2 else argument(kind[:-1], choose)
    if choose.random() < 0.02:
        return choose.choice(values())
    if "[" in kind:
        element, size = kind.rstrip("]").split("[")
        if element.startswith("Tensor"):
            return [choose.choice(tensors()) for _ in range(choose.randrange(4))]
        if size and choose.random() < 0.2:
            return argument(element, choose)
        count = int(size) if size and choose.random() < 0.8 else choose.randrange(5)
        return [argument(element, choose) for _ in range(count)]
    if kind.startswith("Tensor"):
        return choose.choice(tensors())
    return choose.choice(OF_KIND[kind])


OF_KIND: dict[str, list[Any]] = {
    # Half of the time a number that may be meant.
    "int": WHOLE[:6] * 2 + WHOLE,
    "Scalar": [0, 1, 2, 0.5, -1.5, True, 2j, HUGE, -(2**63), *REAL],
    "float": REAL,
    "bool": [True, False],
    "str": ["mean", "sum", "none", "ij,jk->ik", "reflect", "", "\u00e9"],
    "ScalarType": [torch.float32, torch.int8, torch.complex128, torch.bool, torch.float16],
    "Layout": [torch.strided],
    "Device": ["cpu", "meta", "cuda", "no such"],
    "Generator": [torch.Generator()],
    "MemoryFormat": [torch.contiguous_format, torch.preserve_format, torch.channels_last],
}


def parameters(schema: str) -> tuple[list[str], list[tuple[str, str]]]:
    """The kinds of the parameters by place, and kinds and names of those by keyword."""
    inside = schema[schema.index("(") + 1 : schema.rindex(") ->")]
    inside = re.sub(r"\([a-z!>* -]+\)|\(\w+(!| -> \*)?\)", "", inside)
    by_place: list[str] = []
    by_name: list[tuple[str, str]] = []
    keywords = False
    for parameter in re.split(r", (?![^\[]*\])", inside):
        if parameter == "*":
            keywords = True
        elif parameter:
            kind, name = parameter.split("=")[0].split(" ")
            if keywords:
                by_name.append((kind, name))
            else:
                by_place.append(kind)
    return by_place, by_name


SIGNATURES = _C._describe_ops()


def callable_of(entry: dict[str, Any]) -> Callable[..., Any]:
    if entry["method"]:
        return getattr(torch.Tensor, entry["name"])  # type: ignore[no-any-return]
    module = "_" + entry["module"] if entry["module"] else "_VariableFunctions"
    return getattr(getattr(_C, module), entry["name"])  # type: ignore[no-any-return]


def typed_calls(
    entry: dict[str, Any], choose: random.Random, count: int
) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    by_place, by_name = parameters(entry["schema"])
    for _ in range(count):
        places = [argument(kind, choose) for kind in by_place]
        names = {name: argument(kind, choose) for kind, name in by_name if choose.random() < 0.2}
        if choose.random() < 0.3 and places:
            places.pop()
        yield places, names


@pytest.mark.parametrize("start", range(PARTS))
def test_arguments_of_the_right_kind_are_answered_or_refused(start: int) -> None:
    for place, entry in itertools.islice(enumerate(SIGNATURES), start, None, PARTS):
        if entry["name"] not in LEFT_OUT:
            for args, names in typed_calls(entry, random.Random(place), 40):
                check(entry["name"], callable_of(entry), args, names)


@pytest.mark.parametrize("divide", ["remainder_", "fmod_", "floor_divide_"])
def test_a_zero_divisor_is_found_before_anything_is_written(divide: str) -> None:
    x = torch.tensor([5, 6, 7])
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        getattr(x, divide)(torch.tensor([2, 0, 3]))
    assert x.tolist() == [5, 6, 7]
    assert x._version == 0


def test_memory_that_is_not_there_is_an_error_and_not_a_promise() -> None:
    for shape in [(2**40,), (2**46,)]:
        with pytest.raises(torch.OutOfMemoryError, match="can't allocate memory"):
            torch.empty(shape, dtype=torch.int8)
    many = torch.empty(0, 2**40)
    for split in [
        lambda: many.unbind(1),
        lambda: many.split(1, 1),
        lambda: torch.empty(0).chunk(2**40),
        lambda: torch.ones(3).tensor_split(2**40),
        lambda: torch.tril_indices(2**40, 3),
        lambda: torch.ones(2).repeat(2**40),
    ]:
        with pytest.raises(torch.OutOfMemoryError):
            split()


def test_sizes_that_overflow_are_refused() -> None:
    x = torch.ones(2, 3)
    for call in [
        lambda: torch.tensor(2).expand(HUGE, HUGE),
        lambda: x.repeat(HUGE, HUGE),
        lambda: torch.tile(x, (HUGE, HUGE)),
        lambda: x.repeat_interleave(HUGE),
        lambda: x.split([HUGE, HUGE, HUGE, HUGE]),
        lambda: torch.constant_pad_nd(x, (HUGE, HUGE)),
        lambda: torch.empty(0, HUGE),
        lambda: x.as_strided((1,), (HUGE,)),
        lambda: torch.max_pool1d(x, HUGE, [2], [1], [3]),
    ]:
        with pytest.raises(RuntimeError):
            call()
    assert torch.avg_pool1d(x, 2**31 - 1, 2**31 - 1, 0, True).tolist() == [[1.0], [1.0]]
    assert torch.empty(0).repeat(7, 2**59 - 1).shape == (7, 0)
    assert x[:: 2**63 - 1].tolist() == [[1.0] * 3]
    assert torch.tril_indices(2**40, 0).shape == (2, 0)
    assert torch.tril_indices(2**40, 3, -(2**40) + 1).shape == (2, 1)


def test_a_dimension_that_is_no_int_is_a_type_error() -> None:
    x = torch.ones(2, 3)
    for call in [
        lambda: x.size(torch.float64),
        lambda: x.stride([1]),
        lambda: x.size(True),
        lambda: x.resize_(None),
        lambda: x.resize_(),
        lambda: x.float(x),
        lambda: x.numpy(True),
        lambda: x.is_contiguous(1),
        lambda: x.is_same_size([2, 3]),
        lambda: x.pin_memory("mean", 1),
    ]:
        with pytest.raises(TypeError):
            call()


def test_set_takes_part_of_another_tensor() -> None:
    x, memory = torch.empty(0), torch.arange(6.0)
    x.set_(memory[1:], 1, (2, 2))
    assert x.tolist() == [[2.0, 3.0], [4.0, 5.0]]
    memory[2] = 7.0
    assert x[0, 0] == 7.0
    before = state(x)
    with pytest.raises(RuntimeError, match="out of bounds"):
        x.set_(memory, 1, (6,))
    assert state(x) == before
