"""Writes `signatures.json.xz`: the parameters of PyTorch's public functions, methods and classes.

Run it with a Python that has PyTorch, and give it the list of public names (a name and its kind to
a line, `torch.x.y<TAB>function`); the tests only read the file. What is written in Python is asked
for its signature; what is native, for the schemas of its overloads, whose `self` the arguments of
functions call `input`, and which are left out where PyTorch's parser of arguments does not take
them. A signature is a list of words: `name`, `name=` where there is a default, `*name`, `**name`,
`/` after parameters that only a place can give, `*` before those that only a name can give. Beside
the overloads of what is native are the fields of the named tuples that it returns.
"""

from __future__ import annotations

import inspect
import json
import lzma
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

KINDS = inspect.Parameter
# Where native functions of a namespace have their schemas.
PREFIXES = {
    "torch": "",
    "torch.Tensor": "",
    "torch.nn.functional": "",
    "torch.linalg": "linalg_",
    "torch.special": "special_",
    "torch.fft": "fft_",
    "torch.sparse": "sparse_",
}


def resolve(name: str) -> Any:
    """The object of a full name; None if there is none."""
    found: Any = torch
    for part in name.split(".")[1:]:
        if not hasattr(found, part):
            return None
        found = getattr(found, part)
    return found


def words(signature: inspect.Signature) -> str:
    """The parameters, as the module's text says."""
    parts: list[str] = []
    kinds = [p.kind for p in signature.parameters.values()]
    for at, parameter in enumerate(signature.parameters.values()):
        if parameter.kind is KINDS.VAR_POSITIONAL:
            parts.append(f"*{parameter.name}")
            continue
        if parameter.kind is KINDS.VAR_KEYWORD:
            parts.append(f"**{parameter.name}")
            continue
        is_first = KINDS.KEYWORD_ONLY not in kinds[:at] and KINDS.VAR_POSITIONAL not in kinds[:at]
        if parameter.kind is KINDS.KEYWORD_ONLY and is_first:
            parts.append("*")
        has_default = parameter.default is not KINDS.empty
        parts.append(parameter.name + ("=" if has_default else ""))
        is_last = at + 1 == len(kinds) or kinds[at + 1] is not KINDS.POSITIONAL_ONLY
        if parameter.kind is KINDS.POSITIONAL_ONLY and is_last:
            parts.append("/")
    return " ".join(parts)


def is_op(schema: Any) -> bool:
    """Whether the dispatcher knows it: other schemas are the compiler's own."""
    try:
        torch._C._dispatch_find_schema_or_throw(schema.name, schema.overload_name)
    except RuntimeError:
        return False
    return True


def schemas() -> dict[str, list[Any]]:
    """The schemas of ops that have tensors to do with, by name."""
    found: dict[str, list[Any]] = {}
    for schema in torch._C._jit_get_all_schemas():
        space, name = schema.name.split("::")
        if not is_op(schema):
            continue
        kinds = " ".join(str(a.type) for a in [*schema.arguments, *schema.returns])
        is_named = any("str" in str(a.type) and a.name in ("dim", "dims") for a in schema.arguments)
        is_named |= any(a.name in ("dimname", "names") for a in schema.arguments)
        if space == "aten" and "Tensor" in kinds and not is_named:
            found.setdefault(name, []).append(schema)
    return found


def overload(schema: Any, is_method: bool) -> str | None:
    """The parameters of an overload as the call sees them; None for those of `out=`."""
    arguments = list(schema.arguments)
    # (The parser takes numbers for tensors there, and leaves the form with numbers out.)
    if schema.overload_name == "Scalar" and arguments[-1].name == "alpha":
        return None
    if any(a.alias_info is not None and a.kwarg_only for a in arguments):
        return None
    if is_method:
        if not any(a.name == "self" for a in arguments):
            return None
        arguments = [a for a in arguments if a.name != "self"]
    parts = []
    for argument in arguments:
        if argument.kwarg_only and "*" not in parts:
            parts.append("*")
        name = "input" if argument.name == "self" else argument.name
        parts.append(name + ("=" if argument.has_default_value() else ""))
    return " ".join(parts)


def record(name: str, known: dict[str, list[Any]]) -> dict[str, Any] | None:
    """What is known of the parameters of a name."""
    found = resolve(name)
    if found is None or not callable(found):
        return None
    space, _, last = name.rpartition(".")
    is_native = type(found).__name__ in (
        "builtin_function_or_method",
        "method_descriptor",
        "wrapper_descriptor",
    )
    if is_native and space in PREFIXES:
        of_op = known.get(PREFIXES[space] + last, [])
        texts = [overload(schema, space == "torch.Tensor") for schema in of_op]
        unique = list(dict.fromkeys(text for text in texts if text is not None))
        fields = {" ".join(r.name or "_" for r in schema.returns) for schema in of_op}
        named = sorted(text for text in fields if " " in text and "_" not in text.split())
        return {"overloads": unique, "fields": named} if unique else None
    try:
        return {"python": words(inspect.signature(found))}
    except (TypeError, ValueError):
        return None


def main() -> None:
    """Reads the names, writes the signatures."""
    warnings.simplefilter("ignore")
    known = schemas()
    signatures = {}
    for line in Path(sys.argv[1]).read_text().splitlines():
        name, kind, *_ = (*line.split("\t"), "", "")
        if kind in ("function", "class"):
            found = record(name, known)
            if found is not None:
                signatures[name] = found
    record_of = {"torch": torch.__version__.split("+")[0], "signatures": signatures}
    text = json.dumps(record_of, indent=0, sort_keys=True).encode()
    Path(__file__).with_name("signatures.json.xz").write_bytes(lzma.compress(text, preset=9))


if __name__ == "__main__":
    main()
