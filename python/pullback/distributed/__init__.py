"""Training on several processes, which is missing yet: questions get no for an answer."""

from __future__ import annotations

from .. import _absent

__all__ = [
    "is_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
]


def is_available() -> bool:
    """Whether processes can train together: not yet."""
    return False


def is_initialized() -> bool:
    """Whether this process is one of a group: never."""
    return False


def is_gloo_available() -> bool:
    """Whether processes can talk through Gloo: no."""
    return False


def is_mpi_available() -> bool:
    """Whether processes can talk through MPI: no."""
    return False


def is_nccl_available() -> bool:
    """Whether processes can talk through NCCL: no."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether this process was started by ``torchrun``: never."""
    return False


def is_ucc_available() -> bool:
    """Whether processes can talk through UCC: no."""
    return False


def is_xccl_available() -> bool:
    """Whether processes can talk through XCCL: no."""
    return False


_absent.announce(globals())
