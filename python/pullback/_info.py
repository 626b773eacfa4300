"""The ranges of dtypes by ``finfo`` and ``iinfo``, and the options of printing.

The numbers are native. The objects are compared by the dtype they describe, as PyTorch's are; a
complex dtype is described by the real one of its parts.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any, NoReturn

from . import _C

__all__ = ["finfo", "get_printoptions", "iinfo"]

_PYTHON_TYPES: dict[Any, Any] = {
    bool: _C.bool,
    int: _C.int64,
    float: _C.float64,
    complex: _C.complex128,
}


def _type_name(value: object) -> str:
    name = type(value).__name__
    return f"torch.{name}" if isinstance(value, _C.dtype) else name


def _dtype(function: str, value: object, position: str) -> _C.dtype:
    """The dtype that ``value`` is or names."""
    if isinstance(value, _C.dtype):
        return value
    for kind, dtype in _PYTHON_TYPES.items():
        if value is kind:
            found: _C.dtype = dtype
            return found
    raise TypeError(
        f"{function}(): argument 'type'{position} must be torch.dtype, not {_type_name(value)}"
    )


def _single(function: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _C.dtype:
    """The dtype of a call with one argument."""
    if args:
        return _dtype(function, args[0], " (position 1)")
    if "type" not in kwargs:
        raise TypeError(f'{function}() missing 1 required positional arguments: "type"')
    return _dtype(function, kwargs["type"], "")


def _refuse_attribute(instance: object, name: str) -> NoReturn:
    """Raises the error for setting or deleting an attribute of a description."""
    kind = type(instance).__name__
    if hasattr(type(instance), name):
        raise AttributeError(f"attribute '{name}' of 'torch.{kind}' objects is not writable")
    raise AttributeError(f"'torch.{kind}' object has no attribute '{name}'")


class finfo:
    """The limits of a floating-point dtype; without argument, of the default one.

    Raises:
        TypeError: for another dtype, or what is no dtype.
    """

    __slots__ = ("_numbers",)
    _numbers: tuple[int, float, float, float, float, float, str]

    if TYPE_CHECKING:

        def __init__(self, type: _C.dtype | builtins.type = ...) -> None: ...

    def __new__(cls, *args: Any, **kwargs: Any) -> finfo:
        """Reads the arguments as PyTorch does."""
        if len(args) + len(kwargs) > 1:
            given = [_type_name(value) for value in args]
            given += [f"{name}={_type_name(value)}" for name, value in kwargs.items()]
            raise TypeError(
                f"finfo() received an invalid combination of arguments - got ({', '.join(given)}), "
                "but expected one of:\n * (torch.dtype type)\n * ()\n"
            )
        is_default = not (args or kwargs)
        dtype = _C.get_default_dtype() if is_default else _single("finfo", args, kwargs)
        self = super().__new__(cls)
        object.__setattr__(self, "_numbers", _C._finfo(dtype))
        return self

    def __init_subclass__(cls) -> None:
        raise TypeError("type 'torch.finfo' is not an acceptable base type")

    @property
    def bits(self) -> int:
        """How many bits a number has."""
        return self._numbers[0]

    @property
    def eps(self) -> float:
        """The distance from 1 to the next larger number."""
        return self._numbers[1]

    @property
    def max(self) -> float:
        """The largest finite number."""
        return self._numbers[2]

    @property
    def min(self) -> float:
        """The smallest finite number: ``-max``, or of a dtype without sign the smallest of all."""
        if self.dtype == "float8_e8m0fnu":
            return self._numbers[3]
        return -self._numbers[2]

    @property
    def tiny(self) -> float:
        """The smallest positive number of full precision."""
        return self._numbers[3]

    @property
    def smallest_normal(self) -> float:
        """The same as ``tiny``."""
        return self._numbers[3]

    @property
    def resolution(self) -> float:
        """The decimal precision, a power of ten."""
        return self._numbers[4]

    @property
    def dtype(self) -> str:
        """The dtype's name."""
        return self._numbers[6]

    def __setattr__(self, name: str, value: object) -> None:
        _refuse_attribute(self, name)

    def __delattr__(self, name: str) -> None:
        _refuse_attribute(self, name)

    def __reduce__(self) -> NoReturn:
        raise TypeError("cannot pickle 'torch.finfo' object")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((finfo, self.dtype))

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:
    """The limits of an integer dtype.

    Raises:
        TypeError: for another dtype, or what is no dtype.
    """

    __slots__ = ("_numbers",)
    _numbers: tuple[int, int, int, str]

    if TYPE_CHECKING:

        def __init__(self, type: _C.dtype | builtins.type) -> None: ...

    def __new__(cls, *args: Any, **kwargs: Any) -> iinfo:
        """Reads the arguments as PyTorch does."""
        if len(args) > 1:
            raise TypeError(f"iinfo() takes 1 positional argument but {len(args)} were given")
        if args and "type" in kwargs:
            raise TypeError("iinfo() got multiple values for argument 'type'")
        dtype = _single("iinfo", args, kwargs)
        for name in kwargs.keys() - {"type"}:
            raise TypeError(f"iinfo() got an unexpected keyword argument '{name}'")
        self = super().__new__(cls)
        object.__setattr__(self, "_numbers", _C._iinfo(dtype))
        return self

    def __init_subclass__(cls) -> None:
        raise TypeError("type 'torch.iinfo' is not an acceptable base type")

    @property
    def bits(self) -> int:
        """How many bits a number has."""
        return self._numbers[0]

    @property
    def max(self) -> int:
        """The largest number."""
        return self._numbers[2]

    @property
    def min(self) -> int:
        """The smallest number."""
        return self._numbers[1]

    @property
    def dtype(self) -> str:
        """The dtype's name."""
        return self._numbers[3]

    def __setattr__(self, name: str, value: object) -> None:
        _refuse_attribute(self, name)

    def __delattr__(self, name: str) -> None:
        _refuse_attribute(self, name)

    def __reduce__(self) -> NoReturn:
        raise TypeError("cannot pickle 'torch.iinfo' object")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((iinfo, self.dtype))

    def __repr__(self) -> str:
        # PyTorch prints large limits rounded, as it prints those of floating-point dtypes.
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


# Programs know them as classes of the package.
finfo.__module__ = iinfo.__module__ = "torch"


def get_printoptions() -> dict[str, Any]:
    """The options in force for printing tensors, in a new dictionary."""
    options = _C._get_printoptions()
    threshold = options["threshold"]
    if threshold.is_integer():
        options["threshold"] = int(threshold)
    return options
