"""Which algorithms attention may take: what `backends.cuda` and `nn.attention` set and ask.

Here, so that neither needs to be loaded for the other.
"""

from __future__ import annotations

__all__: list[str] = []

ALLOWED = {
    "flash": True,
    "mem_efficient": True,
    "math": True,
    "cudnn": True,
    "overrideable": True,
    "reduced": False,
}
