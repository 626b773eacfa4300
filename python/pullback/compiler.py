"""Questions and wishes about compilation, which there is none of: see ``torch.compile``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _absent, _dynamo
from ._dynamo import disable, list_backends, reset

if TYPE_CHECKING:
    from types import TracebackType

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "get_default_backend",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_default_backend",
    "set_stance",
]

_STANCES = (
    "default",
    "eager_on_recompile",
    "eager_then_compile",
    "fail_on_recompile",
    "force_eager",
)


def compile(*args: Any, **kwargs: Any) -> Any:
    """See ``torch.compile``."""
    from . import compile

    return compile(*args, **kwargs)


def is_compiling() -> bool:
    """Whether a graph is being captured: never."""
    return False


def is_dynamo_compiling() -> bool:
    """Whether a graph is being captured: never."""
    return False


def is_exporting() -> bool:
    """Whether a program is being exported: never."""
    return False


def cudagraph_mark_step_begin() -> None:
    """Says that a step of the program begins, which only CUDA graphs want to know."""


def get_default_backend() -> str:
    """The backend that ``torch.compile`` takes where none is named."""
    return _dynamo._default_backend


def set_default_backend(backend: str | Callable[..., Any] | None) -> None:
    """Changes the backend that ``torch.compile`` takes where none is named.

    Raises:
        InvalidBackend: if there is none of this name.
    """
    _dynamo._default_backend = "inductor" if backend is None else _dynamo.check_backend(backend)


def allow_in_graph(fn: Any) -> Any:
    """Says that a function can be part of a captured graph: gives the function itself."""
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Says that a function's result does not change: gives the function itself."""
    return fn


class set_stance:
    """Says what compiled functions do when they would be compiled anew, for a while or from now on.

    Raises:
        RuntimeError: if there is no such stance.
    """

    def __init__(
        self,
        stance: str = "default",
        *,
        skip_guard_eval_unsafe: bool = False,
        force_backend: str | Callable[..., Any] | None = None,
    ) -> None:
        if stance not in _STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{stance}'")
        _dynamo.check_flags(skip_guard_eval_unsafe=skip_guard_eval_unsafe)
        if force_backend is not None:
            if stance != "default":
                raise RuntimeError("non-default stance cannot have force_backend set")
            _dynamo.check_backend(force_backend)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def __call__(self, function: Any) -> Any:
        """As a decorator: gives the function itself."""
        return function


_absent.announce(globals())
