"""Signatures of functions, and the types that these may have.

The tables hold the types in all their spellings; what :func:`infer_schema` accepts is decided by
``library._schema``, which makes them.
"""

from __future__ import annotations

import collections.abc
import typing
from typing import Any

from .. import Tensor, device, dtype
from ..library import infer_schema
from ..library._schema import type_text

__all__ = ["SUPPORTED_PARAM_TYPES", "SUPPORTED_RETURN_TYPES", "infer_schema"]

_NUMBER = int | float | bool
_LISTED: tuple[Any, ...] = (Tensor, typing.Optional[Tensor], int, float, bool, _NUMBER)  # noqa: UP045
_ALONE: tuple[Any, ...] = (Tensor, int, float, bool, str, _NUMBER, dtype, device)
_SEQUENCES: tuple[Any, ...] = (typing.Sequence, typing.List, collections.abc.Sequence, list)  # noqa: UP006


def _spellings() -> list[Any]:
    """The types of arguments: alone, or as items of a list, and each of these or None."""
    kinds: list[Any] = [*_ALONE, *(made[item] for item in _LISTED for made in _SEQUENCES)]
    return [spelled for kind in kinds for spelled in (kind, typing.Optional[kind])]  # noqa: UP045


SUPPORTED_PARAM_TYPES: dict[Any, str] = {kind: type_text(kind) for kind in _spellings()}
SUPPORTED_RETURN_TYPES: dict[Any, str] = {
    kind: type_text(kind)
    for kind in (Tensor, typing.List[Tensor], list[Tensor], int, float, bool, _NUMBER)  # noqa: UP006
}
