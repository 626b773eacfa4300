"""Functions that libraries ask of ``torch._C`` itself, and that are none of the extension's."""

from __future__ import annotations

from types import ModuleType

__all__ = ["fill"]


def _log_api_usage_once(event: str, /) -> None:
    """Notes down nothing: nobody is told of what a program uses."""


def _get_tracing_state() -> None:
    """None: no program is traced."""


def _get_privateuse1_backend_name() -> str:
    """The name of backends of one's own, of which there are none."""
    return "privateuseone"


def _cuda_isInBadFork() -> bool:
    """Whether CUDA was used before the process was forked: never."""
    return False


def fill(extension: ModuleType) -> None:
    """Puts the functions into the extension."""
    for function in (
        _log_api_usage_once,
        _get_tracing_state,
        _get_privateuse1_backend_name,
        _cuda_isInBadFork,
    ):
        setattr(extension, function.__name__, function)
