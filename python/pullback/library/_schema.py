"""Signatures of ops that programs define: read from text, or from a function's annotations."""

from __future__ import annotations

import ast
import collections.abc
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import _C

_MISSING = object()
# (`dtype` and similar types are the extension's classes.)
_NAMES: dict[Any, str] = {
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    _C.dtype: "ScalarType",
    _C.device: "Device",
    complex: "complex",
}
_SCALARS = {"int", "SymInt", "float", "bool", "str", "Scalar", "ScalarType", "Device", "complex"}
_OTHERS = {"Layout", "MemoryFormat", "Generator", "Dimname", "Storage"}


@dataclass(frozen=True)
class Argument:
    """One argument: ``Tensor(a!)? x=None``."""

    name: str
    type: str
    is_optional: bool = False
    is_list: bool = False
    is_written: bool = False
    is_kwarg_only: bool = False
    default: Any = field(default=_MISSING)
    # The name of the memory that is written, or that a result shows.
    alias: str = "a"
    is_shown: bool = False

    @property
    def has_default(self) -> bool:
        """Whether a call may leave it out."""
        return self.default is not _MISSING

    @property
    def is_list_of_tensors(self) -> bool:
        """Whether it is ``Tensor[]``, or ``Tensor?[]``."""
        return self.is_list and self.type == "Tensor"

    def __str__(self) -> str:
        # (Items that may be None say so behind the mark.)
        kind, maybe, _ = self.type.partition("?")
        mark = f"({self.alias}!)" if self.is_written else f"({self.alias})" * self.is_shown
        brackets = "[]" if self.is_list else ""
        optional = "?" if self.is_optional else ""
        default = f"={_literal(self.default)}" if self.has_default else ""
        return f"{kind}{mark}{maybe}{brackets}{optional} {self.name}{default}"


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, _C.dtype):
        return str(value).removeprefix("torch.")
    if isinstance(value, _C.device):
        return f'"{value}"'
    return str(value)


@dataclass(frozen=True)
class Schema:
    """A signature: ``name.overload(Tensor x, *, int n=1) -> Tensor``."""

    name: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: tuple[str, ...]

    @property
    def is_mutable(self) -> bool:
        """Whether a call writes into arguments."""
        return any(argument.is_written for argument in self.arguments)

    @property
    def is_functional(self) -> bool:
        """Whether it writes into nothing, and has results, all in memory of their own."""
        shows = any("(" in returned for returned in self.returns)
        return bool(self.returns) and not self.is_mutable and not shows

    def signature(self) -> str:
        """The part without the name."""
        texts: list[str] = []
        for argument in self.arguments:
            if argument.is_kwarg_only and "*" not in texts:
                texts.append("*")
            texts.append(str(argument))
        returned = self.returns[0] if len(self.returns) == 1 else f"({', '.join(self.returns)})"
        return f"({', '.join(texts)}) -> {returned}"

    def __str__(self) -> str:
        return f"{self.name}{'.' if self.overload else ''}{self.overload}{self.signature()}"

    def bind(self, qualified: str, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """The values of all arguments.

        Raises:
            RuntimeError: for too many, missing or unknown arguments and those of another type.
        """
        by_position = [argument for argument in self.arguments if not argument.is_kwarg_only]
        if len(args) > len(by_position):
            raise RuntimeError(
                f"{qualified}() expected at most {len(by_position)} argument(s) but received "
                f"{len(args) + len(kwargs)} argument(s). Declaration: {self._declared(qualified)}"
            )
        left = dict(kwargs)
        values: list[Any] = []
        for position, argument in enumerate(self.arguments):
            if position < len(args) and not argument.is_kwarg_only:
                if argument.name in left:
                    raise RuntimeError(
                        f"{qualified}(): argument '{argument.name}' was given by position and by "
                        "name"
                    )
                value = args[position]
            elif argument.name in left:
                value = left.pop(argument.name)
            elif argument.has_default:
                value = argument.default
            else:
                raise RuntimeError(
                    f"{qualified}() is missing value for argument '{argument.name}'. Declaration: "
                    f"{self._declared(qualified)}"
                )
            self._check(qualified, argument, value, position)
            values.append(value)
        if left:
            raise RuntimeError(
                f"Unknown keyword argument '{next(iter(left))}' for operator '{qualified}'. "
                f"Schema: {self._declared(qualified)}"
            )
        return values

    def _declared(self, qualified: str) -> str:
        return f"{qualified}{self.signature()}"

    def _check(self, qualified: str, argument: Argument, value: Any, position: int) -> None:
        if argument.type != "Tensor" or (value is None and argument.is_optional):
            return
        from .. import Tensor

        is_fitting = isinstance(value, Tensor)
        if argument.is_list:
            is_fitting = isinstance(value, list | tuple) and all(
                isinstance(item, Tensor) or item is None for item in value
            )
        if not is_fitting:
            expected = (
                f"{'List[' if argument.is_list else ''}Tensor{']' if argument.is_list else ''}"
            )
            raise RuntimeError(
                f"{qualified}() Expected a value of type '{expected}' for argument "
                f"'{argument.name}' but instead found type '{type(value).__name__}'.\n"
                f"Position: {position}\n"
                f"Value: {value!r}\nDeclaration: {self._declared(qualified)}"
            )


def split(text: str) -> list[str]:
    """The parts between commas that are in no brackets."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


_ARGUMENT = re.compile(
    r"(?P<type>\w+)(?P<alias>\([^)]*\))?(?P<list>\??\[\d*\])?(?P<optional>\?)?"
    r"\s+(?P<name>\w+)(?:\s*=\s*(?P<default>.+))?$"
)
_WORDS = {"None": None, "True": True, "False": False}


def _default(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        found = getattr(_C, text, None)
        if isinstance(found, _C.dtype):
            return found
        raise RuntimeError(f"{text!r} is no default of an argument") from None


def _argument(text: str, is_kwarg_only: bool) -> Argument:
    found = _ARGUMENT.match(text)
    if found is None or found["type"] not in {"Tensor", *_SCALARS, *_OTHERS}:
        raise RuntimeError(f"{text!r} is no argument of a schema: 'Tensor x', 'int[]? sizes=None'")
    default = _MISSING if found["default"] is None else _default(found["default"].strip())
    return Argument(
        found["name"],
        found["type"],
        found["optional"] is not None,
        found["list"] is not None,
        "!" in (found["alias"] or ""),
        is_kwarg_only,
        default,
        (found["alias"] or "(a").strip("()").partition("!")[0].strip() or "a",
        found["alias"] is not None,
    )


_SCHEMA = re.compile(
    r"\s*(?P<name>[\w:]*)(?:\.(?P<overload>\w+))?\s*\((?P<args>.*)\)\s*->\s*(?P<to>.+)$"
)


def parse(text: str) -> Schema:
    """Reads a signature.

    Raises:
        RuntimeError: if it is none.
    """
    found = _SCHEMA.match(text.replace("\n", " "))
    if found is None:
        raise RuntimeError(f"{text!r} is no schema: 'name(Tensor x, *, int n=1) -> Tensor'")
    arguments, is_kwarg_only = [], False
    for part in split(found["args"]):
        if part == "*":
            is_kwarg_only = True
        else:
            arguments.append(_argument(part, is_kwarg_only))
    _check_defaults(arguments)
    returned = found["to"].strip()
    if returned.startswith("(") and not returned.endswith(")"):
        raise RuntimeError(f"{text!r} is no schema: expected ) at the end of its results")
    inside = returned[1:-1] if returned.startswith("(") else returned
    for part in split(inside):
        _check_returned(part)
    return Schema(found["name"], found["overload"] or "", tuple(arguments), tuple(split(inside)))


def _check_defaults(arguments: Sequence[Argument]) -> None:
    """Refuses an argument without default behind one that has a default."""
    is_open = True
    for argument in arguments:
        if not argument.is_kwarg_only and not argument.has_default and not is_open:
            raise RuntimeError(
                f"Non-default positional argument follows default argument: '{argument}' needs a "
                "default, or a place before those that have one"
            )
        is_open = is_open and not argument.has_default


_RESULT = re.compile(r"(?P<type>\w+)(\([^)]*\))?(\?|\[\d*\])*(\s+\w+)?$")


def _check_returned(text: str) -> None:
    """Refuses a result of a type that there is not."""
    found = _RESULT.match(text)
    if found is None or found["type"] not in {"Tensor", *_SCALARS, *_OTHERS}:
        raise RuntimeError(
            f"unknown type specifier: {text!r} is no result of a schema, as Tensor, int, Tensor[] "
            "are"
        )


def _type_of(annotation: Any) -> tuple[str, bool, bool]:
    """The name of a type, whether it is a list, and whether it may be None."""
    from .. import Tensor

    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        kinds = [kind for kind in inside if kind is not type(None)]
        if len(kinds) == 1 and len(inside) == 2:
            name, is_list, _ = _type_of(kinds[0])
            return name, is_list, True
        if set(kinds) <= {int, float, bool}:
            return "Scalar", False, len(kinds) < len(inside)
    elif origin in (list, Sequence, collections.abc.Sequence) and len(inside) == 1:
        name, _, is_optional = _type_of(inside[0])
        return name + ("?" if is_optional else ""), True, False
    elif annotation is Tensor:
        return "Tensor", False, False
    elif annotation in _NAMES:
        return _NAMES[annotation], False, False
    raise ValueError(
        f"infer_schema(func): unsupported type {annotation}: Tensor, int, float, bool, str, dtype, "
        "device, and sequences and optional ones of these are supported"
    )


def type_text(annotation: Any) -> str:
    """The type of an argument as a schema shows it: ``SymInt[]?``.

    Raises:
        ValueError: for a type that no schema has.
    """
    name, is_list, is_optional = _type_of(annotation)
    return f"{name}{'[]' if is_list else ''}{'?' if is_optional else ''}"


def infer(
    function: Callable[..., Any], mutates_args: str | Iterable[str], name: str | None = None
) -> str:
    """The signature of a function from the annotations of its parameters.

    Raises:
        ValueError: for parameters without annotation or of unsupported types, for defaults of other
            types, for names in ``mutates_args`` that the function has not, and for another text
            than ``unknown`` there.
    """
    if isinstance(mutates_args, str) and mutates_args != "unknown":
        raise ValueError(
            "mutates_args must either be a sequence of the names of the arguments that are mutated "
            f"or the string 'unknown', not the string {mutates_args!r}"
        )
    is_unknown = isinstance(mutates_args, str)
    try:
        hints = typing.get_type_hints(function)
    except NameError as error:
        raise ValueError(f"infer_schema(func): an annotation is not known: {error}") from None
    written = set() if is_unknown else set(mutates_args)
    arguments = []
    for index, parameter in enumerate(inspect.signature(function).parameters.values()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ValueError(
                "infer_schema(func): varargs and varkwargs (*args, **kwargs) have no schema"
            )
        if parameter.name not in hints:
            raise ValueError(
                f"infer_schema(func): Parameter {parameter.name} must have a type annotation."
            )
        kind, is_list, is_optional = _type_of(hints[parameter.name])
        is_tensor = kind.removesuffix("?") == "Tensor"
        is_written = parameter.name in written or (is_unknown and is_tensor)
        if is_written and not is_tensor:
            raise ValueError(
                f"infer_schema(func): Parameter {parameter.name} is in mutable_args but only "
                "Tensors or collections of Tensors can be mutated"
            )
        default = _MISSING if parameter.default is parameter.empty else parameter.default
        arguments.append(
            Argument(
                parameter.name,
                kind,
                is_optional,
                is_list,
                is_written,
                parameter.kind is parameter.KEYWORD_ONLY,
                default,
                f"a{index}",
            )
        )
    unknown = written - {argument.name for argument in arguments}
    if unknown:
        raise ValueError(
            f"infer_schema(func): {{{', '.join(map(repr, sorted(unknown)))}}} in mutates_args were "
            "not found among the parameters of the function"
        )
    schema = Schema(name or "", "", tuple(arguments), _returned(hints.get("return", _MISSING)))
    return f"{schema.name}{schema.signature()}"


def _returned(annotation: Any) -> tuple[str, ...]:
    if annotation is _MISSING:
        raise ValueError(
            "infer_schema(func): No return type annotation was provided. Please add one."
        )
    if annotation in (None, type(None)):
        return ()
    if typing.get_origin(annotation) is tuple:
        return tuple(_named(inside) for inside in typing.get_args(annotation))
    return (_named(annotation),)


def _named(annotation: Any) -> str:
    kind, is_list, _ = _type_of(annotation)
    return f"{kind}{'[]' if is_list else ''}"
