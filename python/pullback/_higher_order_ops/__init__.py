"""Functions that take functions: control flow and scans, which run at once, as Python does."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

__all__ = ["associative_scan", "cond", "while_loop"]


class _Functions(ModuleType):
    """The package, in which a function stays when the module that has its name is imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in __all__):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Functions

from .._control_flow import while_loop  # noqa: E402
from .associative_scan import associative_scan  # noqa: E402
from .cond import cond  # noqa: E402
