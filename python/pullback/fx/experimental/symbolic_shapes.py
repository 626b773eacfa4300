"""Questions about sizes that are no numbers: the only such are those of ragged dimensions."""

from __future__ import annotations

from typing import Any

from ... import _absent
from ..._symbol import SymInt

__all__ = ["is_nested_int"]


def is_nested_int(s: Any) -> bool:
    """Whether it is the size of a ragged dimension of a nested tensor."""
    return isinstance(s, SymInt) and bool(s.node.is_nested_int())


_absent.announce(globals())
