"""The old name of tensors, where programs import it from."""

from . import Variable

__all__ = ["Variable"]
