"""Questions and wishes about compilation, which there is none of: see ``torch.compile``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import _absent, _dynamo
from .._dynamo import disable, list_backends, reset

if TYPE_CHECKING:
    from types import TracebackType

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "cudagraph_mark_warmup_incomplete",
    "disable",
    "get_default_backend",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "nested_compile_region",
    "nonstrict_trace",
    "reset",
    "set_default_backend",
    "set_enable_guard_collectives",
    "set_stance",
    "substitute_in_graph",
    "wrap_numpy",
]

_guard_collectives = False
_STANCES = (
    "default",
    "eager_on_recompile",
    "eager_then_compile",
    "fail_on_recompile",
    "force_eager",
)


def compile(*args: Any, **kwargs: Any) -> Any:
    """See ``torch.compile``."""
    from .. import compile

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


def cudagraph_mark_warmup_incomplete() -> None:
    """Says that a CUDA graph is not to be recorded yet; none ever is."""


def nested_compile_region(
    fn: Any = None, *, options: Any = None, max_reuse_entries: int = 8, reuse_hash_fn: Any = None
) -> Any:
    """Says that a function is compiled once for all its calls: gives the function itself.

    Args:
        fn: the function; without one, a decorator is returned.
        options: how it would be compiled.
        max_reuse_entries: how many compiled forms would be kept.
        reuse_hash_fn: by what calls would be told apart.
    """
    return (lambda given: given) if fn is None else fn


def nonstrict_trace(traceable_fn: Any) -> Any:
    """Says that a function is captured without looking into it: gives the function itself."""
    return traceable_fn


def substitute_in_graph(
    original_fn: Callable[..., Any],
    *,
    can_constant_fold_through: bool = False,
    skip_signature_check: bool = False,
) -> Callable[[Any], Any]:
    """A decorator for what a captured graph calls in place of a function: gives it itself.

    Args:
        original_fn: what it stands for.
        can_constant_fold_through: whether it may be called while the graph is captured.
        skip_signature_check: whether parameters may differ.

    Raises:
        TypeError: if ``original_fn`` is no function.
    """
    if not callable(original_fn):
        raise TypeError(f"substitute_in_graph expects a function but got {type(original_fn)}")
    return lambda given: given


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Keeps whether processes agree on compiling anew, and gives what was kept before."""
    global _guard_collectives
    before, _guard_collectives = _guard_collectives, bool(enabled)
    return before


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function of NumPy's arrays one of tensors, which share memory with the arrays.

    Gradients do not flow through it.
    """
    from ..utils._pytree import tree_map, tree_map_only

    def give(tensor: Any) -> Any:
        return tensor.numpy()

    def take(value: Any) -> Any:
        from .. import from_numpy

        is_array = type(value).__module__ == "numpy" and hasattr(value, "dtype")
        return from_numpy(value) if is_array and getattr(value, "ndim", 0) > 0 else value

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        from .._tensor import Tensor

        args, kwargs = tree_map_only(Tensor, give, (args, kwargs))
        return tree_map(take, fn(*args, **kwargs))

    return run


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
