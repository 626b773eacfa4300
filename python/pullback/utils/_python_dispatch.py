"""Modes that see every op of a thread, below autograd: :class:`TorchDispatchMode`.

A mode sees ops on any tensors and ops without tensors, those of backward passes too, and is off
while it runs. Composite ops are decomposed first. The stack of modes is the extension's. Here are
also the predicates on tensor subclasses with ``__torch_dispatch__``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from .. import _C
from .._contextlib import StackedMode
from ._alias_info import AliasInfo, SchemaInfo, get_alias_info

if TYPE_CHECKING:
    from typing_extensions import Self

    from .._tensor import Tensor

__all__ = [
    "AliasInfo",
    "BaseTorchDispatchMode",
    "SchemaInfo",
    "TensorWithFlatten",
    "TorchDispatchMode",
    "TraceableWrapperSubclass",
    "any_torch_dispatch_mode_on_stack",
    "autograd_would_have_decomposed",
    "get_alias_info",
    "is_in_any_mode_without_ignore_compile_internals",
    "is_in_torch_dispatch_mode",
    "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type",
    "return_and_correct_aliasing",
    "transform_subclass",
]


class TorchDispatchMode(StackedMode):
    """Overrides the ops of this thread inside of ``with Mode():``, below autograd.

    A class derived from it defines ``__torch_dispatch__``. Ops that are called there go to the next
    outer mode; ``with self:`` lets the mode see them too. The innermost of nested modes comes
    first; subclasses among the arguments follow when it returns ``NotImplemented``, or runs the op.
    """

    supports_higher_order_operators = False
    _push = staticmethod(_C._push_on_torch_dispatch_stack)
    _pop = staticmethod(_C._pop_torch_dispatch_stack)

    def __init__(self, _dispatch_key: Any = None) -> None:
        """Takes nothing; a dispatch key would belong to tracing.

        Raises:
            NotImplementedError: for a dispatch key.
        """
        if _dispatch_key is not None:
            raise NotImplementedError(
                f"TorchDispatchMode(_dispatch_key={_dispatch_key!r}): modes of other dispatch keys "
                "are part of PyTorch's tracing, which is not there yet"
            )

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Computes one op.

        Args:
            func: the op, an ``OpOverload`` such as ``torch.ops.aten.mul.Tensor``.
            types: the classes of arguments that override ops themselves.
            args: the arguments given by position.
            kwargs: the arguments given by name.

        Returns:
            The results, usually ``func(*args, **kwargs)``, or ``NotImplemented``.
        """
        raise NotImplementedError

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether the mode belongs to PyTorch's tracing."""
        return False

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Whether compiled code may be hidden from the mode; nothing is compiled here."""
        return cls.is_infra_mode()


class _WatchingMode(TorchDispatchMode):
    """Base class of modes that run every op as it is: the library takes the ways of no mode."""

    _watchers = 0

    def __enter__(self) -> Self:
        mode = super().__enter__()
        self._watchers = _C._set_torch_dispatch_watchers(0)
        _C._set_torch_dispatch_watchers(self._watchers + 1)
        return mode

    def __exit__(self, *error: Any) -> None:
        try:
            super().__exit__(*error)
        finally:
            _C._set_torch_dispatch_watchers(self._watchers)

    @classmethod
    def is_infra_mode(cls) -> bool:
        """True: the effects of the mode are not to be observed."""
        return True


class BaseTorchDispatchMode(TorchDispatchMode):
    """Runs every op unchanged."""

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Runs the op."""
        return func(*args, **(kwargs or {}))


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode is on in this thread.

    Args:
        include_infra_modes: whether modes that say ``is_infra_mode()`` count.
    """
    modes = _get_current_dispatch_mode_stack()
    return any(include_infra_modes or not mode.is_infra_mode() for mode in modes)


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    """The innermost mode."""
    depth = _C._len_torch_dispatch_stack()
    return _C._get_dispatch_stack_at(depth - 1) if depth else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    """All modes, the outermost first."""
    return [_C._get_dispatch_stack_at(index) for index in range(_C._len_torch_dispatch_stack())]


def _push_mode(mode: TorchDispatchMode) -> None:
    _C._push_on_torch_dispatch_stack(mode)


def _pop_mode(k: Any = None) -> TorchDispatchMode:
    mode: TorchDispatchMode = _C._pop_torch_dispatch_stack(k)
    return mode


@contextlib.contextmanager
def _pop_mode_temporarily(k: Any = None) -> Iterator[TorchDispatchMode]:
    """Removes the innermost mode for the duration."""
    mode = _pop_mode(k)
    try:
        yield mode
    finally:
        _push_mode(mode)


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[TorchDispatchMode]]:
    """Removes all modes for the duration; yields them, the innermost first."""
    modes = [_pop_mode() for _ in range(_C._len_torch_dispatch_stack())]
    try:
        yield modes
    finally:
        for mode in reversed(modes):
            _push_mode(mode)


# --- subclasses ------------------------------------------------------------------------------


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether it is a tensor whose class can take it apart into inner tensors and put it together.

    Such a class has ``__tensor_flatten__`` and ``__tensor_unflatten__``.
    """
    return is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether tensors of this class can be taken apart and put together."""
    from .._tensor import Tensor

    has_protocol = hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")
    return issubclass(t, Tensor) and t is not Tensor and has_protocol


def transform_subclass(
    t: Any,
    callback: Callable[[str, Tensor], Tensor],
    outer_size: Any = None,
    outer_stride: Any = None,
) -> Any:
    """A tensor of the class of ``t`` around ``callback(name, inner)`` of each of its inner tensors.

    Args:
        t: a tensor for which :func:`is_traceable_wrapper_subclass` holds.
        callback: gives the new inner tensor for an attribute's name and value.
        outer_size: the size of the new tensor; that of ``t`` by default.
        outer_stride: its strides; those of ``t`` by default.

    Raises:
        AssertionError: if the class makes something of another size or stride.
    """
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    made = type(t).__tensor_unflatten__(inner, context, size, stride)
    for what, found, expected in (("shape", made.shape, size), ("stride", made.stride(), stride)):
        if tuple(found) != tuple(expected):
            raise AssertionError(
                f"Expected return value from {type(t)}.__tensor_unflatten__() to have {what} equal "
                f"to {expected}, but got: {found}"
            )
    return made


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """What a wrapper subclass is to return of ``out``, its results of the op ``func``.

    An op that writes to arguments returns those arguments, in place of the results. (Results of
    views need nothing: the library links a view to its base whatever the memory behind it is.)

    Args:
        func: the op.
        args: the arguments given by position.
        kwargs: the arguments given by name.
        out: the results.
    """
    if func._opname.endswith("_") and not func._opname.endswith("__"):
        return args[0]
    written = (kwargs or {}).get("out")
    return out if written is None else written


class TraceableWrapperSubclass(Protocol):
    """For annotations: a tensor that can be taken apart into inner tensors and put together."""

    shape: _C.Size
    device: _C.device

    def __tensor_flatten__(self) -> tuple[Sequence[str], object]:
        """The names of the attributes that are inner tensors, and the context for rebuilding."""

    @staticmethod
    def __tensor_unflatten__(
        inner_tensors: dict[str, Any], flatten_spec: Any, outer_size: Any, outer_stride: Any
    ) -> Any:
        """A tensor of the class around inner tensors."""


TensorWithFlatten = TraceableWrapperSubclass


def any_torch_dispatch_mode_on_stack() -> bool:
    """Whether a mode is on this thread's stack that is there to see what a program does.

    Those that say ``is_infra_mode()`` or ``ignore_compile_internals()`` do not count.
    """
    modes = _get_current_dispatch_mode_stack()
    return any(not (mode.is_infra_mode() or mode.ignore_compile_internals()) for mode in modes)


def is_in_any_mode_without_ignore_compile_internals() -> bool:
    """Whether a mode is on in this thread that does not say ``ignore_compile_internals()``."""
    return any(not mode.ignore_compile_internals() for mode in _get_current_dispatch_mode_stack())


# --- ops -------------------------------------------------------------------------------------


def autograd_would_have_decomposed(func: Any, flat_args: Sequence[Any]) -> bool:
    """Whether a call runs the ops that ``func`` is made of: it has no kernel of its own.

    Args:
        func: an overload, such as ``torch.ops.aten.matmul.default``.
        flat_args: the arguments; the first tensor among them says which kernel is meant.
    """
    for argument in flat_args:
        if isinstance(argument, _C.TensorBase):
            device = argument.device.type
            key = device.capitalize() if device == "meta" else device.upper()
            return not func.has_kernel_for_dispatch_key(key)
    return True
