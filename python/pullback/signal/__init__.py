"""Signals: the windows that segments of them are multiplied by."""

from __future__ import annotations

from . import windows as windows

__all__ = ["windows"]
