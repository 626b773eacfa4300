"""Groups and collectives under the name of their module in PyTorch."""

from __future__ import annotations

from . import *  # noqa: F403 (all of it)
from . import __all__ as _names
from ._group import default_group as _get_default_group  # noqa: F401 (libraries import it)
from ._work import RedOpType

__all__ = [*_names, "RedOpType"]
