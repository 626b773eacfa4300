"""Curves and pictures for TensorBoard, where its package ``tensorboard`` is installed."""

from __future__ import annotations

try:
    from tensorboard.compat.proto import event_pb2 as _event_pb2
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "torch.utils.tensorboard needs the package `tensorboard`: pip install tensorboard",
        name="tensorboard",
    ) from error
from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]

del _event_pb2
