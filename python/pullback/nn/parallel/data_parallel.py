"""A module on several devices of one process, under PyTorch's module path."""

from __future__ import annotations

from .._data_parallel import DataParallel, data_parallel

__all__ = ["DataParallel", "data_parallel"]
