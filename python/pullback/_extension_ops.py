"""Ops of libraries in Rust (the crate ``pullback-extension``) as ops of ``torch.library``.

Such a library has its own copy of pullback, so histories do not go into it. What autograd needs of
a derivative is a *program*, the op with ``vjp``, ``jvp`` or ``vmap`` applied to it, which the
library evaluates as a whole; each is here a custom function whose own derivatives are programs.
Invariant: a program's inputs are only read, and its results share no memory with them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from . import _C, library
from .autograd.function import Function, FunctionMeta
from .library._overload import CustomOverload

_ENTRY = "pullback_extension_table"
# The ops of tables that were seen, by address: a library that is imported may have been loaded
# before, and the other way round.
_TABLES: dict[int, list[CustomOverload]] = {}


@dataclass(frozen=True)
class _Call:
    """A program, how it is run, and the class whose name its nodes have."""

    program: Any
    run: Callable[[Sequence[Any]], Any]
    function: Any

    def apply(self, *inputs: Any) -> tuple[Any, ...]:
        """Runs the program as one node of the graph."""
        result: tuple[Any, ...] = self.function.apply(self, *inputs)
        return result

    def of(self, program: Any) -> _Call:
        """The call of another program."""
        return _Call(program, program.run, self.function)


def _is_differentiable(tensor: Any) -> bool:
    return bool(tensor.is_floating_point() or tensor.is_complex())


class _Crossing(Function):
    """A program as a function whose derivatives are programs."""

    @staticmethod
    def forward(call: _Call, *inputs: Any) -> Any:
        """Runs the program."""
        return tuple(call.run(inputs))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keeps the inputs."""
        ctx.call = inputs[0]
        ctx.differentiable = [_is_differentiable(one) for one in output]
        ctx.save_for_backward(*inputs[1:])
        ctx.save_for_forward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The gradients, by the program's ``vjp``."""
        marks = list(ctx.needs_input_grad[1:])
        vectors = [grad for grad, is_one in zip(grads, ctx.differentiable, strict=True) if is_one]
        found = ctx.call.of(ctx.call.program.vjp(marks)).apply(*ctx.saved_tensors, *vectors)
        rest = iter(found)
        return (None, *(next(rest) if mark else None for mark in marks))

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """The tangents, by the program's ``jvp``."""
        marks = [tangent is not None for tangent in tangents[1:]]
        given = [tangent for tangent in tangents[1:] if tangent is not None]
        found = ctx.call.of(ctx.call.program.jvp(marks)).apply(*ctx.saved_tensors, *given)
        rest = iter(found)
        return tuple(next(rest) if is_one else None for is_one in ctx.differentiable)

    @staticmethod
    def vmap(info: Any, in_dims: Any, call: _Call, *inputs: Any) -> Any:
        """A batch at once, by the program's ``vmap``."""
        results = call.of(call.program.vmap(list(in_dims[1:]))).apply(*inputs)
        return results, (0,) * len(results)


def _filled(value: Any, tensors: Iterator[Any]) -> Any:
    """An argument with other tensors."""
    if isinstance(value, _C.TensorBase):
        return next(tensors)
    if isinstance(value, list | tuple):
        return [_filled(item, tensors) for item in value]
    return value


def _register(
    extension: Any, number: int, signature: str, doc: str, lib: library.Library
) -> CustomOverload:
    """Defines an op and its rules."""
    name = lib.define(signature)
    op: CustomOverload = lib._find(name)
    op.__doc__ = doc
    stem = "".join(part.capitalize() for part in op._opname.split("_"))
    function: Any = FunctionMeta(stem, (_Crossing,), {})

    def shaped(results: tuple[Any, ...]) -> Any:
        if op._parsed.returns == ("Tensor[]",):
            return list(results)
        return results[0] if len(op._parsed.returns) == 1 else results

    def kernel(*args: Any, **kwargs: Any) -> Any:
        program, tensors = extension.call(number, [*args, *kwargs.values()])
        return shaped(program.run(tensors))

    def record(values: list[Any]) -> Any:
        program, tensors = extension.call(number, values)

        def below(inputs: Sequence[Any]) -> tuple[Any, ...]:
            rest = iter(inputs)
            result = op._below([_filled(value, rest) for value in values])
            return tuple(result) if isinstance(result, list | tuple) else (result,)

        return shaped(_Call(program, below, function).apply(*tensors))

    lib.impl(op, kernel, "CPU")
    library.register_fake(op, kernel)
    op.record = record
    return op


def define(path: Any) -> bool:
    """Defines the ops of a library; says whether it is one of such ops.

    Raises:
        OSError: if it cannot be loaded.
        RuntimeError: if it was built for another version of the border.
        NotImplementedError: for an op that cannot be called over the border.
    """
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError as error:
        raise OSError(
            f"torch.ops.load_library({str(path)!r}): it cannot be loaded: {error} (libraries that "
            "were compiled for PyTorch cannot be loaded here)"
        ) from None
    entry = getattr(loaded, _ENTRY, None)
    if entry is None:
        return False
    entry.restype = ctypes.c_void_p
    _define_table(entry())
    return True


def _define_table(address: int) -> list[CustomOverload]:
    """Defines the ops of a table, once; the ops."""
    found = _TABLES.get(address)
    if found is None:
        extension = _C._Extension(address)
        found = []
        for number, (schema, doc) in enumerate(extension.ops()):
            namespace, _, signature = schema.partition("::")
            lib = library._new(namespace, None)
            found.append(_register(extension, number, signature, doc, lib))
        _TABLES[address] = found
    return found


def module(address: int) -> ModuleType:
    """The module that ``import`` gives for a library (``crates/extension/src/python.rs``)."""
    ops = _define_table(address)
    namespace = ops[0].namespace
    made = ModuleType(namespace, "\n".join(f"``{op._opname}``: {op.__doc__}" for op in ops))
    for op in ops:
        setattr(made, op._opname, op.overloadpacket)
    made.__dict__["__all__"] = [op._opname for op in ops]
    return made
