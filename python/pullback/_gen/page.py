"""The page of ops: what each does, how it is called, and whether it has a derivative.

A family is a file of ``crates/pullback/src/ops`` or of a folder there, which the registry tells;
the files' opening sentences are the headings.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from .. import _C
from ..nn import functional
from .op import Op

__all__ = ["opening", "text"]

PLACE = re.compile(r"defined at crates/pullback/src/ops/(\S+)\.rs:")

HEAD = """# Ops

Every op of the registry by family, written by `cargo xtask gen`. Signatures are PyTorch's way to
show them: types before names, optional values with their defaults. A result is one tensor unless
`->` says otherwise.

- **Forms**: *function* `torch.name(x)`, *method* `x.name()`, *attribute* `x.name`, *in-place*
  `x.name_()`, *out* `out=`.
- Names that begin with `_C` are what functions of the package are made of.
- **Gradient**: whether gradients flow through the op to its inputs.
"""


def text(ops: list[Op], sources: Path) -> str:
    """The text of the whole page."""
    headings = _headings(sources)
    groups: dict[str, dict[str, list[Op]]] = {file: {} for file in headings}
    for op in ops:
        if not op.internal and not op.name.startswith("_"):
            rows = groups[_family(op)]
            rows.setdefault(_row(op), []).append(op)
    groups = {file: rows for file, rows in groups.items() if rows}
    lines = [HEAD, "## Families\n"]
    for file, rows in groups.items():
        lines.append(f"- [{headings[file]}](#{_anchor(file)}) ({len(rows)})")
    for file, rows in groups.items():
        lines += ["", f"## {_title(file)}", "", headings[file] + ".", ""]
        lines += ["| op | what it does | forms | gradient |", "|---|---|---|---|"]
        lines += [_line(name, group) for name, group in sorted(rows.items())]
    return "\n".join(lines) + "\n"


def _headings(sources: Path) -> dict[str, str]:
    """The heading of each file."""
    files = sorted(sources.rglob("*.rs"))
    names = ("_".join(path.relative_to(sources).with_suffix("").parts) for path in files)
    return {name: opening(path.read_text()) for name, path in zip(names, files, strict=True)}


def _family(op: Op) -> str:
    """The file where the op stands."""
    found = PLACE.search(_C._dispatch_dump(f"aten::{op.op}"))
    assert found, f"the registry does not say where {op.op} stands"
    return found[1].replace("/", "_")


def opening(source: str) -> str:
    """The first sentence of a module's comment."""
    lines = []
    for line in source.splitlines():
        if not line.startswith("//! "):
            break
        lines.append(line[4:])
    return _sentence(" ".join(lines)).removesuffix(".")


def _sentence(doc: str) -> str:
    """The first sentence; a full stop ends one only before a blank and a capital, or at the end."""
    return re.split(r"(?<=\.)\s+(?=[A-Z`])", " ".join(doc.split()), maxsplit=1)[0]


def _anchor(file: str) -> str:
    return file.replace("_", "-")


def _title(file: str) -> str:
    return file.replace("_", " ").capitalize()


def _row(op: Op) -> str:
    """The name under which a program finds the op, without the underscore of in-place forms."""
    name = op.name.removesuffix("_") if op.inplace and not _is_only_inplace(op) else op.name
    if not op.module or op.method:
        return name
    namespace = "nn.functional" if op.module == "nn" else op.module
    public = functional if op.module == "nn" else getattr(sys.modules["pullback"], namespace, None)
    short = name.removeprefix(f"{op.module}_")
    return f"{namespace}.{short}" if hasattr(public, short) else f"_C._{op.module}.{name}"


def _is_only_inplace(op: Op) -> bool:
    """Whether the op itself, and not a form of it, writes into its input."""
    return op.schema.partition("(")[0].partition(".")[0].endswith("_")


def _line(name: str, group: list[Op]) -> str:
    calls = "<br>".join(f"`{call}`" for call in _calls(name, group))
    docs: dict[str, None] = {}
    for op in group:
        docs.setdefault(_sentence(op.doc))
    doc = next(iter(docs)).replace("|", "\\|")
    gradient = "yes" if any(op.differentiable for op in group) else "no"
    return f"| {calls} | {doc} | {', '.join(_forms(group))} | {gradient} |"


def _calls(name: str, group: list[Op]) -> list[str]:
    """One call per overload: as a function if there is one, else as a method."""
    shown: dict[str, str] = {}
    for op in group:
        if op.inplace and not _is_only_inplace(op):
            continue
        # The signatures after the first are older ways to call the same overload.
        if op.op not in shown:
            shown[op.op] = _call(name, op)
    return list(dict.fromkeys(shown.values())) or [_call(name, group[0])]


def _call(name: str, op: Op) -> str:
    signature = "()" if op.signature == "no arguments" else op.signature
    signature = re.sub(r", (?:\*, )?(?:Tensor|tuple of Tensors) out = None(?=\))", "", signature)
    signature = re.sub(r", (?:Tensor|tuple of Tensors) out = None", "", signature)
    result = op.schema.rpartition(" -> ")[2]
    arrow = "" if result.startswith("Tensor") and "[" not in result else f" -> {result}"
    if op.attribute:
        return f"x.{name}"
    return f"{'x.' if op.method else ''}{name}{signature}{arrow}"


def _forms(group: list[Op]) -> list[str]:
    has = {
        "function": any(not op.method and (not op.inplace or _is_only_inplace(op)) for op in group),
        "attribute": any(op.attribute for op in group),
        "method": any(
            op.method and not op.attribute and (not op.inplace or _is_only_inplace(op))
            for op in group
        ),
        "in-place": any(op.inplace for op in group),
        "out": any(" out = None" in op.signature for op in group),
    }
    return [form for form, present in has.items() if present]
