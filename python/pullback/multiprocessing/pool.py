"""Pools of processes, whose arguments and results may hold tensors in shared memory."""

from __future__ import annotations

import multiprocessing.pool

__all__ = ["Pool"]


class Pool(multiprocessing.pool.Pool):
    """As :class:`multiprocessing.pool.Pool`."""
