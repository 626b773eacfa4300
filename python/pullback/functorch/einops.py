"""``rearrange``, under its name in ``functorch``."""

from __future__ import annotations

from ..func._rearrange import rearrange

__all__ = ["rearrange"]
