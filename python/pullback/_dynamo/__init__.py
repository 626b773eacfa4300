"""``torch.compile``, which runs programs as they are.

Nothing is captured and nothing is compiled: ops are native, and a program that asks for compilation
gets the results that it would get without. What was asked for is checked as PyTorch checks it, so
that a misspelt backend or mode is an error here too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from . import config as config
from . import utils as utils
from .eval_frame import OptimizedModule
from .exc import InvalidBackend

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "disable",
    "disallow_in_graph",
    "explain",
    "export",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "mark_unbacked",
    "maybe_mark_dynamic",
    "optimize",
    "reset",
]

# The backends of PyTorch whose results are those of running the program as it is, and their tags.
_BACKENDS: dict[str, tuple[str, ...]] = {
    "aot_eager": ("debug",),
    "aot_eager_decomp_partition": ("debug",),
    "aot_eager_default_partitioner": ("debug",),
    "eager": ("debug",),
    "eager_noexcept": ("debug",),
    "inductor": (),
}
# The modes in which PyTorch replays recorded graphs, and we recorded kernels.
CAPTURING_MODES = ("reduce-overhead", "max-autotune")
_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")

_default_backend = "inductor"


def list_backends(exclude_tags: Sequence[str] | None = ("debug", "experimental")) -> list[str]:
    """The names that ``torch.compile`` takes for a backend.

    Args:
        exclude_tags: those with one of these tags are left out.
    """
    excluded = set(exclude_tags or ())
    return sorted(name for name, tags in _BACKENDS.items() if not excluded.intersection(tags))


def check_backend(backend: object) -> str:
    """The name of a backend that is there.

    Raises:
        InvalidBackend: for other names.
        NotImplementedError: for a function, which would be called with a captured graph.
    """
    if isinstance(backend, str):
        if backend not in _BACKENDS:
            raise InvalidBackend(backend, list_backends(None))
        return backend
    if callable(backend):
        raise NotImplementedError(
            "torch.compile() with a backend of one's own is not implemented: pullback runs the "
            f"program as it is and captures no graph that {backend!r} could be called with"
        )
    raise TypeError(f"backend must be a string or a callable, but got {type(backend).__name__}")


def check_choice(backend: object, mode: object, options: object) -> None:
    """Checks the options of a compilation.

    Raises:
        RuntimeError: for ``mode`` beside ``options``, and for a mode that does not exist.
        TypeError: for options that are no dictionary with names.
    """
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if check_backend(_default_backend if backend is None else backend) != "inductor":
        return
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if options is None:
        return
    if not isinstance(options, dict) or not all(isinstance(name, str) for name in options):
        raise TypeError(f"options must be a dict with string keys, but got {options!r}")


def check_flags(**flags: object) -> None:
    """Checks that flags are bools, and ``dynamic`` a bool or None.

    Raises:
        TypeError: if one is not.
    """
    for name, value in flags.items():
        if not isinstance(value, bool) and not (name == "dynamic" and value is None):
            raise TypeError(f"{name} must be a bool, but got {type(value).__name__}")


def captured(model: Any) -> Any:
    """The wrapper of a function or module whose calls are replayed where they can be."""
    from .._capture import Captured
    from ..nn import Module

    if isinstance(model, Module):
        return OptimizedModule(model, Captured(model, _MOST))
    if isinstance(model, type) or not callable(model):
        return compiled(model)
    run = Captured(model, _MOST)
    run._torchdynamo_orig_callable = model  # type: ignore[attr-defined]
    return run


# The number of recordings of a function that are kept: as many as PyTorch compiles.
_MOST = 8


def compiled(model: Any) -> Any:
    """The wrapper of a compiled function or module: it calls the given one."""
    from ..nn import Module

    if isinstance(model, Module):
        return OptimizedModule(model)
    if isinstance(model, type):
        return model
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")

    @functools.wraps(model, updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        return model(*args, **kwargs)

    run._torchdynamo_orig_callable = model  # type: ignore[attr-defined]
    return run


def optimize(
    backend: Any = "inductor", *, nopython: bool = False, disable: bool = False
) -> Callable[[Any], Any]:
    """A decorator that does what ``torch.compile`` does.

    Raises:
        InvalidBackend: if there is no such backend.
    """
    check_backend(backend)
    check_flags(nopython=nopython, disable=disable)
    return (lambda given: given) if disable else compiled


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Keeps a function from being compiled, which none is: gives the function itself.

    Args:
        fn: the function; without one, a decorator is returned.
        recursive: whether what it calls is kept from it, too.
        reason: for people.
    """
    return (lambda given: given) if fn is None else fn


def is_compiling() -> bool:
    """Whether a graph is being captured: never."""
    return False


def reset() -> None:
    """Forgets what was compiled, which is nothing."""


def allow_in_graph(fn: Any) -> Any:
    """Says that a function can be part of a captured graph: gives the function itself."""
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Says that a function's result does not change: gives the function itself."""
    return fn


def disallow_in_graph(fn: Any) -> Any:
    """Says that a function cannot be part of a captured graph: gives the function itself."""
    return fn


def forbid_in_graph(fn: Any) -> Any:
    """Says that capturing a function is an error: gives the function itself."""
    return fn


def graph_break(msg: str = "") -> None:
    """Marks where a captured graph ends; none is captured."""


def mark_dynamic(t: Any, index: Any, **bounds: Any) -> None:
    """Declares that a size changes from call to call, which every function here allows."""


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """Declares that a size may change from call to call, which every function here allows."""


def mark_unbacked(t: Any, index: Any, **options: Any) -> None:
    """Declares that nothing is known of a size, which every function here allows."""


def mark_static(t: Any, index: Any = None) -> None:
    """Declares that a size does not change from call to call, of which nothing here makes use."""


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Declares that a tensor stays at its address, of which nothing here makes use."""


def explain(f: Any, *args: Any, **kwargs: Any) -> Any:
    """Would say why a graph ends where it does.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError("torch._dynamo.explain: no graph is captured that it could explain")


def export(f: Any, *args: Any, **kwargs: Any) -> Any:
    """Would give a captured graph.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError("torch._dynamo.export: no graph is captured that it could give")
