"""Checkpoints: ``torch.save`` and ``torch.load``, in PyTorch's formats, and what they can be told.

The container, and the machine that reads pickles of weights, are native. Here are the settings,
where storages go, and which of the formats a file is; writing is in ``_checkpoint.save``, reading
in ``_checkpoint.load``, the formats of before 2020 in ``_checkpoint.legacy``.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, TypeAlias

from . import _C, _absent
from .storage import _DTYPES, UntypedStorage

# For annotations: where the storages of a file are put.
MAP_LOCATION: TypeAlias = Callable[[Any, str], Any] | _C.device | str | dict[str, str] | None

__all__ = [
    "LoadEndianness",
    "SourceChangeWarning",
    "StorageType",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "mkdtemp",
    "normalize_storage_type",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "storage_to_tensor_type",
    "validate_cuda_device",
    "validate_hpu_device",
]

DEFAULT_PROTOCOL = 2
IS_WINDOWS = sys.platform == "win32"


class _SerializationLocal(threading.local):
    """The flags that a thread has set for the calls inside."""

    def __init__(self) -> None:
        self.map_location: Any = None
        self.skip_data = False
        self.materialize_fake_tensors = False


_serialization_tls = _SerializationLocal()


class SourceChangeWarning(Warning):
    """The source of a class differs from the one with which an object of it was saved."""


class LoadEndianness(Enum):
    """The byte order of files that do not state theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class StorageType:
    """The stand-in for PyTorch's class of storages of one dtype, as files name it."""

    def __init__(self, name: str) -> None:
        self._dtype = _DTYPES[name]

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self._dtype

    def __str__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


@contextlib.contextmanager
def mkdtemp() -> Iterator[str]:
    """A folder for as long as the context is open."""
    import shutil
    import tempfile

    path = tempfile.mkdtemp()
    try:
        yield path
    finally:
        shutil.rmtree(path)


# --- settings -------------------------------------------------------------------------------------


def _config() -> Any:
    from .utils.serialization import config

    return config


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order of files that do not state theirs; None means little-endian."""
    order: LoadEndianness | None = _config().load.endianness
    return order


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Says what :func:`get_default_load_endianness` gives.

    Raises:
        TypeError: for what is neither a :class:`LoadEndianness` nor None.
    """
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _config().load.endianness = endianness


def get_crc32_options() -> bool:
    """Whether :func:`save` computes checksums of records."""
    computes: bool = _config().save.compute_crc32
    return computes


def set_crc32_options(compute_crc32: bool) -> None:
    """Says whether :func:`save` computes checksums of records.

    Without them :func:`load` checks nothing, and other programs that read archives may complain.
    """
    _config().save.compute_crc32 = compute_crc32


def get_default_mmap_options() -> int | None:
    """The flag of maps that :func:`load` makes: ``mmap.MAP_PRIVATE`` or ``mmap.MAP_SHARED``."""
    flags: int | None = _config().load.mmap_flags
    return flags


class set_default_mmap_options:
    """Says which maps :func:`load` makes with ``mmap=True``: from now on, or within a context.

    Args:
        flags: ``mmap.MAP_PRIVATE``, or ``mmap.MAP_SHARED``: writes to tensors go into the file.

    Raises:
        ValueError: for other flags.
        RuntimeError: on Windows.
    """

    def __init__(self, flags: int) -> None:
        if IS_WINDOWS:
            raise RuntimeError(
                "Changing the default mmap options is currently not supported for Windows"
            )
        from mmap import MAP_PRIVATE, MAP_SHARED

        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE "
                f"or mmap.MAP_SHARED, but got {flags}"
            )
        self.prev = _config().load.mmap_flags
        _config().load.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        _config().load.mmap_flags = self.prev


class skip_data:
    """A context in which the bytes of storages are neither written nor read.

    In files of :func:`save` their bytes are zeros; tensors of :func:`load` are zeros.

    Args:
        materialize_fake_tensors: accepted, and without effect: there are no fake tensors.
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        state = _serialization_tls
        self._before = (state.skip_data, state.materialize_fake_tensors)
        state.skip_data, state.materialize_fake_tensors = True, self.materialize_fake_tensors

    def __exit__(self, *_: object) -> None:
        state = _serialization_tls
        state.skip_data, state.materialize_fake_tensors = self._before


# --- what files of weights may name ---------------------------------------------------------------


def _weights() -> Any:
    from . import _weights_only_unpickler

    return _weights_only_unpickler


def clear_safe_globals() -> None:
    """Forgets all classes that were given to :func:`add_safe_globals`."""
    _weights()._clear_safe_globals()


def get_safe_globals() -> list[Any]:
    """The classes that were given to :func:`add_safe_globals`."""
    told: list[Any] = _weights()._get_safe_globals()
    return told


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Lets files that are loaded with ``weights_only=True`` name classes and functions.

    Functions are called, objects of classes are made and get their state.

    Args:
        safe_globals: the classes and functions; or pairs of one and the full name that files have
            for it.
    """
    _weights()._add_safe_globals(safe_globals)


class safe_globals:
    """:func:`add_safe_globals` for as long as the context is open.

    Args:
        safe_globals: the classes and functions.
    """

    def __init__(self, safe_globals: list[Any]) -> None:
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        _weights()._add_safe_globals(self.safe_globals)

    def __exit__(self, *_: object) -> None:
        _weights()._remove_safe_globals(self.safe_globals)


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The classes and functions that ``weights_only=True`` refuses, of those a checkpoint names.

    The file's code is not run, so that names which it would compute are missing.

    Args:
        f: the file's name, or an object that can be read.

    Raises:
        ValueError: if it was not made by :func:`save` in its present format.
    """
    known = {
        *_weights()._get_allowed_globals(),
        *_weights()._get_user_allowed_globals(),
    }
    with _open_file_like(f, "rb") as opened:
        if not _is_zipfile(opened):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        with _open_zipfile_reader(opened) as archive:
            if _is_torchscript_zip(archive):
                raise ValueError(
                    "Expected input to be a checkpoint returned by torch.save but got a "
                    "torchscript checkpoint"
                )
            named = _weights().get_globals_in_pkl(archive.get_record("data.pkl"))
    return list(named - known)


# --- where storages are ---------------------------------------------------------------------------

_package_registry: list[tuple[int, Callable[[Any], Any], Callable[[Any, str], Any]]] = []


def register_package(
    priority: int,
    tagger: Callable[[Any], str | None],
    deserializer: Callable[[Any, str], Any],
) -> None:
    """Lets functions say where storages are, and bring them there.

    Args:
        priority: those with lower numbers are asked first.
        tagger: gives the name of a storage's location, or None if it does not know.
        deserializer: gives a storage in the place of this name, or None.
    """
    _package_registry.append((priority, tagger, deserializer))
    _package_registry.sort(key=lambda entry: entry[0])


def _backend_tag(kind: str, storage: Any) -> str | None:
    device = storage.device
    if device.type != kind:
        return None
    return kind if device.index is None else f"{kind}:{device.index}"


def _validate_device(location: Any, backend: str) -> Any:
    """The device of this name, which must exist."""
    from importlib import import_module

    advice = (
        "If you are running on a CPU-only machine, please use torch.load with "
        "map_location=torch.device('cpu') to map your storages to the CPU."
    )
    upper = backend.upper()
    if backend != "cuda":
        raise RuntimeError(f"The {upper} device module is not registered. {advice}")
    module = import_module(f".{backend}", __package__)
    if not module.is_available():
        raise RuntimeError(
            f"Attempting to deserialize object on a {upper} device but "
            f"torch.{backend}.is_available() is False. {advice}"
        )
    device = _C.device(location)
    count = module.device_count()
    if (device.index or 0) >= count:
        raise RuntimeError(
            f"Attempting to deserialize object on {upper} device {device.index} but "
            f"torch.{backend}.device_count() is {count}. Please use torch.load with map_location "
            "to map your storages to an existing device."
        )
    return _C.device(backend, device.index or 0)


def validate_cuda_device(location: Any) -> int:
    """The index of a CUDA device.

    Raises:
        RuntimeError: if there is none of this name.
    """
    index: int = _validate_device(location, "cuda").index
    return index


def validate_hpu_device(location: Any) -> int:
    """The index of an HPU: there are none.

    Raises:
        RuntimeError: always.
    """
    index: int = _validate_device(location, "hpu").index
    return index


def _deserialize(backend: str, storage: Any, location: str) -> Any:
    if location != backend and not re.match(f"{backend}(:|[0-9]+)", location):
        return None
    return storage.to(device=_validate_device(location, backend))


def _meta_deserialize(storage: Any, location: str) -> Any:
    if location != "meta":
        return None
    return UntypedStorage(storage.nbytes(), device="meta")


register_package(
    10,
    functools.partial(_backend_tag, "cpu"),
    lambda storage, location: storage if location == "cpu" else None,
)
register_package(22, functools.partial(_backend_tag, "meta"), _meta_deserialize)
for _priority, _backend in ((20, "cuda"), (21, "mps"), (24, "hpu"), (25, "xpu"), (26, "mtia")):
    register_package(
        _priority,
        functools.partial(_backend_tag, _backend),
        functools.partial(_deserialize, _backend),
    )


def location_tag(storage: Any) -> str:
    """The name of the location where a storage is.

    Raises:
        RuntimeError: if no registered function knows.
    """
    for _, tagger, _ in _package_registry:
        location = tagger(storage)
        if location:
            return str(location)
    raise RuntimeError(f"don't know how to determine data location of {_kind_name(storage)}")


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage, moved to the location of this name.

    Raises:
        RuntimeError: if no registered function can move it there.
    """
    for _, _, bring in _package_registry:
        result = bring(storage, location)
        if result is not None:
            return result
    raise RuntimeError(
        f"don't know how to restore data location of {_kind_name(storage)} (tagged with {location})"
    )


def _kind_name(value: Any) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


def _location_of(map_location: Any, location: Any) -> Any:
    """The location to which ``location`` is mapped, as far as is known without a storage."""
    if isinstance(map_location, dict):
        return map_location.get(str(location), location)
    if isinstance(map_location, (str, bytes, _C.device)):
        return map_location
    return location


def _get_restore_location(map_location: Any) -> Callable[[Any, str], Any]:
    """The function that moves storages to the place that ``map_location`` names."""
    if map_location is not None and callable(map_location):

        def restore(storage: Any, location: str) -> Any:
            result = map_location(storage, location)
            return default_restore_location(storage, location) if result is None else result

        return restore
    if map_location is not None and not isinstance(map_location, (dict, str, bytes, _C.device)):
        raise TypeError(
            "map_location must be None, a device or its name, a dict of them or a callable: "
            f"'{type(map_location).__name__}' object is not callable"
        )

    def restore_by_name(storage: Any, location: str) -> Any:
        return default_restore_location(storage, str(_location_of(map_location, location)))

    return restore_by_name


def normalize_storage_type(storage_type: type) -> Any:
    """The class of this name in the main namespace."""
    return getattr(sys.modules[__package__], storage_type.__name__)


def storage_to_tensor_type(storage: Any) -> Any:
    """The class of tensors for a storage of a dtype, as ``FloatTensor``."""
    name = storage.pickle_storage_type() if hasattr(storage, "pickle_storage_type") else ""
    name = name or type(storage).__name__
    return getattr(sys.modules[__package__], name.replace("Storage", "Tensor"))


def _get_layout(name: str) -> Any:
    """The layout of this name, as ``torch.sparse_coo``."""
    found = getattr(_C, name.removeprefix("torch."), None)
    if not isinstance(found, _C.layout):
        raise KeyError(name)
    return found


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[Any, ...], error_if_malformed: bool = True
) -> bool:
    """Whether a module's ``__version__`` is at least the one asked for.

    Args:
        module: the module.
        req_version_tuple: the parts of the version, each of the type to compare as.
        error_if_malformed: whether a version that has no such parts is an error, or a warning.

    Raises:
        RuntimeError: for such a version.
    """
    version = getattr(module, "__version__", None)
    try:
        parts = module.__version__.split(".")
        own = tuple(type(part)(parts[at]) for at, part in enumerate(req_version_tuple))
        return own >= req_version_tuple
    except Exception as error:
        message = (
            f"'{module.__name__}' module version string is malformed '{version}' and "
            f"cannot be compared with tuple {req_version_tuple}"
        )
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(f"{message}, but continuing assuming that requirement is met", stacklevel=2)
        return True


# --- files ----------------------------------------------------------------------------------------


def _is_path(value: object) -> bool:
    return isinstance(value, (str, os.PathLike))


def _check_seekable(file: Any) -> None:
    try:
        file.seek(file.tell())
    except (OSError, AttributeError) as error:
        if "seek" in str(error) or "tell" in str(error):
            raise type(error)(
                f"{error}. You can only torch.load from a file that is seekable. Please pre-load "
                "the data into a buffer like io.BytesIO and try to load from it instead."
            ) from None
        raise


@contextlib.contextmanager
def _open_file_like(name_or_buffer: Any, mode: str) -> Iterator[Any]:
    """A file by its name, or an open file object unchanged."""
    if _is_path(name_or_buffer):
        with open(name_or_buffer, mode) as file:
            yield file
        return
    if "w" in mode:
        yield name_or_buffer
        name_or_buffer.flush()
        return
    _check_seekable(name_or_buffer)
    yield name_or_buffer


@contextlib.contextmanager
def _open_zipfile_reader(name_or_buffer: Any) -> Iterator[Any]:
    """An archive that can be read."""
    if _is_path(name_or_buffer):
        name_or_buffer = os.fspath(name_or_buffer)
    yield _C.PyTorchFileReader(name_or_buffer)


@contextlib.contextmanager
def _open_zipfile_writer(name_or_buffer: Any) -> Iterator[Any]:
    """An archive that can be written."""
    options = (get_crc32_options(), _config().save.storage_alignment)
    if _is_path(name_or_buffer):
        archive = _C.PyTorchFileWriter(os.fspath(name_or_buffer), *options)
        yield archive
        archive.write_end_of_file()
        return
    if not callable(getattr(name_or_buffer, "write", None)):
        kind = str(type(name_or_buffer)).strip("<>")
        message = f"Buffer of {kind} has no callable attribute 'write'"
        raise (TypeError if hasattr(name_or_buffer, "write") else AttributeError)(message)
    archive = _C.PyTorchFileWriter(name_or_buffer, *options)
    yield archive
    archive.write_end_of_file()
    name_or_buffer.flush()


def _is_zipfile(file: Any) -> bool:
    """Whether an archive begins here: ``zipfile.is_zipfile`` would find one anywhere."""
    start = file.tell()
    first = file.read(4)
    file.seek(start)
    return bool(first == b"PK\x03\x04")


def _is_torchscript_zip(archive: Any) -> bool:
    return "constants.pkl" in archive.get_all_records()


def _check_dill_version(pickle_module: Any) -> None:
    if getattr(pickle_module, "__name__", None) != "dill":
        return
    needed = (0, 3, 1)
    if not check_module_version_greater_or_equal(pickle_module, needed, False):
        raise ValueError(
            f"'torch' supports dill >= {'.'.join(map(str, needed))}, but you have dill "
            f"{pickle_module.__version__}. Please upgrade dill or switch to 'pickle'"
        )


def save(
    obj: object,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Writes an object into a file that PyTorch reads too.

    Tensors that share memory share it in the file. Classes of this package go under the names that
    PyTorch has for them.

    Args:
        obj: the object.
        f: the file's name, or an object with ``write`` and ``flush``.
        pickle_module: what pickles the object.
        pickle_protocol: its protocol.

    Raises:
        AttributeError: if ``f`` is neither.
        RuntimeError: if tensors show the same memory with different dtypes.
        PicklingError: for what cannot be pickled.
    """
    from ._checkpoint.legacy import save_legacy
    from ._checkpoint.save import save_archive

    _check_dill_version(pickle_module)
    if not _is_path(f) and not hasattr(f, "write"):
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
        )
    if _use_new_zipfile_serialization:
        save_archive(obj, f, pickle_module, pickle_protocol, not _disable_byteorder_record)
        return
    if _serialization_tls.skip_data:
        raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
    save_legacy(obj, f, pickle_module, pickle_protocol)


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Reads an object that :func:`save`, or PyTorch's, has written.

    Args:
        f: the file's name, or an object with ``read``, ``readline``, ``seek`` and ``tell``.
        map_location: where storages go: None (where they were), the name of a device, a
            :class:`torch.device`, a dictionary of old and new names, or a function of a storage and
            the name of its old location that gives a storage, or None.
        pickle_module: what unpickles the object; only with ``weights_only=False``.
        weights_only: whether only tensors, plain data, and what :func:`add_safe_globals` was told
            may be in the file. True by default. **A file that is loaded with False can do anything:
            it must come from whom you trust.**
        mmap: whether the file's memory is shown, and read as it is used; ``f`` must be a name.
        **pickle_load_args: for the unpickler, as ``encoding`` of strings of Python 2.

    Raises:
        UnpicklingError: for what weights do not need, and for pickles that are wrong.
        RuntimeError: for archives that are damaged, locations that are not there, and old files of
            which only weights are wanted; of tensors that do not fit their storages.
        EOFError: for files that end early.
    """
    from ._checkpoint.load import load_checkpoint

    with_weights_only = _wants_weights_only(weights_only, pickle_module)
    if with_weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    _check_dill_version(pickle_module)
    if pickle_load_args and with_weights_only:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=2)
    pickle_load_args.setdefault("encoding", "utf-8")
    mmap = bool(_config().load.mmap) if mmap is None else mmap
    module = None if with_weights_only else (pickle_module or pickle)
    before = _serialization_tls.map_location
    _serialization_tls.map_location = map_location
    try:
        return load_checkpoint(f, map_location, module, mmap, pickle_load_args)
    finally:
        _serialization_tls.map_location = before


def _wants_weights_only(weights_only: bool | None, pickle_module: Any) -> bool:
    """Whether weights only are asked for, by the argument or by the environment."""

    def is_set(name: str) -> bool:
        return os.getenv(name, "0").lower() in ("1", "y", "yes", "true")

    forces = is_set("TORCH_FORCE_WEIGHTS_ONLY_LOAD")
    forbids = is_set("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    if forces and forbids:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` "
            "should be set, but both were set."
        )
    if forces:
        return True
    if weights_only is not None:
        return bool(weights_only)
    if forbids:
        warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the "
            "`weights_only` argument was not explicitly passed to `torch.load`, forcing "
            "weights_only=False.",
            UserWarning,
            stacklevel=3,
        )
        return False
    return pickle_module is None


_absent.announce(globals())
