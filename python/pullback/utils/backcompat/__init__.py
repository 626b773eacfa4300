"""Warnings about broadcasting in programs for PyTorch before 0.2: switches, which are kept."""

from __future__ import annotations

__all__ = ["broadcast_warning", "keepdim_warning"]


class Warning:
    """A switch.

    Args:
        enabled: whether programs are to be warned.
    """

    def __init__(self, enabled: bool = False) -> None:
        self.enabled = enabled


broadcast_warning = Warning()
keepdim_warning = Warning()
