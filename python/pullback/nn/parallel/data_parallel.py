"""A module on several devices of one process, under PyTorch's module path."""

from __future__ import annotations

from .._data_parallel import DataParallel, data_parallel

# (What asks for the types of attributes looks their names up where the class says it is.)
from ..modules.module import Module as Module

__all__ = ["DataParallel", "data_parallel"]
