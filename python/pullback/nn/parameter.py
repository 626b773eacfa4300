"""Tensors that a :class:`~pullback.nn.Module` knows by name: parameters and buffers.

A :class:`Parameter` is a leaf tensor that modules register when it is assigned as an attribute;
a :class:`Buffer` is state that is saved with a module but not optimised. Neither adds numbers
of its own: operations on them return plain tensors. Invariant: ``isinstance(x, Parameter)`` is
true for exact instances, subclasses, and foreign tensor subclasses marked by ``_is_param``.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, cast

from .. import _C, _utils
from .._tensor import Tensor
from ._native import VF as _VF

__all__ = ["Buffer", "Parameter"]


class _ParameterMeta(_C._TensorMeta):  # type: ignore[misc, name-defined, unused-ignore]
    """Lets tensor subclasses that carry ``_is_param`` pass for parameters."""

    def __instancecheck__(cls, instance: object) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return (
            cls is Parameter
            and isinstance(instance, Tensor)
            and bool(getattr(instance, "_is_param", False))
        )


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that is a parameter of a module.

    Assigning one to an attribute of a module registers it, so that it appears in
    ``module.parameters()``.

    Args:
        data: the values; they are shared, not copied. Empty when omitted.
        requires_grad: whether gradients are accumulated into it. Default: ``True``.
    """

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        """Makes a parameter that shares the memory of ``data``."""
        if data is None:
            data = _VF.empty(0)
        kind = type(data)
        if kind is Tensor or kind is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        # A subclass with its own storage rules keeps its type and is only marked.
        alias: Any = data.detach()
        alias.requires_grad = requires_grad
        if type(alias) is not kind:
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {kind.__name__} requires that "
                f"detach() returns an instance of the same type, but return type "
                f"{type(alias).__name__} was found instead."
            )
        alias._is_param = True
        return cast("Parameter", alias)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        known = memo.get(id(self))
        if known is None:
            known = type(self)(self.data.clone(), self.requires_grad)
            memo[id(self)] = known
        copied: Parameter = known
        return copied

    # (The names of a `__repr__`'s arguments are lost on mypy.)
    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return "Parameter containing:\n" + self._repr(tensor_contents)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        arguments: tuple[Any, ...] = (self.data, self.requires_grad, OrderedDict())
        state = getattr(self, "__dict__", None)
        if state:
            return _utils._rebuild_parameter_with_state, (*arguments, dict(state))
        return _utils._rebuild_parameter, arguments

    __torch_function__ = _C._disabled_torch_function_impl  # type: ignore[assignment]


_C._set_parameter_class(Parameter)


class _BufferMeta(_C._TensorMeta):  # type: ignore[misc, name-defined, unused-ignore]
    """Recognises buffers by their mark: a buffer is an ordinary tensor otherwise."""

    def __instancecheck__(cls, instance: object) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return (
            cls is Buffer
            and isinstance(instance, Tensor)
            and bool(getattr(instance, "_is_buffer", False))
        )


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that is a buffer of a module: state that is not a parameter.

    Args:
        data: the values; shared, not copied. Empty when omitted.
        persistent: whether the buffer is part of the module's ``state_dict``.
    """

    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Buffer:
        """Makes a buffer that shares the memory of ``data``."""
        if data is None:
            data = _VF.empty(0)
        alias: Any = data.detach()
        alias.requires_grad = data.requires_grad
        alias.persistent = persistent
        alias._is_buffer = True
        return cast("Buffer", alias)

    __torch_function__ = _C._disabled_torch_function_impl  # type: ignore[assignment]
