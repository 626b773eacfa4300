"""Neural networks: modules, their parameters, losses, initial values.

``Module`` and the layers are in ``modules/``, functions in ``functional.py``, initial values in
``init.py``. Written in Python on top of native operations; nothing here computes by itself.
"""

from __future__ import annotations

from . import functional, init, modules, parameter, utils
from .modules import *  # noqa: F403
from .modules import __all__ as _modules
from .parameter import Buffer, Parameter

__all__ = ["Buffer", "Parameter", "functional", "init", "modules", "parameter", "utils", *_modules]
