"""The native functions as ``pullback.nn`` uses them, under three short names.

``nn`` are those of PyTorch's ``_C._nn``, ``linalg`` those of ``_C._linalg``, ``VF`` the rest. Their
types are those of the stubs that come from the registry.
"""

from __future__ import annotations

from .._C import _linalg as linalg
from .._C import _nn as nn
from .._C import _VariableFunctions as VF

__all__ = ["VF", "linalg", "nn"]
