"""Ops that programs define, as before :mod:`pullback.library`: ``_custom_op.impl`` has them."""

from __future__ import annotations

from . import impl as impl
