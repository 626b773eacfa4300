"""Passes over graphs."""

from __future__ import annotations

from ... import _absent
from . import shape_prop

__all__ = ["shape_prop"]

_absent.announce(globals())
