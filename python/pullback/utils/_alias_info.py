"""The aliases that the schema of an op states: arguments written to, results that show them.

The schemas of ops with in-place and ``out=`` forms are those of the functional form: what the other
forms write follows from their names.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["AliasInfo", "SchemaInfo", "get_alias_info"]

# `(a)`, `(a!)`, `(a -> *)`, `(a|b)`
_ANNOTATION = re.compile(r"\(([a-z*](?:\|[a-z*])*)(!)?(?:\s*->[^)]*)?\)")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass
class AliasInfo:
    """The aliases that a schema states for one argument or result."""

    #: The letters of the memory that the argument may share.
    alias_set: set[str]
    #: Whether the op writes to the argument.
    is_write: bool
    #: The argument's name; None for a result without a name.
    name: str | None


@dataclass
class SchemaInfo:
    """The aliases that a schema states for all arguments and results."""

    args: list[AliasInfo]
    outs: list[AliasInfo]
    #: Whether the op changes the sizes or strides of a tensor in place, as ``t_`` does.
    is_inplace_view_op: bool
    #: The letter of each result, if results are arguments that are written to; None otherwise.
    outs_write_aliases: list[str] | None
    #: Pairs ``(argument, result)`` that share memory which the op does not write to.
    read_only_alias_match_indexes: list[tuple[int, int]]


@functools.cache
def get_alias_info(func: Any) -> SchemaInfo:
    """The aliases that the schema of an op states.

    Args:
        func: an overload, such as ``torch.ops.aten.view.default``.

    Raises:
        RuntimeError: if some of the results are arguments that are written to, and others are not.
    """
    arguments, results = _parts(func._schema_text)
    args = [_described(text, _name(text)) for text in arguments]
    outs = [_described(text, None) for text in results]
    if _is_inplace(func):
        _mark(args[0], outs[0], "a")
    elif func.namespace == "aten" and func._overloadname.endswith("out"):
        _add_targets(args, outs)
    return SchemaInfo(
        args=args,
        outs=outs,
        is_inplace_view_op=_is_inplace(func) and _changes_geometry(func),
        outs_write_aliases=_written(func, outs),
        read_only_alias_match_indexes=[
            (i, j)
            for i, argument in enumerate(args)
            for j, out in enumerate(outs)
            if argument.alias_set & out.alias_set and not argument.is_write
        ],
    )


def _is_inplace(func: Any) -> bool:
    name: str = func._opname
    return func.namespace == "aten" and name.endswith("_") and not name.endswith("__")


def _changes_geometry(func: Any) -> bool:
    return any(key == "ADInplaceOrView" for key, _, _ in func._registrations())


def _parts(schema: str) -> tuple[list[str], list[str]]:
    """The texts of the arguments and of the results."""
    start = schema.index("(")
    end = next(
        index
        for index, depth in _depths(schema)
        if index > start and depth == 0 and schema[index] == ")"
    )
    arguments = [text for text in _split(schema[start + 1 : end]) if text != "*"]
    returned = schema[end + 1 :].partition("->")[2].strip()
    if returned.startswith("(") and returned.endswith(")"):
        returned = returned[1:-1]
    return arguments, _split(returned)


def _depths(text: str) -> Iterator[tuple[int, int]]:
    """Each position with the number of brackets that are open after it."""
    depth = 0
    for index, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        yield index, depth


def _split(text: str) -> list[str]:
    """The parts between commas outside of brackets."""
    cuts = [index for index, depth in _depths(text) if depth == 0 and text[index] == ","]
    edges = zip([-1, *cuts], [*cuts, len(text)], strict=True)
    return [part for first, last in edges if (part := text[first + 1 : last].strip())]


def _name(argument: str) -> str:
    # (A default is text without blanks, or in quotes; no name stands in it.)
    return re.sub(r"=.*$", "", argument).split()[-1]


def _described(text: str, name: str | None) -> AliasInfo:
    found = _ANNOTATION.search(text)
    if found is None:
        return AliasInfo(set(), False, name)
    return AliasInfo(set(found[1].split("|")), found[2] is not None, name)


def _mark(argument: AliasInfo, out: AliasInfo, letter: str) -> None:
    """Marks a result as an argument that is written to."""
    for info in (argument, out):
        info.alias_set, info.is_write = {letter}, True


def _add_targets(args: list[AliasInfo], outs: list[AliasInfo]) -> None:
    """Adds the arguments of an ``out=`` form, which are its results."""
    for position, out in enumerate(outs):
        name = "out" if len(outs) == 1 else f"out{position}"
        target = AliasInfo(set(), False, name)
        args.append(target)
        _mark(target, out, _LETTERS[position])


def _written(func: Any, outs: list[AliasInfo]) -> list[str] | None:
    letters = [next(iter(out.alias_set)) for out in outs if out.is_write]
    if not letters:
        return None
    if len(letters) != len(outs):
        raise RuntimeError(f"Unsupported schema: {func._schema_text}")
    return letters
