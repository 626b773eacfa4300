"""``torch`` for processes that a program on pullback starts: it becomes pullback.

An interpreter that has no pullback has been started for something else; its own ``torch`` takes
the place of this module.
"""

from __future__ import annotations

import importlib
import os
import sys

_folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

try:
    import pullback
except ModuleNotFoundError:
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != _folder]
    del sys.modules[__name__]
    sys.modules[__name__] = importlib.import_module(__name__)
else:
    del sys.modules[__name__]
    pullback.as_torch()
