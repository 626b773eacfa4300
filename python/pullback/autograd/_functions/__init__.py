"""Functions with a derivative of their own that programs know from here, see :mod:`.tensor`."""

from __future__ import annotations

from . import tensor as tensor
from .tensor import Resize, Type

__all__ = ["Resize", "Type"]
