"""The CPU: which instructions this build makes use of."""

from __future__ import annotations

from .. import _C, _absent
from ._switch import guard

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """The instruction set of the kernels: ``"AVX512"``, ``"AVX2"`` or ``"DEFAULT"``.

    It is the highest that the processor has, or what the environment variable ``PULLBACK_CPU``
    (``generic``, ``avx2``, ``avx512`` or ``amx``) lowered it to when the process started.
    """
    return _C._cpu_capability()


guard(globals())
_absent.announce(globals())
