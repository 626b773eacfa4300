"""Settings of :mod:`torch.fx`."""

from __future__ import annotations

__all__: list[str] = []

# PyTorch shows the progress of passes by these; passes here are silent.
disable_progress = True
verbose_progress = False
