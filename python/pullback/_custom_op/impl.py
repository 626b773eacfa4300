"""Ops that programs define, as objects with a registry: what ``pullback._custom_ops`` fills.

An op is defined by the signature of a function, which computes nothing; kernels, the gradient and
what it saves are registered one by one, under the op's name. :mod:`pullback.library` is what
replaced this, and does the work: a :class:`CustomOp` is a library with one op in it.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Sequence
from typing import Any

from .. import library
from .._tensor import Tensor
from ..library import _schema, infer_schema
from ..library._function import function_of
from ..library._overload import CustomOverload, _flat, _tensors

__all__ = ["CustomOp", "custom_op", "get_op", "get_ctx"]

get_ctx = library.get_ctx
RESERVED_NS = {"prim", "prims", "aten", "at", "torch", "pytorch"}
SUPPORTED_DEVICE_TYPE_TO_KEY = {"cpu": "CPU", "cuda": "CUDA"}
# The ops that were made here, by their names with namespace.
global_registry: dict[str, CustomOp] = {}
_PRIVATE = object()


class CustomOp:
    """An op and the library that holds it; :func:`custom_op` makes one."""

    def __init__(self, lib: Any, *parts: Any) -> None:
        """Made by :func:`define`."""
        if not parts or parts[-1] is not _PRIVATE:
            raise RuntimeError("The CustomOp constructor is private: custom_op() makes one")
        self._lib: library.Library = lib
        self._qualname: str = parts[0]
        self._overload: CustomOverload = library._find_op(self._qualname)
        self._saving: Callable[..., Any] | None = None
        self._differentiable: list[bool] | None = None
        self._overload.record = self._without_gradient

    def __repr__(self) -> str:
        return f'<CustomOp(op="{self._qualname}")>'

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the op."""
        return self._overload(*args, **kwargs)

    def _destroy(self) -> None:
        """Takes the op and everything that was registered for it away."""
        global_registry.pop(self._qualname, None)
        self._lib._destroy()

    def _without_gradient(self, values: list[Any]) -> Any:
        if any(tensor.requires_grad for tensor in _tensors(values)):
            raise RuntimeError(
                f"Autograd has not been implemented for operator {self._qualname}: register "
                "impl_save_for_backward and impl_backward, or call it under no_grad()"
            )
        function: Any = function_of(self._overload)
        return function.apply(*_flat(self._overload._parsed, values))

    def impl(self, device_types: str | Sequence[str], _stacklevel: int = 2) -> Any:
        """A decorator that registers the kernel for devices of one or several types.

        Raises:
            ValueError: for other types than ``cpu`` and ``cuda``.
            RuntimeError: if there is one already.
        """
        kinds = [device_types] if isinstance(device_types, str) else list(device_types)
        for kind in kinds:
            if kind not in SUPPORTED_DEVICE_TYPE_TO_KEY:
                raise ValueError(
                    f"CustomOp.impl(device_types=[{kind!r}, ...]): we only support device_type in "
                    f"{sorted(SUPPORTED_DEVICE_TYPE_TO_KEY)}"
                )

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            for kind in kinds:
                self._lib.impl(self._overload, function, SUPPORTED_DEVICE_TYPE_TO_KEY[kind])
            return function

        return register

    def impl_factory(self) -> Any:
        """A decorator that registers the kernel of an op without tensors among its arguments."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self._lib.impl(self._overload, function, "CompositeExplicitAutograd")
            return function

        return register

    def impl_abstract(self, _stacklevel: int = 2) -> Any:
        """A decorator that registers the function that computes shape and dtype of the results."""
        return functools.partial(library.register_fake, self._overload)

    def impl_save_for_backward(self, _stacklevel: int = 2) -> Any:
        """A decorator that registers ``function(inputs, output)``: it saves for backward."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self._saving = function
            if self._overload.backward is None:
                self._overload.register_autograd(self._no_backward, self._setup)
            return function

        return register

    def _no_backward(self, ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(
            f"{self._qualname}: found a 'save_for_backward' but unable to find a 'backward' "
            "formula: register it with impl_backward"
        )

    def impl_backward(self, output_differentiability: Any = None, _stacklevel: int = 2) -> Any:
        """A decorator that registers ``function(ctx, saved, *grads)``: gradients by input's name.

        Args:
            output_differentiability: for each result whether it has a gradient; all by default.

        Raises:
            RuntimeError: if that is no list of bools, one for each result.
        """
        count = len(self._overload._parsed.returns)
        given = output_differentiability
        if given is not None:
            if not isinstance(given, list) or not all(isinstance(flag, bool) for flag in given):
                raise RuntimeError(
                    f"impl_backward(output_differentiability): expected bools, got {given}"
                )
            if len(given) != count:
                raise RuntimeError(
                    f"impl_backward(output_differentiability): expected a list of {count} bools, "
                    f"one for each result, got {len(given)}"
                )

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self._differentiable = given

            def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
                return self._by_position(ctx, function(ctx, ctx._saved_by_op, *grads))

            self._overload.register_autograd(backward, self._setup)
            return function

        return register

    def _setup(self, ctx: Any, inputs: Any, output: Any) -> None:
        if self._saving is None:
            raise RuntimeError(
                f"{self._qualname}: found a 'backward' formula but unable to find a "
                "'save_for_backward': register it with impl_save_for_backward"
            )
        names = [argument.name for argument in self._overload._parsed.arguments]
        kind = collections.namedtuple("Inputs", names)  # type: ignore[misc]
        ctx._saved_by_op = self._saving(kind(*inputs), output)
        ctx._inputs_of_op = inputs
        outputs = output if isinstance(output, tuple) else (output,)
        flags = self._differentiable or [True] * len(outputs)
        fixed: list[Any] = []
        for result, is_differentiable in zip(outputs, flags, strict=True):
            if not is_differentiable:
                fixed += _tensors([result])
        if fixed:
            ctx.mark_non_differentiable(*fixed)

    def _by_position(self, ctx: Any, found: Any) -> tuple[Any, ...]:
        """The gradients in the order of the inputs, after checks of the results of a formula."""
        words = f"In the backward function defined for {self._qualname}: "
        if not isinstance(found, dict):
            raise RuntimeError(f"{words}expected the result to be a dict, got {type(found)}")
        arguments = self._overload._parsed.arguments
        wanted = {one.name for one in arguments if one.type.removesuffix("?") == "Tensor"}
        extra = set(found) - wanted
        known = {one.name for one in arguments}
        if extra & known:
            raise RuntimeError(
                f"{words}got gradients for {sorted(extra & known)}, which are of non-Tensor-like "
                "types"
            )
        if set(found) != wanted:
            names = "{" + ", ".join(repr(name) for name in sorted(wanted)) + "}"
            raise RuntimeError(
                f"{words}expected the result to have keys {names}, got {sorted(found)}"
            )
        gradients = []
        for argument, value in zip(arguments, ctx._inputs_of_op, strict=True):
            gradient = found.get(argument.name)
            if argument.is_list_of_tensors:
                _check_list(words, argument.name, gradient, value)
            elif gradient is not None and not isinstance(gradient, Tensor):
                raise RuntimeError(
                    f"{words}expected the gradient of {argument.name} to be either None or a "
                    f"Tensor, got {type(gradient)}"
                )
            gradients.append(gradient)
        return tuple(gradients)


def _check_list(words: str, name: str, gradients: Any, value: Any) -> None:
    if gradients is None:
        return
    if not isinstance(gradients, list | tuple):
        raise RuntimeError(
            f"{words}expected a list of gradients for {name}, which is a list of tensors, got "
            f"{type(gradients)}"
        )
    if len(gradients) != len(value):
        raise RuntimeError(
            f"{words}expected {name} to have {len(value)} gradients but got {len(gradients)}"
        )
    for gradient in gradients:
        if gradient is not None and not isinstance(gradient, Tensor):
            raise RuntimeError(
                f"{words}expected the gradients of {name} to be None or Tensor, got "
                f"{type(gradient)}"
            )


def _check_schema(qualname: str, text: str) -> None:
    parsed = _schema.parse(text)
    if any(argument.name == "self" for argument in parsed.arguments):
        raise ValueError(f"custom_op({qualname!r}): arguments cannot be named 'self'")
    if parsed.is_mutable or not parsed.returns or "(a" in text.partition("(")[2]:
        raise ValueError(
            f"custom_op({qualname!r}) only supports functional operators, which write into no "
            f"argument, return no view and have a result. Got: {text}"
        )


def _check_name(qualname: str) -> tuple[str, str]:
    namespace, name = library._split(qualname)
    if "." in name:
        raise ValueError(f"custom_op({qualname!r}): an overload in the name is not supported")
    if namespace in RESERVED_NS:
        raise ValueError(
            f"custom_op({qualname!r}): {namespace!r} is a reserved namespace, choose another one"
        )
    return namespace, name


def define(qualname: str, schema: str) -> CustomOp:
    """Makes an op of the part of a schema that follows its name, without kernels.

    Args:
        qualname: the op's name with namespace.
        schema: ``(Tensor x) -> Tensor``.

    Raises:
        ValueError: for names and signatures that ops of this kind do not have.
        RuntimeError: if there is one already.
    """
    namespace, name = _check_name(qualname)
    _check_schema(qualname, name + schema)
    lib = library.Library(namespace, "FRAGMENT")
    lib.define(name + schema)
    op = CustomOp(lib, qualname, _PRIVATE)
    global_registry[qualname] = op
    return op


def custom_op(qualname: str, manual_schema: str | None = None) -> Callable[..., CustomOp]:
    """A decorator that makes an op of a function's signature.

    Args:
        qualname: the op's name with namespace.
        manual_schema: the signature, if it is not that of the function.
    """

    def make(function: Callable[..., Any]) -> CustomOp:
        _, name = _check_name(qualname)
        if not callable(function) or isinstance(function, type):
            raise ValueError(
                f"custom_op({qualname!r})(func): Expected `func` to be a Python function, got "
                f"{type(function)}"
            )
        if manual_schema is None and function.__name__ != name:
            raise ValueError(
                f"custom_op({qualname!r})(func): Expected `func` to have name {name!r} but got "
                f"{function.__name__!r}: choose one name for both"
            )
        return define(qualname, manual_schema or infer_schema(function, mutates_args=()))

    return make


def get_op(qualname: str) -> Any:
    """The overload without name of an op that a program has defined.

    Raises:
        RuntimeError: if there is none.
    """
    return library._find_op(qualname)


def find(qualname: str) -> CustomOp:
    """The op that was made here, or a new object for one that a library has defined."""
    if qualname not in global_registry:
        overload = library._find_op(qualname)
        lib = library.Library(overload.namespace, "FRAGMENT")
        global_registry[qualname] = CustomOp(lib, qualname, _PRIVATE)
    return global_registry[qualname]
