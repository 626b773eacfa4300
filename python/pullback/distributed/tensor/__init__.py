"""Tensors that lie on several processes: only the words for how they would lie there.

Libraries write down plans of such words as they are imported. Whatever would need the processes is
a placeholder (`_placeholder/table.py`).
"""

from __future__ import annotations

from ... import _absent
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = ["Partial", "Placement", "Replicate", "Shard"]

_absent.announce(globals())
