"""Questions about the signatures of ops.

A signature is what an op has as ``_schema``, or its text. Nothing here runs an op or changes one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from .. import Tensor, ops
from .._function_schema import parse
from .._ops import OpOverload

__all__ = [
    "fill_defaults",
    "get_source",
    "has_kwarg_only_args",
    "has_kwarg_only_tensors",
    "has_tensor_arg",
    "is_builtin",
    "is_functional_schema",
    "is_inplace",
    "is_out",
    "is_tensor_like_type",
    "is_tensorlist_like_type",
    "iter_tensors",
    "lookup_op",
    "mutated_args_kwargs",
    "mutates_and_returns_first_arg",
    "parse_namespace",
    "zip_schema",
]


def get_source(stacklevel: int) -> str:
    """The file and line of a caller, so many frames further out."""
    frame = sys._getframe(stacklevel)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def parse_namespace(qualname: str) -> tuple[str, str]:
    """The namespace and the name of ``mylib::foo.overload``.

    Raises:
        ValueError: for a name without exactly one namespace.
    """
    parts = qualname.split("::")
    if len(parts) != 2:
        raise ValueError(
            f'Expected `qualname` to be of the form "namespace::name", but got {qualname}'
        )
    return parts[0], parts[1]


def lookup_op(qualname: str) -> OpOverload:
    """The op of a name with namespace, ``aten::add.Tensor``; without overload the default one.

    Raises:
        AttributeError: if there is none.
    """
    namespace, name = parse_namespace(qualname)
    name, _, overload = name.partition(".")
    found: OpOverload = getattr(
        getattr(getattr(ops, namespace), name), overload.partition(".")[0] or "default"
    )
    return found


def is_builtin(op: OpOverload) -> bool:
    """Whether it is an op of the library itself, none that a program has defined."""
    if not isinstance(op, OpOverload):
        raise AssertionError(f"op must be OpOverload, got {type(op)}")
    return op.namespace in {"aten", "prim", "prims"}


def is_tensor_like_type(typ: Any) -> bool:
    """Whether it is the type of a tensor, or of one that may be None."""
    return str(typ) in ("Tensor", "Optional[Tensor]")


def is_tensorlist_like_type(typ: Any) -> bool:
    """Whether it is the type of a list of tensors; list and items may be None."""
    text = str(typ)
    if text.startswith("Optional[List["):
        text = text.removeprefix("Optional[").removesuffix("]")
    return text in ("List[Tensor]", "List[Optional[Tensor]]")


def _is_tensors(typ: Any) -> bool:
    return is_tensor_like_type(typ) or is_tensorlist_like_type(typ)


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and bool(argument.alias_info.is_write)


def is_functional_schema(schema: Any, *, allow_valid_view: bool = False) -> bool:
    """Whether calls write into no argument, and have results that are new memory.

    Args:
        schema: the signature, or its text.
        allow_valid_view: whether results may be views of the first argument, too.
    """
    if isinstance(schema, str):
        schema = parse(schema)
    else:
        # (What other parsers of signatures made has the same text.)
        schema = parse(str(schema))
    if not schema.returns or any(_is_written(argument) for argument in schema.arguments):
        return False
    shown = [result.alias_info for result in schema.returns if result.alias_info is not None]
    if not shown or not allow_valid_view:
        return not shown
    first = schema.arguments[0].alias_info if schema.arguments else None
    return first is not None and all(one.before_set == first.before_set for one in shown)


def mutates_and_returns_first_arg(op: OpOverload) -> bool:
    """Whether a call writes into its first argument alone, and returns it as its only result."""
    schema = op._schema
    if op.namespace != "aten" or len(schema.returns) != 1 or not schema.arguments:
        return False
    first, result = schema.arguments[0].alias_info, schema.returns[0].alias_info
    if first is None or result is None or not (first.is_write and result.is_write):
        return False
    return first.after_set == result.after_set and all(
        argument.alias_info is None for argument in schema.arguments[1:]
    )


def is_out(op: OpOverload) -> bool:
    """Whether the op writes into targets, ``out=``, and returns them."""
    written = [argument for argument in op._schema.arguments if _is_written(argument)]
    return bool(written) and all(argument.kwarg_only for argument in written)


def is_inplace(op: OpOverload) -> bool:
    """Whether the op writes into its first argument and returns it."""
    return mutates_and_returns_first_arg(op)


def fill_defaults(
    schema: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call with those that it left to their defaults."""
    by_position: list[Any] = []
    named: dict[str, Any] = {}
    for index, argument in enumerate(schema.arguments):
        if argument.kwarg_only:
            named[argument.name] = kwargs.get(argument.name, argument.default_value)
        elif index < len(args):
            by_position.append(args[index])
        else:
            by_position.append(kwargs.get(argument.name, argument.default_value))
    return tuple(by_position), named


def zip_schema(
    schema: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> Iterator[tuple[Any, Any]]:
    """The arguments of a signature with what a call gave for them; defaults are left out."""
    for index, argument in enumerate(schema.arguments):
        if not argument.kwarg_only and index < len(args):
            yield argument, args[index]
        elif argument.name in kwargs:
            yield argument, kwargs[argument.name]


def has_kwarg_only_args(schema: Any) -> bool:
    """Whether arguments can be given by name only."""
    return any(argument.kwarg_only for argument in schema.arguments)


def has_kwarg_only_tensors(schema: Any) -> bool:
    """Whether tensors, or lists of them, can be given by name only."""
    return any(argument.kwarg_only and _is_tensors(argument.type) for argument in schema.arguments)


def has_tensor_arg(schema: Any) -> bool:
    """Whether an argument is a tensor, or a list of them."""
    return any(_is_tensors(argument.type) for argument in schema.arguments)


def iter_tensors(
    args: Sequence[Any], kwargs: dict[str, Any], allowed_nesting: int = 1
) -> Iterator[Tensor]:
    """The tensors of a call, those in lists included as far as ``allowed_nesting`` says."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, Tensor):
            yield value
        elif allowed_nesting > 0 and isinstance(value, tuple | list):
            yield from iter_tensors(tuple(value), {}, allowed_nesting - 1)


def mutated_args_kwargs(schema: Any) -> tuple[list[int], list[str]]:
    """What a call writes into: positions, and the names of what is given by name only."""
    written = [(at, one) for at, one in enumerate(schema.arguments) if _is_written(one)]
    return (
        [at for at, argument in written if not argument.kwarg_only],
        [argument.name for _, argument in written if argument.kwarg_only],
    )
