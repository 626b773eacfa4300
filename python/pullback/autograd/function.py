"""Custom functions: ``Function``, its context, and ``once_differentiable``.

The call itself is native; here are the class protocol and its errors. Every subclass of
``Function`` gets a class of contexts called ``<Name>Backward``, whose objects are the ``grad_fn``
of the outputs.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from .. import _C
from .graph import _register_hook, _register_prehook, _repr_html

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "NestedIOFunction",
    "once_differentiable",
]

_ids = itertools.count()

F = TypeVar("F", bound=Callable[..., Any])


class FunctionCtx:
    """The methods of ``ctx``; they are native, see ``_C._FunctionBase``."""

    save_for_backward: Callable[..., None]
    mark_dirty: Callable[..., None]
    mark_non_differentiable: Callable[..., None]
    set_materialize_grads: Callable[[bool], None]
    needs_input_grad: Any

    if TYPE_CHECKING:

        @property
        def saved_tensors(self) -> tuple[Tensor, ...]:
            """The tensors that forward saved."""

    def save_for_forward(self, *tensors: Any) -> None:
        """Keeps tensors for ``jvp``.

        Raises:
            AssertionError: if an argument is neither a tensor nor None.
        """
        for tensor in tensors:
            if not (isinstance(tensor, _C.TensorBase) or tensor is None):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save "
                    "non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Does nothing: sharing is detected."""
        warnings.warn(
            "mark_shared_storage is deprecated. Tensors with shared storages are automatically "
            "tracked. Note that calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )


class BackwardCFunction(_C._FunctionBase, FunctionCtx):
    """The base of contexts: runs the user's backward."""

    _forward_cls: ClassVar[Any]

    # On a function class `apply` is called on the class, on a context on the object.
    def apply(self, *grads: Any) -> Any:  # type: ignore[override]
        """Runs ``backward`` (or ``vjp``) of the user's class.

        Raises:
            RuntimeError: if the class has both.
        """
        backward = self._forward_cls.backward
        vjp = self._forward_cls.vjp
        if backward is not Function.backward and vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. "
                "You should only implement one of them."
            )
        return (vjp if vjp is not Function.vjp else backward)(self, *grads)

    def apply_jvp(self, *tangents: Any) -> Any:
        """Runs ``jvp`` of the user's class."""
        return self._forward_cls.jvp(self, *tangents)

    register_hook = _register_hook
    register_prehook = _register_prehook
    _repr_html_ = _repr_html

    def __call__(self, *grads: Any) -> Any:
        """Runs the node: one gradient per edge."""
        return self._call_node(*grads)


class FunctionMeta(type):
    """Gives each function class its class of contexts."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        context = type(f"{name}Backward", (BackwardCFunction,), {"_forward_cls": cls})
        context.__module__ = cls.__module__
        _C._adopt_context_class(context)
        cls._autograd_function_id = next(_ids)
        cls._backward_cls = context
        setup = getattr(cls, "setup_context", None)
        base = _Protocol.__dict__["setup_context"].__func__
        cls._has_setup_context = getattr(setup, "__func__", setup) is not base
        super().__init__(name, bases, attrs)
        if any(isinstance(base, FunctionMeta) for base in bases):
            cls._own_apply()

    def _own_apply(cls) -> None:
        """Gives the class an ``apply`` of its own, which need not be bound.

        Where a class overrides ``apply``, ``super().apply`` must be a method: its bases
        get that back.
        """
        found = next(base.__dict__["apply"] for base in cls.__mro__ if "apply" in base.__dict__)
        if isinstance(found, _C._FunctionApply) or found is _C._FunctionBase.__dict__["apply"]:
            cls.apply: Any = _C._FunctionApply(cls)
            return
        for base in cls.__mro__:
            if isinstance(base.__dict__.get("apply"), _C._FunctionApply):
                del base.apply  # type: ignore[attr-defined]


class _Protocol:
    """The methods that a user's class may define."""

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the outputs; must be overridden.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Keeps what backward needs, where ``forward`` takes no ``ctx``.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Computes one gradient per input of ``forward``; must be overridden, or ``vjp`` is.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    if TYPE_CHECKING:
        # (To a type checker, so that classes may give their parameters any names and types.)

        @staticmethod
        def backward(ctx: Any, *grad_outputs: Any, **_: Any) -> Any:
            """Computes one gradient per input of ``forward``."""

        @staticmethod
        def vjp(ctx: Any, *grad_outputs: Any, **_: Any) -> Any:
            """Computes one gradient per input of ``forward``."""

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Computes the outputs' tangents.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Computes a batch at once.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap static method "
            "or set generate_vmap_rule=True."
        )


class Function(_Protocol, _C._FunctionBase, metaclass=FunctionMeta):
    """A function with a derivative of the user's own; used through :meth:`apply`."""

    generate_vmap_rule = False
    # (Objects of the class itself have no node: these say so.)
    register_hook = _register_hook
    register_prehook = _register_prehook
    _has_setup_context: ClassVar[bool]
    _backward_cls: ClassVar[Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refuses: functions are applied, not called."""
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            "new-style autograd function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )


@functools.lru_cache(maxsize=256)
def _signature(function: Callable[..., Any]) -> tuple[inspect.Signature, int]:
    """The signature, and how many arguments by position leave nothing to a default."""
    signature = inspect.signature(function)
    parameters = signature.parameters.values()
    plain = all(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    return signature, len(parameters) if plain else -1


def _bind(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of ``forward``, defaults included, as ``setup_context`` sees them."""
    signature, count = _signature(cls.forward)
    if not kwargs and len(args) == count:
        return args
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError("apply() takes no keyword arguments")
    return bound.args


class InplaceFunction(Function):
    """An old name."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """An old name: the functions here take flat arguments."""


class DelayedError:
    """Gives aliases of tensors through which no gradient flows: backward fails with ``msg``.

    Args:
        msg: what the error says.
        num_inputs: how many tensors it will be called with.

    Raises:
        RuntimeError: for arguments of other types.
    """

    def __init__(self, msg: str | bytes, num_inputs: int) -> None:
        if not isinstance(msg, (str, bytes)):
            raise RuntimeError("argument 'msg' must be a string")
        if not isinstance(num_inputs, int) or num_inputs < 0:
            raise RuntimeError("argument 'num_inputs' must be an int that is not negative")
        self.message = msg.decode() if isinstance(msg, bytes) else msg
        self.num_inputs = num_inputs

    def __call__(self, *tensors: Any) -> Any:
        """An alias, or a tuple of aliases; ``None`` stays ``None``.

        Raises:
            TypeError: for another number of arguments, and for what is no tensor.
        """
        return _C._delayed_error(self.message, self.num_inputs, tensors)


_ONCE = "trying to differentiate twice a function that was marked with @once_differentiable"


def _as_leaf(output: Any) -> Any:
    """An alias that requires grad, where there can be one."""
    if not isinstance(output, _C.TensorBase):
        return None
    if not (output.is_floating_point() or output.is_complex()):
        return None
    leaf = output.detach()
    leaf.requires_grad = True
    return leaf


def once_differentiable(fn: F) -> F:
    """Marks a backward that is not made of differentiable ops: a second derivative is an error."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        from .grad_mode import no_grad

        with no_grad():
            outputs = fn(ctx, *args)
        if not _C.is_grad_enabled():
            return outputs
        if not any(isinstance(a, _C.TensorBase) and a.requires_grad for a in args):
            return outputs
        if not isinstance(outputs, tuple):
            outputs = (outputs,)
        fakes = [_as_leaf(output) for output in outputs]
        delayed = DelayedError(_ONCE, len(fakes))(*fakes)
        delayed = delayed if isinstance(delayed, tuple) else (delayed,)
        return tuple(
            output if fake is None else alias
            for output, fake, alias in zip(outputs, fakes, delayed, strict=True)
        )

    return cast("F", wrapper)
