"""Tools around training: data loading, pictures of graphs, checkpoint files.

A name space only. `data` is imported with it, as programs expect; the others on demand.
"""

from .. import _absent, _lazy
from . import data

_lazy.submodules(
    globals(),
    "_contextlib",
    "_device",
    "_import_utils",
    "_mode_utils",
    "_python_dispatch",
    "_pytree",
    "checkpoint",
    "deterministic",
    "dlpack",
    "hooks",
    "serialization",
)

__all__ = ["data"]

_absent.announce(globals())
