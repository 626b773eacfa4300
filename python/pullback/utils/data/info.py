"""Which worker process this is, for data sets that share out their work.

Invariant: `worker_info` is set once, at the start of a worker process, and nowhere else.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class WorkerInfo(NamedTuple):
    """Which worker this is: `id` of `num_workers`, its `seed`, and its copy of the data set."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a worker process, which worker this is; `None` in the main process."""
    return worker_info
