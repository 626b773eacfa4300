"""Queues of processes; what they carry is pickled by :mod:`torch.multiprocessing.reductions`."""

from __future__ import annotations

import multiprocessing.queues

__all__ = ["Queue", "SimpleQueue"]


class Queue(multiprocessing.queues.Queue):  # type: ignore[type-arg]
    """A queue of any number of senders and receivers."""


class SimpleQueue(multiprocessing.queues.SimpleQueue):  # type: ignore[type-arg]
    """A queue without threads of its own."""
