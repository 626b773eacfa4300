"""Parameters have PyTorch's names and order: every public function, method and class that is here.

The signatures were recorded from PyTorch (`recorded/record_signatures.py`). A call that PyTorch
takes, by place or by name, must find parameters of these names; and no parameter is of our own
making. What differs is listed with the reason; a line that is no longer true fails.
"""

from __future__ import annotations

import inspect
import json
import lzma
from collections import defaultdict
from enum import EnumMeta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import pullback as torch

RECORDED = json.loads(
    lzma.decompress((Path(__file__).parent / "recorded" / "signatures.json.xz").read_bytes())
)["signatures"]

ON_CUDA_ONLY = "PyTorch has the form with out_dtype for CUDA only"
BY_PROFILER = "the profiler makes these objects"
FORMER = "takes PyTorch's former use_cuda too"
MISSING = {
    **dict.fromkeys(["addmm", "baddbmm", "bmm", "mm"], ON_CUDA_ONLY),
    **dict.fromkeys([f"Tensor.{name}" for name in ("addmm", "baddbmm", "bmm", "mm")], ON_CUDA_ONLY),
    "autograd.profiler.FunctionEvent": BY_PROFILER,
    "autograd.profiler_util.FunctionEvent": BY_PROFILER,
    "Tensor.norm": "the dtype is given by name only",
    "norm": "out= and the dtype are given by name only",
    "functional.norm": "out= and the dtype are given by name only",
    "sparse_coo_tensor": "PyTorch's schema has a layout, its parser takes none either",
}
EXTRA = {
    "autograd.profiler.profile": FORMER,
    "profiler.profile": FORMER,
    "profiler.profiler.profile": FORMER,
    "autograd.profiler.FunctionEvent": BY_PROFILER,
    "autograd.profiler_util.FunctionEvent": BY_PROFILER,
}
# What the parsers of PyTorch add to schemas.
ADDED = {"out", "requires_grad", "as_tuple", "check_invariants"}


class Parameters(NamedTuple):
    """The parameters of one way to call something."""

    positional: list[str]
    named: list[str]
    optional: set[str]
    takes_more: bool
    takes_names: bool

    @property
    def all(self) -> set[str]:
        return {*self.positional, *self.named}


def read(words: list[str]) -> Parameters:
    """Parameters from words as the recording has them."""
    positional: list[str] = []
    named: list[str] = []
    place = positional
    for word in words:
        if word == "*" or (word.startswith("*") and not word.startswith("**")):
            place = named
        elif word != "/" and not word.startswith("**"):
            place.append(word)
    optional = {word[:-1] for word in [*positional, *named] if word.endswith("=")}
    strip = [[word.removesuffix("=") for word in part] for part in (positional, named)]
    takes_more = any(w.startswith("*") and w[1:2] not in ("", "*") for w in words)
    return Parameters(*strip, optional, takes_more, any(w.startswith("**") for w in words))


def split(text: str) -> list[str]:
    """The parts of a list that are not inside of brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def words_of_native(text: str) -> list[str]:
    """`(Tensor input, *, Number alpha = 1)` as the recording would have it."""
    if text == "no arguments":
        return []
    words = []
    for part in split(text[1:-1]):
        head, *default = part.split(" = ")
        words.append(head.split(" ")[-1] + ("=" if default else ""))
    return words


def words_of_python(function: Any) -> list[str] | None:
    """The parameters of a Python function or class, as such words; None if nobody can say.

    Nobody says those of an enumeration: looking a member up is the interpreter's, and its
    parameters differ between versions of Python.
    """
    if isinstance(function, EnumMeta):
        return None
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    words = []
    was_named = False
    for parameter in signature.parameters.values():
        kind = parameter.kind
        mark = {kind.VAR_POSITIONAL: "*", kind.VAR_KEYWORD: "**"}.get(kind, "")
        if kind is kind.KEYWORD_ONLY and not was_named:
            words.append("*")
        was_named |= kind in (kind.KEYWORD_ONLY, kind.VAR_POSITIONAL)
        has_default = parameter.default is not parameter.empty
        words.append(mark + parameter.name + ("=" if has_default else ""))
    return words


def native_overloads() -> dict[tuple[str, bool, str], list[list[str]]]:
    found = defaultdict(list)
    for op in torch._C._describe_ops():
        key = (op["module"], op["method"], op["name"])
        found[key].append(words_of_native(op["signature"]))
    return found


NATIVE = native_overloads()


def key_of(function: Any) -> tuple[str, bool, str] | None:
    """Which function of the registry this is; None if it is another one."""
    try:
        made, (module, name, is_method) = function.__reduce__()
    except (AttributeError, TypeError, ValueError):
        return None
    return (module, is_method, name) if made.__name__ == "_find_callable" else None


def overloads_of(function: Any) -> list[Parameters]:
    """All ways to call something; none if nobody can say."""
    key = key_of(function)
    if key is not None:
        return [read(words) for words in NATIVE[key]]
    words = words_of_python(function)
    return [] if words in (None, ["*args", "**kwargs"]) else [read(words)]


def resolve(name: str) -> Any:
    found: Any = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def without_self(one: Parameters) -> Parameters:
    """Parameters without that of the object, which an unbound method shows."""
    if one.positional[:1] == ["self"]:
        return one._replace(positional=one.positional[1:])
    return one


def takes(ours: Parameters, theirs: Parameters) -> bool:
    """Whether what PyTorch takes can be given here, by place and by name."""
    by_place = theirs.positional
    if ours.positional[: len(by_place)] != by_place and not ours.takes_more:
        return False
    if not {name for name in theirs.all if not name.startswith("_")} <= ours.all:
        return False
    needed = ours.all - ours.optional - theirs.all
    return not needed and theirs.optional & ours.all <= ours.optional


HERE = sorted(name for name in RECORDED if overloads_of(resolve(name)))


def theirs_of(name: str) -> list[Parameters]:
    record = RECORDED[name]
    texts = record["overloads"] if "overloads" in record else [record["python"]]
    return [without_self(read(text.split())) for text in texts]


def short(name: str) -> str:
    return name.removeprefix("torch.")


def lacks(name: str) -> list[Parameters]:
    """Ways to call that PyTorch has and this package has not."""
    ours = [without_self(one) for one in overloads_of(resolve(name))]
    # `*args, **kwargs` says nothing of what can be given.
    told = [one for one in theirs_of(name) if not (one.takes_more and one.takes_names)]
    return [one for one in told if not any(takes(own, one) for own in ours)]


def adds(name: str) -> set[str]:
    """Parameters that PyTorch does not have; `**names` is one."""
    ours, theirs = overloads_of(resolve(name)), theirs_of(name)
    if any(one.takes_names for one in theirs):
        return set()
    known = set().union(*(one.all for one in theirs)) | ADDED | {"self", "input"}
    added = set().union(*(one.all for one in ours)) - known
    return added | ({"**"} if any(one.takes_names for one in ours) else set())


def test_the_recording_covers_what_is_here() -> None:
    assert len(HERE) > 1700
    assert {"torch.split", "torch.swapaxes", "torch.Tensor.add_", "torch.nn.Linear"} <= set(HERE)


@pytest.mark.parametrize("name", HERE)
def test_parameters_are_those_of_pytorch(name: str) -> None:
    if short(name) in MISSING:
        assert lacks(name), "no longer true: take it off the list"
    else:
        assert lacks(name) == []
    if short(name) in EXTRA:
        assert adds(name), "no longer true: take it off the list"
    else:
        assert adds(name) == set()


# What nobody can say the parameters of is called.
CALLED = sorted(
    name
    for name in RECORDED
    if callable(resolve(name)) and name not in HERE and not isinstance(resolve(name), type)
)


def accepts(call: Any, receiver: tuple[Any, ...], name: str) -> bool:
    """Whether a parameter has this name: nothing is wrong, or something else."""
    try:
        call(*receiver, **{name: object()})
    except Exception as error:
        text = str(error)
        is_refused = "unexpected keyword" in text or "unrecognized keyword" in text
        is_refused |= "no keyword arguments" in text
        return not is_refused or "positional-only" in text
    return True


@pytest.mark.parametrize("name", CALLED)
def test_functions_without_signature_take_the_names(name: str) -> None:
    call = resolve(name)
    receiver = (torch.ones(2, 3),) if name.startswith("torch.Tensor.") else ()
    for overload in theirs_of(name):
        if "/" in RECORDED[name].get("python", "").split():
            continue
        for parameter in sorted(overload.all):
            assert accepts(call, receiver, parameter), f"{name}({parameter}=...)"


@pytest.mark.parametrize("name", [name for name in HERE if "fields" in RECORDED[name]])
def test_results_are_named_tuples_where_they_are_in_pytorch(name: str) -> None:
    key = key_of(resolve(name))
    if key is None:
        return
    module, is_method, function = key
    ops = torch._C._describe_ops()
    own = {
        " ".join(op["fields"])
        for op in ops
        if (op["module"], op["method"], op["name"]) == key and op["fields"]
    }
    del module, is_method, function
    assert own <= set(RECORDED[name]["fields"])


def test_calls_by_names_that_once_failed() -> None:
    x = torch.arange(6.0).reshape(3, 2)
    for parts in (
        torch.split(x, split_size_or_sections=2),
        torch.split(tensor=x, split_size_or_sections=2, dim=0),
        torch.split(tensor=x, split_size_or_sections=[2, 1]),
        torch.split(x, 2, 0),
    ):
        assert [part.tolist() for part in parts] == [[[0, 1], [2, 3]], [[4, 5]]]
    assert [part.shape[0] for part in x.split(split_size=2)] == [2, 1]
    with pytest.raises(TypeError, match="input"):
        torch.split(input=x, split_size_or_sections=2)
    for turned in (
        torch.swapaxes(x, axis0=0, axis1=1),
        torch.swapaxes(input=x, axis0=0, axis1=1),
        x.swapaxes(axis0=0, axis1=1),
        x.clone().swapaxes_(axis0=0, axis1=1),
        torch.swapdims(x, dim0=0, dim1=1),
    ):
        assert turned.tolist() == [[0, 2, 4], [1, 3, 5]]
    assert torch.result_type(tensor=x, other=1) is torch.float32
    assert torch.result_type(scalar=1.5, tensor=torch.arange(2)) is torch.float32
    assert torch.result_type(scalar1=1, scalar2=2) is torch.int64
    with pytest.raises(TypeError, match=r"got \(tensor1=Tensor, tensor2=Tensor\), but expected"):
        torch.result_type(tensor1=x, tensor2=x)


def test_pools_give_plain_tuples() -> None:
    from pullback import nn
    from pullback.nn import functional as F

    x = torch.arange(16.0).reshape(1, 1, 4, 4)
    for both in (
        F.max_pool2d(x, 2, return_indices=True),
        F.max_pool2d_with_indices(x, 2),
        nn.MaxPool2d(2, return_indices=True)(x),
        F.max_pool1d(x[0], 2, return_indices=True),
    ):
        assert type(both) is tuple
    assert F.max_pool2d(x, 2, return_indices=True)[1].flatten().tolist() == [5, 7, 13, 15]
    assert type(torch.slogdet(torch.eye(2))) is torch.return_types.slogdet
    assert type(torch.linalg.slogdet(torch.eye(2))) is torch.return_types.linalg_slogdet
