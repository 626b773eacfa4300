"""The methods of the Rust `Tensor` by family: the index in the documentation of `pullback::ops`.

rustdoc lists the methods of a type in one row, more than a thousand here. What an item is called in
Rust is read from its source, as the macro reads it (`crates/macros/src/method.rs`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from .page import opening

__all__ = ["text"]

HEAD = """\
# Methods of `Tensor` by family

Written by `cargo xtask gen`. A method with more forms is listed once: `add_` writes into its
tensor, `add_out` into another one, and `add_with` takes what `add` leaves at its default. Methods
that are no ops (`shape`, `grad`, `to`, `expand`), ops that the library uses inside, and those that
one macro makes together (`upsample_nearest2d` and its kin) stand at the type only.
"""

# An item: what stands in the attribute, and the type. Attributes and comments may be between.
_ITEM = re.compile(r"^#\[op\((.*?)\)\]\n(?:#\[[^\n]*\n|//[^\n]*\n)*impl (\w+) \{", re.M | re.S)
_RECEIVER = re.compile(r'^\s*"[\w.]+\(Tensor(?:\(a!?(?: -> \*)?\))? \w')
_METHOD = re.compile(r"\bmethod = (\w+)")
_INPLACE = re.compile(r'^\s*"\w+_(?:\.\w+)?\(')


def text(sources: Path) -> str:
    """The index; `ValueError` if the sources look so different that it would be empty."""
    lines = [HEAD]
    area = ""
    for path in sorted(sources.rglob("*.rs")):
        source = path.read_text()
        names = sorted(set(_methods(source)))
        if not names:
            continue
        place = path.relative_to(sources).with_suffix("")
        if place.parts[0] != area:
            area = place.parts[0]
            lines.append(f"## `{area}`\n")
        links = ", ".join(f"[`{name}`](crate::Tensor::{name})" for name in names)
        lines.append(f"- **{opening(source)}**: {links}")
        lines.append("")
    if not area:
        raise ValueError(f"no op with a method is found below {sources}")
    return "\n".join(lines).rstrip() + "\n"


def _methods(source: str) -> Iterator[str]:
    for words, name in _ITEM.findall(source):
        if not _RECEIVER.match(words):
            continue
        # `SumDim` is `sum_dim`.
        stem = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
        stem = f"{stem}_" if _INPLACE.match(words) else stem
        # (In the words behind the signature, which may itself speak of a method.)
        behind = re.sub(r'"[^"]*"', "", words)
        spelled = _METHOD.search(re.sub(r"\b(?:inplace|out) = method", "", behind))
        method = spelled[1] if spelled else stem
        if not method.startswith("_") and not re.search(r"\binternal\b", behind):
            yield method
