"""Engines for quantized tensors, which are not here."""

from __future__ import annotations

from .. import _absent
from ._switch import guard

__all__ = ["engine", "supported_engines"]

engine = "none"
supported_engines = ["none"]


def _is_engine(name: str, value: object) -> None:
    if value not in supported_engines:
        raise RuntimeError(f"{name} expects one of {supported_engines}, but got {value!r}")


guard(globals(), engine=_is_engine)
_absent.announce(globals())
