"""``__torch_function__``: modes that override calls, and what makes functions overridable.

A call of a function, a method, an operator or an attribute of tensors is overridden by the
innermost :class:`TorchFunctionMode` of the thread, else by the types of its arguments; the
extension calls the overrides (``crates/python/src/torch_function.rs``). Here are the class of
modes, the predicates for overrides, and the decorators that make a program's own functions
overridable. Which functions are overridable is found by inspection: there are no lists to keep.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import keyword
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from . import _C, _absent
from ._contextlib import StackedMode
from ._tensor import Tensor

if TYPE_CHECKING:
    pass

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_function",
    "resolve_name",
    "wrap_torch_function",
]

_F = TypeVar("_F", bound=Callable[..., Any])

has_torch_function = _C._has_torch_function
has_torch_function_unary = _C._has_torch_function_unary
has_torch_function_variadic = _C._has_torch_function_variadic


# --- modes -----------------------------------------------------------------------------------


class TorchFunctionMode(StackedMode):
    """Overrides every call of this thread inside of ``with Mode():``, factories included.

    A class derived from it defines ``__torch_function__``. Calls that are made there go to the next
    outer mode; ``with self:`` lets the mode see them too. The innermost of nested modes comes
    first; types among the arguments follow when it returns ``NotImplemented`` or makes the call.
    """

    _push = staticmethod(_C._push_on_torch_function_stack)
    _pop = staticmethod(_C._pop_torch_function_stack)

    def __init__(self) -> None:
        """Takes nothing; derived classes need not call it."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Computes one call.

        Args:
            func: the function, the method, or the ``__get__`` or ``__set__`` of an attribute.
            types: the types of arguments that override calls themselves.
            args: the arguments given by position.
            kwargs: the arguments given by name.

        Returns:
            The result, usually ``func(*args, **kwargs)``, or ``NotImplemented``.
        """
        raise NotImplementedError


class BaseTorchFunctionMode(TorchFunctionMode):
    """Makes every call unchanged."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Makes the call."""
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> TorchFunctionMode | None:
    """The innermost mode."""
    depth = _C._len_torch_function_stack()
    return _C._get_function_stack_at(depth - 1) if depth else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    """All modes, the outermost first."""
    return [_C._get_function_stack_at(index) for index in range(_C._len_torch_function_stack())]


def _push_mode(mode: TorchFunctionMode) -> None:
    _C._push_on_torch_function_stack(mode)


def _pop_mode() -> TorchFunctionMode:
    mode: TorchFunctionMode = _C._pop_torch_function_stack()
    return mode


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[TorchFunctionMode]:
    """A context in which the innermost mode is removed from the stack."""
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


@contextlib.contextmanager
def _enable_torch_function() -> Iterator[None]:
    """A context in which types and modes override calls, whatever was set outside."""
    previous = _C._get_torch_function_state()
    _C._set_torch_function_state(_C._TorchFunctionState.ENABLED)
    try:
        yield
    finally:
        _C._set_torch_function_state(previous)


@contextlib.contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Lets ops inside of a ``__torch_dispatch__`` be recorded, and count writes and views."""
    with _C._RestorePythonTLSSnapshot():
        yield


# --- functions of programs -------------------------------------------------------------------


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Calls the override of a mode or of the types of arguments.

    Args:
        public_api: the function that was called.
        relevant_args: the arguments whose types may override the call.
        args: its arguments given by position.
        kwargs: its arguments given by name.

    Raises:
        TypeError: if all overrides return ``NotImplemented``.
    """
    name = f"{public_api.__module__}.{public_api.__name__}"
    return _C._handle_torch_function(public_api, name, relevant_args, args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[_F], _F]:
    """A decorator that lets modes and types override calls of a function.

    Args:
        dispatcher: takes the function's arguments and returns those whose types may override it.
    """

    def decorate(function: _F) -> _F:
        @functools.wraps(function)
        def overridable(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(overridable, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return overridable  # type: ignore[return-value]

    return decorate


def redispatch_function(
    func: Callable[..., Any],
    types: Sequence[type],
    args: Sequence[Any],
    kwargs: dict[str, Any] | None,
) -> Any:
    """Calls ``func`` past its overrides; calls that it makes itself can be overridden again.

    Only functions that are written in Python make such calls; others run without any override.

    Args:
        func: what ``__torch_function__`` was given.
        types: the types it was given.
        args: the arguments given by position.
        kwargs: the arguments given by name.
    """
    if isinstance(func, _C._OverridableFunction):
        return func.__wrapped__(*args, **(kwargs or {}))
    with _C.DisableTorchFunction():
        return func(*args, **(kwargs or {}))


def is_tensor_like(inp: object) -> bool:
    """Whether a value is a tensor, or has a type with ``__torch_function__``."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


# --- overridable functions -------------------------------------------------------------------

_OP_FUNCTION = type(_C._VariableFunctions.add)
_OP_METHOD = type(_C.TensorBase.__dict__["add"])
# Methods written by hand that describe the Python object rather than the tensor.
_IGNORED_METHODS = frozenset(
    {"_accumulate_hook_dict", "_hook_dict", "_repr", "_use_count", "as_subclass"}
)
_OVERRIDABLE_SLOTS = frozenset(
    f"__{name}__"
    for names in (
        "bool float int index len repr getitem setitem abs neg pos invert",
        "eq ne lt le gt ge",
        "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift",
        "radd rsub rmul rtruediv rfloordiv rmod rpow rmatmul rand ror rxor rlshift rrshift",
        "iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift",
    )
    for name in names.split()
)


def _takes_tensors(function: Callable[..., Any]) -> bool:
    """Whether an op's function has a tensor among its arguments, other than ``out``."""
    signatures = (function.__doc__ or "").split("\n\n")[0]
    parts = [part.strip(" *()") for line in signatures.split("\n") for part in line.split(",")]
    words = [part.rpartition("(")[2] for part in parts]
    return any(
        word.startswith(("Tensor ", "tuple of Tensors ")) and not word.startswith("Tensor out")
        for word in words
    )


def _is_overridable(name: str, found: Any) -> bool:
    """Whether types may override a call of ``found``, whose name in its namespace is ``name``."""
    if isinstance(found, _C._OverridableFunction) or hasattr(found, "_asks_overrides"):
        return True
    if isinstance(found, _OP_FUNCTION):
        return _takes_tensors(found)
    if isinstance(found, types.WrapperDescriptorType):
        return name in _OVERRIDABLE_SLOTS
    if isinstance(found, types.MethodDescriptorType):
        return name not in _IGNORED_METHODS
    return isinstance(found, _OP_METHOD)


def _spaces() -> list[tuple[str, Any, Iterable[str]]]:
    import pullback as torch

    spaces = [
        ("torch", torch, torch.__all__),
        ("torch.nn.functional", torch.nn.functional, torch.nn.functional.__all__),
        ("torch.nn.init", torch.nn.init, dir(torch.nn.init)),
        ("torch.Tensor", Tensor, dir(Tensor)),
        ("torch.linalg", torch.linalg, torch.linalg.__all__),
        ("torch.fft", torch.fft, torch.fft.__all__),
    ]
    return [(text, space, sorted(set(names))) for text, space, names in spaces]


class _Table:
    """The functions that were found in the namespaces, sorted."""

    def __init__(self) -> None:
        self.overridable: dict[Any, list[Callable[..., Any]]] = {}
        self.ignored: set[Callable[..., Any]] = set()
        self.names: dict[Callable[..., Any], str] = {}
        for text, space, names in _spaces():
            for name in names:
                self._add(space, name, getattr(space, name), f"{text}.{name}")

    def _add(self, space: Any, name: str, found: Any, text: str) -> None:
        if space is Tensor:
            if getattr(object, name, None) == found or name == "__weakref__":
                return
            if not callable(found) and hasattr(found, "__set__"):
                self._add_attribute(found, text)
                return
        elif name.startswith("_") or isinstance(found, type):
            return
        if not callable(found):
            return
        self.names.setdefault(found, text)
        if _is_overridable(name, found):
            if space is Tensor or not name.endswith("_"):
                self.overridable.setdefault(space, []).append(found)
        else:
            self.ignored.add(found)

    def _add_attribute(self, found: Any, text: str) -> None:
        # (`Tensor` may have a quicker descriptor of what the base shows: without modes, the dtype.)
        for descriptor in (found, getattr(_C.TensorBase, text.rpartition(".")[2], found)):
            for part in ("__get__", "__set__"):
                if hasattr(descriptor, part):
                    self.names[getattr(descriptor, part)] = f"{text}.{part}"
        if isinstance(found, property) or found.__name__ == "__dict__":
            self.ignored.add(found.__get__)
        else:
            self.overridable.setdefault(found, []).append(found.__get__)


_table = functools.cache(_Table)


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """The functions that types may override, by the namespace or attribute they belong to."""
    return {space: list(found) for space, found in _table().overridable.items()}


def get_ignored_functions() -> set[Callable[..., Any]]:
    """The public functions that types never override, most of which take no tensors."""
    return set(_table().ignored)


def resolve_name(f: Any) -> str | None:
    """The name of a function that ``__torch_function__`` is given; None if it is unknown."""
    from ._ops import OpOverload, OpOverloadPacket

    if isinstance(f, (OpOverload, OpOverloadPacket)):
        return str(f)
    return _table().names.get(f)


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function is a method of tensors, or the ``__get__`` of an attribute."""
    return func in _methods() or getattr(func, "__name__", None) == "__get__"


@functools.cache
def _methods() -> frozenset[Callable[..., Any]]:
    return frozenset(_table().overridable.get(Tensor, ()))


# --- functions that stand in for others ------------------------------------------------------


def _parameters(function: Any) -> list[inspect.Parameter]:
    """The parameters of a function; of an op's function, those of its first signature."""
    kinds = inspect.Parameter
    if not isinstance(function, (_OP_FUNCTION, _OP_METHOD)):
        try:
            return list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            rest = kinds("args", kinds.VAR_POSITIONAL), kinds("kwargs", kinds.VAR_KEYWORD)
            return [kinds("self", kinds.POSITIONAL_ONLY), *rest]
    line = (function.__doc__ or "").split("\n")[0]
    found = []
    if isinstance(function, _OP_METHOD):
        found.append(kinds("self", kinds.POSITIONAL_OR_KEYWORD))
    kind: Any = kinds.POSITIONAL_OR_KEYWORD
    for part in _parts(line[line.index("(") + 1 : line.rindex(")")]):
        if part == "*":
            kind = kinds.KEYWORD_ONLY
            continue
        head, has_default, default = part.partition(" = ")
        name = head.split(" ")[-1]
        # (`random_` has `from`.)
        name += "_" if keyword.iskeyword(name) else ""
        found.append(kinds(name, kind, default=default if has_default else kinds.empty))
    return found


def _parts(text: str) -> list[str]:
    """The parts between commas that are in no brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _stand_in(function: Callable[..., Any]) -> Callable[..., int]:
    parameters = _parameters(function)
    if function.__name__ == "__get__":
        parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]

    def stand_in(*args: Any, **kwargs: Any) -> int:
        return -1

    # Some signatures have a parameter with default before one without.
    signature = inspect.Signature(parameters, __validate_parameters__=False)
    stand_in.__signature__ = signature  # type: ignore[attr-defined]
    return stand_in


@functools.cache
def _stand_ins() -> dict[Callable[..., Any], Callable[..., int]]:
    found = (function for functions in _table().overridable.values() for function in functions)
    return {function: _stand_in(function) for function in found}


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., int]]:
    """For each overridable function, a function with the same parameters that returns -1."""
    return dict(_stand_ins())


_absent.announce(globals())


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """The functions whose results stay tensors of the base class, where subclasses do not say."""
    return set(_keeps_base())


def _keeps_base() -> frozenset[Callable[..., Any]]:
    from ._tensor import _keeps_type

    return _keeps_type()
