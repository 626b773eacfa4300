"""Signatures of ops as objects: ``torch.ops.aten.add.Tensor._schema``.

Libraries read from them which arguments an op takes, their types, and what it writes to. A schema
is read from its text when somebody asks an op for it, never before. Types are shown as in
TorchScript: ``int[2]?`` is ``Optional[List[int]]``, sizes and dtypes are ``int``, and
`Argument.real_type` keeps what the signature says. The classes are those of the placeholders of
the same names, so that ``isinstance`` says what it would say of PyTorch's.
"""

from __future__ import annotations

import ast
import re
from typing import Any

import pullback as torch

from .library._schema import split

__all__ = ["AliasInfo", "Argument", "FunctionSchema", "parse"]


class Type(torch.Type):  # type: ignore[name-defined, misc]
    """The type of an argument."""

    def __new__(cls, text: str, *inside: Type) -> Any:
        """A type with this text, made of others."""
        made = object.__new__(cls)
        made._text, made._inside = text, inside
        return made

    def kind(self) -> str:
        """The name of the class of types."""
        return type(self).__name__

    @property
    def annotation_str(self) -> str:
        """The text, as it would be annotated."""
        return str(self)

    def containedTypes(self) -> list[Type]:
        """The types that it is made of."""
        return list(self._inside)

    def getElementType(self) -> Type:
        """The type of the elements of a list, or of what may be None."""
        if not self._inside:
            raise RuntimeError(f"type {self} is made of no other types")
        return self._inside[0]  # type: ignore[no-any-return]

    def isSubtypeOf(self, other: Any) -> bool:
        """Whether every value of this type is one of the other."""
        is_optional = isinstance(other, OptionalType)
        return bool(self == other or (is_optional and self.isSubtypeOf(other.getElementType())))

    def __str__(self) -> str:
        return str(self._text)

    __repr__ = __str__

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Type) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> Any:
        return type(self), (self._text, *self._inside)


def _kind(name: str) -> type[Type]:
    return type(name, (Type, getattr(torch, name)), {"__module__": "torch"})


TensorType, NumberType, IntType = _kind("TensorType"), _kind("NumberType"), _kind("IntType")
FloatType, BoolType, StringType = _kind("FloatType"), _kind("BoolType"), _kind("StringType")
ComplexType, DeviceObjType = _kind("ComplexType"), _kind("DeviceObjType")
OptionalType, ListType = _kind("OptionalType"), _kind("ListType")

# The shown form and class of each type of a signature.
_WORDS: dict[str, tuple[str, type[Type]]] = {
    "Tensor": ("Tensor", TensorType),
    "Scalar": ("number", NumberType),
    "int": ("int", IntType),
    "SymInt": ("int", IntType),
    "ScalarType": ("int", IntType),
    "Layout": ("int", IntType),
    "MemoryFormat": ("int", IntType),
    "float": ("float", FloatType),
    "bool": ("bool", BoolType),
    "str": ("str", StringType),
    "complex": ("complex", ComplexType),
    "Device": ("Device", DeviceObjType),
}
# Words that are shown as another type, and kept in the real one.
_KEPT = ("ScalarType", "Layout", "MemoryFormat")


def _type(word: str, suffix: str, *, is_real: bool) -> Type:
    """The type of a word with its ``?``, ``[]`` and ``[2]``, from the inside to the outside."""
    text, kind = _WORDS.get(word, (word, Type))
    made: Type = kind(word if is_real and word in _KEPT else text)
    for part in re.findall(r"\?|\[\d*\]", suffix):
        if part == "?":
            made = OptionalType(f"Optional[{made}]", made)
        else:
            made = ListType(f"List[{made}]", made)
    return made


class AliasInfo:
    """The annotation of an argument's memory in a signature: ``Tensor(a!)``."""

    def __init__(self, text: str) -> None:
        """Read from what stands between the parentheses."""
        before, arrow, after = text.replace("!", "").partition("->")
        self.is_write = "!" in text
        self.before_set = {name.strip() for name in before.split("|") if name.strip()}
        names = after if arrow else before
        self.after_set = {name.strip() for name in names.split("|") if name.strip()}


class Argument(torch.Argument):  # type: ignore[name-defined, misc]
    """One argument, or one result."""

    name: str
    type: Type
    real_type: Type
    N: int | None
    default_value: Any
    kwarg_only: bool
    alias_info: AliasInfo | None
    is_out: bool

    def __new__(cls, text: str, kwarg_only: bool = False) -> Any:
        """Parses the text."""
        found = _ARGUMENT.match(text)
        if found is None:
            raise RuntimeError(f"expected an argument of a schema but found {text!r}")
        made = object.__new__(cls)
        suffix, size = found["suffix"], re.search(r"\[(\d+)\]", found["suffix"])
        made._text, made.name, made.kwarg_only = text, found["name"] or "", kwarg_only
        made.type = _type(found["word"], suffix, is_real=False)
        made.real_type = _type(found["word"], suffix, is_real=True)
        made.N = int(size[1]) if size else None
        made.alias_info = AliasInfo(found["alias"]) if found["alias"] else None
        made._has_default = found["default"] is not None
        made.default_value = _default(found["default"], made.N)
        if isinstance(made.default_value, int) and isinstance(made.type, FloatType):
            made.default_value = float(made.default_value)
        made.is_out = kwarg_only and made.is_write
        return made

    @property
    def is_write(self) -> bool:
        """Whether the op writes to the argument."""
        return self.alias_info is not None and self.alias_info.is_write

    def has_default_value(self) -> bool:
        """Whether a call may omit the argument."""
        return bool(self._has_default)

    def __reduce__(self) -> Any:
        return Argument, (self._text, self.kwarg_only)


_ARGUMENT = re.compile(
    r"(?P<word>\w+(?:\.\w+)*)(?:\((?P<alias>[^)]*)\))?(?P<suffix>(?:\?|\[\d*\])*)"
    r"(?:\s+(?P<name>\w+)(?:\s*=\s*(?P<default>.+))?)?$"
)


def _default(text: str | None, size: int | None) -> Any:
    if text is None:
        return None
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        # The name of a constant: `contiguous_format`, `Mean`, `long`.
        constants = {"Mean": 1, "Sum": 2}
        return constants.get(text, getattr(torch, text, text))
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return [value] * size if size is not None and is_number else value


class FunctionSchema(torch.FunctionSchema):  # type: ignore[name-defined, misc]
    """A signature: ``aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor``."""

    name: str
    overload_name: str
    arguments: list[Argument]
    returns: list[Argument]

    def __new__(cls, text: str) -> Any:
        """Parses the text."""
        found = _SCHEMA.match(text.strip())
        if found is None:
            raise RuntimeError(
                f"expected a schema, 'name(Tensor x, *, int n=1) -> Tensor', but found {text!r}"
            )
        made = object.__new__(cls)
        made._text, made.name = text.strip(), found["name"]
        made.overload_name = found["overload"] or ""
        made.arguments, is_named = [], False
        for part in split(found["arguments"]):
            if part == "*":
                is_named = True
            else:
                made.arguments.append(Argument(part, is_named))
        to = found["returns"].strip()
        is_several = to.startswith("(")
        made.returns = [Argument(part) for part in (split(to[1:-1]) if is_several else [to])]
        return made

    @property
    def is_mutable(self) -> bool:
        """Whether a call writes to arguments."""
        return any(argument.is_write for argument in self.arguments)

    def __str__(self) -> str:
        return str(self._text)

    __repr__ = __str__

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, FunctionSchema) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> Any:
        return FunctionSchema, (self._text,)


_SCHEMA = re.compile(
    r"(?P<name>\w+(?:::\w+)?)(?:\.(?P<overload>\w+))?\s*"
    r"\((?P<arguments>.*)\)\s*->\s*(?P<returns>.+)$",
    re.DOTALL,
)


def parse(text: str) -> FunctionSchema:
    """Reads a signature.

    Args:
        text: a name, with or without a namespace, the arguments and the results.

    Raises:
        RuntimeError: if it is none.
    """
    schema: FunctionSchema = FunctionSchema(text)
    return schema


def of_form(text: str, namespace: str, name: str, overload: str) -> FunctionSchema:
    """The signature of one form of an op.

    Args:
        text: the signature of the functional form, or of an op that has only the other one.
        namespace: the namespace of the op.
        name: the name of the form, with an underscore at its end for the one in place.
        overload: the name of the overload; ``default`` if it has none.
    """
    schema = parse(text)
    has_own_text = schema.is_mutable or name == schema.name.rpartition("::")[2]
    found = _SCHEMA.match(text.strip())
    assert found is not None, text
    parts, returns = split(found["arguments"]), found["returns"].strip()
    is_out = overload.endswith("out") and not schema.overload_name.endswith("out")
    if is_out and not schema.is_mutable:
        parts, returns = _with_targets(parts, schema.returns)
    elif not has_own_text:
        kind, _, rest = parts[0].partition(" ")
        parts[0] = f"{_marked(kind, 'a!')} {rest}"
        if len(schema.returns) == 1:
            # (Lists are written to, and not given again.)
            returns = "()" if "[" in kind else _marked(kind, "a!")
    dot = "" if overload == "default" else f".{overload}"
    return parse(f"{namespace}::{name}{dot}({', '.join(parts)}) -> {returns}")


def _marked(kind: str, mark: str) -> str:
    """The type ``Tensor``, ``Tensor(a)`` or ``Tensor[]`` with another mark."""
    word, suffix = re.sub(r"\([^)]*\)", "", kind), ""
    for at, character in enumerate(word):
        if character in "[?":
            word, suffix = word[:at], word[at:]
            break
    return f"{word}({mark}){suffix}"


def _with_targets(parts: list[str], returns: list[Argument]) -> tuple[list[str], str]:
    """The arguments with the targets of ``out=``, and the results, which are these."""
    letters = [chr(ord("a") + at) for at in range(len(returns))]
    given = ["out"] if len(returns) == 1 else [r.name or f"out{i}" for i, r in enumerate(returns)]
    taken = {part.partition("=")[0].rpartition(" ")[2] for part in parts}
    # (A result may be called as an argument is.)
    names = [f"{name}_out" if name in taken else name for name in given]
    kinds = [
        _marked(str(r._text).partition(" ")[0], f"{letter}!")
        for r, letter in zip(returns, letters, strict=True)
    ]
    star = [] if "*" in parts else ["*"]
    targets = [f"{kind} {name}" for kind, name in zip(kinds, names, strict=True)]
    shown = [
        kind if len(returns) == 1 or not r.name else f"{kind} {r.name}"
        for kind, r in zip(kinds, returns, strict=True)
    ]
    to = shown[0] if len(shown) == 1 else f"({', '.join(shown)})"
    return [*parts, *star, *targets], to
