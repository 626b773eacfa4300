"""Programs exported to ONNX, which needs a captured graph: only the predicate works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _absent

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


__all__ = ["is_in_onnx_export"]


def is_in_onnx_export() -> bool:
    """Whether a program is being exported: never."""
    return False


_absent.announce(globals())
