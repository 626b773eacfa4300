"""Texts of tensors, under the names of PyTorch's private module, which libraries import.

Tensors print natively; what is here takes those texts apart and puts them together again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from . import _C
from ._info import get_printoptions

__all__ = ["PRINT_OPTS", "get_printoptions", "printoptions", "set_printoptions"]

set_printoptions = _C.set_printoptions


class _Options:
    """The options in force, as attributes."""

    def __getattr__(self, name: str) -> Any:
        options = get_printoptions()
        if name not in options:
            raise AttributeError(f"there is no option {name!r} of printing")
        return options[name]

    def __setattr__(self, name: str, value: Any) -> None:
        set_printoptions(**{name: value})

    def __repr__(self) -> str:
        return f"PrinterOptions({', '.join(f'{k}={v}' for k, v in get_printoptions().items())})"


PRINT_OPTS = _Options()


@contextlib.contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """A context in which some options are others."""
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**before)


def _tensor_str(self: Any, indent: int) -> str:
    """The elements alone, with lines after the first moved to the right by ``indent``."""
    plain = _C.TensorBase.__repr__(self.detach())
    text = plain.partition("(")[2].removesuffix(")")
    body = text[: text.rindex("]") + 1] if text.startswith("[") else text.partition(",")[0]
    return body.replace("\n" + " " * len("tensor("), "\n" + " " * indent)


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """A text with a suffix after the elements, on a new line where it would be too long."""
    parts = [tensor_str]
    length = len(tensor_str) - tensor_str.rfind("\n")
    width = get_printoptions()["linewidth"]
    for suffix in suffixes:
        if force_newline or length + len(suffix) + 2 > width:
            parts.append(",\n" + " " * indent + suffix)
            length, force_newline = indent + len(suffix), False
        else:
            parts.append(", " + suffix)
            length += len(suffix) + 2
    return "".join(parts) + ")"


def _str_intern(inp: Any, *, tensor_contents: str | None = None) -> str:
    """The text of a tensor; with the given text of its elements, if there is one."""
    text = _C.TensorBase.__repr__(inp)
    if tensor_contents is None:
        return text
    head, _, rest = text.partition("(")
    tail = rest[rest.rindex("]") + 1 :] if rest.startswith("[") else rest[len(rest.split(",")[0]) :]
    return f"{head}({tensor_contents}{tail or ')'}"


_str = _str_intern
