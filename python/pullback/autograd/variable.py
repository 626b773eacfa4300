"""The old name of tensors, where programs import it from, and its class."""

from __future__ import annotations

from typing import Any

from .. import _C
from . import Variable

__all__ = ["Variable", "VariableMeta"]


class VariableMeta(type):
    """The class of a class of which every tensor is an instance."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _C.TensorBase)
