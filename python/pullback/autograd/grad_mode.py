"""Grad mode and inference mode as contexts and decorators.

How they decorate is in ``pullback._contextlib``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from .. import _C
from .._contextlib import _decorate
from .._contextlib import _DecoratorContextManager as _DecoratorContextManager
from .._contextlib import _NoParamDecoratorContextManager as _NoParamDecoratorContextManager

if TYPE_CHECKING:
    from typing_extensions import Self

    from .._tensor import Tensor

__all__ = [
    "enable_grad",
    "enforce_grad_layout_policy",
    "inference_mode",
    "is_multithreading_enabled",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

F = TypeVar("F", bound=Callable[..., Any])


def _rebuilt(cls: type[_Mode], state: dict[str, Any]) -> _Mode:
    """An unpickled context; making it has no effect on the mode that is on."""
    made = cls.__new__(cls)
    made.__dict__.update(state)
    if cls._switch is not None:
        made._configure(cls._switch, state["mode"])
    return made


class _Mode(_C._ModeContext):
    """A mode that can be entered, and used as a decorator."""

    # Contexts that set a flag of the native part and restore it.
    _switch: str | None = None

    def clone(self) -> _Mode:
        """A fresh context of the same setting."""
        return type(self)()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), dict(self.__dict__))

    def __call__(self, function: F) -> F:
        return cast("F", _decorate(self.clone, function))


# The two that programs enter most are made natively, without a Python frame; also as decorators
# without brackets.


class no_grad(_C._NoGrad, _Mode):
    """Within it nothing is recorded: results do not require grad."""


class enable_grad(_C._EnableGrad, _Mode):
    """Within it ops are recorded, also inside of :class:`no_grad`."""


class set_grad_enabled(_Mode):
    """Sets grad mode at once; as a context it also puts the old one back."""

    _switch = "grad"

    def __init__(self, mode: bool) -> None:
        self.prev = _C.is_grad_enabled()
        self.mode = mode
        _C._set_grad_enabled(mode)
        self._configure(self._switch, mode)

    def __enter__(self) -> None:
        _C._set_grad_enabled(self.mode)

    def __exit__(self, *exception: object) -> None:
        _C._set_grad_enabled(self.prev)

    def __call__(self, function: F) -> F:
        """Makes the function run in this mode."""
        # Decorating undoes what the constructor did.
        _C._set_grad_enabled(self.prev)
        return super().__call__(function)

    def clone(self) -> set_grad_enabled:
        """A fresh context of the same setting."""
        return type(self)(self.mode)

    def __str__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    __repr__ = __str__


class inference_mode(_Mode):
    """Within it nothing is recorded, and new tensors can never take part in recording."""

    _switch = "inference"

    @overload
    def __new__(cls, mode: F) -> F: ...  # type: ignore[misc]

    @overload
    def __new__(cls, mode: bool = True) -> Self: ...

    def __new__(cls, mode: Any = True) -> Any:
        """A mode, or a function that runs in it (the form without brackets)."""
        if isinstance(mode, bool):
            return super().__new__(cls)
        return _decorate(cls, mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode
        self._configure(self._switch, mode)

    def clone(self) -> inference_mode:
        """A fresh context of the same setting."""
        return type(self)(self.mode)


def is_multithreading_enabled() -> bool:
    """The setting of :class:`set_multithreading_enabled` on this thread; True initially."""
    return _C._is_multithreading_enabled()


class _Setting(_Mode):
    """A setting of the thread, made at once; as a context it also puts the old one back."""

    def __init__(self, mode: bool) -> None:
        self.prev = self._get()
        self.mode = mode
        self._set(mode)

    @staticmethod
    def _get() -> bool:
        raise NotImplementedError

    @staticmethod
    def _set(mode: bool, /) -> None:
        raise NotImplementedError

    def __enter__(self) -> None:
        self._set(self.mode)

    def __exit__(self, *exception: object) -> None:
        self._set(self.prev)

    def __call__(self, function: F) -> F:
        """Makes the function run with this setting."""
        # Decorating undoes what the constructor did.
        self._set(self.prev)
        return super().__call__(function)

    def clone(self) -> _Setting:
        """A fresh context of the same setting."""
        return type(self)(self.mode)


class set_multithreading_enabled(_Setting):
    """Says whether backward may use further threads; the gradients are the same bits either way."""

    _get = staticmethod(_C._is_multithreading_enabled)
    _set = staticmethod(_C._set_multithreading_enabled)


class enforce_grad_layout_policy(_Setting):
    """Says whether a leaf's ``.grad`` has the layout of the leaf.

    The contract that holds at first: the ``.grad`` of a leaf whose elements lie densely has the
    leaf's strides, any other is row-major. Without it backward takes a gradient that nobody else
    holds as it comes, which saves a copy, and does not warn of one that is laid out otherwise. What
    is made anew obeys the contract in any case. A setting of the thread that runs backward.

    Args:
        enable: whether the contract holds.

    Example::

        >>> x = torch.ones(2, 3).t().requires_grad_()
        >>> with torch.autograd.enforce_grad_layout_policy(False):
        ...     torch.autograd.backward(x * 1, torch.ones(3, 2))
    """

    _get = staticmethod(_C._is_grad_layout_enforcement_enabled)
    _set = staticmethod(_C._set_grad_layout_enforcement_enabled)

    def __init__(self, enable: bool = True) -> None:
        super().__init__(enable)


class _force_original_view_tracking(_Setting):
    """Views made within it keep the ops that made them, and can be replayed and reversed by these.

    After writes to their base their history is made of those ops again, not of ``as_strided``.
    """

    _get = staticmethod(_C._is_view_replay_enabled)
    _set = staticmethod(_C._set_view_replay_enabled)


class masked_zeros(_Mode):
    """Within it zero gradients stay zero in backward, whatever they are multiplied by.

    The gradient of a branch that ``where``, a mask, ``clamp`` or ``maximum`` did not take is zero.
    An op before it whose derivative is infinite there (``sqrt`` and ``log`` at 0, a norm at 0, a
    division by 0) makes ``0 * inf = nan`` of it. Within this context a NaN that an op made of a
    zero gradient is zero: element by element for ops that work so, and where the whole gradient was
    zero for all others. Everything else keeps its bits. A setting of the thread that runs backward.

    Example::

        >>> x = torch.tensor([0.0, 4.0], requires_grad=True)
        >>> root = torch.where(x > 0, x.sqrt(), x)
        >>> with torch.autograd.masked_zeros():
        ...     root.sum().backward()
        >>> x.grad  # without the context: tensor([   nan, 0.2500])
        tensor([1.0000, 0.2500])
    """

    def __init__(self) -> None:
        self.prev = False

    def __enter__(self) -> None:
        """Switches the mode on."""
        self.prev = _C._is_masked_zeros()
        _C._set_masked_zeros(True)

    def __exit__(self, *exception: object) -> None:
        _C._set_masked_zeros(self.prev)


class _unsafe_preserve_version_counter(_Mode):
    """Writes within it are not counted: the tensors' versions are put back at its end.

    Backward cannot tell then that a saved value was overwritten.
    """

    def __init__(self, tensors: Tensor | tuple[Tensor, ...]) -> None:
        self.tensors = tensors if isinstance(tensors, tuple) else (tensors,)
        if not all(isinstance(tensor, _C.TensorBase) for tensor in self.tensors):
            raise AssertionError("Expected tensors to be a tensor or a tuple of tensors")
        self.versions = [tensor._version for tensor in self.tensors]

    def __enter__(self) -> None:
        """Has no effect."""

    def __exit__(self, *exception: object) -> None:
        _C._unsafe_set_version_counter(self.tensors, self.versions)
