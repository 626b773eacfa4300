"""The older classes of tensors, one for each dtype: ``FloatTensor`` and the like.

They have no objects of their own: a call makes a :class:`Tensor` of the dtype, ``isinstance`` asks
for the dtype, and ``x.type(FloatTensor)`` converts. Those of ``torch.cuda`` can be named only.
"""

from __future__ import annotations

import builtins
import copyreg
import sys
import warnings
from typing import Any

from . import _C
from ._tensor import Tensor

DTYPES = {
    "DoubleTensor": _C.float64,
    "FloatTensor": _C.float32,
    "HalfTensor": _C.float16,
    "BFloat16Tensor": _C.bfloat16,
    "LongTensor": _C.int64,
    "IntTensor": _C.int32,
    "ShortTensor": _C.int16,
    "CharTensor": _C.int8,
    "ByteTensor": _C.uint8,
    "BoolTensor": _C.bool,
}


class tensortype(type):
    """The class of the classes of tensors of one dtype."""

    dtype: _C.dtype
    layout: _C.layout
    is_cuda: builtins.bool
    is_sparse: builtins.bool
    is_xpu: builtins.bool

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> tensortype:
        """Makes such a class, which can have no subclasses."""
        if bases:
            base = f"{bases[0].__module__}.{bases[0].__name__}"
            raise TypeError(f"type '{base}' is not an acceptable base type")
        return super().__new__(cls, name, bases, body)

    def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
        """Makes a tensor: of nothing, sizes, a storage, another tensor or data."""
        if cls.is_cuda:
            raise RuntimeError(f"cannot make a {cls.__name__} on cuda: this build has only cpu")
        if cls.is_sparse:
            return _sparse_tensor(cls.dtype, args, kwargs)
        return _C._legacy_tensor(cls.dtype, args, kwargs)

    def __instancecheck__(cls, instance: object) -> builtins.bool:
        if not isinstance(instance, Tensor) or instance.dtype is not cls.dtype:
            return False
        return instance.layout is cls.layout and instance.is_cuda == cls.is_cuda

    def __setattr__(cls, name: str, value: object) -> None:
        full = f"{cls.__module__}.{cls.__name__}"
        raise TypeError(f"cannot set {name!r} attribute of immutable type {full!r}")


def _sparse_tensor(dtype: _C.dtype, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """A sparse tensor of indices and values, or of nothing in a size."""
    from ._legacy_sparse import make

    return make("torch.sparse.SparseTensor", dtype, args, kwargs)


def _made(
    name: str, module: str, is_cuda: builtins.bool, is_sparse: builtins.bool = False
) -> tensortype:
    body = {
        "__module__": module,
        "dtype": DTYPES[name],
        "layout": _C.sparse_coo if is_sparse else _C.strided,
        "is_cuda": is_cuda,
        "is_sparse": is_sparse,
        "is_xpu": False,
    }
    return tensortype(name, (), body)


CLASSES = {name: _made(name, "torch", False) for name in DTYPES}


# The classes of sparse tensors, which ``torch.sparse`` has.
SPARSE_CLASSES = {
    name: _made(name, "torch.sparse", False, True) for name in DTYPES if name != "BoolTensor"
}


def _by_name(name: str, is_cuda: builtins.bool, is_sparse: builtins.bool = False) -> tensortype:
    if not is_cuda:
        return (SPARSE_CLASSES if is_sparse else CLASSES)[name]
    found: tensortype = getattr(sys.modules[__package__].cuda, name)
    return found


def _reduced(kind: tensortype) -> tuple[Any, ...]:
    more = (True,) if kind.is_sparse else ()
    return _by_name, (kind.__name__, kind.is_cuda, *more)


copyreg.pickle(tensortype, _reduced)


def set_default_tensor_type(t: Any, /) -> None:
    """Makes the dtype of a class of tensors, or of its name, the default dtype.

    Deprecated in PyTorch: :func:`set_default_dtype` does the same.

    Raises:
        RuntimeError: for a class of ``torch.cuda``.
        TypeError: for what is no class of tensors of a floating-point dtype.
    """
    name = t.removeprefix("torch.") if isinstance(t, str) else None
    kind = CLASSES.get(name) if name is not None else t
    if (isinstance(kind, tensortype) and kind.is_cuda) or (name or "").startswith("cuda."):
        raise RuntimeError("the default tensor type cannot be on cuda: this build has only cpu")
    if not isinstance(kind, tensortype):
        raise TypeError(
            f"invalid type object: only floating-point types are supported as the default type, "
            f"not {t!r}"
        )
    if not kind.dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    warnings.warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use "
        "torch.set_default_dtype() and torch.set_default_device() as alternatives.",
        UserWarning,
        stacklevel=2,
    )
    _C.set_default_dtype(kind.dtype)
