"""Values that arrive later, see `_future.py`."""

from .. import _absent
from .._future import Future, collect_all, wait_all

__all__ = ["Future", "collect_all", "wait_all"]

_absent.announce(globals())
