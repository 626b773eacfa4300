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


def _get_deterministic_fill_uninitialized_memory() -> bool:
    """Whether memory that nobody has written to is filled: `torch.utils.deterministic`."""
    from . import _deterministic

    return _deterministic._fills_uninitialized_memory()


def _set_deterministic_fill_uninitialized_memory(fills: bool, /) -> None:
    """Says whether memory that nobody has written to is filled: `torch.utils.deterministic`."""
    from . import _deterministic

    _deterministic._set_fill_uninitialized_memory(fills)


def fill(extension: ModuleType) -> None:
    """Puts the functions into the extension."""
    for function in (
        _log_api_usage_once,
        _get_tracing_state,
        _get_privateuse1_backend_name,
        _cuda_isInBadFork,
        _get_deterministic_fill_uninitialized_memory,
        _set_deterministic_fill_uninitialized_memory,
    ):
        setattr(extension, function.__name__, function)
