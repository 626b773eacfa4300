"""Tensors that a :class:`~pullback.nn.Module` knows by name: parameters and buffers.

A :class:`Parameter` is a leaf tensor that modules register when it is assigned as an attribute;
a :class:`Buffer` is state that is saved with a module but not optimised. Neither adds numbers
of its own: operations on them return plain tensors. Invariant: ``isinstance(x, Parameter)`` is
true for exact instances, subclasses, and foreign tensor subclasses marked by ``_is_param``.
The ``Uninitialized`` kinds have no shape until :meth:`UninitializedTensorMixin.materialize`.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, cast

from .. import _C, _utils
from .._tensor import Tensor
from ._native import VF as _VF

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]


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


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)


# What can be asked of a tensor without elements: conversions, and what does not regard its shape.
_ALLOWED = frozenset(
    (
        "__hash__",
        "_has_compatible_shallow_copy_type",
        "bfloat16",
        "char",
        "copy_",
        "cpu",
        "cuda",
        "double",
        "float",
        "get_device",
        "half",
        "int",
        "is_complex",
        "is_floating_point",
        "long",
        "short",
        "size",
        "to",
    )
)


class UninitializedTensorMixin:
    """A parameter or buffer of a lazy module before its shape is known.

    It can be moved and cast; everything that needs elements or a shape is an error. Once
    :meth:`materialize` has been told the shape, the same object is an ordinary tensor of the class
    ``cls_to_become``.
    """

    _allowed_methods = _ALLOWED

    cls_to_become: type

    def materialize(self, shape: tuple[int, ...], device: Any = None, dtype: Any = None) -> None:
        """Gives it memory for a shape; the values are uninitialised.

        Args:
            shape: the shape.
            device: default: where it was made or moved to.
            dtype: default: the one that it was made with or cast to.
        """
        this: Any = self
        data = this.data
        device = data.device if device is None else device
        dtype = data.dtype if dtype is None else dtype
        this.data = _VF.empty(shape, device=device, dtype=dtype)
        this.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        """Raises an error, because the shape is not known yet.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer: it is known once "
            "`forward` of the lazy module was called, or after `materialize(shape)`. (When "
            "`load_state_dict` raises this, the checkpoint was made before that.)"
        )

    def share_memory_(self) -> Any:
        """There is no memory yet that could be shared.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer: call `forward` of the "
            "lazy module first"
        )

    # (The names of a `__repr__`'s arguments are lost on mypy.)
    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        this: Any = self
        return type(self), (this.requires_grad,)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = getattr(func, "__name__", str(func))
        # (The functions that read and set attributes are wrappers of slots.)
        if name in _ALLOWED or type(func).__name__ == "method-wrapper":
            return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[misc]
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}: tensors of a lazy module "
            f"({cls.__name__}) have elements once its `forward` was called with a batch"
        )


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """A parameter whose shape is found out at the first call of a lazy module.

    Args:
        requires_grad: whether gradients are accumulated into it.
        device: where it will be made.
        dtype: what it will be made of.
    """

    cls_to_become = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> UninitializedParameter:
        """Makes a parameter without elements."""
        data: Any = _VF.empty(0, device=device, dtype=dtype)
        return Tensor._make_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedParameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return cast("UninitializedParameter", memo[id(self)])


class UninitializedBuffer(UninitializedTensorMixin, Tensor):  # type: ignore[misc]
    """A buffer whose shape is found out at the first call of a lazy module.

    Args:
        requires_grad: whether it requires gradients.
        device: where it will be made.
        dtype: what it will be made of.
        persistent: whether it is part of the module's ``state_dict``.
    """

    cls_to_become = Tensor
    persistent: bool

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> UninitializedBuffer:
        """Makes a buffer without elements."""
        data: Any = _VF.empty(0, device=device, dtype=dtype)
        made: Any = Tensor._make_subclass(cls, data, requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return cast("UninitializedBuffer", made)
