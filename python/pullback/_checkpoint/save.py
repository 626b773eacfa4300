"""Writing checkpoints: an object's pickle, and its storages beside it.

Files name classes and functions as PyTorch does. A pickler looks for what it names where its module
says, and there is no module ``torch`` here: so names are written as persistent ids, short texts,
of which `_C._resolve_names` makes the names afterwards.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections import OrderedDict
from types import BuiltinFunctionType, FunctionType
from typing import Any

from .. import _C, serialization
from ..storage import _NAMES, TypedStorage, UntypedStorage, _class_of
from .name import THEIRS

__all__ = ["Pickled", "pickled", "save_archive"]

# No string of a program begins with this.
_PREFIX = "\0torch.save\0"
_PACKAGE = __package__.partition(".")[0]
_CONSTANTS = (_C.dtype, _C.memory_format)
_NAMED = (type, FunctionType, BuiltinFunctionType, _C._OverridableFunction, *_CONSTANTS)
# The modules where functions that are native here are found under PyTorch's names.
_SPACES = ("", "nn.functional", "special", "linalg", "fft", "_C._nn")


def _own_name(value: Any) -> str | None:
    """The module and the name that PyTorch has for a class, function or constant from here."""
    if isinstance(value, _CONSTANTS):
        return f"torch\n{str(value).removeprefix('torch.')}"
    if isinstance(value, BuiltinFunctionType):
        return _native_name(value)
    if not isinstance(value, (type, FunctionType, _C._OverridableFunction)):
        return None
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        return None
    root, _, rest = module.partition(".")
    if root not in (_PACKAGE, "torch"):
        return None
    found: Any = sys.modules.get(f"{_PACKAGE}.{rest}" if rest else _PACKAGE)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not value:
        return None
    return "\n".join(THEIRS.get((rest, name), (f"torch.{rest}" if rest else "torch", name)))


def _native_name(function: Any) -> str | None:
    """The module and the name that PyTorch has for a native function."""
    name = function.__name__
    for space in _SPACES:
        found: Any = sys.modules[_PACKAGE]
        for part in space.split(".") if space else ():
            found = getattr(found, part, None)
        if found is not None and getattr(found, name, None) is function:
            return f"torch.{space}\n{name}" if space else f"torch\n{name}"
    return None


def _reduce_own(value: Any) -> Any:
    """The reconstruction in PyTorch of objects that are native here."""
    kind = type(value)
    if kind is _C.Size:
        return _C.Size, (tuple(value),)
    if kind is _C.device:
        return _C.device, (value.type,) if value.index is None else (value.type, value.index)
    if kind is _C.layout:
        return serialization._get_layout, (str(value),)
    if kind is not type and kind.__name__ == "HookDict" and isinstance(value, dict):
        # The hooks of a module are an ordered dictionary in PyTorch.
        return OrderedDict, (), None, None, iter(list(value.items()))
    return NotImplemented


class Pickled:
    """A pickler's persistent ids, and the objects that they represent."""

    def __init__(self) -> None:
        # Texts by the objects that they name, which live as long as their addresses are used.
        self._names: dict[int, tuple[Any, str | None]] = {}
        # A storage's memory is viewed with one dtype.
        self._dtypes: dict[int, Any] = {}

    def name(self, value: Any) -> str | None:
        """The persistent id for a name, if the name is one of this package."""
        if not isinstance(value, _NAMED):
            return None
        known = self._names.get(id(value))
        if known is None:
            own = _own_name(value)
            known = (value, None if own is None else f"{_PREFIX}{own}")
            self._names[id(value)] = known
        return known[1]

    def parts(self, value: Any) -> tuple[UntypedStorage, Any, Any, int]:
        """A storage, its class, its dtype, and how many elements it has."""
        if isinstance(value, TypedStorage):
            storage, dtype = value._untyped_storage, value.dtype
            kind = _class_of(dtype) if dtype in _NAMES else UntypedStorage
            if kind is UntypedStorage:
                dtype = _C.uint8
        else:
            storage, dtype, kind = value, _C.uint8, UntypedStorage
        address = storage.data_ptr() if storage.device.type != "meta" else 0
        if address and self._dtypes.setdefault(address, dtype) is not dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different "
                "types"
            )
        return storage, kind, dtype, storage.nbytes() // dtype.itemsize


def pickled(obj: object, module: Any, protocol: int, persistent_id: Any) -> bytes:
    """The pickle of an object, with PyTorch's names."""
    buffer = io.BytesIO()

    class Pickler(module.Pickler):  # type: ignore[misc]
        def persistent_id(self, value: Any) -> Any:
            found = persistent_id(value)
            if found is not None and protocol == 0:
                raise pickle.PicklingError("protocol 0 cannot refer to storages and names of torch")
            return found

        def reducer_override(self, value: Any) -> Any:
            own = _reduce_own(value)
            if own is not NotImplemented:
                return own
            given = getattr(super(), "reducer_override", None)
            return NotImplemented if given is None else given(value)

    Pickler(buffer, protocol=protocol).dump(obj)
    return _C._resolve_names(buffer.getvalue(), _PREFIX)


def save_archive(obj: object, f: Any, module: Any, protocol: int, tells_order: bool) -> None:
    """Writes an object into an archive."""
    state = Pickled()
    keys: dict[int, str] = {}
    storages: dict[str, UntypedStorage] = {}

    def persistent_id(value: Any) -> Any:
        if not isinstance(value, (UntypedStorage, TypedStorage)):
            return state.name(value)
        storage, kind, _, count = state.parts(value)
        key = keys.setdefault(storage._cdata, str(len(keys)))
        storages[key] = storage
        return ("storage", kind, key, serialization.location_tag(storage), count)

    skips = serialization._serialization_tls.skip_data
    with serialization._open_zipfile_writer(f) as archive:
        data = pickled(obj, module, protocol, persistent_id)
        archive.write_record("data.pkl", data, len(data))
        # Where storages are in the file follows from their order, and from their alignment.
        archive.write_record(".format_version", "1", 1)
        alignment = str(serialization._config().save.storage_alignment)
        archive.write_record(".storage_alignment", alignment, len(alignment))
        if tells_order:
            archive.write_record("byteorder", sys.byteorder, len(sys.byteorder))
        for key, storage in storages.items():
            if skips:
                archive.write_record_metadata(f"data/{key}", storage.nbytes())
            else:
                archive.write_record(f"data/{key}", storage.cpu(), storage.nbytes())
