"""Runs a call of the table in one library and dtype, and says what came of it as plain data.

An observation holds no tensor: results are lists of numbers with dtype, shape and strides,
gradients likewise, errors are the names of their classes. Those of two libraries can therefore be
compared without both being there. `Run` is one call in one dtype; start at `observed`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from op_table.call import (
    COMPLEX,
    FLOATS,
    SHORT,
    Call,
    Domain,
    Input,
    Library,
    Op,
    Tensor,
    filled,
    inputs,
)
from op_table.table import function_of

SEED = 20261122
Observation = dict[str, Any]
# What a gradient is multiplied by, and the direction of derivatives.
COTANGENT = Domain(-31, 31)
# The dtypes whose second derivatives are kept: the others compute the same formulas.
EXACT = ("f64", "c128")


def flat(value: Any) -> Iterator[Any]:
    """The numbers of nested lists, in order."""
    if isinstance(value, list):
        for item in value:
            yield from flat(item)
    else:
        yield value


def numbers(tensor: Tensor) -> list[Any]:
    """The elements of a tensor; a complex number is two."""
    # A copy: the reference has zeros without memory, which cannot be listed.
    elements = flat(tensor.detach().clone().tolist())
    if tensor.is_complex():
        return [part for element in elements for part in (element.real, element.imag)]
    return list(elements)


def address(tensor: Tensor) -> int:
    """Where the memory of a tensor begins, to see who shares it."""
    return int(tensor.untyped_storage().data_ptr())


def leaves(lib: Library, output: Any) -> Iterator[Any]:
    """The tensors and numbers of a result, in order."""
    if isinstance(output, list | tuple):
        for item in output:
            yield from leaves(lib, item)
    else:
        yield output


def shown(lib: Library, leaf: Any, memory: set[int], determined: bool) -> Observation:
    """A tensor of a result as data, or a number."""
    if not isinstance(leaf, lib.Tensor):
        return {"number": leaf if isinstance(leaf, int | float | type(None)) else str(leaf)}
    tensor: Observation = {"dtype": dtype_of(leaf), "shape": list(leaf.shape)}
    if leaf.layout != lib.strided:
        tensor["layout"] = str(leaf.layout).rpartition(".")[2]
        leaf = leaf.to_dense()
    elif leaf.numel() and address(leaf) in memory:
        # The strides of a view are what it is; those of a new tensor are the library's affair.
        tensor["strides"] = list(leaf.stride())
    if determined:
        tensor["values"] = numbers(leaf)
    return tensor


def dtype_of(tensor: Tensor) -> str:
    """The short name of a dtype."""
    name = str(tensor.dtype).rpartition(".")[2]
    return SHORT.get(name, name)


def kind(output: Any) -> str:
    """The class of a result: named tuples have names that programs use."""
    return type(output).__name__


@dataclass
class Run:
    """One call in one dtype, with its inputs made."""

    lib: Library
    op: Op
    call: Call
    dtype: str

    @cached_property
    def specs(self) -> list[Input]:
        """The inputs, in the order of the arguments."""
        return list(inputs([*self.call.args, self.call.kwargs]))

    def wants(self, spec: Input) -> bool:
        """Whether an input is differentiated by."""
        return spec.dtype is None and spec.gradient and self.dtype in (*FLOATS, *COMPLEX)

    def build(self, gradient: bool) -> list[Tensor]:
        """New inputs."""
        made = [spec.build(self.lib, self.dtype) for spec in self.specs]
        for spec, tensor in zip(self.specs, made, strict=True):
            if gradient and self.wants(spec):
                tensor.requires_grad_()
        return made

    def arguments(self, tensors: list[Tensor]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments with the given tensors in place of their inputs."""
        following = iter(tensors)

        def given(value: Any) -> Any:
            return next(following) if isinstance(value, Input) else value.make(self.lib, self.dtype)

        args = [filled(argument, given) for argument in self.call.args]
        return args, filled(self.call.kwargs, given)

    def evaluate(self, tensors: list[Tensor]) -> Any:
        """What the function gives; random ones begin at the same number."""
        function = (
            self.call.function(self.lib) if self.call.function else function_of(self.lib, self.op)
        )
        args, kwargs = self.arguments(tensors)
        self.lib.manual_seed(SEED)
        return function(*args, **kwargs)

    def forward(self) -> Observation:
        """The result of the call, without recording."""
        tensors = self.build(gradient=False)
        output = self.evaluate(tensors)
        memory = {address(tensor) for tensor in tensors if tensor.numel()}
        results = [
            shown(self.lib, leaf, memory, self.call.determined) for leaf in leaves(self.lib, output)
        ]
        return {"kind": kind(output), "results": results}

    def differentiable(self, tensors: list[Tensor]) -> list[Tensor]:
        """The tensors of the result that depend on the inputs with a history."""
        found = leaves(self.lib, self.evaluate(tensors))
        return [leaf for leaf in found if isinstance(leaf, self.lib.Tensor) and leaf.requires_grad]

    def companion(self, tensor: Tensor, seed: int) -> Tensor:
        """A tensor like the given one with elements of its own: a cotangent or a tangent."""
        return Input(tuple(tensor.shape), COTANGENT, seed=seed).build(self.lib, dtype_of(tensor))

    def gradients(self, second: bool) -> Observation:
        """The gradients by the inputs, and theirs by inputs and cotangents."""
        tensors = [*self.build(gradient=True)]
        given = [tensor for tensor in tensors if tensor.requires_grad]
        outputs = self.differentiable(tensors)
        if not outputs:
            return {}
        cotangents = [self.companion(output, 11 + i) for i, output in enumerate(outputs)]
        for cotangent in cotangents:
            cotangent.requires_grad_(second)
        options = {"create_graph": second, "allow_unused": True}
        first = self.lib.autograd.grad(outputs, given, cotangents, **options)
        seen: Observation = {"gradients": [self.gradient(g) for g in first]}
        if second:
            seen["second"] = attempt(lambda: self.second(first, [*given, *cotangents]))
        return seen

    def second(self, first: tuple[Tensor | None, ...], given: list[Tensor]) -> list[Any]:
        """The gradients of gradients, weighted."""
        outputs = [g for g in first if g is not None and g.requires_grad]
        if not outputs:
            return []
        weights = [self.companion(output, 23 + i) for i, output in enumerate(outputs)]
        found = self.lib.autograd.grad(outputs, given, weights, allow_unused=True)
        return [self.gradient(g) for g in found]

    def gradient(self, tensor: Tensor | None) -> Observation | None:
        """A gradient as data."""
        if tensor is None:
            return None
        return {"dtype": dtype_of(tensor), "shape": list(tensor.shape), "values": numbers(tensor)}

    def form(self, name: str) -> Observation:
        """The result by a method, in place or into `out=`."""
        tensors = self.build(gradient=False)
        if name == "out":
            return self.into_out(tensors)
        method = self.op.name.removesuffix("_") + "_" if name == "inplace" else self.op.name
        args, kwargs = self.arguments(tensors)
        target = args.pop(self.op.receiver)
        if name == "inplace":
            target = target.clone()
        self.lib.manual_seed(SEED)
        member = getattr(target, method)
        output = member(*args, **kwargs) if callable(member) else member
        if name == "inplace" and output is not target:
            raise ValueError("the in-place form does not give its tensor back")
        return {
            "results": [shown(self.lib, leaf, set(), True) for leaf in leaves(self.lib, output)]
        }

    def into_out(self, tensors: list[Tensor]) -> Observation:
        """The result written into tensors without elements, which grow."""
        expected = self.evaluate(tensors)
        function = (
            self.call.function(self.lib) if self.call.function else function_of(self.lib, self.op)
        )
        made = [self.lib.empty(0, dtype=leaf.dtype) for leaf in leaves(self.lib, expected)]
        single = isinstance(expected, self.lib.Tensor)
        out = made[0] if single else made if kind(expected) == "list" else tuple(made)
        args, kwargs = self.arguments(tensors)
        self.lib.manual_seed(SEED)
        output = function(*args, **kwargs, out=out)
        same = output is None or all(
            a is b for a, b in zip(leaves(self.lib, output), made, strict=True)
        )
        if not same:
            raise ValueError("the result is not the tensor given as out=")
        return {"results": [shown(self.lib, leaf, set(), True) for leaf in made]}

    def pushed_forward(self) -> tuple[list[Any], list[Any]]:
        """The derivative along a direction, and the direction's product with the gradient.

        Both sum to the same number, `<u, J t>` and `<J* u, t>`, if forward and reverse mode
        agree.
        """
        lib = self.lib
        tensors = self.build(gradient=True)
        given = [tensor for tensor in tensors if tensor.requires_grad]
        directions = [self.companion(tensor, 31 + i) for i, tensor in enumerate(given)]
        results = list(leaves(lib, self.evaluate(tensors)))
        places = [
            i
            for i, leaf in enumerate(results)
            if isinstance(leaf, lib.Tensor) and leaf.requires_grad
        ]
        cotangents = [self.companion(results[place], 11 + i) for i, place in enumerate(places)]
        outputs = [results[place] for place in places]
        gradients = lib.autograd.grad(outputs, given, cotangents, allow_unused=True)
        tangents = self.tangents(tensors, directions)
        forward = [
            products(u, tangents[place]) for u, place in zip(cotangents, places, strict=True)
        ]
        backward = [products(g, t) for g, t in zip(gradients, directions, strict=True)]
        return list(flat(forward)), list(flat(backward))

    def tangents(self, tensors: list[Tensor], directions: list[Tensor]) -> list[Tensor | None]:
        """The tangents of all results, when the inputs with a gradient move along directions."""
        lib, forward_ad = self.lib, self.lib.autograd.forward_ad
        following = iter(directions)
        with forward_ad.dual_level():
            duals = [
                forward_ad.make_dual(t.detach(), next(following)) if t.requires_grad else t
                for t in tensors
            ]
            results = leaves(lib, self.evaluate(duals))
            return [
                forward_ad.unpack_dual(leaf).tangent if isinstance(leaf, lib.Tensor) else None
                for leaf in results
            ]


def products(left: Tensor | None, right: Tensor | None) -> list[float]:
    """The products of two tensors' elements; of complex ones the real parts of `conj(left) *
    right`.
    """
    if left is None or right is None:
        return []
    if left.dtype != right.dtype:
        raise ValueError(f"a tangent of {dtype_of(right)} for a result of {dtype_of(left)}")
    return [a * b for a, b in zip(numbers(left), numbers(right), strict=True)]


def attempt(function: Callable[[], Any]) -> Any:
    """What a function gives, or the class of its error with the message."""
    try:
        return function()
    # Which errors a library raises is what is observed.
    except Exception as error:
        return failure(error)


def failure(error: BaseException) -> Observation:
    """An error as data: its class, and a line of its message for the reader."""
    name = type(error).__name__
    for known in (
        ImportError,
        NotImplementedError,
        IndexError,
        ValueError,
        TypeError,
        AttributeError,
        RuntimeError,
    ):
        # Subclasses that only one library has count as what programs catch.
        if isinstance(error, known):
            name = known.__name__
            break
    message = " ".join(str(error).split())
    return {"error": name, "message": message[:120]}


def is_meant(call: Call, dtype: str) -> bool:
    """Whether a call is made in this dtype."""
    return not call.only or dtype in call.only


def observed(lib: Library, op: Op, call: Call, dtype: str) -> Observation:
    """Everything about one call in one dtype: results, gradients, second gradients."""
    run = Run(lib, op, call, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen: Observation = attempt(run.forward)
        if "error" in seen or not call.gradient or not any(run.wants(spec) for spec in run.specs):
            return seen
        gradients = attempt(lambda: run.gradients(call.second and dtype in EXACT))
    if "error" in gradients:
        return seen | {"gradients": gradients}
    return seen | gradients


def observed_form(lib: Library, op: Op, call: Call, dtype: str, form: str) -> Observation:
    """The result of one form of a call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return attempt(lambda: Run(lib, op, call, dtype).form(form))
