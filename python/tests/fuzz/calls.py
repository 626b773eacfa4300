"""Calls of every op with valid and broken arguments.

The rule: a call answers or raises one of PyTorch's classes; nothing that it is not to write changes
(nothing at all, if it raises); called again with the same arguments it answers the same, so that
nothing is read that was never written; and its gradient has the shape of its input.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Iterator
from math import inf
from random import Random
from types import CodeType
from typing import Any

from op_table.call import COMPLEX, LIMITS, WHOLE, Call, Input, Late
from op_table.call import DTYPES as SHORT_DTYPES
from op_table.table import table

import pullback as torch
from fuzz.child import SIGNS
from fuzz.target import Case, Target, Wrong, without
from fuzz.values import BROKEN, Values
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
LEFT_OUT = {"set_num_threads", "set_num_interop_threads", "from_file", "mtia", "xpu"}
"""They concern the process, or raise what PyTorch raises for devices that are not built in."""
MODULES = {
    "": "torch._C._VariableFunctions",
    "nn": "torch._C._nn",
    "linalg": "torch._C._linalg",
    "special": "torch._C._special",
    "fft": "torch._C._fft",
    "sparse": "torch._C._sparse",
}
NOT_DETERMINED = re.compile(r"empty|resize|_set_|set_$|seed|data_ptr|storage|rand|multinomial")
"""They show memory that nobody wrote, or take numbers from a generator that was passed."""
SIMPLE = ["torch.ones(2, 3)", "torch.ones(3)", "torch.tensor(2.0)", "1", "0", "None"]
MOST_ELEMENTS = 5000
"""Larger results are not looked at element by element."""


class Calls(Target):
    """Ops of the registry, and of the op table with some arguments replaced."""

    name = "calls"

    def draw(self, choose: Random) -> Case:
        """A call by its schema, or one of the op table with arguments changed."""
        return _changed(choose) if choose.random() < 0.35 else _typed(choose)

    def run(self, case: Case) -> str:
        """Calls, looks what changed, calls again, goes backward."""
        torch.manual_seed(3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _judged(case)

    def smaller(self, case: Case) -> Iterator[Case]:
        """Fewer arguments, simpler ones."""
        for args in without(case["args"]):
            yield {**case, "args": args}
        for name in case["names"]:
            yield {**case, "names": {k: v for k, v in case["names"].items() if k != name}}
        for place, text in enumerate(case["args"]):
            for simple in _simpler(text):
                yield {**case, "args": [*case["args"][:place], simple, *case["args"][place + 1 :]]}
        for name, text in case["names"].items():
            for simple in _simpler(text):
                yield {**case, "names": {**case["names"], name: simple}}

    def program(self, case: Case) -> str:
        """The call as one line."""
        given = ", ".join([*case["args"], *(f"{k}={v}" for k, v in case["names"].items())])
        return f"import pullback as torch\ntorch.manual_seed(3)\n{case['function']}({given})"

    def group(self, case: Case) -> str:
        """The function."""
        return str(case.get("function", ""))


def _simpler(text: str) -> Iterator[str]:
    if text in SIMPLE:
        yield from SIMPLE[SIMPLE.index(text) + 1 :]
        return
    yield from SIMPLE
    # A call at the end goes, then one in between.
    for found in reversed(list(re.finditer(r"\.\w+\([^()]*\)|\[[^\[\]]*\]", text))):
        yield text[: found.start()] + text[found.end() :]


# --- drawing ----------------------------------------------------------------------------


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


@functools.cache
def _entries() -> list[tuple[str, list[str], list[tuple[str, str]], bool, str]]:
    found = []
    for entry in _C._describe_ops():
        if entry["name"] in LEFT_OUT or entry["attribute"]:
            continue
        where = "torch.Tensor" if entry["method"] else MODULES[entry["module"]]
        places, names = parameters(entry["schema"])
        found.append((f"{where}.{entry['name']}", places, names, entry["out"], entry["schema"]))
    return found


def _typed(choose: Random) -> Case:
    function, places, by_name, has_out, schema = choose.choice(_entries())
    values = Values(choose)
    args = [values.of_kind(kind) for kind in places]
    names = {name: values.of_kind(kind) for kind, name in by_name if choose.random() < 0.25}
    if places and choose.random() < 0.25:
        args.pop()
    if choose.random() < 0.02:
        args.append(choose.choice(BROKEN))
    if choose.random() < 0.02:
        names[choose.choice(["input", "dim", "self", "out", "no_such"])] = choose.choice(BROKEN)
    if has_out and not function.startswith("torch.Tensor") and choose.random() < 0.2:
        names["out"] = values.tensor() if choose.random() < 0.8 else "(torch.ones(0),) * 2"
    return _case(function, args, names, schema)


def _case(function: str, args: list[str], names: dict[str, str], schema: str) -> Case:
    return {"function": function, "args": args, "names": names, "writes": _writes(schema)}


def _writes(schema: str) -> bool:
    # Running statistics are written to, though PyTorch's schemas do not say so.
    return "!" in schema or "running_mean" in schema


@functools.cache
def _known() -> list[tuple[str, Call]]:
    """The calls of the op table that can be written as expressions."""
    found = []
    for op in table().values():
        if op.function is not None:
            continue
        for call in op.calls:
            if call.function is None:
                where = "torch" if _has(op.name) else "torch.Tensor"
                found.append((f"{where}.{op.name}", call))
    return found


def _has(name: str) -> bool:
    at: Any = torch
    for part in name.split("."):
        at = getattr(at, part, None)
    return at is not None


def _changed(choose: Random) -> Case:
    values = Values(choose)
    dtype = choose.choice(["f32", "f32", "f64", "f64", "f16", "bf16", "c64", "i64", "u8", "bool"])
    function, call = choose.choice(_known())
    args = [_expression(value, dtype) for value in call.args]
    names = {name: _expression(value, dtype) for name, value in call.kwargs.items()}
    for _ in range(choose.choice([0, 1, 1, 2])):
        place = choose.randrange(len(args) + 1)
        if place < len(args):
            args[place] = _replaced(args[place], values)
        elif names:
            name = choose.choice(list(names))
            names[name] = _replaced(names[name], values)
    inplace = function.rsplit(".", 1)[1]
    if choose.random() < 0.1 and hasattr(torch.Tensor, f"{inplace}_"):
        function = f"torch.Tensor.{inplace}_"
    writes = any(entry[0].endswith(f".{inplace}") and _writes(entry[4]) for entry in _entries())
    return {"function": function, "args": args, "names": names, "writes": writes}


def _replaced(text: str, values: Values) -> str:
    choose = values.choose
    if text.startswith("torch.tensor("):
        if choose.random() < 0.4:
            return text + choose.choice([".requires_grad_()", "[..., :1]", "[:0]", ".t()", "[0]"])
        return values.tensor()
    kind = "bool" if text in ("True", "False") else "Scalar" if "." in text else "int"
    if text.startswith(("[", "(")):
        kind = "int[]"
    return choose.choice(BROKEN) if choose.random() < 0.1 else values.of_kind(kind)


def _expression(value: Any, dtype: str) -> str:
    """An argument of the op table as an expression; ``None`` for what has none."""
    if isinstance(value, Input):
        own = _fitting(value, value.dtype or dtype)
        elements = value.elements(own)
        shape = list(value.shape)
        text = f"torch.tensor({elements!r}, dtype=torch.{SHORT_DTYPES.get(own, own)})"
        if value.layout == "transposed":
            turned = [*shape[:-2], shape[-1], shape[-2]]
            return _no_names(f"{text}.reshape({turned}).transpose(-1, -2)")
        return _no_names(f"{text}.reshape({shape})")
    if isinstance(value, Late):
        made = repr(value.make(torch, dtype))
        return made if made.startswith("torch.") and " " not in made else "None"
    if isinstance(value, list | tuple):
        items = ", ".join(_expression(item, dtype) for item in value)
        return f"[{items}]" if isinstance(value, list) else f"({items}{',' if items else ''})"
    text = _no_names(repr(value))
    return "None" if "<" in text or isinstance(value, dict) else text


def _fitting(value: Input, dtype: str) -> str:
    """The dtype, or one that has the numbers that are given."""
    if value.values == LIMITS:
        return dtype if dtype in WHOLE else "i64"
    is_complex = any(isinstance(number, complex) for number in value.values or ())
    has_odd = any(number != number or number in (inf, -inf) for number in value.values or ())
    if is_complex:
        return dtype if dtype in COMPLEX else "c128"
    return "f64" if has_odd and dtype in (*WHOLE, "bool") else dtype


def _no_names(text: str) -> str:
    """``nan`` and ``inf`` are how they are shown, not how they are written."""
    return re.sub(r"(?<![\w'\"])(nan|inf)(?!\w)", r'float("\1")', text)


# --- judging ----------------------------------------------------------------------------


@functools.lru_cache(4096)
def _code(text: str) -> CodeType:
    return compile(text, "<case>", "eval")


def _value(text: str) -> Any:
    return eval(_code(text), {"torch": torch})


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value[:20]:
            yield from _tensors(item)


def _elements(tensor: Any) -> str:
    plain = tensor.layout == torch.strided and tensor.device.type == "cpu"
    # (Dimensions before an empty one are lists of their own.)
    if not plain or not 0 < tensor.numel() <= MOST_ELEMENTS:
        return ""
    # (As one row: Python writes no list of a thousand lists in each other.)
    return str(tensor.detach().flatten().tolist())


def _shape(tensor: Any) -> tuple[Any, ...]:
    if tensor.layout != torch.strided:
        return (tuple(tensor.shape), tensor.dtype, tensor._version)
    place = (tensor.stride(), tensor.storage_offset())
    flags = (tensor.requires_grad, tensor._version, tensor.is_conj(), tensor.is_neg())
    return (tuple(tensor.shape), *place, tensor.dtype, *flags)


def _state(tensor: Any) -> tuple[Any, ...]:
    """All that a call may change of a tensor; in the values' text, NaN equals NaN."""
    return (*_shape(tensor), _elements(tensor))


def _built(case: Case) -> tuple[list[Any], dict[str, Any]] | None:
    """The arguments; ``None`` where one of them cannot be made."""
    try:
        args = [_value(text) for text in case["args"]]
        return args, {name: _value(text) for name, text in case["names"].items()}
    except (*RAISED, AssertionError, AttributeError, SyntaxError):
        return None


def _judged(case: Case) -> str:
    built = _built(case)
    if built is None:
        return "no arguments"
    args, names = built
    function: Callable[..., Any] = _value(case["function"])
    given = list(_tensors([args, names]))
    before = [_state(tensor) for tensor in given]
    short = case["function"].rsplit(".", 1)[1]
    try:
        result = function(*args, **names)
    except RAISED as error:
        _check_refusal(error, given, before)
        return f"{short} {type(error).__name__}"
    except AttributeError:
        # Methods in Python that are called with another object say so, as Python's own do.
        if not case["function"].startswith("torch.Tensor.") or (
            args and isinstance(args[0], torch.Tensor)
        ):
            raise
        return f"{short} AttributeError"
    _check_kept(case, short, args, names, before)
    again = _again(case, function) if not NOT_DETERMINED.search(short) else None
    if again is not None and again != _text(result):
        raise Wrong("not determined", f"{_text(result)[:400]}\nagain: {again[:400]}")
    return f"{short} {_backward(result, given)}"


def _check_refusal(error: Exception, given: list[Any], before: list[tuple[Any, ...]]) -> None:
    text = str(error)
    if any(sign in text for sign in SIGNS):
        raise Wrong("bug", text)
    for tensor, state in zip(given, before, strict=True):
        after = _state(tensor)
        if after != state:
            raise Wrong("changed by a refused call", f"{text}\n{state}\n{after}")


def _check_kept(
    case: Case,
    short: str,
    args: list[Any],
    names: dict[str, Any],
    before: list[tuple[Any, ...]],
) -> None:
    """What a call is not to write is as it was."""
    is_inplace = short.endswith("_") and not short.endswith("__")
    if case["writes"] or short in ("__setitem__", "__iadd__") or short.startswith("__i"):
        return
    target = [*args[:1], names.get("self"), names.get("input")] if is_inplace else []
    written = list(_tensors([target, names.get("out")]))
    shared = {_memory(tensor) for tensor in written}
    ours = {id(tensor) for tensor in written}
    for tensor, state in zip(list(_tensors([args, names])), before, strict=True):
        if id(tensor) in ours or _memory(tensor) in shared:
            continue
        after = _state(tensor)
        if after != state:
            raise Wrong("changed by a call", f"{state}\n{after}")


def _memory(tensor: Any) -> int:
    if tensor.layout != torch.strided or tensor.device.type != "cpu":
        return id(tensor)
    return int(tensor.untyped_storage().data_ptr()) or id(tensor)


def _text(result: Any) -> str:
    tensors = list(_tensors(result))
    if not tensors:
        return (
            ""
            if callable(result) or hasattr(result, "__next__")
            else re.sub("0x\\w+", "", repr(result))
        )
    return "\n".join(f"{tuple(t.shape)} {t.dtype} {_elements(t)}" for t in tensors)


def _again(case: Case, function: Callable[..., Any]) -> str | None:
    built = _built(case)
    if built is None:
        return None
    torch.manual_seed(3)
    return _text(function(*built[0], **built[1]))


def _backward(result: Any, given: list[Any]) -> str:
    """The gradient of all results by all leaves."""
    outputs = [t for t in _tensors(result) if t.requires_grad and t.numel() <= MOST_ELEMENTS]
    leaves = [t for t in given if t.requires_grad]
    if not outputs or not leaves:
        return "answers"
    before = [_elements(tensor) for tensor in given]
    try:
        ones = [torch.ones_like(output) for output in outputs]
        grads = torch.autograd.grad(outputs, leaves, ones, allow_unused=True)
    except RAISED as error:
        if any(sign in str(error) for sign in SIGNS):
            raise Wrong("bug in backward", str(error)) from None
        return f"backward {type(error).__name__}"
    for leaf, grad in zip(leaves, grads, strict=True):
        if grad is not None and (grad.shape != leaf.shape or grad.dtype != leaf.dtype):
            raise Wrong("gradient", f"of {leaf.shape} {leaf.dtype} is {grad.shape} {grad.dtype}")
    if before != [_elements(tensor) for tensor in given]:
        raise Wrong("changed by backward", str(before)[:500])
    return "backward"
