"""The formats before PyTorch 1.6.

They are several pickles one after the other, then the storages; the oldest is a tar archive.
"""

from __future__ import annotations

import difflib
import inspect
import io
import pickle
import struct
import sys
import tarfile
import warnings
from collections.abc import Callable
from typing import Any

from .. import _C, _weights_only_unpickler, serialization
from .._utils import _shown as shown
from ..storage import TypedStorage, UntypedStorage, _typed
from .load import _UNSAFE, check_count, dtype_of, text, unpickler_of
from .save import Pickled, pickled

__all__ = ["load_legacy", "save_legacy"]

_MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001


# --- writing --------------------------------------------------------------------------------------


def save_legacy(obj: object, f: Any, module: Any, protocol: int) -> None:
    """Writes an object as pickles and storages."""
    from ..nn import Module

    state = Pickled()
    containers: set[type] = set()
    storages: dict[str, tuple[UntypedStorage, int]] = {}

    def persistent_id(value: Any) -> Any:
        if isinstance(value, type) and issubclass(value, Module):
            if value not in containers:
                containers.add(value)
                return ("module", value, *_source_of(value))
            return state.name(value)
        if not isinstance(value, (UntypedStorage, TypedStorage)):
            return state.name(value)
        storage, kind, dtype, count = state.parts(value)
        key = str(storage._cdata)
        storages.setdefault(key, (storage, dtype.itemsize))
        return ("storage", kind, key, serialization.location_tag(storage), count, None)

    sizes = {"short": 2, "int": 4, "long": struct.calcsize("=l")}
    info = {
        "protocol_version": _VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": sizes,
    }
    with serialization._open_file_like(f, "wb") as file:
        for part in (_MAGIC, _VERSION, info):
            module.dump(part, file, protocol=protocol)
        file.write(pickled(obj, module, protocol, persistent_id))
        keys = sorted(storages)
        module.dump(keys, file, protocol=protocol)
        file.flush()
        for key in keys:
            storage, size = storages[key]
            file.write(struct.pack("<q", storage.nbytes() // size))
            file.write(storage.cpu()._bytes())


def _source_of(kind: type) -> tuple[str | None, str | None]:
    """The file that a class is in, and its source."""
    try:
        lines, _ = inspect.getsourcelines(kind)
        return inspect.getsourcefile(kind), "".join(lines)
    except (OSError, TypeError, IndexError):
        warnings.warn(
            f"Couldn't retrieve source code for container of type {kind.__name__}. It won't be "
            "checked for correctness upon loading.",
            stacklevel=6,
        )
        return None, None


# --- reading --------------------------------------------------------------------------------------


def _check_source(kind: Any, file: str, saved: str) -> None:
    """Warns if the source of a class is not what it was; the library's own are not PyTorch's."""
    if kind.__module__.partition(".")[0] == __package__.partition(".")[0]:
        return
    try:
        now = "".join(inspect.getsourcelines(kind)[0])
    except (OSError, TypeError, IndexError):
        warnings.warn(
            f"Couldn't retrieve source code for container of type {kind.__name__}. It won't be "
            "checked for correctness upon loading.",
            stacklevel=6,
        )
        return
    if saved == now:
        return
    advice = (
        "you can retrieve the original source code by accessing the object's source attribute or "
        "set `torch.nn.Module.dump_patches = True` and use the patch tool to revert the changes."
    )
    if getattr(kind, "dump_patches", False):
        advice = _save_patch(kind, file, saved, now)
    name = f"{kind.__module__}.{kind.__qualname__}"
    warnings.warn(
        f"source code of class '{name}' has changed. {advice}",
        serialization.SourceChangeWarning,
        stacklevel=6,
    )


def _save_patch(kind: Any, file: str, saved: str, now: str) -> str:
    name = f"{kind.__name__}.patch"
    lines = difflib.unified_diff(now.split("\n"), saved.split("\n"), file, file, lineterm="")
    patch = "\n".join(lines)
    try:
        with open(name, "a+") as out:
            size = out.seek(0, 2)
            out.seek(0)
            if size == 0:
                out.write(patch)
            elif size != len(patch) or out.read() != patch:
                raise OSError(f"{name} is another patch")
    except OSError:
        return (
            f"Tried to save a patch, but couldn't create a writable file {name}. Make sure it "
            "doesn't exist and your working directory is writable."
        )
    return f"Saved a reverse patch to {name}. Run `patch -p0 < {name}` to revert your changes."


def load_legacy(file: Any, map_location: Any, module: Any, options: dict[str, Any]) -> Any:
    """Reads pickles and storages, or a tar archive."""
    start = file.tell()
    data = _rest(file)
    if start == 0 and tarfile_begins(data):
        file.seek(start)
        return _load_tar(data, map_location, module, options)
    result, end = _Stream(data, map_location, module, options).load()
    file.seek(start + end)
    return result


def _rest(file: Any) -> bytes:
    """All bytes from the present position on."""
    if not hasattr(file, "readinto"):
        data: bytes = file.read()
        return data
    start = file.tell()
    file.seek(0, 2)
    size = file.tell() - start
    file.seek(start)
    room = memoryview(bytearray(size))
    done = 0
    while done < size and (count := file.readinto(room[done:])):
        done += count
    return bytes(room[:done])


def tarfile_begins(data: bytes) -> bool:
    """Whether a tar archive begins here."""
    try:
        return len(data) >= 512 and bool(tarfile.TarInfo.frombuf(data[:512], "utf-8", "replace"))
    except tarfile.TarError:
        return False


class _Mark:
    """The stand-in for an object in a survey."""

    def __init__(self, dtype: Any = None, name: str = "") -> None:
        self.dtype = dtype
        self.__name__ = name


class _Survey:
    """Rules by which nothing is called: what is learned is which storages a pickle names."""

    def __init__(self) -> None:
        self.named: dict[str, tuple[Any, int]] = {}

    def protocol(self, protocol: int) -> None:
        """All protocols are known."""

    def find_global(self, module: str, name: str) -> Any:
        """What the survey needs of a name: whether it is a class of storages."""
        from ..storage import _DTYPES

        return _Mark(_DTYPES.get(name, _C.uint8 if name == "UntypedStorage" else None), name)

    def reduce(self, function: Any, arguments: Any) -> Any:
        """Calls no function."""
        return _Mark()

    def new_object(self, kind: Any, arguments: Any, keywords: Any) -> Any:
        """Makes no object."""
        return _Mark()

    def build(self, instance: Any, state: Any) -> None:
        """Ignores the state of objects."""

    def set_items(self, mapping: Any, items: Any) -> None:
        """Ignores items."""

    def append(self, target: Any, items: Any) -> None:
        """Ignores appended items."""

    def persistent(self, key: Any) -> Any:
        """Notes a storage."""
        if type(key) is tuple and len(key) >= 5 and text(key[0]) == "storage":
            dtype, count = dtype_of(key[1]), key[4]
            check_count(count)
            self.named.setdefault(text(key[2]), (dtype, count))
        return _Mark()


class _Stream:
    """Pickles one after the other, followed by storages."""

    def __init__(
        self, data: bytes, map_location: Any, module: Any, options: dict[str, Any]
    ) -> None:
        self.data, self.module, self.options = data, module, options
        self.restore = serialization._get_restore_location(map_location)
        self.at = 0
        self.raw: dict[str, bytes | memoryview] = {}
        self.storages: dict[str, TypedStorage] = {}
        self.views: dict[str, TypedStorage] = {}

    def part(self) -> Any:
        """The next pickle, which holds plain data."""
        if self.module is None:
            value, self.at = _weights_only_unpickler.load(
                self.data, self.at, self.persistent_load, self.options["encoding"]
            )
            return value
        buffer = io.BytesIO(self.data)
        buffer.seek(self.at)
        value = unpickler_of(self.module, buffer, self.persistent_load, self.options).load()
        self.at = buffer.tell()
        return value

    def load(self) -> tuple[Any, int]:
        """The object, and how long it is."""
        if self.part() != _MAGIC:
            raise RuntimeError("Invalid magic number; corrupt file?")
        version = self.part()
        if version != _VERSION:
            raise RuntimeError(f"Invalid protocol version: {shown(version)}")
        info = self.part()
        little = info.get("little_endian", True) if isinstance(info, dict) else True
        self.swaps = bool(little) != (sys.byteorder == "little")
        start = self.at
        end = self._find_storages()
        self.at = start
        result = self.part()
        return result, end

    def _find_storages(self) -> int:
        """Finds the storages, which lie behind the pickle that names them; gives the end."""
        survey = _Survey()
        _, self.at = _C._unpickle(self.data, self.at, survey, "latin-1")
        skips = serialization._serialization_tls.skip_data
        if skips:
            self._skip(survey)
        keys = self.part()
        if not isinstance(keys, list):
            raise pickle.UnpicklingError(f"expected a list of storages, not {type(keys)}")
        for key in map(text, keys):
            if key not in survey.named:
                raise pickle.UnpicklingError(f"storage {key!r:.99} is not named by the object")
            dtype, named = survey.named[key]
            header = self.data[self.at : self.at + 8]
            count = struct.unpack("<q", header)[0] if len(header) == 8 else -1
            begin = self.at + 8
            self.at = begin + count * dtype.itemsize
            if count != named or self.at > len(self.data):
                raise RuntimeError(
                    f"storage {key!r:.99} should have {named} elements of {dtype}, but {count} are "
                    f"announced and {max(len(self.data) - begin, 0)} bytes are left: the file is "
                    "damaged"
                )
            if not skips:
                self.raw[key] = memoryview(self.data)[begin : self.at]
        return self.at

    def _skip(self, survey: _Survey) -> None:
        """Takes zeros for the storages, of which the file holds as many bytes."""
        sizes = {key: dtype.itemsize * count for key, (dtype, count) in survey.named.items()}
        if sum(sizes.values()) > len(self.data):
            raise RuntimeError(f"the file has {len(self.data)} bytes, its storages more: {sizes}")
        self.raw = {key: bytes(size) for key, size in sizes.items()}

    def persistent_load(self, saved: Any) -> Any:
        """A class of modules, or a storage."""
        kind = text(saved[0]) if type(saved) is tuple and saved else None
        if kind == "module" and len(saved) == 4 and self.module is not None:
            if all(saved[2:]):
                _check_source(*saved[1:])
            return saved[1]
        if kind != "storage" or len(saved) != 6:
            raise RuntimeError(f"Unknown saved id type: {kind if kind else shown(saved)}")
        _, storage_kind, key, location, _, view = saved
        dtype = dtype_of(storage_kind)
        root = self._storage(text(key), dtype, text(location))
        if view is None:
            return root
        name, offset, count = view
        name = text(name)
        check_count(offset)
        check_count(count)
        size = dtype.itemsize
        if (offset + count) * size > root._untyped_storage.nbytes():
            raise RuntimeError(f"view {name!r:.99} is not inside of its storage: file is damaged")
        if name not in self.views:
            part = root._untyped_storage[offset * size : (offset + count) * size]
            self.views[name] = _typed(part, dtype)
        return self.views[name]

    def _storage(self, key: str, dtype: Any, location: str) -> TypedStorage:
        known = self.storages.get(key)
        if known is None:
            if key not in self.raw:
                raise RuntimeError(f"storage {key!r:.99} is not in the file: it is damaged")
            storage = UntypedStorage._from_bytes(bytes(self.raw[key]))
            if self.swaps:
                storage.byteswap(dtype)
            known = self.storages[key] = _typed(self.restore(storage, location), dtype)
        return known if known.dtype == dtype else _typed(known._untyped_storage, dtype)


# --- tar ------------------------------------------------------------------------------------------


def _load_tar(data: bytes, map_location: Any, module: Any, options: dict[str, Any]) -> Any:
    if module is None:
        raise RuntimeError(
            "Cannot use ``weights_only=True`` with files saved in the legacy .tar format. "
            f"{_UNSAFE}"
        )
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
        members = {}
        for name in ("storages", "tensors", "pickle"):
            member = tar.extractfile(name)
            if member is None:
                raise RuntimeError(f"the archive's {name!r} is no file")
            members[name] = io.BytesIO(member.read())

    def next_of(name: str) -> Any:
        return unpickler_of(module, members[name], persistent_load, options).load()

    def persistent_load(saved: Any) -> Any:
        if isinstance(saved, tuple):
            if all(saved[1:]):
                _check_source(*saved)
            return saved[0]
        return objects[int(saved)]

    objects: dict[Any, Any] = {}
    _read_tar_storages(members["storages"], lambda: next_of("storages"), map_location, objects)
    _read_tar_tensors(members["tensors"], lambda: next_of("tensors"), objects)
    return next_of("pickle")


def _exactly(file: io.BytesIO, count: int) -> bytes:
    if not 0 <= count <= len(file.getbuffer()) - file.tell():
        raise RuntimeError(f"the archive should have {count} more bytes: it is damaged")
    return file.read(count)


def _read_tar_storages(
    file: io.BytesIO, part: Callable[[], Any], map_location: Any, objects: dict[Any, Any]
) -> None:
    restore = serialization._get_restore_location(map_location)
    for _ in range(part()):
        key, location, kind = part()
        dtype = dtype_of(kind)
        (count,) = struct.unpack("<q", _exactly(file, 8))
        storage = UntypedStorage._from_bytes(_exactly(file, count * dtype.itemsize))
        objects[key] = _typed(restore(storage, location), dtype)
    for target, root_key, offset, count in part():
        root = objects[root_key]
        size = root.dtype.itemsize
        shown = root._untyped_storage[offset * size : (offset + count) * size]
        objects[target] = _typed(shown, root.dtype)


def _read_tar_tensors(file: io.BytesIO, part: Callable[[], Any], objects: dict[Any, Any]) -> None:
    for _ in range(part()):
        key, storage_key, _ = part()
        storage = objects[storage_key]
        rank, _ = struct.unpack("<ii", _exactly(file, 8))
        numbers = struct.unpack(f"<{2 * rank + 1}q", _exactly(file, 8 * (2 * rank + 1)))
        geometry = (numbers[-1], list(numbers[:rank]), list(numbers[rank:-1]))
        objects[key] = _C._tensor_over(storage._untyped_storage, storage.dtype, *geometry)
