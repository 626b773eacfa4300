"""Signals: the windows that pieces of them are multiplied by."""

from __future__ import annotations

from . import windows as windows

__all__ = ["windows"]
