"""The CPU: which instructions this build makes use of."""

from __future__ import annotations

from .. import _absent
from ._switch import guard

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """The instruction set of the kernels: ``"AVX512"``, ``"AVX2"`` or ``"DEFAULT"``."""
    from ..cpu import get_capabilities

    has = get_capabilities()
    if has.get("avx512_f"):
        return "AVX512"
    return "AVX2" if has.get("avx2") and has.get("fma3") else "DEFAULT"


guard(globals())
_absent.announce(globals())
