"""What a worker is told of itself, under the names of PyTorch's module."""

from ..info import WorkerInfo, get_worker_info

__all__ = ["WorkerInfo", "get_worker_info"]
