"""Random programs of views, writes, ``out=`` and backward, beside the model in NumPy.

The rule: after every step each array has the model's numbers and version, and each gradient that
the program asks for is the model's. A step that the library refuses must be one that the model
expects to be refused, and changes nothing. What the model does not know exactly (whether a value
that a backward pass needs was overwritten) it answers with "may": such a gradient may be refused,
but where it is given it must be right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

import pullback as torch
from fuzz import model
from fuzz.child import SIGNS
from fuzz.model import Array
from fuzz.target import Case, Target, Wrong, without

MOST = 200
"""Elements of the largest array that a step may make."""
BOUND = 1e12
"""Where numbers grow beyond, rounding decides: such a program ends."""

VIEWS = (
    *("select", "narrow", "step", "transpose", "expand", "unsqueeze", "squeeze", "view", "flip"),
    *("diagonal", "detach", "unbind", "chunk", "permute", "movedim", "alias", "unfold", "index"),
)
BINARY = ("add", "sub", "mul", "maximum")
INPLACE = ("add_", "sub_", "mul_", "copy_")
FILLS = ("zero_", "fill_", "half_", "neg_", "masked_fill_", "relu_", "index_fill_", "sigmoid_")
REDUCE = ("sum", "mean", "cumsum", "sum_all", "prod_all", "amax")
OTHERS = ("grad", "grad", "clone", "constant", "cat", "stack", "out", "where", "matmul", "setitem")
LISTS = (VIEWS, BINARY, INPLACE, INPLACE, FILLS, REDUCE, tuple(model.UNARY), OTHERS)


class Refused(Exception):
    """The model expects that the library refuses the step."""


class May(Exception):
    """The model does not know whether the library takes the step: the step is left out."""


@dataclass
class World:
    """Both sides: array ``i`` of the one is array ``i`` of the other."""

    leaf: Any
    tensors: list[Any]
    arrays: list[Array]
    text: list[str] = field(default_factory=list)
    is_overwritten: bool = False
    """Whether a value may have been overwritten that a backward pass needs."""


class Programs(Target):
    """Programs of up to a dozen steps."""

    name = "programs"
    batch = 500

    def draw(self, choose: Random) -> Case:
        """Steps: a word, and numbers that are read modulo what is there."""
        steps = []
        for _ in range(choose.randrange(2, 14)):
            word = choose.choice(choose.choice(LISTS))
            no_grad = choose.random() < 0.08
            steps.append([word, *(choose.randrange(256) for _ in range(4)), no_grad])
        return {"steps": steps}

    def run(self, case: Case) -> str:
        """Runs the program on both sides, and asks for the gradient of everything at the end."""
        world = _start()
        words = set()
        for step in case["steps"]:
            if _step(world, step):
                words.add(step[0])
            if any(np.abs(a.values).max(initial=0) > BOUND for a in world.arrays):
                return "grows"
        _compare_gradient(world, list(range(len(world.arrays))))
        return " ".join(sorted(words)[:2])

    def smaller(self, case: Case) -> Iterator[Case]:
        """Fewer steps, smaller numbers."""
        steps = case["steps"]
        for fewer in without(steps):
            yield {"steps": fewer}
        for place, step in enumerate(steps):
            for at in range(1, 5):
                for number in {0, 1, step[at] // 2} - {step[at]}:
                    if number < step[at]:
                        new = [*step[:at], number, *step[at + 1 :]]
                        yield {"steps": [*steps[:place], new, *steps[place + 1 :]]}
            if step[5]:
                yield {"steps": [*steps[:place], [*step[:5], False], *steps[place + 1 :]]}

    def program(self, case: Case) -> str:
        """The steps as the library sees them."""
        world = _start()
        for step in case["steps"]:
            try:
                _step(world, step)
            except Exception as error:
                world.text.append(f"# {type(error).__name__}: {str(error)[:200]}")
                break
        return "\n".join([START, *world.text])


START = """import pullback as torch
leaf = torch.tensor([[-2.0, -1.0, 0.5], [1.0, 2.0, 3.0]], dtype=torch.float64, requires_grad=True)
a0 = leaf.clone()"""


def _start() -> World:
    numbers, array = model.leaf()
    leaf = torch.tensor(numbers.tolist(), dtype=torch.float64, requires_grad=True)
    return World(leaf, [leaf.clone()], [array])


# --- one step ---------------------------------------------------------------------------


def _step(world: World, step: list[Any]) -> bool:
    """Runs a step on both sides; says whether it was taken. Steps that do not fit do nothing."""
    word, *numbers, no_grad = step
    count = len(world.arrays)
    a, b = numbers[0] % count, numbers[1] % count
    if word == "grad":
        _compare_gradient(world, [a])
        return True
    expected: list[Array] | None
    try:
        expected, call, text = _planned(world, word, a, b, numbers[2:], no_grad)
        refusal = None
    except Refused as refused:
        expected, refusal = None, str(refused)
        call, text = _LAST[0]
    except May:
        return False
    quiet = no_grad and word.endswith("_")
    world.text.append(f"{'with torch.no_grad(): ' if quiet else ''}{text}")
    before = [t.detach().tolist() for t in world.tensors]
    error = None
    made: list[Any] = []
    try:
        with torch.set_grad_enabled(not quiet):
            made = call()
    except (RuntimeError, IndexError, ValueError, NotImplementedError) as raised:
        error = str(raised)
    if error is not None and any(sign in error for sign in SIGNS):
        raise Wrong("bug", error)
    if (error is None) != (refusal is None):
        raise Wrong("taken" if error is None else "refused", f"{text}: {error or refusal}")
    if error is not None:
        if [t.detach().tolist() for t in world.tensors] != before:
            raise Wrong("changed by a refused step", f"{text}: {error}")
        return False
    if expected is not None and not word.endswith("_"):
        world.tensors.extend(made)
        world.arrays.extend(expected)
    _compare(world, text)
    return True


def _compare(world: World, text: str) -> None:
    for place, (tensor, array) in enumerate(zip(world.tensors, world.arrays, strict=True)):
        values = np.array(tensor.detach().tolist(), dtype=np.float64).reshape(tuple(tensor.shape))
        if values.shape != array.shape or not _close(values, array.values):
            raise Wrong(
                "values", f"{text}: a{place} is {values.tolist()}, not {array.values.tolist()}"
            )
        if tensor._version != array.version:
            raise Wrong("version", f"{text}: of a{place} is {tensor._version}, not {array.version}")


def _close(a: Any, b: Any) -> bool:
    return bool(np.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True))


def _compare_gradient(world: World, places: list[int]) -> None:
    """The gradient of a weighted sum of arrays by the leaf, beside the model's."""
    total, slope, names = None, np.zeros(model.LEAF), []
    for place in places:
        tensor, array = world.tensors[place], world.arrays[place]
        if not tensor.requires_grad:
            if np.any(array.slopes):
                raise Wrong("requires_grad", f"a{place} depends on the leaf and does not say so")
            continue
        weight = place + 1
        part = tensor.sum() * weight
        total = part if total is None else total + part
        slope += weight * array.slopes.reshape(-1, model.LEAF).sum(0)
        names.append(f"a{place}.sum() * {weight}")
    if total is None:
        return
    world.text.append(f"torch.autograd.grad({' + '.join(names)}, leaf, retain_graph=True)")
    try:
        grads = torch.autograd.grad(total, world.leaf, retain_graph=True, allow_unused=True)
    except RuntimeError as error:
        if "modified by an inplace operation" in str(error) and world.is_overwritten:
            return
        raise Wrong("backward refused", str(error)) from None
    got = np.zeros(model.LEAF) if grads[0] is None else np.array(grads[0].tolist()).reshape(-1)
    if not _close(got, slope):
        raise Wrong("gradient", f"{got.tolist()}, not {slope.tolist()}")


Plan = tuple[list[Array], Callable[[], list[Any]], str]
_LAST: list[tuple[Callable[[], list[Any]], str]] = [(list, "")]
"""The call of a step that the model expects to be refused."""


def _planned(world: World, word: str, a: int, b: int, numbers: list[int], no_grad: bool) -> Plan:
    """What the model says of a step, and the library's call, not yet made."""
    if word in VIEWS:
        return _view(world, word, a, numbers)
    if word in INPLACE:
        return _write(world, word, a, b, no_grad)
    if word in FILLS:
        return _fill(world, word, a, numbers, no_grad)
    if word in BINARY:
        return _binary(world, word, a, b)
    if word in model.UNARY:
        return _unary(world, word, a)
    if word in REDUCE:
        return _reduce(world, word, a, numbers)
    return _other(world, word, a, b, numbers)


def _new(world: World, count: int = 1) -> str:
    first = len(world.arrays)
    return ", ".join(f"a{first + i}" for i in range(count))


def _result(world: World, array: Array, expression: str) -> Plan:
    """A step that makes one array, by an expression of ``a0``, ``a1``, ..."""
    if array.values.size > MOST:
        raise May
    names = {f"a{i}": tensor for i, tensor in enumerate(world.tensors)}
    text = f"{_new(world)} = {expression}"
    return [array], lambda: [eval(expression, {"torch": torch, **names})], text


def _binary(world: World, word: str, a: int, b: int) -> Plan:
    x, y = world.arrays[a], world.arrays[b]
    if not _fit(x.shape, y.shape):
        raise May
    array = model.fresh(*model.binary(word, x, y), x, y)
    return _result(world, array, f"torch.{word}(a{a}, a{b})")


def _fit(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return True


def _unary(world: World, word: str, a: int) -> Plan:
    x = world.arrays[a]
    array = model.fresh(*model.unary(word, x), x)
    text = f"a{a} * 0.5" if word == "half" else f"torch.{word}(a{a})"
    return _result(world, array, text)


def _reduce(world: World, word: str, a: int, numbers: list[int]) -> Plan:
    x = world.arrays[a]
    if word == "sum_all":
        slopes = x.slopes.reshape(-1, model.LEAF).sum(0)
        return _result(world, model.fresh(x.values.sum(), slopes, x), f"a{a}.sum()")
    if word == "prod_all":
        flat, d = x.values.reshape(-1), x.slopes.reshape(-1, model.LEAF)
        others = [np.prod(np.delete(flat, i)) for i in range(flat.size)]
        slopes = sum((d[i] * others[i] for i in range(flat.size)), np.zeros(model.LEAF))
        return _result(world, model.fresh(np.prod(flat), slopes, x), f"a{a}.prod()")
    if not x.shape or 0 in x.shape:
        raise May
    dim = numbers[0] % len(x.shape)
    if word == "amax":
        best = x.values.max(dim, keepdims=True)
        is_best = (x.values == best) * 1.0
        share = is_best / is_best.sum(dim, keepdims=True)
        slopes = (x.slopes * share[..., None]).sum(dim)
        return _result(world, model.fresh(best.squeeze(dim), slopes, x), f"a{a}.amax({dim})")
    function = getattr(np, word)
    array = model.fresh(function(x.values, axis=dim), function(x.slopes, axis=dim), x)
    return _result(world, array, f"a{a}.{word}({dim})")


# --- views ------------------------------------------------------------------------------


def _view(world: World, word: str, a: int, numbers: list[int]) -> Plan:
    x, (m, n) = world.arrays[a], numbers
    if word == "detach":
        return _result(world, x.detached(), f"a{a}.detach()")
    if word in ("unbind", "chunk"):
        return _several(world, word, a, numbers)
    found = _view_of(x, word, m, n)
    if found is None:
        raise May
    change, expression, is_view = found
    values, slopes = change(x.values), change(x.slopes)
    if is_view:
        array = x.view(values, slopes)
    else:
        array = model.fresh(values, slopes, x)
    return _result(world, array, expression.format(f"a{a}"))


Change = tuple[Callable[[Any], Any], str, bool]


def _view_of(x: Array, word: str, m: int, n: int) -> Change | None:
    """The NumPy way, which leaves a last dimension alone, and the library's text."""
    rank = len(x.shape)
    if word == "unsqueeze":
        dim = m % (rank + 1)
        return (lambda v: np.expand_dims(v, dim)), f"{{0}}.unsqueeze({dim})", True
    if word == "alias":
        return (lambda v: v[...]), "{0}.view_as({0})", True
    if word == "expand":
        shape = (1 + m % 3, *x.shape)
        return (
            (lambda v: _expanded(v, shape, v.ndim - rank)),
            f"{{0}}.expand({shape})",
            True,
        )
    if not rank:
        return None
    dim = m % rank
    size = x.shape[dim]
    if word in ("select", "narrow", "step", "unfold", "index"):
        return _part_of(x, word, dim, n) if size else None
    return _turned(x, word, dim, n)


def _expanded(v: Any, shape: tuple[int, ...], more: int) -> Any:
    full = (*shape, *v.shape[v.ndim - more :]) if more else shape
    # (Writable: the model refuses writes to it on its own.)
    step = (0, *v.strides)
    return np.lib.stride_tricks.as_strided(v, full, step, writeable=True)


def _part_of(x: Array, word: str, dim: int, n: int) -> Change:
    size, before = x.shape[dim], (slice(None),) * dim
    place = n % size
    key: tuple[Any, ...] = (*before, place, ...)
    if word == "select":
        return (lambda v: v[key]), f"{{0}}.select({dim}, {place})", True
    if word == "narrow":
        length = 1 + (n // 7) % (size - place)
        key = (*before, slice(place, place + length))
        return (lambda v: v[key]), f"{{0}}.narrow({dim}, {place}, {length})", True
    if word == "step":
        dots = ":, " * dim
        key = (*before, slice(place % 2, None, 2))
        return (lambda v: v[key]), f"{{0}}[{dots}{place % 2}::2]", True
    if word == "index":
        places = [place, 0, place]
        made = f"{{0}}.index_select({dim}, torch.tensor({places}))"
        return (lambda v: np.take(v, places, axis=dim)), made, False
    length = 1 + n % size

    def windows(v: Any) -> Any:
        count = size - length + 1
        shape = (*v.shape[:dim], count, *v.shape[dim + 1 : len(x.shape)], length)
        step = (*v.strides[: len(x.shape)], v.strides[dim])
        rest, more = v.shape[len(x.shape) :], v.strides[len(x.shape) :]
        return np.lib.stride_tricks.as_strided(v, (*shape, *rest), (*step, *more), writeable=True)

    return windows, f"{{0}}.unfold({dim}, {length}, 1)", True


def _turned(x: Array, word: str, dim: int, n: int) -> Change | None:
    rank = len(x.shape)
    other = n % rank
    if word == "transpose":
        return (lambda v: np.swapaxes(v, dim, other)), f"{{0}}.transpose({dim}, {other})", True
    if word == "movedim":
        return (lambda v: np.moveaxis(v, dim, other)), f"{{0}}.movedim({dim}, {other})", True
    if word == "permute":
        order = [(i + n) % rank for i in range(rank)]
        return (
            (lambda v: np.transpose(v, [*order, *range(rank, v.ndim)])),
            f"{{0}}.permute({order})",
            True,
        )
    if word == "flip":
        return (lambda v: np.flip(v, dim)), f"{{0}}.flip({dim})", False
    if word == "squeeze":
        is_one = x.shape[dim] == 1
        return (lambda v: v.squeeze(dim) if is_one else v[...]), f"{{0}}.squeeze({dim})", True
    if word == "diagonal" and rank >= 2 and dim != other:
        return (
            (lambda v: np.moveaxis(_diagonal(v, dim, other), -1, rank - 2)),
            f"{{0}}.diagonal(0, {dim}, {other})",
            True,
        )
    if word == "view" and x.values.flags["C_CONTIGUOUS"] and x.values.size:
        return (lambda v: v.reshape(-1, *v.shape[rank:])), "{0}.view(-1)", True
    return None


def _diagonal(v: Any, dim: int, other: int) -> Any:
    found = np.diagonal(v, 0, dim, other)
    found.flags.writeable = True
    return found


def _several(world: World, word: str, a: int, numbers: list[int]) -> Plan:
    x, (m, n) = world.arrays[a], numbers
    if not x.shape or 0 in x.shape:
        raise May
    dim = m % len(x.shape)
    size, before = x.shape[dim], (slice(None),) * dim
    if word == "unbind":
        keys: list[Any] = list(range(size))
        expression = f"a{a}.unbind({dim})"
    else:
        length = -(-size // (1 + n % 3))
        keys = [slice(start, start + length) for start in range(0, size, length)]
        expression = f"a{a}.chunk({1 + n % 3}, {dim})"
    if len(world.arrays) + len(keys) > 40:
        raise May
    parts: list[tuple[Any, ...]] = [(*before, key, ...) for key in keys]
    made = [x.view(x.values[part], x.slopes[part]) for part in parts]
    x.memory.is_split = True
    tensor = world.tensors[a]
    names = {f"a{a}": tensor}
    text = f"{_new(world, len(keys))}, = {expression}"
    return made, lambda: list(eval(expression, names)), text


# --- writes -----------------------------------------------------------------------------


def _check_write(world: World, a: int, text: str) -> None:
    """Whether the library must refuse a write.

    Raises:
        Refused: it must.
        May: rules of several make it depend on how the view came to be.
    """
    x = world.arrays[a]
    _LAST[0] = (lambda: [eval(text, {"torch": torch, **_names(world)})], text)
    if x.memory.is_split or (x.counter is not None and x.counter.is_split):
        # Whether a view of several may be written or read again depends on how it came to be.
        raise May
    if text.endswith((".fill_(1.5)", ".zero_()")):
        # The same is written to each element, however often.
        return
    if x.repeats():
        raise Refused("one element of memory for several")
    if _overlaps_itself(x):
        raise May


def _names(world: World) -> dict[str, Any]:
    return {f"a{i}": tensor for i, tensor in enumerate(world.tensors)}


def _overlaps_itself(x: Array) -> bool:
    """Whether strides do not nest, as those of windows do not."""
    reach = 0
    pairs = sorted(
        (step // 8, n) for n, step in zip(x.values.shape, x.values.strides, strict=True) if n > 1
    )
    for step, n in pairs:
        if step <= reach:
            return True
        reach += step * (n - 1)
    return False


def _wrote(world: World, a: int, *, recorded: bool) -> None:
    world.arrays[a].wrote(recorded=recorded)
    world.is_overwritten = True


def _write(world: World, word: str, a: int, b: int, no_grad: bool) -> Plan:
    x, y = world.arrays[a], world.arrays[b]
    if not _fit(x.shape, y.shape) or np.broadcast_shapes(x.shape, y.shape) != x.shape:
        raise May
    text = f"a{a}.{word}(a{b})"
    if np.shares_memory(x.values, y.values) and not _same_place(x, y):
        raise May
    if word == "copy_" and a == b:
        # Nothing is written; whether that counts is a question of versions.
        raise May
    recorded = y.memory.recorded and not no_grad
    _check_write(world, a, text)
    values, slopes = model.binary(word.rstrip("_"), x, y)

    def call() -> list[Any]:
        eval(text, _names(world))
        return []

    # The library is called after the model has written: a call that fails is an error anyway.
    x.values[...] = values
    if not no_grad:
        x.slopes[...] = slopes
    _wrote(world, a, recorded=recorded)
    return [], call, text


def _same_place(x: Array, y: Array) -> bool:
    a, b = x.values.__array_interface__, y.values.__array_interface__
    return x.shape == y.shape and a["data"] == b["data"] and x.values.strides == y.values.strides


def _fill(world: World, word: str, a: int, numbers: list[int], no_grad: bool) -> Plan:
    x, m = world.arrays[a], numbers[0]
    text, keep = _fill_of(x, word, a, m)
    _check_write(world, a, text)
    if keep is None:
        name = word.rstrip("_")
        values, slopes = model.unary(name, x)
    else:
        chosen, number = keep
        values = np.where(chosen, number, x.values)
        slopes = np.where(chosen[..., None], 0.0, x.slopes)
    x.values[...] = values
    if not no_grad:
        x.slopes[...] = slopes
    _wrote(world, a, recorded=False)
    return [], lambda: [eval(text, {"torch": torch, **_names(world)})], text


def _fill_of(x: Array, word: str, a: int, m: int) -> tuple[str, tuple[Any, float] | None]:
    every = np.ones(x.shape, dtype=bool)
    if word == "zero_":
        return f"a{a}.zero_()", (every, 0.0)
    if word == "fill_":
        return f"a{a}.fill_(1.5)", (every, 1.5)
    if word == "half_":
        return f"a{a}.mul_(0.5)", None
    if word == "masked_fill_":
        mask = (np.arange(x.values.size) % 3 == m % 3).reshape(x.shape)
        return (
            f"a{a}.masked_fill_({_mask(mask)}, 2.0)",
            (mask, 2.0),
        )
    if word == "index_fill_":
        if not x.shape or 0 in x.shape:
            raise May
        dim = m % len(x.shape)
        place = m % x.shape[dim]
        chosen = np.zeros(x.shape, dtype=bool)
        chosen[(slice(None),) * dim + (place,)] = True
        return f"a{a}.index_fill_({dim}, torch.tensor([{place}]), 3.0)", (chosen, 3.0)
    return f"a{a}.{word}()", None


def _mask(mask: Any) -> str:
    return f"torch.tensor({mask.tolist()}, dtype=torch.bool).reshape({mask.shape})"


# --- the rest ---------------------------------------------------------------------------


def _other(world: World, word: str, a: int, b: int, numbers: list[int]) -> Plan:
    x, y = world.arrays[a], world.arrays[b]
    if word == "clone":
        return _result(world, model.fresh(x.values, x.slopes, x), f"a{a}.clone()")
    if word == "constant":
        sizes: list[tuple[int, ...]] = [(2, 3), (3,), (), (2, 1), (3, 3)]
        shape = sizes[numbers[0] % 5]
        array = model.constant(shape)
        made = f"torch.tensor({array.values.tolist()}, dtype=torch.float64).reshape({shape})"
        return _result(world, array, made)
    if word in ("cat", "stack"):
        return _joined(world, word, a, b, numbers[0])
    if word == "matmul":
        return _product(world, a, b)
    if word == "where":
        if not _fit(x.shape, y.shape):
            raise May
        shape = np.broadcast_shapes(x.shape, y.shape)
        mask = (np.arange(int(np.prod(shape))) % 2 == 0).reshape(shape)
        (u, du), (v, dv) = model.binary("copy", y, x), model.binary("copy", x, y)
        array = model.fresh(np.where(mask, u, v), np.where(mask[..., None], du, dv), x, y)
        return _result(world, array, f"torch.where({_mask(mask)}, a{a}, a{b})")
    if word == "setitem":
        return _set_item(world, a, b, numbers[0])
    return _out(world, a, b, numbers[0])


def _joined(world: World, word: str, a: int, b: int, number: int) -> Plan:
    x, y = world.arrays[a], world.arrays[b]
    if x.shape != y.shape or (word == "cat" and not x.shape):
        raise May
    dim = number % (len(x.shape) + (word == "stack"))
    function = np.concatenate if word == "cat" else np.stack
    array = model.fresh(
        function([x.values, y.values], axis=dim), function([x.slopes, y.slopes], axis=dim), x, y
    )
    return _result(world, array, f"torch.{word}([a{a}, a{b}], {dim})")


def _product(world: World, a: int, b: int) -> Plan:
    x, y = world.arrays[a], world.arrays[b]
    if len(x.shape) != 2 or len(y.shape) != 2 or x.shape[1] != y.shape[0]:
        raise May
    slopes = np.einsum("ijl,jk->ikl", x.slopes, y.values) + np.einsum(
        "ij,jkl->ikl", x.values, y.slopes
    )
    return _result(world, model.fresh(x.values @ y.values, slopes, x, y), f"a{a} @ a{b}")


def _set_item(world: World, a: int, b: int, number: int) -> Plan:
    """``a[place] = b``, which writes through a view that nobody keeps."""
    x, y = world.arrays[a], world.arrays[b]
    if not x.shape or not x.shape[0]:
        raise May
    place = number % x.shape[0]
    part = x.view(x.values[place : place + 1], x.slopes[place : place + 1])
    item = part.view(part.values[0, ...], part.slopes[0, ...])
    fits = _fit(item.shape, y.shape) and np.broadcast_shapes(item.shape, y.shape) == item.shape
    if not fits or np.shares_memory(x.values, y.values) or x.memory.is_split:
        raise May
    if x.repeats() or _overlaps_itself(x):
        raise May
    values, slopes = model.binary("copy", item, y)
    x.values[place] = values
    x.slopes[place] = slopes
    _wrote(world, a, recorded=y.memory.recorded)
    tensor, source = world.tensors[a], world.tensors[b]

    def call() -> list[Any]:
        tensor[place] = source
        return []

    return [], call, f"a{a}[{place}] = a{b}"


def _out(world: World, a: int, b: int, number: int) -> Plan:
    """``torch.add(a, b, out=c)``: refused where anything is recorded."""
    x, y = world.arrays[a], world.arrays[b]
    c = number % len(world.arrays)
    z = world.arrays[c]
    if not _fit(x.shape, y.shape) or np.broadcast_shapes(x.shape, y.shape) != z.shape:
        raise May
    if any(np.shares_memory(z.values, v.values) and not _same_place(z, v) for v in (x, y)):
        raise May
    text = f"torch.add(a{a}, a{b}, out=a{c})"

    def call() -> list[Any]:
        eval(text, {"torch": torch, **_names(world)})
        return []

    _LAST[0] = (call, text)
    if any(world.tensors[i].requires_grad for i in (a, b, c)):
        raise Refused("out= records nothing")
    if z.memory.is_split or z.repeats() or _overlaps_itself(z):
        raise May
    z.values[...] = x.values + y.values
    _wrote(world, c, recorded=False)
    return [], call, text
