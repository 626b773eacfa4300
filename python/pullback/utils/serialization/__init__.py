"""Settings of ``torch.save`` and ``torch.load``."""

from . import config

__all__ = ["config"]
