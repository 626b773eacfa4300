"""``functorch`` for processes that a program on pullback starts: it becomes a part of pullback."""

from __future__ import annotations

import importlib
import sys

importlib.import_module("torch")
del sys.modules[__name__]
sys.modules[__name__] = importlib.import_module(__name__)
