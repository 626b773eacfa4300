"""Storages, the memory behind tensors: bytes (``UntypedStorage``), elements (``TypedStorage``).

:class:`UntypedStorage` is native; what it needs no address for is here, and called by it. A
:class:`TypedStorage` is such a storage and a dtype: PyTorch's older form, deprecated there and
here. The classes ``FloatStorage`` and so on make typed storages and have no objects of their own.
"""

from __future__ import annotations

import builtins
import copy
import functools
import os
import sys
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from . import _C, _absent, _shared_memory
from ._C import UntypedStorage
from ._file import map_file as _map_file
from ._file import map_shared as _map_shared  # noqa: F401 (the extension asks for it)
from ._tensor import Tensor

_Dtype = _C.dtype

if TYPE_CHECKING:
    from ._C import device as _Device

__all__ = ["TypedStorage", "UntypedStorage"]

_DTYPES = {
    "DoubleStorage": _C.float64,
    "FloatStorage": _C.float32,
    "HalfStorage": _C.float16,
    "BFloat16Storage": _C.bfloat16,
    "LongStorage": _C.int64,
    "IntStorage": _C.int32,
    "ShortStorage": _C.int16,
    "CharStorage": _C.int8,
    "ByteStorage": _C.uint8,
    "BoolStorage": _C.bool,
    "ComplexDoubleStorage": _C.complex128,
    "ComplexFloatStorage": _C.complex64,
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


def _dtype_to_storage_type_map() -> dict[_Dtype, str]:
    """The name of the class of storages of each dtype, which readers of files ask for."""
    return dict(_NAMES)


def _storage_type_to_dtype_map() -> dict[str, _Dtype]:
    """The dtype that the name of each class of storages means."""
    return dict(_DTYPES)


# --- functions that the native class calls
# ---------------------------------------------------------------


def _over(storage: UntypedStorage, dtype: _Dtype) -> Tensor:
    """All whole elements of a storage as a tensor."""
    return _C._tensor_over(storage, dtype, 0, [storage.nbytes() // dtype.itemsize], [1])


def _check_elements(storage: UntypedStorage) -> None:
    if storage.device.type == "meta":
        raise NotImplementedError(
            "Not available for 'meta' device type: its storages have sizes, but no elements"
        )


def _listed(storage: UntypedStorage, dtype: _Dtype) -> str:
    """The elements, each on a line of its own; dots for those without memory."""
    if storage.device.type == "meta":
        return "..."
    return " " + "\n ".join(str(value) for value in _over(storage, dtype).tolist())


def _shown(storage: UntypedStorage) -> str:
    kind = type(storage)
    name = f"{kind.__module__}.{kind.__qualname__}"
    return f"{_listed(storage, _C.uint8)}\n[{name}(device={storage.device}) of size {len(storage)}]"


def _shared_by(storage: UntypedStorage, name: str, strategy: str) -> _shared_memory.Block:
    """The shared memory of a storage, which is moved there by a strategy if it is not there."""
    if storage.device.type != "cpu":
        raise RuntimeError(
            f"{name}: only available on CPU, and this storage is on {storage.device}"
        )
    before = _shared_memory.strategy
    _shared_memory.strategy = strategy
    try:
        block = _shared_memory.block_of(storage.share_memory_())
    finally:
        _shared_memory.strategy = before
    by_file = strategy == _shared_memory.FILE_SYSTEM
    if block is None or (block.path if by_file else block.descriptor) is None:
        raise RuntimeError(f"{name}: the storage is shared in another way already")
    return block


def _check_dtype(dtype: Any) -> _Dtype:
    if not isinstance(dtype, _C.dtype):
        raise TypeError(f"Argument 'dtype' must be torch.dtype, not {type(dtype)}")
    return dtype


def _converted(storage: UntypedStorage, dtype: Any) -> TypedStorage:
    return TypedStorage(wrap_storage=storage, dtype=_C.uint8, _internal=True)._to(dtype)


def _byteswap(storage: UntypedStorage, dtype: Any) -> None:
    size = _check_dtype(dtype).itemsize // (2 if dtype.is_complex else 1)
    storage.copy_(UntypedStorage._from_bytes(_swapped(storage._bytes(), size)))


def _swapped(data: bytes, size: int) -> bytes:
    """The bytes with those of each element of ``size`` bytes reversed; a remainder is unchanged."""
    whole = len(data) - len(data) % size
    out = bytearray(data)
    for at in range(size):
        out[at:whole:size] = data[size - 1 - at : whole : size]
    return bytes(out)


def _type(storage: UntypedStorage, dtype: Any) -> Any:
    if dtype is None:
        return f"{type(storage).__module__}.{type(storage).__name__}"
    if dtype is UntypedStorage:
        return storage
    return _converted(storage, _dtype_of(dtype))


def _dtype_of(kind: Any) -> _Dtype:
    """The dtype that a storage class or its name means."""
    name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__name__}"
    if name.startswith("torch.cuda."):
        raise RuntimeError("cannot make a storage on cuda: this build has only cpu")
    dtype = _DTYPES.get(name.removeprefix("torch."))
    if dtype is None:
        raise ValueError(f"invalid type: {name!r}")
    return dtype


def _from_buffer(
    buffer: Any,
    byte_order: str | None = None,
    count: int = -1,
    offset: int = 0,
    dtype: Any = None,
) -> UntypedStorage:
    """A storage with a copy of ``count`` elements of a buffer, from byte ``offset`` on.

    Args:
        buffer: what has the buffer protocol.
        byte_order: "native", "little" or "big"; may be left out for elements of one byte.
        count: how many elements; -1 for all.
        offset: where to begin, in bytes.
        dtype: of the elements.

    Raises:
        RuntimeError: without a dtype, or without a byte order where it matters.
        TypeError: for an object that is no buffer.
        ValueError: for an unknown byte order, and ranges that the buffer does not have.
    """
    if dtype is None:
        raise RuntimeError("argument 'dtype' cannot be None")
    size = _check_dtype(dtype).itemsize
    if byte_order is None:
        if dtype not in (_C.uint8, _C.int8):
            raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
        byte_order = "native"
    if byte_order not in ("big", "little", "native"):
        raise ValueError(
            f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')"
        )
    try:
        data = memoryview(buffer).tobytes()
    except TypeError:
        raise TypeError(f"a bytes-like object is required, not '{type(buffer).__name__}'") from None
    if not 0 <= offset <= len(data):
        raise ValueError(
            f"offset must be non-negative and no greater than buffer length ({len(data)}), but "
            f"got {offset}"
        )
    data = data[offset:]
    if count < 0:
        if len(data) % size:
            raise ValueError(
                f"buffer size ({len(data)}) must be a multiple of element size ({size})"
            )
        count = len(data) // size
    if count * size > len(data):
        raise ValueError(
            f"buffer has only {len(data) // size} elements after offset {offset}, but specified "
            f"a size of {count}"
        )
    data = data[: count * size]
    if byte_order not in ("native", sys.byteorder):
        data = _swapped(data, size // 2 if dtype.is_complex else size)
    if dtype is _C.bool:
        # A byte other than 0 and 1 is not a bool.
        data = bytes(data).translate(b"\0" + b"\1" * 255)
    return UntypedStorage._from_bytes(data)


# --- typed storages -------------------------------------------------------------------------------

_has_warned = False
_always_warns = False


def _get_always_warn_typed_storage_removal() -> builtins.bool:
    return _always_warns


def _set_always_warn_typed_storage_removal(always_warn: builtins.bool) -> None:
    global _always_warns
    if not isinstance(always_warn, builtins.bool):
        raise AssertionError(f"always_warn must be bool, got {type(always_warn).__name__}")
    _always_warns = always_warn


def _reset_warn_typed_storage_removal() -> None:
    global _has_warned
    _has_warned = False


def _warn_typed_storage_removal(stacklevel: builtins.int = 2) -> None:
    """Says once that typed storages are deprecated."""
    global _has_warned
    if _has_warned and not _always_warns:
        return
    _has_warned = True
    warnings.warn(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be "
        "the only storage class. To get the bytes of a tensor, use tensor.untyped_storage() "
        "instead of tensor.storage()",
        UserWarning,
        stacklevel=stacklevel + 1,
    )


_FORMS = (
    "Expected one of:\n * (*, torch.device device, torch.dtype dtype)\n"
    " * (int size, *, torch.device device, torch.dtype dtype)\n"
    " * (Sequence data, *, torch.device device, torch.dtype dtype)\n"
    " * (*, UntypedStorage wrap_storage, torch.dtype dtype)\n"
)


def _is_int(value: Any) -> builtins.bool:
    return hasattr(value, "__index__") and not isinstance(value, (builtins.bool, Tensor))


def _made(size_or_data: tuple[Any, ...], dtype: _Dtype, device: Any) -> UntypedStorage:
    """A storage for no elements, for so many, or for those of a sequence."""
    where = _C.device("cpu" if device is None else device)
    if not size_or_data:
        return UntypedStorage(0, device=where)
    given = size_or_data[0]
    if _is_int(given):
        return UntypedStorage(int(given) * dtype.itemsize, device=where)
    return _C.tensor(given, dtype=dtype, device=where).untyped_storage()


class TypedStorage:
    """A storage whose elements are of one dtype.

    Args:
        *args: nothing, the number of elements, or a sequence of them.
        wrap_storage: a storage to look at, instead of those.
        dtype: of the elements; the default dtype if it is left out.
        device: where the memory is.

    Raises:
        RuntimeError: for arguments that do not go together.
        TypeError: for arguments of a wrong type.
    """

    is_sparse = False
    is_sparse_csr = False
    dtype: _Dtype
    _untyped_storage: UntypedStorage

    def __init__(
        self,
        *args: Any,
        wrap_storage: Any = None,
        dtype: Any = None,
        device: Any = None,
        _internal: builtins.bool = False,
    ) -> None:
        if not _internal:
            _warn_typed_storage_removal(3)
        error = f"{type(self).__name__}.__init__ received an invalid combination of arguments. "
        if dtype is not None and not isinstance(dtype, _C.dtype):
            raise TypeError(
                f"{error}{_FORMS}Argument 'dtype' must be torch.dtype, not {type(dtype)}"
            )
        if wrap_storage is not None:
            if args or device is not None:
                raise RuntimeError(
                    f"{error}{_FORMS}No positional arguments and no device beside 'wrap_storage'"
                )
            if dtype is None:
                raise RuntimeError(f"{error}{_FORMS}Argument 'dtype' must be specified")
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(
                    f"{error}{_FORMS}Argument 'wrap_storage' must be UntypedStorage, but got "
                    f"{type(wrap_storage)}"
                )
        elif len(args) > 1:
            raise RuntimeError(f"{error}{_FORMS}Too many positional arguments")
        self.dtype = _C.get_default_dtype() if dtype is None else dtype
        self._untyped_storage = (
            _made(args, self.dtype, device) if wrap_storage is None else wrap_storage
        )

    # Every public method first warns that the class is deprecated; `_deprecated` below does it.

    def _with(self, storage: UntypedStorage) -> TypedStorage:
        return TypedStorage(wrap_storage=storage, dtype=self.dtype, _internal=True)

    def _elements(self) -> Tensor:
        return _over(self._untyped_storage, self.dtype)

    def _count(self) -> builtins.int:
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    def _place(self, index: Any) -> builtins.int:
        if not _is_int(index):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        _check_elements(self._untyped_storage)
        count = self._count()
        if not -count <= index < count:
            raise IndexError(f"index {index} out of range for storage of size {count}")
        return int(index) % count

    def _to(self, dtype: Any) -> TypedStorage:
        made = self._elements().to(_check_dtype(dtype), copy=True)
        return TypedStorage(wrap_storage=made.untyped_storage(), dtype=dtype, _internal=True)

    def _deepcopy(self, memo: dict[Any, Any]) -> TypedStorage:
        return self._with(copy.deepcopy(self._untyped_storage, memo))

    @property
    def _dtype(self) -> _Dtype:
        return self.dtype

    @property
    def _cdata(self) -> builtins.int:
        return self._untyped_storage._cdata

    def untyped(self) -> UntypedStorage:
        """The storage without its dtype."""
        return self._untyped_storage

    def fill_(self, value: Any) -> TypedStorage:
        """Sets all elements."""
        self._elements().fill_(value)
        return self

    def __len__(self) -> builtins.int:
        return self._count()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._elements()[self._place(index)].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        _check_elements(self._untyped_storage)
        at = index if isinstance(index, slice) else self._place(index)
        self._elements()[at] = value

    def __iter__(self) -> Iterator[Any]:
        _check_elements(self._untyped_storage)
        return iter(self._elements().tolist())

    def __repr__(self) -> str:
        storage = self._untyped_storage
        kind = f"torch.storage.TypedStorage(dtype={self.dtype}, device={storage.device})"
        return f"{_listed(storage, self.dtype)}\n[{kind} of size {self._count()}]"

    def __copy__(self) -> TypedStorage:
        return self._with(self._untyped_storage.clone())

    def __deepcopy__(self, memo: dict[Any, Any]) -> TypedStorage:
        return self._deepcopy(memo)

    def __sizeof__(self) -> builtins.int:
        return object.__sizeof__(self) + self._untyped_storage.nbytes()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_typed, (self._untyped_storage, self.dtype))

    def copy_(self, source: Any, non_blocking: builtins.bool | None = None) -> TypedStorage:
        """Copies the bytes of a storage of the same size in bytes."""
        other = source._untyped_storage if isinstance(source, TypedStorage) else source
        self._untyped_storage.copy_(other, non_blocking)
        return self

    def nbytes(self) -> builtins.int:
        """The size in bytes."""
        return self._untyped_storage.nbytes()

    def size(self) -> builtins.int:
        """The number of elements."""
        return self._count()

    def element_size(self) -> builtins.int:
        """The size of an element in bytes."""
        return self.dtype.itemsize

    def data_ptr(self) -> builtins.int:
        """The address of the first byte."""
        return self._untyped_storage.data_ptr()

    def resizable(self) -> builtins.bool:
        """Whether :meth:`resize_` can succeed."""
        return self._untyped_storage.resizable()

    def resize_(self, size: builtins.int) -> TypedStorage:
        """Makes room for ``size`` elements, keeping the content."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    def clone(self) -> TypedStorage:
        """A copy."""
        return self._with(self._untyped_storage.clone())

    def tolist(self) -> list[Any]:
        """The elements."""
        _check_elements(self._untyped_storage)
        return cast("list[Any]", self._elements().tolist())

    def type(self, dtype: Any = None, non_blocking: builtins.bool = False) -> Any:
        """The name of the class of storages of this dtype, or a copy of another."""
        if dtype is None:
            return f"torch.{self.pickle_storage_type()}"
        return self._untyped_storage if dtype is UntypedStorage else self._to(_dtype_of(dtype))

    def pickle_storage_type(self) -> str:
        """The name of the class of storages of this dtype."""
        if self.dtype not in _NAMES:
            raise KeyError(f"dtype {self.dtype} is not recognized")
        return _NAMES[self.dtype]

    @property
    def device(self) -> _Device:
        """The device of the memory."""
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> builtins.bool:
        """Whether the memory is on a CUDA device."""
        return self._untyped_storage.is_cuda

    @property
    def is_hpu(self) -> builtins.bool:
        """Whether the memory is on an HPU."""
        return False

    @property
    def filename(self) -> str | None:
        """The file whose content is the memory, if there is one."""
        return self._untyped_storage.filename

    def get_device(self) -> builtins.int | None:
        """The device's number; None for the CPU."""
        return self._untyped_storage.device.index

    def is_pinned(self, device: Any = None) -> builtins.bool:
        """Whether a device can read the memory directly."""
        return self._untyped_storage.is_pinned(device)

    def pin_memory(self, device: Any = None) -> TypedStorage:
        """A copy that a device may read directly: an error without an accelerator."""
        return self._with(self._untyped_storage.pin_memory(device))

    def is_shared(self) -> builtins.bool:
        """Whether other processes see the memory: a file's, or moved by :meth:`share_memory_`."""
        return self._untyped_storage.is_shared()

    def share_memory_(self) -> TypedStorage:
        """Moves the memory to where processes that are forked later share it with this one."""
        self._untyped_storage.share_memory_()
        return self

    def _write_file(
        self,
        f: Any,
        is_real_file: builtins.bool,
        save_size: builtins.bool,
        element_size: builtins.int,
    ) -> None:
        """Writes the bytes to a file, as the old format of checkpoints has them.

        Args:
            f: the file, open for writing bytes.
            is_real_file: whether it has a descriptor; all are written by their ``write``.
            save_size: whether the number of elements comes first, in eight bytes.
            element_size: how many bytes an element has.

        Raises:
            NotImplementedError: on the meta device.
        """
        self._untyped_storage.cpu()  # (Refuses what has no bytes.)
        if save_size:
            f.write((self.nbytes() // element_size).to_bytes(8, "little"))
        f.write(self._untyped_storage._bytes())

    def _share_fd_cpu_(self) -> tuple[int, int]:
        """Moves the memory to a file without a name; its descriptor and size in bytes.

        The descriptor lives as long as the memory.

        Raises:
            RuntimeError: on other devices, and for memory shared by another strategy.
        """
        block = _shared_by(self._untyped_storage, "_share_fd_", _shared_memory.FILE_DESCRIPTOR)
        assert block.descriptor is not None
        return block.descriptor, self.nbytes()

    def _share_filename_cpu_(self) -> tuple[bytes, bytes, int]:
        """Moves the memory to a file: nobody who manages it, its name and size in bytes.

        The file lives as long as the memory.

        Raises:
            RuntimeError: on other devices, and for memory shared by another strategy.
        """
        block = _shared_by(self._untyped_storage, "_share_filename_", _shared_memory.FILE_SYSTEM)
        assert block.path is not None
        return b"", os.fsencode(block.path), self.nbytes()

    def cpu(self) -> TypedStorage:
        """A copy with the same elements on the CPU."""
        return self._with(self._untyped_storage.cpu())

    def cuda(self, device: Any = None, non_blocking: builtins.bool = False) -> TypedStorage:
        """A copy with the same elements on a CUDA device: an error without the backend."""
        return self._with(self._untyped_storage.cuda(device, non_blocking))

    def to(self, *, device: Any, non_blocking: builtins.bool = False) -> TypedStorage:
        """A copy with the same elements on a device."""
        return self._with(self._untyped_storage.to(device=device, non_blocking=non_blocking))

    @classmethod
    def from_buffer(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        """A storage with a copy of a buffer's elements: :meth:`UntypedStorage.from_buffer`."""
        dtype = kwargs.pop("dtype", None)
        dtype = _C.get_default_dtype() if dtype is None else dtype
        return _typed(_from_buffer(*args, **kwargs, dtype=dtype), dtype)  # type: ignore[misc]

    @classmethod
    def from_file(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        """Exists only for the classes of one dtype.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(
            "from_file can only be called on derived classes, FloatStorage and so on"
        )


def _typed(storage: UntypedStorage, dtype: _Dtype) -> TypedStorage:
    return TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)


def _deprecated(method: Any) -> Any:
    @functools.wraps(method)
    def warning(*args: Any, **kwargs: Any) -> Any:
        _warn_typed_storage_removal(3)
        return method(*args, **kwargs)

    return warning


def _conversion(name: str, dtype: _Dtype) -> Any:
    def convert(self: TypedStorage) -> TypedStorage:
        return self._to(dtype)

    convert.__name__ = name
    convert.__qualname__ = f"TypedStorage.{name}"
    convert.__doc__ = f"A copy of the elements as ``{dtype}``."
    return convert


for _name, _dtype in {
    "double": _C.float64,
    "float": _C.float32,
    "half": _C.float16,
    "bfloat16": _C.bfloat16,
    "long": _C.int64,
    "int": _C.int32,
    "short": _C.int16,
    "char": _C.int8,
    "byte": _C.uint8,
    "bool": _C.bool,
    "complex_double": _C.complex128,
    "complex_float": _C.complex64,
}.items():
    setattr(TypedStorage, _name, _conversion(_name, _dtype))

for _name, _member in list(vars(TypedStorage).items()):
    _is_quiet = _name in ("__init__", "__reduce__", "__module__", "__doc__", "__annotations__")
    if _is_quiet or (_name.startswith("_") and not _name.startswith("__")):
        continue
    if isinstance(_member, property):
        setattr(TypedStorage, _name, property(_deprecated(_member.fget), doc=_member.__doc__))
    elif isinstance(_member, classmethod):
        setattr(TypedStorage, _name, classmethod(_deprecated(_member.__func__)))
    elif callable(_member):
        setattr(TypedStorage, _name, _deprecated(_member))


# --- the classes of one dtype each ------------------------------------------------------

_LEGACY_FORMS = (
    "Expected one of:\n * no arguments\n * (int size)\n * (Sequence data)\n"
    " * (*, UntypedStorage wrap_storage)\n"
)


class _LegacyStorageMeta(type):
    _dtype: _Dtype

    @property
    def dtype(cls) -> _Dtype:
        """The dtype of the class."""
        _warn_typed_storage_removal(2)
        return cls._dtype

    def __instancecheck__(cls, instance: Any) -> builtins.bool:
        return type(instance) is TypedStorage and instance.dtype is cls._dtype

    def __call__(
        cls,
        *args: Any,
        wrap_storage: Any = None,
        dtype: Any = None,
        device: Any = None,
        _internal: builtins.bool = False,
    ) -> TypedStorage:
        _warn_typed_storage_removal(2)
        error = f"{cls}.__new__ received an invalid combination of arguments. {_LEGACY_FORMS}"
        for name, value in (("dtype", dtype), ("device", device)):
            if value is not None:
                raise RuntimeError(f"{error}Keyword argument {name!r} cannot be given")
        if len(args) > 1:
            raise RuntimeError(f"{error}Too many positional arguments")
        if cls.__module__ == "torch.cuda":
            raise RuntimeError(f"cannot make a {cls.__name__} on cuda: this build has only cpu")
        if wrap_storage is not None and args:
            raise RuntimeError(f"{error}No positional arguments beside 'wrap_storage'")
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls._dtype, _internal=True)

    def from_buffer(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        """A storage with a copy of a buffer's elements: :meth:`UntypedStorage.from_buffer`."""
        _warn_typed_storage_removal(2)
        read = _from_buffer(*args, **kwargs, dtype=cls._dtype)  # type: ignore[misc]
        return _typed(read, cls._dtype)

    def from_file(
        cls, filename: str, shared: builtins.bool = False, size: builtins.int = 0
    ) -> TypedStorage:
        """A storage of ``size`` elements whose memory is a file's: see :func:`torch.from_file`."""
        _warn_typed_storage_removal(2)
        return _typed(_map_file(filename, shared, size * cls._dtype.itemsize), cls._dtype)


def _legacy(name: str, module: str) -> _LegacyStorageMeta:
    return _LegacyStorageMeta(name, (), {"__module__": module, "_dtype": _DTYPES[name]})


_CLASSES = {name: _legacy(name, "torch") for name in _DTYPES}
_CUDA_CLASSES = {name: _legacy(name, "torch.cuda") for name in _DTYPES}
globals().update(_CLASSES)


def _class_of(dtype: _Dtype) -> builtins.type:
    """The class of storages of this dtype."""
    if dtype not in _NAMES:
        raise TypeError(f"there is no class of storages of {dtype}")
    return _CLASSES[_NAMES[dtype]]


_absent.announce(globals())
