"""Work on several devices: parts of tensors on each, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import _absent, _lazy
from .distributed import DistributedDataParallel as DistributedDataParallel
from .scatter_gather import gather as gather
from .scatter_gather import scatter as scatter

if TYPE_CHECKING:
    from . import comm as comm
    from . import scatter_gather as scatter_gather

__all__ = ["DistributedDataParallel", "comm", "gather", "scatter", "scatter_gather"]

_lazy.submodules(globals(), "comm", "scatter_gather")

_absent.announce(globals())
