"""Every op gives the same where its tensors' memory is not in them.

The calls of the op table run once on plain tensors, once on a wrapper subclass that holds its
tensor in an attribute (its own memory is zeros, so that whoever reads it is found out), and in
`simulated/test_op.py` on tensors of a device: results, gradients and errors are equal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import pytest
from op_table.judge import exists
from op_table.observe import SEED, Run, is_meant, leaves
from op_table.record import needs_gpu
from op_table.row import rows
from op_table.table import table

import pullback as torch
from pullback.utils._python_dispatch import return_and_correct_aliasing

OPS = table()
# Sparse tensors keep their parts where neither looks for them.
SPARSE = ("sparse.mm", "sparse.sampled_addmm", "to_sparse")
# Ops whose results' sizes depend on elements, which are read.
READING = ("tensor_split",)
PRESENT = [
    name
    for name in rows()
    if not needs_gpu(name) and exists(torch, OPS[name]) and name not in SPARSE
]


class Held(torch.Tensor):
    """A tensor whose elements are those of another one."""

    held: torch.Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> Held:
        made: Any = torch.Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            layout=held.layout,
            device=held.device,
        )
        made.held = held
        return made  # type: ignore[no-any-return]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*plain(args), **plain(kwargs))
        # What an op writes to, it returns.
        given = {id(held_by(leaf)): leaf for leaf in all_leaves((args, kwargs))}
        return return_and_correct_aliasing(func, args, kwargs, wrapped(result, given))


def held_by(leaf: Any) -> Any:
    return leaf.held if isinstance(leaf, Held) else leaf


def all_leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from all_leaves(part)
    else:
        yield value


def plain(value: Any) -> Any:
    """The held tensors in the places of those that hold them."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return held_by(value)


def wrapped(value: Any, given: dict[int, Any]) -> Any:
    if isinstance(value, list | tuple):
        return [wrapped(part, given) for part in value]
    if not isinstance(value, torch.Tensor):
        return value
    return given[id(value)] if id(value) in given else Held(value)


class Holding(Run):
    """A call on wrappers."""

    def build(self, gradient: bool) -> list[Any]:
        return [Held(t.detach()).requires_grad_(t.requires_grad) for t in super().build(gradient)]


def outcome(run: Run) -> Any:
    """Results and gradients of a call, or the class of its error."""
    tensors = run.build(gradient=run.call.gradient)
    try:
        results = list(leaves(torch, run.evaluate(tensors)))
        differentiable = [
            leaf for leaf in results if isinstance(leaf, torch.Tensor) and leaf.requires_grad
        ]
        torch.manual_seed(SEED)
        inputs = [tensor for tensor in tensors if tensor.requires_grad]
        gradients: tuple[Any, ...] = ()
        if differentiable and inputs:
            loss = sum(leaf.abs().to(torch.float64).sum() for leaf in differentiable)
            gradients = torch.autograd.grad(loss, inputs, allow_unused=True)
    except Exception as error:
        return type(error).__name__
    return [seen(leaf) for leaf in (*results, *gradients)]


def seen(leaf: Any) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    leaf = held_by(leaf.detach()).cpu()
    if leaf.layout != torch.strided:
        leaf = leaf.to_dense()
    return str(leaf.dtype), list(leaf.shape), leaf.tolist()


def agree(found: Any, expected: Any) -> bool:
    """Whether two outcomes are the same but for rounding: other ops may compute them."""
    if isinstance(expected, float):
        return (
            math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9) or found != found != expected
        )
    if isinstance(expected, complex):
        return agree(found.real, expected.real) and agree(found.imag, expected.imag)
    if isinstance(expected, list | tuple):
        return len(found) == len(expected) and all(map(agree, found, expected))
    return bool(found == expected)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in PRESENT if name not in READING])
def test_op_gives_the_same_on_a_wrapper(name: str) -> None:
    op = OPS[name]
    for call in op.calls:
        if is_meant(call, "f64") and call.determined:
            expected = outcome(Run(torch, op, call, "f64"))
            found = outcome(Holding(torch, op, call, "f64"))
            assert agree(found, expected), (call, found, expected)


class OnMeta(Run):
    """A call on tensors without memory."""

    def build(self, gradient: bool) -> list[Any]:
        return [
            t.detach().to("meta").requires_grad_(t.requires_grad) for t in super().build(gradient)
        ]


def look(run: Run) -> Any:
    """What results and gradients look like, or the error."""
    tensors = run.build(gradient=run.call.gradient)
    try:
        results = [r for r in leaves(torch, run.evaluate(tensors)) if isinstance(r, torch.Tensor)]
        loss = [r.abs().to(torch.float64).sum() for r in results if r.requires_grad]
        inputs = [tensor for tensor in tensors if tensor.requires_grad]
        if loss and inputs:
            gradients = torch.autograd.grad(sum(loss), inputs, allow_unused=True)
            results += [gradient for gradient in gradients if gradient is not None]
    except Exception as error:
        return error
    return [(r.dtype, tuple(r.shape)) for r in results]


# What a call on tensors without memory may be refused for: it asks for elements.
ASKS_FOR_ELEMENTS = r"'Meta' backend|meta tensor|depends on the elements"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PRESENT)
def test_op_looks_the_same_without_memory(name: str) -> None:
    op = OPS[name]
    for call in op.calls:
        if is_meant(call, "f64"):
            plain = Run(torch, op, call, "f64")
            if any(t.layout != torch.strided for t in plain.build(gradient=False)):
                continue
            expected, found = look(plain), look(OnMeta(torch, op, call, "f64"))
            if isinstance(found, Exception):
                is_known = re.search(ASKS_FOR_ELEMENTS, str(found)) is not None
                assert is_known or isinstance(expected, type(found)), (call, found, expected)
            elif not isinstance(expected, Exception):
                assert found == expected, (call, found, expected)
