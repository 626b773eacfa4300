"""The backends that attention may use, as `backends.cuda` and `nn.attention` set and read them.

A module of its own, so that neither of the two needs to load the other.
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
