"""Tools around training: data loading, pictures of graphs, checkpoint files.

A name space only. `data` is imported with it, as programs expect; the others on demand.
"""

from .. import _lazy
from . import data

_lazy.submodules(
    globals(), "_device", "_mode_utils", "_python_dispatch", "_pytree", "checkpoint", "hooks"
)

__all__ = ["data"]
