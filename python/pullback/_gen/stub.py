"""The type stubs: of the extension module, of its submodules, and of the named tuples.

The extension's stub is a package of stubs, because ``_C._VariableFunctions`` and its like are
modules of their own. The text of a signature comes from the registry; here they are grouped into
overloads and put into their places.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from pathlib import Path

import pullback

from .. import _C
from .op import Op

__all__ = ["texts"]

MARK = "# Written by `cargo xtask gen` from the op registry; edits are lost.\n"
TEMPLATE = Path(__file__).with_name("extension.pyi.txt")
INDENT = "    "

# The imports of the stubs of functions; unused imports are allowed in stubs.
FUNCTION_HEAD = """
from collections.abc import Sequence
from typing import Any, overload

from .. import return_types
from .._tensor import Tensor
from ..types import DeviceLikeType, Number, _bool, _complex, _dtype, _float, _int, _layout, _size
from . import Generator, memory_format
"""

RETURN_TYPES_HEAD = '''"""The named tuples that ops with several results return."""

from collections.abc import Iterable
from typing import Any, ClassVar, final

from typing_extensions import Self

from ._tensor import Tensor

all_return_types: list[type[tuple[Tensor, ...]]]

def pytree_register_structseq(cls: type[Any]) -> None: ...
'''

# The modules that show a namespace of the registry under short names, and what else they have.
SHORT = {
    "fft": "from ._tensor import Tensor as Tensor\n",
    "linalg": "from ._C import _LinAlgError as LinAlgError\n",
    "special": "",
}

# The operators that take another operand; those of bits, and the product of matrices, are ops.
BINARY = "add floordiv mod mul pow sub truediv"
REFLECTED = "add and floordiv lshift mod mul or pow rshift sub truediv xor"
INPLACE = "add floordiv mod mul pow sub truediv"
INPLACE_BITS = "and lshift or rshift xor"
COMPARED = "ge gt le lt"
CONVERSIONS = "bfloat16 bool byte cdouble cfloat chalf char double float half int long short"


def texts(ops: list[Op]) -> dict[str, str]:
    """The text of each stub by its path in the package."""
    made = {"_C/__init__.pyi": _extension(ops), "return_types.pyi": _return_types(ops)}
    functions = [op for op in ops if not op.method]
    for module in ("", *_modules()):
        name = f"_{module}" if module else "_VariableFunctions"
        own = [op for op in functions if op.module == module]
        made[f"_C/{name}.pyi"] = _functions(own, name)
    made["_C/_public.pyi"] = _public(op.name for op in functions if not op.module)
    for module in SHORT:
        made[f"{module}.pyi"] = _short(module)
    return made


def _short(module: str) -> str:
    """The functions of a namespace by their names without its own (see ``_short.py``)."""
    public = vars(pullback)[module].__all__
    natives = vars(getattr(_C, f"_{module}"))
    names = [name for name in public if f"{module}_{name}" in natives]
    lines = [f"from ._C._{module} import {module}_{name} as {name}\n" for name in names]
    shown = "".join(sorted([SHORT[module], *lines]))
    listed = "".join(f'{INDENT}"{name}",\n' for name in public)
    return f"{MARK}\n{shown}\n__all__ = [\n{listed}]\n"


def _public(names: Iterable[str]) -> str:
    """Those functions that the main namespace has as they are, for its ``import *``.

    Others it defines in Python under the same name: type checkers do not agree on which one is
    meant where both are imported.
    """
    natives = vars(_C._VariableFunctions)
    shown = {
        name
        for name in names
        if not name.startswith("_") and vars(pullback).get(name) is natives.get(name)
    }
    lines = (f"from ._VariableFunctions import {name} as {name}\n" for name in sorted(shown))
    return f"{MARK}\n{''.join(lines)}"


def _modules() -> list[str]:
    """The namespaces beside the main one."""
    modules = (n for n, v in vars(_C).items() if isinstance(v, types.ModuleType))
    return sorted(name[1:] for name in modules if name != "_VariableFunctions")


def _functions(ops: list[Op], name: str) -> str:
    extra = ""
    if name == "_nn":
        extra = "\ndef _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, ...]: ...\n"
    lines = _definitions(ops, "")
    body = "".join(f"{line}\n" for line in lines)
    return f"{MARK}{FUNCTION_HEAD}{extra}\n{body}" if body or extra else MARK


def _definitions(ops: Iterable[Op], indent: str) -> list[str]:
    """The definitions, with ``@overload`` where a name has several."""
    groups: dict[str, list[str]] = {}
    docs: dict[str, str] = {}
    for op in ops:
        group = groups.setdefault(op.name, [])
        # (Some overloads have no doc text of their own.)
        docs[op.name] = docs.get(op.name) or op.doc
        # Two overloads of an op may look alike in Python.
        group.extend(text for text in op.stub if text not in group)
    lines = []
    for name in sorted(groups):
        for number, text in enumerate(groups[name]):
            if indent and name.startswith("__"):
                # Nobody names the operand of an operator.
                text = text.replace(") ->", ", /) ->", 1)
            if len(groups[name]) > 1:
                lines.append(f"{indent}@overload")
            # (Editors show what the first overload says for all of them.)
            is_told = number == 0 and not name.startswith("_")
            lines += _told(f"{indent}{text}", docs[name] if is_told else "", indent)
    return lines


def _told(text: str, doc: str, indent: str) -> list[str]:
    """A definition with what it does, in the place of the dots that end it."""
    if not doc:
        return [text]
    quotes = '"' * 3
    inner = indent + INDENT
    plain = doc.strip().replace("\\", "\\" * 2).replace(quotes, "'" * 3)
    first, *rest = plain.splitlines()
    lines = [f"{inner}{quotes}{first}", *(f"{inner}{line}" if line else "" for line in rest)]
    # A quotation mark at the end is not to join those that end the text.
    lines[-1] += f" {quotes}" if lines[-1].endswith('"') else quotes
    return [text.removesuffix(" ..."), *lines]


def _attribute(op: Op) -> list[str]:
    lines = ["@property", *(line for text in op.stub for line in _told(text, op.doc, ""))]
    if op.writable:
        setter = f"def {op.name}(self, value: Tensor | Number) -> None: ..."
        lines += [f"@{op.name}.setter", setter]
    return [INDENT + line for line in lines]


def _extension(ops: list[Op]) -> str:
    """The template with what the registry and the module know filled in."""
    parts = {
        "CONSTANTS": _constants(),
        "OPERATORS": _operators(),
        "CONVERSIONS": [
            f"{INDENT}def {name}(self, memory_format: memory_format = ...) -> Tensor: ..."
            for name in CONVERSIONS.split()
        ],
        "ATTRIBUTES": [line for op in ops if op.attribute for line in _attribute(op)],
        "OPS": _definitions((op for op in ops if op.method and not op.attribute), INDENT),
    }
    lines = []
    for line in TEMPLATE.read_text().splitlines():
        lines.extend(parts.get(line, [line]))
    return MARK + "\n" + "\n".join(lines) + "\n"


def _constants() -> list[str]:
    kinds = {"dtype": "_dtype", "layout": "_layout", "memory_format": "memory_format"}
    return [
        f"{name}: Final[{kinds[type(value).__name__]}]"
        for name, value in sorted(vars(_C).items())
        if type(value).__name__ in kinds
    ]


def _operators() -> list[str]:
    lines = []
    for prefix, names in (("", BINARY), ("r", REFLECTED), ("i", INPLACE), ("", COMPARED)):
        result = "Self" if prefix == "i" else "Tensor"
        lines += [
            f"{INDENT}def __{prefix}{name}__(self, other: _Operand, /) -> {result}: ..."
            for name in names.split()
        ]
    lines.sort()
    for name in INPLACE_BITS.split():
        # Overloads, because those of the operator without assignment are overloads.
        for operand in ("Tensor", "Number | _complex"):
            lines.append(f"{INDENT}@overload")
            lines.append(f"{INDENT}def __i{name}__(self, other: {operand}, /) -> Self: ...")
    return lines


def _return_types(ops: list[Op]) -> str:
    fields = {_result(op): op.fields for op in ops if op.fields}
    fields |= {f"{_result(op)}_out": op.fields for op in ops if op.fields and op.out}
    parts = [MARK, RETURN_TYPES_HEAD]
    for name, names in sorted(fields.items()):
        items = ", ".join("Tensor" for _ in names)
        head = _told(f"class {name}(tuple[{items}]): ...", _shown(name, names), "")
        parts.append("\n@final\n" + "".join(f"{line}\n" for line in head))
        parts += [f"{INDENT}{line}\n" for line in _members(names)]
    return "".join(parts)


def _shown(name: str, fields: tuple[str, ...]) -> str:
    """The class of a named tuple."""
    called = f"{name[:-4]}(..., out=...)" if name.endswith("_out") else name
    return f"What `{called}` returns: `{'`, `'.join(fields)}`."


def _result(op: Op) -> str:
    """The name of the op's named tuple."""
    return op.stub[0].rpartition("return_types.")[2].removesuffix(": ...")


def _members(names: tuple[str, ...]) -> list[str]:
    lines = [
        "n_fields: ClassVar[int]",
        "n_sequence_fields: ClassVar[int]",
        "n_unnamed_fields: ClassVar[int]",
        "def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...",
    ]
    for name in names:
        lines += ["@property", f"def {name}(self) -> Tensor: ..."]
    return lines
