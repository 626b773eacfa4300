"""Ops as the generator sees them: one record per signature of a function or method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import _C

__all__ = ["Op", "described"]


@dataclass(frozen=True)
class Op:
    """One signature under one name, as ``_C._describe_ops`` returns it."""

    name: str
    module: str
    method: bool
    attribute: bool
    writable: bool
    inplace: bool
    schema: str
    op: str
    signature: str
    stub: tuple[str, ...]
    doc: str
    internal: bool
    differentiable: bool
    out: bool
    fields: tuple[str, ...] | None

    @property
    def is_assignment(self) -> bool:
        """Whether it is an operator's in-place form such as ``__iand__``: the stub has its own."""
        return self.inplace and self.name.startswith("__")


def described() -> list[Op]:
    """All signatures, functions before methods, each in the registry's order of names."""
    names = Op.__dataclass_fields__
    ops = (_op(entry, names) for entry in _C._describe_ops())
    return [op for op in ops if not op.is_assignment]


def _op(entry: dict[str, Any], names: Any) -> Op:
    values = {name: entry[name] for name in names}
    values["stub"] = tuple(values["stub"])
    values["fields"] = tuple(values["fields"]) if values["fields"] else None
    return Op(**values)
