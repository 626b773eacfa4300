"""Reading and writing `.safetensors` files: named tensors, no code.

A file is the length of a JSON header as 8 little-endian bytes, the header, and the data:
`{"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...}` with
offsets into the data, and string pairs under "__metadata__". Invariant: nothing that is
read is trusted; the offsets must tile the data without holes or overlaps, and every error
names the file and, where there is one, the tensor.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import struct
import sys
from array import array
from collections.abc import Mapping
from typing import Any, NamedTuple

from .. import Tensor, tensor

__all__ = ["SafetensorError", "load", "load_file", "load_metadata", "save", "save_file"]

_MAX_HEADER = 100_000_000
# The product of the sizes of a tensor, zeros counted as one, is at most this.
_MOST_ELEMENTS = (2**63 - 1) // 16


class _Code(NamedTuple):
    """A dtype of the format: its size, and the `array` code of its (real) numbers."""

    size: int
    numbers: str


# F16 has no array code and BF16 no number type at all: both are handled by name.
_CODES: dict[str, _Code] = {
    "BOOL": _Code(1, "B"),
    "U8": _Code(1, "B"),
    "I8": _Code(1, "b"),
    "I16": _Code(2, "h"),
    "U16": _Code(2, "H"),
    "F16": _Code(2, "e"),
    "BF16": _Code(2, "H"),
    "I32": _Code(4, "i"),
    "U32": _Code(4, "I"),
    "F32": _Code(4, "f"),
    "I64": _Code(8, "q"),
    "U64": _Code(8, "Q"),
    "F64": _Code(8, "d"),
    "C64": _Code(8, "f"),
}
_DTYPE_NAMES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "I16": "int16",
    "U16": "uint16",
    "F16": "float16",
    "BF16": "bfloat16",
    "I32": "int32",
    "U32": "uint32",
    "F32": "float32",
    "I64": "int64",
    "U64": "uint64",
    "F64": "float64",
    "C64": "complex64",
}


class SafetensorError(ValueError):
    """An invalid safetensors file, or a tensor that such a file cannot hold."""


class _Entry(NamedTuple):
    code: str
    shape: tuple[int, ...]
    begin: int
    end: int


def _package() -> Any:
    # At call time: this module is imported while the package is still being set up.
    return sys.modules[__name__.partition(".")[0]]


def _dtype(code: str) -> Any:
    return getattr(_package(), _DTYPE_NAMES[code])


def _code_of(value: Tensor, name: str, where: str) -> str:
    for code in _CODES:
        if value.dtype == _dtype(code):
            return code
    raise SafetensorError(f"{where}: tensor {name!r}: dtype {value.dtype} has no safetensors code")


# --- writing ----------------------------------------------------------------------------


def save_file(
    tensors: Mapping[str, Tensor],
    path: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes named tensors to `path`; a file of that name is replaced as a whole or not at all.

    Non-contiguous tensors are written in logical order, and gradients are not kept. Raises
    `SafetensorError` for a dtype the format lacks or a reserved name, `TypeError` for values
    that are no tensors, and `OSError` from the file system.
    """
    where = os.fspath(path)
    content = _encode(tensors, metadata, where)
    partial = f"{where}.{os.getpid()}.partial"
    try:
        with open(partial, "wb") as file:
            file.write(content)
        os.replace(partial, where)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise


def save(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a safetensors file with these tensors; errors as in `save_file`."""
    return _encode(tensors, metadata, "<bytes>")


def _encode(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None, where: str) -> bytes:
    header: dict[str, Any] = {}
    if metadata is not None:
        header["__metadata__"] = _checked_metadata(dict(metadata), where)
    coded = []
    for name, value in tensors.items():
        if not isinstance(name, str) or name == "__metadata__":
            raise SafetensorError(f"{where}: {name!r} cannot be the name of a tensor")
        if not isinstance(value, Tensor):
            raise TypeError(f"{where}: {name!r} should be a Tensor, but got {type(value)}")
        coded.append((_code_of(value, name, where), name, value))
    # Wide numbers first keeps every tensor aligned to its element.
    coded.sort(key=lambda item: (-_CODES[item[0]].size, item[1]))
    parts = []
    offset = 0
    for code, name, value in coded:
        raw = _raw_bytes(value, code)
        header[name] = {
            "dtype": code,
            "shape": list(value.shape),
            "data_offsets": [offset, offset + len(raw)],
        }
        offset += len(raw)
        parts.append(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text, *parts])


def _raw_bytes(value: Tensor, code: str) -> bytes:
    flat = value.detach().cpu().contiguous().reshape(-1)
    if sys.byteorder == "little" and flat.numel():
        # The copy has a storage of its own, which holds these elements and nothing else.
        return flat.clone().untyped_storage()._bytes()
    numbers: list[Any] = flat.tolist()
    if code == "BF16":
        # Exact: a bf16 is the upper half of an f32.
        wide = struct.pack(f"<{len(numbers)}f", *numbers)
        return b"".join(wide[at + 2 : at + 4] for at in range(0, len(wide), 4))
    if code == "C64":
        numbers = [part for number in numbers for part in (number.real, number.imag)]
    return struct.pack(f"<{len(numbers)}{_CODES[code].numbers}", *numbers)


# --- reading ----------------------------------------------------------------------------


def load_file(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Reads all tensors of a file, in the order of its data.

    Raises `SafetensorError` for anything that is not a valid file, before a tensor is made.
    """
    with open(path, "rb") as file:
        return _decode(file.read(), os.fspath(path))


def load(data: bytes) -> dict[str, Tensor]:
    """Reads all tensors from the bytes of a file; errors as in `load_file`."""
    return _decode(data, "<bytes>")


def load_metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """Reads the string pairs of a file, empty if it has none; errors as in `load_file`."""
    where = os.fspath(path)
    with open(path, "rb") as file:
        header, _ = _split(file.read(), where)
    return _checked_metadata(header.get("__metadata__", {}), where)


def _decode(content: bytes, where: str) -> dict[str, Tensor]:
    header, data = _split(content, where)
    _checked_metadata(header.pop("__metadata__", {}), where)
    entries = {
        name: _checked_entry(entry, f"{where}: tensor {name!r}") for name, entry in header.items()
    }
    in_order = sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end))
    expected = 0
    for name, entry in in_order:
        if entry.begin != expected:
            kind = (
                "overlaps the one before" if entry.begin < expected else "leaves a hole before it"
            )
            raise SafetensorError(
                f"{where}: tensor {name!r} {kind}: it begins at {entry.begin}, not {expected}"
            )
        expected = entry.end
    if expected != len(data):
        raise SafetensorError(
            f"{where}: the tensors take {expected} bytes, but the file holds {len(data)}"
        )
    return {name: _from_raw(data[entry.begin : entry.end], entry) for name, entry in in_order}


def _split(content: bytes, where: str) -> tuple[dict[str, Any], memoryview]:
    """The header as parsed and the data as a view, with the lengths checked."""
    if len(content) < 8:
        raise SafetensorError(f"{where}: {len(content)} bytes are too few for a header length")
    length = struct.unpack("<Q", content[:8])[0]
    if length > _MAX_HEADER or length > len(content) - 8:
        raise SafetensorError(
            f"{where}: a header of {length} bytes does not fit a file of {len(content)}"
        )
    try:
        header = json.loads(
            content[8 : 8 + length].decode("utf-8"), object_pairs_hook=_unique_pairs
        )
    except (ValueError, RecursionError) as error:
        raise SafetensorError(f"{where}: the header is not valid JSON: {error}") from None
    if not isinstance(header, dict):
        raise SafetensorError(f"{where}: the header should be a JSON object")
    return header, memoryview(content)[8 + length :]


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice!r} appears twice")
    return result


def _checked_metadata(value: Any, where: str) -> dict[str, str]:
    if not isinstance(value, dict) or not all(
        isinstance(key, str) and isinstance(text, str) for key, text in value.items()
    ):
        raise SafetensorError(f"{where}: __metadata__ should map strings to strings")
    return value


def _is_size(value: Any) -> bool:
    return type(value) is int and value >= 0


def _checked_entry(entry: Any, where: str) -> _Entry:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise SafetensorError(f"{where}: expected dtype, shape and data_offsets, got {entry!r}")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(code, str) or code not in _CODES:
        raise SafetensorError(f"{where}: unknown dtype {code!r}")
    if not isinstance(shape, list) or not all(map(_is_size, shape)):
        raise SafetensorError(f"{where}: invalid shape {shape!r}")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_size, offsets)):
        raise SafetensorError(f"{where}: invalid data_offsets {offsets!r}")
    begin, end = offsets
    size = math.prod(shape) * _CODES[code].size
    if end - begin != size:
        raise SafetensorError(
            f"{where}: {code} of shape {shape} takes {size} bytes, but data_offsets {offsets} "
            f"give {end - begin}"
        )
    if math.prod(max(size, 1) for size in shape) > _MOST_ELEMENTS:
        raise SafetensorError(f"{where}: the sizes of shape {shape} multiply beyond 2^59")
    return _Entry(code, tuple(shape), begin, end)


def _from_raw(raw: memoryview, entry: _Entry) -> Tensor:
    dtype = _dtype(entry.code)
    frombuffer = getattr(_package(), "frombuffer", None)
    flat: Tensor
    if frombuffer is not None and len(raw) and sys.byteorder == "little":
        # The copy is what makes the tensor own its memory, and makes it writable.
        flat = frombuffer(bytearray(raw), dtype=dtype)
    else:
        flat = tensor(_numbers(raw, entry.code), dtype=dtype)
    result: Tensor = flat.reshape(entry.shape)
    return result


def _numbers(raw: memoryview, code: str) -> list[Any]:
    count = len(raw) // _CODES[code].size
    if code == "F16":
        return list(struct.unpack(f"<{count}e", raw))
    if code == "BF16":
        halves = [bytes(raw[at : at + 2]) for at in range(0, len(raw), 2)]
        return list(struct.unpack(f"<{count}f", b"".join(b"\0\0" + half for half in halves)))
    values = array(_CODES[code].numbers)
    values.frombytes(raw)
    if sys.byteorder == "big":
        values.byteswap()
    if code == "BOOL":
        return [value != 0 for value in values]
    if code == "C64":
        return [complex(values[at], values[at + 1]) for at in range(0, len(values), 2)]
    return values.tolist()
