"""The path under which libraries find what :func:`torch.library.custom_op` makes."""

from __future__ import annotations

from ..library import CustomOpDef, custom_op

__all__ = ["CustomOpDef", "custom_op"]
