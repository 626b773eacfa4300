"""TorchScript's names: functions and modules run as Python, nothing is compiled.

``script`` and ``trace`` check what they are given and stand for it: what they return calls the
Python function, with the control flow of Python. Scripts are neither saved nor loaded; whatever
would need the compiler's graph is one error that says so (`_placeholder/table.py`).
"""

from __future__ import annotations

import contextlib
import inspect
import typing
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn, TypeVar

from .. import _absent, _placeholder
from .._jit_internal import _overload as _overload
from .._jit_internal import _overload_method as _overload_method
from .._jit_internal import export, ignore, is_scripting, unused
from .._script import ScriptFunction, is_a
from ..futures import Future
from . import _recursive as _recursive
from ._isinstance import isinstance as isinstance
from ._module import RecursiveScriptModule, ScriptModule, TopLevelTracedModule, wrap

Final = typing.Final

__all__ = [
    "Attribute",
    "Error",
    "Final",
    "Future",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "ScriptWarning",
    "TopLevelTracedModule",
    "TracerWarning",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

_T = TypeVar("_T")
_STRATEGY = [("STATIC", 2), ("DYNAMIC", 10)]


class Error(Exception):
    """The error of a script; functions that run as Python raise their own errors."""


class TracerWarning(Warning):
    """A warning of tracing, which nothing here gives: programs name it to silence it."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Silences those that PyTorch's own sources cause: there are none."""


class ScriptWarning(Warning):
    """A warning of scripting, which nothing here gives: programs name it to silence it."""


class Attribute(NamedTuple):
    """A value with the type that a script would give it."""

    value: Any
    type: Any


def is_tracing() -> bool:
    """Whether a graph is being recorded: never."""
    return False


def script(
    obj: Any,
    optimize: None = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Any = None,
) -> Any:
    """What stands for the script of a function, module or class: it runs as Python.

    Args:
        obj: a function gives a :class:`ScriptFunction`, a module a :class:`RecursiveScriptModule`
            with the same parameters, a class itself.
        optimize: must be None.
        example_inputs: calls from which PyTorch would take types, which Python does without.

    Raises:
        RuntimeError: for a class of modules.
        TypeError: for a function that is not Python's, and anything else that is not callable.
    """
    from ..nn import Module

    if is_a(obj, (ScriptModule, ScriptFunction)):
        return obj
    if is_a(obj, Module):
        return wrap(obj, RecursiveScriptModule)
    if inspect.isclass(obj):
        if issubclass(obj, Module):
            raise RuntimeError(
                f"Type '{obj}' cannot be compiled since it inherits from nn.Module, pass an "
                "instance instead"
            )
        return obj
    if not callable(obj) or inspect.isbuiltin(obj):
        raise TypeError(f"{type(obj)} is a built-in class: a function or a module is scripted")
    return ScriptFunction(obj)


def _refuse_own(name: str, module_class: Any, unit: Any) -> None:
    for parameter, value in (("_module_class", module_class), ("_compilation_unit", unit)):
        if value is not None:
            raise NotImplementedError(f"torch.jit.{name}({parameter}=...): nothing is compiled")


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: None = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: dict[str, Any] | None = None,
    _store_inputs: bool = True,
) -> Any:
    """Runs a function or module on an example, and gives what stands for it: it runs as Python.

    (``_force_outplace`` and ``_store_inputs`` are of PyTorch's recording, of which there is none.)
    Control flow stays that of Python, where PyTorch's would be that of the example. The result is
    the same for other inputs too, so that there is nothing to check.

    Args:
        func: a function or a module.
        example_inputs: a tuple of arguments, or a single tensor.
        optimize: must be None.
        check_trace: whether PyTorch would compare a second recording.
        check_inputs: on which other inputs it would.
        check_tolerance: how exactly it would.
        strict: whether PyTorch would refuse to record containers that change.
        example_kwarg_inputs: arguments by name, in place of ``example_inputs``.

    Raises:
        RuntimeError: without example, or with both.
        NotImplementedError: for a class of modules or a unit to compile into, which are PyTorch's
            own parameters.
    """
    from .._tensor import Tensor
    from ..nn import Module

    _refuse_own("trace", _module_class, _compilation_unit)
    if (example_inputs is None) == (example_kwarg_inputs is None):
        raise RuntimeError("example_inputs or example_kwarg_inputs should be given, and only one")
    if example_kwarg_inputs is not None:
        func(**example_kwarg_inputs)
    else:
        single = is_a(example_inputs, (Tensor, dict))
        func(*((example_inputs,) if single else tuple(example_inputs)))
    if is_a(func, ScriptModule):
        return func
    return wrap(func, TopLevelTracedModule) if is_a(func, Module) else script(func)


def trace_module(
    mod: Any,
    inputs: dict[str, Any],
    optimize: None = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_inputs_is_kwarg: bool = False,
    _store_inputs: bool = True,
) -> Any:
    """As :func:`trace` for several methods of a module.

    Args:
        mod: the module.
        inputs: an example by the name of the method.
        optimize: must be None.
        check_trace: see :func:`trace`, as the others.
        example_inputs_is_kwarg: whether examples are dictionaries of arguments by name.

    Raises:
        AttributeError: for what is no module, or no dictionary.
        NotImplementedError: as :func:`trace`.
    """
    from .._tensor import Tensor
    from ..nn import Module

    _refuse_own("trace_module", _module_class, _compilation_unit)
    if not is_a(mod, Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not is_a(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    for name, example in inputs.items():
        method = mod if name == "forward" else getattr(mod, name)
        if example_inputs_is_kwarg:
            method(**example)
        else:
            method(*((example,) if is_a(example, Tensor) else tuple(example)))
    return mod if is_a(mod, ScriptModule) else wrap(mod, TopLevelTracedModule)


def freeze(
    mod: Any, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True
) -> Any:
    """Gives the script of a module in evaluation mode itself: nothing is folded into constants.

    Args:
        mod: what :func:`script` or :func:`trace` gave for a module.
        preserved_attrs: attributes that must stay; all do.
        optimize_numerics: whether results may change in their last digits; they do not.

    Raises:
        RuntimeError: for other objects, and in training mode.
    """
    if not is_a(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or "
            "torch.jit.trace to script your 'nn.Module'."
        )
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() "
            "on your module before freezing."
        )
    return mod


def optimize_for_inference(mod: Any, other_methods: list[str] | None = None) -> Any:
    """Gives the script of a module itself, see :func:`freeze`.

    Raises:
        RuntimeError: for other objects.
    """
    return freeze(mod) if mod.training or not is_a(mod, ScriptModule) else mod


def script_method(fn: _T) -> _T:
    """A decorator for a method of a script: gives the function itself."""
    return fn


def script_if_tracing(fn: _T) -> _T:
    """A decorator for what is to be a script within a trace: gives the function itself."""
    return fn


_script_if_tracing = script_if_tracing


def _drop(fn: _T) -> _T:
    """A decorator for what a compiler is to leave out: gives the function itself."""
    return fn


def _unwrap_optional(x: _T | None) -> _T:
    """The value, which is said not to be None.

    Raises:
        AssertionError: for None.
    """
    assert x is not None, "Unwrapping null optional"
    return x


def interface(obj: _T) -> _T:
    """A decorator for a class that names methods: gives the class itself.

    Raises:
        RuntimeError: for what is no class.
    """
    if not inspect.isclass(obj):
        raise RuntimeError("interface must be applied to a class")
    return obj


def annotate(the_type: Any, the_value: _T) -> _T:
    """Declares the type of a value for a script: returns the value itself."""
    return the_value


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """Runs the function, and gives a future with its result."""
    future: Future[Any] = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future[Any]) -> Any:
    """Waits for what :func:`fork` gave."""
    return future.wait()


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Keeps how scripts would fuse ops, and gives what was kept before."""
    before = list(_STRATEGY)
    _STRATEGY[:] = strategy
    return before


def enable_onednn_fusion(enabled: bool) -> None:
    """Wishes that scripts used oneDNN, which no build of this package has."""


def onednn_fusion_enabled() -> bool:
    """Whether scripts use oneDNN: never."""
    return False


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A context in which scripts would be optimised, or not: Python runs as it does."""
    yield


class strict_fusion:
    """A context in which scripts tell of ops that were not fused: nothing here is a script."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        pass


_fork, _wait, _isinstance, _set_fusion_strategy = fork, wait, isinstance, set_fusion_strategy


def _refused(name: str) -> Callable[..., NoReturn]:
    function: Callable[..., NoReturn] = _placeholder.made(f"torch.jit.{name}", "function")
    return function


save = _refused("save")
load = _refused("load")
export_opnames = _refused("export_opnames")
_absent.announce(globals())
# (The name of the module, which the import at the head of this file had taken.)
del annotations
from . import annotations  # type: ignore[assignment]  # noqa: E402, F401
