"""Counters of what a program does, which are not here: see `torch.profiler`.

Its names are placeholders, see `_placeholder/table.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _absent

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


_absent.announce(globals())
