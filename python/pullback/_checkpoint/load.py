"""Reading checkpoints."""

from __future__ import annotations

import io
import os
import pickle
import re
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .. import _C, _weights_only_unpickler, serialization
from .._C import uint8
from .._utils import _shown as shown
from ..storage import _DTYPES, TypedStorage, UntypedStorage, _typed
from .name import OURS

__all__ = ["archive_loader", "load_checkpoint", "unpickler_of"]

_PACKAGE = __package__.partition(".")[0]
# The modules in which PyTorch has native functions.
_NATIVE = frozenset(f"torch._C._{name}" for name in ("nn", "fft", "linalg", "sparse", "special"))
_QUANTIZED = frozenset(
    ("QInt8Storage", "QUInt8Storage", "QInt32Storage", "QUInt4x2Storage", "QUInt2x4Storage")
)
_UNSAFE = (
    "`weights_only=False` reads such a file, but then the file can run any code (arbitrary code "
    "execution): pass it only if you trust where the file comes from."
)


def _explained(message: str) -> str:
    """The error for a file that holds more than weights."""
    text = f"Weights only load failed. {_UNSAFE}"
    if re.search(r"GLOBAL (\S+) was not an allowed global by default", message):
        text += " Or say which of the names in it are safe, as follows."
    return f"{text}\nWeightsUnpickler error: {message}"


def load_checkpoint(
    f: Any, map_location: Any, module: Any, mmap: bool, options: dict[str, Any]
) -> Any:
    """Reads a file of any format. Without a pickle module, weights only."""
    if serialization._is_path(f) and os.fspath(f).endswith(".safetensors"):
        return _load_safetensors(f, map_location)
    with serialization._open_file_like(f, "rb") as file:
        try:
            if serialization._is_zipfile(file):
                return _load_zip(f, file, map_location, module, mmap, options)
            if mmap:
                named = f"{f}, " if isinstance(f, str) else ""
                raise RuntimeError(
                    f"mmap can only be used with files saved with `torch.save({named}"
                    "_use_new_zipfile_serialization=True), please torch.save your checkpoint with "
                    "this option in order to use mmap."
                )
            from .legacy import load_legacy

            return load_legacy(file, map_location, module, options)
        except pickle.UnpicklingError as error:
            if module is not None:
                raise
            raise pickle.UnpicklingError(_explained(str(error))) from None


def _load_safetensors(f: Any, map_location: Any) -> Any:
    from ..utils.safetensors import load_file

    if isinstance(map_location, dict) or callable(map_location):
        kind = "dict" if isinstance(map_location, dict) else "callable"
        raise RuntimeError(
            f"Loading safetensors file with {kind} map_location is not supported. Use a device "
            "string or torch.device instead."
        )
    tensors = load_file(f)
    if map_location is None:
        return tensors
    return {name: tensor.to(device=map_location) for name, tensor in tensors.items()}


def _load_zip(
    f: Any, file: Any, map_location: Any, module: Any, mmap: bool, options: dict[str, Any]
) -> Any:
    with serialization._open_zipfile_reader(file) as archive:
        _check_has_version(archive)
        if serialization._is_torchscript_zip(archive):
            _refuse_script(module is None)
        whole = _mapped(f) if mmap else None
        persistent_load = archive_loader(archive, map_location, whole)
        data = archive.get_record("data.pkl")
        if module is None:
            encoding = options["encoding"]
            return _weights_only_unpickler.load(data, 0, persistent_load, encoding)[0]
        return unpickler_of(module, io.BytesIO(data), persistent_load, options).load()


def _check_has_version(archive: Any) -> None:
    """Refuses an archive that does not say by which version of the format it is to be read.

    The reader has refused versions that it does not know.
    """
    if not (archive.has_record("version") or archive.has_record(".data/version")):
        raise RuntimeError(
            "PytorchStreamReader failed locating file version: file not found. The archive does "
            "not say which version of the format it has: it is damaged, or torch.save has not "
            "written it"
        )


def _refuse_script(weights_only: bool) -> None:
    warnings.warn(
        "'torch.load' received a zip file that looks like a TorchScript archive dispatching to "
        "'torch.jit.load' (call 'torch.jit.load' directly to silence this warning)",
        UserWarning,
        stacklevel=6,
    )
    if weights_only:
        raise RuntimeError(
            "Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``. "
            f"{_UNSAFE}"
        )
    raise NotImplementedError("the file is a TorchScript archive, which pullback cannot run")


def _mapped(f: Any) -> UntypedStorage:
    if not serialization._is_path(f):
        raise ValueError("f must be a file path in order to use the mmap argument")
    if serialization.IS_WINDOWS:
        shared = False
    else:
        from mmap import MAP_SHARED

        shared = serialization.get_default_mmap_options() == MAP_SHARED
    mapped: UntypedStorage = UntypedStorage.from_file(os.fspath(f), shared, os.path.getsize(f))
    return mapped


def _byte_order(archive: Any) -> str:
    """The byte order of the numbers in the archive."""
    if archive.has_record("byteorder"):
        order: bytes = archive.get_record("byteorder")
        if order not in (b"little", b"big"):
            raise ValueError(f"Unknown endianness type: {order.decode(errors='replace')}")
        return order.decode()
    default = serialization.get_default_load_endianness()
    if default is None and sys.byteorder == "big":
        warnings.warn(
            "The file has no byteorder mark, and is read as little endian on this big endian "
            "machine: torch.serialization.set_default_load_endianness says otherwise",
            UserWarning,
            stacklevel=6,
        )
    if default is serialization.LoadEndianness.NATIVE:
        return sys.byteorder
    return "big" if default is serialization.LoadEndianness.BIG else "little"


def dtype_of(kind: Any) -> Any:
    """The dtype that a class of storages in a file means."""
    if kind is UntypedStorage:
        return uint8
    if getattr(kind, "__name__", None) in _QUANTIZED:
        raise NotImplementedError(
            f"the file holds a quantized tensor (torch.{kind.__name__}), which pullback does not "
            "support"
        )
    dtype = getattr(kind, "dtype", None)
    if dtype is None:
        raise pickle.UnpicklingError(f"{shown(kind)} is no class of storages")
    return dtype


def check_count(count: Any) -> None:
    """Refuses what cannot be a number of elements."""
    if type(count) is not int or not 0 <= count < 2**59:
        raise pickle.UnpicklingError(f"a storage cannot have {shown(count)} elements")


def text(value: Any) -> str:
    """A name; those that Python 2 wrote may be bytes."""
    if type(value) is bytes:
        return value.decode("ascii")
    if type(value) is not str:
        raise pickle.UnpicklingError(f"a name should be text, not {shown(value)}")
    return value


def _check_length(archive: Any, name: str, nbytes: int, itemsize: int) -> None:
    """Refuses a record that is longer than its storage, before a short file unpacks to a long one.

    (Bytes after the last whole element are no part of what the file says of a storage.)
    """
    try:
        archive.check_record_size(name, nbytes + itemsize)
    except RuntimeError:
        return
    raise RuntimeError(f"record {name!r} has more than the {nbytes} bytes that its storage has")


def archive_loader(
    archive: Any, map_location: Any, whole: UntypedStorage | None
) -> Callable[[Any], TypedStorage]:
    """The function that returns storages of an archive, each once."""
    restore = serialization._get_restore_location(map_location)
    swaps = _byte_order(archive) != sys.byteorder
    loaded: dict[str, TypedStorage] = {}

    def read(name: str, dtype: Any, nbytes: int) -> UntypedStorage:
        if serialization._serialization_tls.skip_data:
            archive.check_record_size(name, nbytes)
            return UntypedStorage(nbytes).fill_(0)
        # (Swapping writes to the memory, which would reach the file through a shared map.)
        if whole is not None and not swaps and archive.is_record_stored(name):
            archive.check_record_size(name, nbytes)
            start = archive.get_record_offset(name)
            if start % dtype.itemsize == 0:
                part: UntypedStorage = whole[start : start + nbytes]
                return part
        storage: UntypedStorage = archive.get_storage_from_record(name, nbytes)
        return storage

    def persistent_load(saved: Any) -> TypedStorage:
        if type(saved) is not tuple or len(saved) != 5 or text(saved[0]) != "storage":
            given = shown(saved)
            raise pickle.UnpicklingError(f"a storage is described by five parts, not {given}")
        _, kind, key, location, count = saved
        check_count(count)
        dtype, key, location = dtype_of(kind), text(key), text(location)
        nbytes = count * dtype.itemsize
        known = loaded.get(key)
        if known is not None:
            # (The first reference says how long it is; others must fit into it, as tensors do.)
            if nbytes > known._untyped_storage.nbytes():
                raise pickle.UnpicklingError(f"storage {shown(key)} has two sizes")
            return known if known.dtype == dtype else _typed(known._untyped_storage, dtype)
        _check_length(archive, f"data/{key}", nbytes, dtype.itemsize)
        storage = read(f"data/{key}", dtype, nbytes)
        if swaps:
            storage.byteswap(dtype)
        return loaded.setdefault(key, _typed(restore(storage, location), dtype))

    return persistent_load


def ours(module: str) -> str:
    """This package's module for one of PyTorch's, where there is one."""
    if module != "torch" and not module.startswith("torch."):
        return module
    module = {"torch.tensor": "torch._tensor"}.get(module, module)
    name = _PACKAGE + module[len("torch") :]
    try:
        import_module(name)
    except ImportError:
        return module
    return name


def unpickler_of(
    module: Any, file: Any, persistent_load: Callable[[Any], Any], options: dict[str, Any]
) -> Any:
    """An unpickler that knows this package's classes by PyTorch's names."""
    given = persistent_load

    class Unpickler(module.Unpickler):  # type: ignore[misc]
        def find_class(self, module_name: str, name: str) -> Any:
            root = module_name.partition(".")[0]
            if name in _DTYPES and root in ("torch", _PACKAGE):
                return serialization.StorageType(name)
            if module_name == "torch._C" and name == "_VariableFunctionsClass":
                return _C._VariableFunctions
            if module_name in _NATIVE:
                return getattr(getattr(_C, module_name.rpartition(".")[2]), name)
            moved = OURS.get((module_name, name))
            if moved is not None:
                return super().find_class(f"{_PACKAGE}.{moved[0]}", moved[1])
            return super().find_class(ours(module_name), name)

        def persistent_load(self, saved: Any) -> Any:
            return given(saved)

    return Unpickler(file, **options)
