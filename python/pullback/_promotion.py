"""The dtype that operands promote to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from . import _C

if TYPE_CHECKING:
    from ._C import _Operand
    from .types import Number

__all__ = ["result_type"]

# The names of the two operands, and which of them must be tensors.
_FORMS = (
    (("tensor", True), ("other", True)),
    (("scalar", False), ("tensor", True)),
    (("tensor", True), ("other", False)),
    (("scalar1", False), ("scalar2", False)),
)


def _operands(form: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
    """The operands of a call, if it has this form."""
    names = [name for name, _ in form]
    if len(args) > 2 or len(args) + len(kwargs) != 2 or set(kwargs) != set(names[len(args) :]):
        return None
    given = [*args, *(kwargs[name] for name in names[len(args) :])]
    for value, (_, is_tensor) in zip(given, form, strict=True):
        if isinstance(value, _C.TensorBase) != is_tensor:
            return None
        if not is_tensor and not isinstance(value, (int, float, complex)):
            return None
    return given


def _refuse(args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    given = [type(value).__name__ for value in args]
    given += [f"{name}={type(value).__name__}" for name, value in kwargs.items()]
    forms = [
        ", ".join(f"{'Tensor' if is_tensor else 'Number'} {name}" for name, is_tensor in form)
        for form in _FORMS
    ]
    expected = "".join(f" * ({form})\n" for form in forms)
    return TypeError(
        f"result_type() received an invalid combination of arguments - got ({', '.join(given)}), "
        f"but expected one of:\n{expected}"
    )


@overload
def result_type(tensor: Any, other: _Operand) -> _C.dtype: ...


@overload
def result_type(scalar: Number, tensor: Any) -> _C.dtype: ...


@overload
def result_type(scalar1: Number, scalar2: Number) -> _C.dtype: ...


def result_type(*args: Any, **kwargs: Any) -> _C.dtype:
    """The dtype that arithmetic of two operands gives: tensors, or numbers.

    Raises:
        TypeError: for other arguments.
    """
    for form in _FORMS:
        given = _operands(form, args, kwargs)
        if given is not None:
            return _C.result_type(*given)
    # (Scalars of NumPy, and objects that convert to a tensor.)
    if len(args) == 2 and not kwargs:
        try:
            return _C.result_type(*args)
        except TypeError:
            pass
    raise _refuse(args, kwargs)
