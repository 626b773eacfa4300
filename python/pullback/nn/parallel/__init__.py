"""Work on several devices: parts of tensors on each, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import _absent, _lazy
from .data_parallel import DataParallel as DataParallel
from .data_parallel import data_parallel as data_parallel
from .distributed import DistributedDataParallel as DistributedDataParallel
from .parallel_apply import parallel_apply as parallel_apply
from .replicate import replicate as replicate
from .scatter_gather import gather as gather
from .scatter_gather import scatter as scatter

if TYPE_CHECKING:
    from . import comm as comm
    from . import scatter_gather as scatter_gather

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "comm",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
    "scatter_gather",
]

_lazy.submodules(globals(), "comm", "scatter_gather")

_absent.announce(globals())
