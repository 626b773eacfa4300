"""Functions that take functions: control flow and scans, which run at once, as Python does."""

from __future__ import annotations

from .._control_flow import while_loop
from .associative_scan import associative_scan
from .cond import cond

__all__ = ["associative_scan", "cond", "while_loop"]
