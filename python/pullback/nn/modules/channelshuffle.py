"""Channels in another order."""

from __future__ import annotations

from ..._tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """Mixes the channels of ``(N, C, *)``: the first of each group, the second of each, and so on.

    Args:
        groups: the number of groups; ``C`` is divisible by it.
    """

    groups: int

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """The input with its channels mixed; the shape stays."""
        result: Tensor = F.channel_shuffle(input, self.groups)
        return result

    def extra_repr(self) -> str:
        """The number of groups."""
        return f"groups={self.groups}"
