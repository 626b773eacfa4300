"""Neural networks: modules, their parameters, losses, initial values.

``Module`` and the layers are in ``modules/``, functions in ``functional.py``, initial values in
``init.py``. Written in Python on top of native operations; nothing here computes by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _absent, _lazy
from . import functional, init, modules, parameter, utils
from .modules import *  # noqa: F403
from .modules import __all__ as _modules
from .parameter import Buffer, Parameter

if TYPE_CHECKING:
    from . import parallel as parallel

__all__ = [
    "Buffer",
    "Parameter",
    "functional",
    "init",
    "modules",
    "parallel",
    "parameter",
    "utils",
    *_modules,
]

_lazy.submodules(globals(), "parallel")
_absent.announce(globals())
