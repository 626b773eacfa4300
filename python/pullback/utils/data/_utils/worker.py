"""What a worker is told of itself, under the names of PyTorch's module."""

from ..info import WorkerInfo, get_worker_info
from ..worker import generate_state as _generate_state  # noqa: F401 (programs seed with it)

__all__ = ["WorkerInfo", "get_worker_info"]
