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
# They stop the interpreter's threads, ask the system, or end the process: not for random arguments;
# or they raise AssertionError, as PyTorch does for devices that are not built in.
LEFT_OUT = {"set_num_threads", "set_num_interop_threads", "from_file", "mtia", "xpu"}


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


NAMESPACES = [_C._VariableFunctions, _C._nn, _C._linalg, _C._sparse, _C._special]
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
    if not name.startswith("__") and callable(getattr(torch.Tensor, name)) and name not in LEFT_OUT
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
    "SymInt": WHOLE[:6] * 2 + WHOLE,
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


# Writes to memory that is read in the same call, or that is several elements at once.
SHAPES = [(3,), (3, 3), (2, 3, 3), (3, 3, 3)]
# Calls that a function takes, after which the next one is looked at.
ENOUGH = 20
# They change sizes, strides or history and write no element.
NO_WRITE = {
    "as_strided_",
    "detach_",
    "requires_grad_",
    "resize_",
    "resize_as_",
    "set_",
    "squeeze_",
    "swapaxes_",
    "swapdims_",
    "t_",
    "transpose_",
    "unsqueeze_",
}


def memory(dtype: Any) -> Any:
    values = torch.arange(60) % 3
    return (values + 1).to(dtype) / 4 if dtype.is_floating_point else values.to(dtype)


def shared(buffer: Any, shape: tuple[int, ...]) -> list[Any]:
    """Views of `buffer` around the target, which begins at its second element, and two others."""
    count = torch.empty(shape).numel()
    target = buffer[1 : 1 + count].view(shape)
    views = [
        target,
        buffer[:count].view(shape),
        target[0],
        buffer[2:3].view(()),
        buffer[3:12].view(3, 3),
        buffer[5:32].view(3, 3, 3),
        buffer[1:4].expand(shape),
        target.transpose(0, -1),
    ]
    if buffer.dtype == torch.float64:
        views.append(target.view(torch.int64))
    return [*views, torch.tensor([0, 2, 1]), target.clone() > 0.3]


def drawn(kind: str, choose: random.Random, pool: Sequence[Any]) -> Any:
    """Something of a kind that a schema names, small, with tensors from `pool`."""
    if kind.endswith("?"):
        return None if choose.random() < 0.4 else drawn(kind[:-1], choose, pool)
    if kind.startswith("Tensor"):
        many = range(choose.randrange(1, 4))
        return [choose.choice(pool) for _ in many] if "[" in kind else choose.choice(pool)
    if kind.startswith(("int[", "SymInt[")):
        return [choose.randrange(3) for _ in range(choose.choice((1, 2)))]
    small: dict[str, list[Any]] = {
        "int": [0, 1, 1, 2, -1],
        "SymInt": [0, 1, 1, 2, -1],
        "Scalar": [1, 0.5, 2],
        "float": [0.5, 1.0],
        "Generator": [None],
        "Device": ["cpu"],
        "str": ["sum", "mean", "prod", "amax"],
    }
    return choose.choice(small[kind]) if kind in small else argument(kind, choose)


def cloned(value: Any) -> Any:
    if isinstance(value, list):
        return [cloned(item) for item in value]
    return value.clone() if isinstance(value, torch.Tensor) else value


def moved(value: Any, origin: Any, buffer: Any) -> Any:
    """`value` with views of `origin` as the same views of `buffer`, and other tensors copied."""
    if isinstance(value, list):
        return [moved(item, origin, buffer) for item in value]
    if not isinstance(value, torch.Tensor) or value.data_ptr() == 0:
        return value
    if value.untyped_storage().data_ptr() != origin.untyped_storage().data_ptr():
        return value.clone()
    source = buffer if value.dtype == buffer.dtype else buffer.view(value.dtype)
    return source.as_strided(value.shape, value.stride(), value.storage_offset())


def answer(function: Callable[..., Any], args: Sequence[Any], names: dict[str, Any]) -> Any:
    """What the call returns, or `None` if it is refused, for a reason that is no bug."""
    torch.manual_seed(3)
    refusal = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **names)
    except RAISED as error:
        refusal = str(error)
    assert "bug in pullback" not in refusal, f"{function}{args!r}{names}: {refusal}"
    return None


def shared_calls(
    entry: dict[str, Any],
) -> Iterator[tuple[Any, tuple[int, ...], list[Any], dict[str, Any]]]:
    choose = random.Random(entry["schema"])
    by_place, by_name = parameters(entry["schema"])
    for _ in range(600):
        shape = choose.choice(SHAPES)
        buffer = memory(choose.choice([torch.float64, torch.float64, torch.int64, torch.bool]))
        pool = shared(buffer, shape)
        args = [drawn(kind, choose, pool) for kind in by_place]
        names = {name: drawn(k, choose, pool) for k, name in by_name if choose.random() < 0.2}
        yield buffer, shape, args, names


# They write the same everywhere, so elements may share memory.
ONE_VALUE = {"fill_", "zero_"}


def check_inplace_sharing(entry: dict[str, Any]) -> bool:
    """Whether a call was found that the function takes, each also right on shared memory."""
    function, reached = callable_of(entry), 0
    for buffer, shape, args, names in shared_calls(entry):
        args[0] = target = shared(buffer, shape)[0]
        apart, apart_names = cloned(args), {key: cloned(value) for key, value in names.items()}
        if answer(function, apart, apart_names) is None:
            continue
        reached += 1
        call = f"{entry['schema']} {args!r} {names!r}"
        repeated, before = buffer[1:2].clone().expand(shape), buffer.tolist()
        if entry["name"] in ONE_VALUE and not any(isinstance(a, torch.Tensor) for a in args[1:]):
            function(repeated, *cloned(args[1:]), **apart_names)
            assert same(repeated, apart[0]), call
        elif not same(apart[0], target):
            with pytest.raises(RuntimeError, match="more than one element of the written-to"):
                function(repeated, *cloned(args[1:]), **apart_names)
            assert same(repeated, buffer[1:2].expand(shape)), call
        if answer(function, args, names) is None:
            assert buffer.tolist() == before, call
        else:
            assert same(target, apart[0]), call
        if reached == ENOUGH:
            break
    return reached > 0


def same(a: Any, b: Any) -> bool:
    if str(a.tolist()) == str(b.tolist()):
        return True
    # Sums of inputs that lie otherwise in memory may be added up in another order.
    is_sum = a.is_floating_point() and a.shape == b.shape and a.dtype == b.dtype
    return is_sum and torch.allclose(a, b, rtol=1e-6, equal_nan=True)


def check_out_sharing(entry: dict[str, Any]) -> bool:
    """As `check_inplace_sharing`, for targets in `out=`."""
    function, reached = callable_of(entry), 0
    for origin, _, args, names in shared_calls(entry):
        result = answer(function, cloned(args), {key: cloned(v) for key, v in names.items()})
        expected = [result] if isinstance(result, torch.Tensor) else list(result or [])
        reached += len(expected)
        for place, start in itertools.product(range(len(expected)), (0, 2, None)):
            want = expected[place]
            if want.numel() > 50 or want.dtype != origin.dtype:
                continue
            buffer = memory(origin.dtype)
            own = moved(args, origin, buffer)
            own_names = {key: moved(v, origin, buffer) for key, v in names.items()}
            outs = [torch.empty_like(item) for item in expected]
            # A part of the memory, or the first input itself, which may have other sizes.
            part = buffer[start : (start or 0) + want.numel()] if start is not None else None
            if part is None and not isinstance(own[0], torch.Tensor):
                continue
            outs[place] = own[0] if part is None else part.view(want.shape)
            call = f"{entry['schema']} {args!r} {names!r} {start}"
            given = outs[0] if isinstance(result, torch.Tensor) else tuple(outs)
            if answer(function, own, {**own_names, "out": given}) is not None:
                assert same(outs[place], want.to(outs[place].dtype)), call
            fresh = [torch.empty_like(item) for item in expected]
            fits = {**names, "out": fresh[0] if isinstance(result, torch.Tensor) else tuple(fresh)}
            # (Where the arguments do not say which overload is meant, it may be one without `out`.)
            if want.numel() > 1 and answer(function, cloned(args), fits) is not None:
                outs[place] = want.new_zeros(()).expand(want.shape)
                given = outs[0] if isinstance(result, torch.Tensor) else tuple(outs)
                with pytest.raises(RuntimeError, match="more than one element of the written-to"):
                    function(*cloned(args), **names, out=given)
        if reached >= ENOUGH:
            break
    return reached > 0


# Random tensors rarely are what they take; what they share is asked elsewhere.
NOT_REACHED = {
    "_coalesced_",
    "_scaled_mm",
    "_conj_copy",
    "_fft_c2c",
    "_fft_c2r",
    "_int_mm",
    "_upsample_bicubic2d_aa",
    "_upsample_lanczos2d_aa",
    "_upsample_nearest_exact2d",
    "_upsample_nearest_exact3d",
    "avg_pool3d",
    "col2im",
    "inverse",
    "linalg_cond",
    "linalg_eigh",
    "linalg_eigvalsh",
    "linalg_inv",
    "linalg_ldl_solve",
    "linalg_lu_factor",
    "linalg_lu_solve",
    "linalg_matrix_norm",
    "linalg_norm",
    "linalg_qr",
    "linalg_solve",
    "lu_solve",
    "max_unpool2d",
    "max_unpool3d",
    "nll_loss2d",
    "norm",
    "sparse_resize_",
    "sparse_resize_and_clear_",
    "upsample_bicubic2d",
    "upsample_bilinear2d",
    "upsample_nearest2d",
    "upsample_nearest3d",
    "upsample_trilinear3d",
    "view_as_complex_copy",
    "view_as_real_copy",
}


@pytest.mark.parametrize("start", range(PARTS))
def test_a_write_to_memory_that_is_read_is_right_or_refused(start: int) -> None:
    reached, missed = set(NOT_REACHED), set()
    for entry in itertools.islice(SIGNATURES, start, None, PARTS):
        name = entry["name"]
        # (Ops on lists run the op of one tensor for each of them, or the kernel of an optimiser.)
        if name in LEFT_OUT | NO_WRITE | NOT_REACHED or name.startswith(("_foreach_", "_fused_")):
            continue
        if name.endswith("_") and not name.endswith("__"):
            done = check_inplace_sharing(entry)
        elif entry["out"] and not entry["method"]:
            done = check_out_sharing(entry)
        else:
            continue
        (reached if done else missed).add(name)
    assert not missed - reached


def test_views_that_only_cross_are_told_from_views_that_meet() -> None:
    choose = random.Random(0)
    for _ in range(2000):
        dims = range(choose.choice((1, 2, 3)))
        shape, strides = ([choose.choice(of) for _ in dims] for of in ((1, 2, 3), (1, 2, 3, 4, 8)))
        others = strides if choose.random() < 0.7 else choose.sample(range(5), len(shape))
        buffer = torch.arange(60.0)
        x = buffer.as_strided(shape, strides, choose.randrange(8))
        y = buffer.as_strided(shape, others, choose.randrange(8))
        call = f"{shape} {strides} {x.storage_offset()} {others} {y.storage_offset()}"
        places = {x.storage_offset() + at for at in reached_by(shape, strides)}
        meet = places & {y.storage_offset() + at for at in reached_by(shape, others)}
        # Targets whose strides do not nest are refused without a closer look.
        if may_repeat(shape, strides) or (meet and x.data_ptr() == y.data_ptr()):
            continue
        expected = (x + y).tolist()
        if answer(x.add_, (y,), {}) is not None:
            assert not meet, call
            assert x.tolist() == expected, call
        else:
            assert meet, call
    matrix = torch.arange(12.0).view(3, 4)
    assert matrix[:, ::2].add_(matrix[:, 1:2]).tolist() == [[1, 3], [9, 11], [17, 19]]


def reached_by(shape: Sequence[int], strides: Sequence[int]) -> list[int]:
    steps = itertools.product(*map(range, shape))
    return [sum(i * s for i, s in zip(step, strides, strict=True)) for step in steps]


def may_repeat(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether a stride is no longer than the shorter ones reach together."""
    reach = 0
    for stride, size in sorted((s, n) for s, n in zip(strides, shape, strict=True) if n > 1):
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def test_outputs_of_one_call_lie_apart() -> None:
    x, out = torch.arange(4.0), torch.tensor(0.0)
    with pytest.raises(ValueError, match="the `min` and `max` out= tensors must not overlap"):
        torch.aminmax(x, out=(out, out))
    whole = torch.zeros(3, dtype=torch.int64)
    with pytest.raises(ValueError, match="must not overlap"):
        torch.sort(torch.tensor([2, 1, 3]), out=(whole, whole))
    assert whole.tolist() == [0, 0, 0]


def test_an_input_is_not_resized_as_output() -> None:
    x = torch.arange(3.0)
    with pytest.raises(RuntimeError, match=r"shape \[3\] doesn't match the broadcast shape \[2, 3"):
        torch.add(x, torch.ones(2, 3), out=x)
    assert x.tolist() == [0, 1, 2]


def test_dimensions_that_a_tensor_has_not_are_refused() -> None:
    number, many = torch.tensor(1.0), torch.ones([1] * 70)
    for call in [
        lambda: torch.roll(number, 1, 0),
        lambda: torch.tensordot(torch.ones(3), number, dims=([0], [0])),
        lambda: torch.unbind(number),
    ]:
        with pytest.raises(IndexError, match="specified as 0 but tensor has no dimensions"):
            call()
    with pytest.raises(RuntimeError, match="only tensors with up to 64 dims"):
        many.sum((0, 65))
    with pytest.raises(RuntimeError, match="duplicate dims"):
        many.permute([69, *range(69, 0, -1)])
    assert many.permute(list(range(69, -1, -1))).shape == many.shape


def test_a_number_has_no_classes() -> None:
    number = torch.tensor(1.0)
    with pytest.raises(IndexError, match="Dimension specified as 1 but tensor has no dimensions"):
        torch.nn.functional.cross_entropy(number, number)
