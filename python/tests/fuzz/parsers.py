"""What reads texts and bytes, fed with valid inputs that were changed.

The rule: an input is read or refused with an error of a known class, in bounded time and memory;
what a refused input leaves behind is looked at by the next case. Inputs are changed without a view
of the code's branches (that would need a build of its own); instead a session keeps what answered
in a new way, an error with another text being one.
"""

from __future__ import annotations

import ctypes
import functools
import io
import json
import pickle
import re
import struct
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pullback as torch
from fuzz.child import SIGNS
from fuzz.target import Case, Target, Wrong, without
from pullback import library
from pullback.utils import safetensors

READ = (
    *(TypeError, ValueError, RuntimeError, IndexError, KeyError, BufferError, OverflowError),
    *(AttributeError, AssertionError, EOFError, OSError, NotImplementedError),
    *(pickle.UnpicklingError, zipfile.BadZipFile),
)
ODD = [0, 1, 0x7F, 0x80, 0xFF, 0x22, 0x28, 0x29, 0x2E, 0x5B, 0x7D]
WIDE = [0, 1, -1, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, -(2**63)]
TEXTS: dict[str, list[str]] = {
    "schema": [
        "f(Tensor self, int dim=-1, *, bool keepdim=False) -> Tensor",
        "g(Tensor(a!) self, Tensor[] others, Scalar? alpha=None) -> (Tensor(a!), Tensor[])",
        'h(Tensor x, SymInt[2] size=[1, 2], str mode="mean", Device? d=None) -> (Tensor, Tensor)',
        "k(Tensor? x, float p=0.5, ScalarType? dtype=None, *, Tensor(b!) out) -> Tensor(b!)",
    ],
    "einsum": ["ij,jk->ik", "...ij,...jk->...ik", "ii->i", "i,j", "bij, bjk -> bik", "ij->ji"],
    "device": ["cpu", "cpu:0", "meta", "cuda:1"],
    "dtype": ["torch.float32", "f8", "int64"],
}


class Parsers(Target):
    """Files, pickles, texts, capsules and buffers."""

    name = "parsers"
    batch = 1000
    memory = 1 << 30

    def draw(self, choose: Random) -> Case:
        """A valid input and what is changed of it."""
        reader = choose.choice(list(READERS))
        number = choose.randrange(8)
        changes = [
            [choose.choice(CHANGES), choose.randrange(1 << 20), choose.randrange(1 << 20)]
            for _ in range(choose.choice([0, 1, 1, 1, 2, 3, 6]))
        ]
        return {"reader": reader, "input": number, "changes": changes}

    def run(self, case: Case) -> str:
        """Reads the changed input."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _read(case)

    def smaller(self, case: Case) -> Iterator[Case]:
        """Fewer changes."""
        for changes in without(case["changes"]):
            yield {**case, "changes": changes}

    def program(self, case: Case) -> str:
        """The reader and its bytes."""
        reader = READERS[case["reader"]].__name__
        return f"# python/tests/fuzz/parsers.py, {reader}\ndata = {_data(case)!r}"

    def group(self, case: Case) -> str:
        """The reader."""
        return str(case.get("reader", ""))


def _read(case: Case) -> str:
    data = _data(case)
    try:
        result = READERS[case["reader"]](data)
    except READ as error:
        text = str(error)
        if any(sign in text for sign in SIGNS):
            raise Wrong("bug", text) from None
        return f"{case['reader']} {type(error).__name__} {re.sub('[0-9]+|.x..', '#', text)[:40]}"
    # What was read can be shown and copied: its memory is there.
    for tensor in result if isinstance(result, list) else []:
        if tensor.layout == torch.strided and 0 < tensor.numel() < 10000:
            tensor.clone()
            repr(tensor)
    return f"{case['reader']} read"


# --- valid inputs -----------------------------------------------------------------------


def _tensors() -> dict[str, Any]:
    return {
        "weight": torch.arange(6.0).reshape(2, 3),
        "half": torch.ones(3, dtype=torch.bfloat16),
        "index": torch.tensor([1, 2, 3]),
        "flag": torch.tensor(True),
        "none": torch.empty(0, 2),
    }


@functools.cache
def _inputs(reader: str) -> list[bytes]:
    """Valid inputs of a reader."""
    kind = reader.split(" ")[0]
    if kind in TEXTS:
        return [text.encode() for text in TEXTS[kind]]
    values = _tensors()
    if kind == "safetensors":
        return [safetensors.save(values, {"a": "b"}), safetensors.save({"x": values["index"]})]
    if kind in ("checkpoint", "pickle", "legacy"):
        nested = {"model": values, "step": 3, "list": [1.5, "x", None, (torch.float16, 2j)]}
        saved = [_saved(value, kind == "legacy") for value in (nested, values["weight"], values)]
        return [_member(data) for data in saved] if kind == "pickle" else saved
    if kind == "state":
        return [bytes(torch.get_rng_state().tolist())]
    if kind == "capsule":
        return [struct.pack("<7q", 2, 2, 32, 2, 3, 3, 1), struct.pack("<7q", 1, 0, 64, 4, 0, 1, 0)]
    return [bytes(range(48)), struct.pack("<6f", *range(6))]


def _saved(value: Any, is_legacy: bool) -> bytes:
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization=not is_legacy)
    return file.getvalue()


def _member(data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read(next(n for n in archive.namelist() if n.endswith("data.pkl")))


# --- changes ----------------------------------------------------------------------------


def _data(case: Case) -> bytes:
    inputs = _inputs(case["reader"])
    data = bytearray(inputs[case["input"] % len(inputs)])
    for name, first, second in case["changes"]:
        _change(data, name, first, second)
    return bytes(data)


CHANGES = ("bit", "byte", "remove", "repeat", "cut", "wide", "swap", "digits", "quote")


def _change(data: bytearray, name: str, first: int, second: int) -> None:
    if not data:
        return
    at = first % len(data)
    length = 1 + second % 16
    if name == "bit":
        data[at] ^= 1 << second % 8
    elif name == "byte":
        data[at] = ODD[second % len(ODD)]
    elif name == "remove":
        del data[at : at + length]
    elif name == "repeat":
        data[at:at] = data[at : at + length] * (1 + second % 40)
    elif name == "cut":
        del data[at:]
    elif name == "wide":
        wide = struct.pack("<q", WIDE[second % len(WIDE)])
        data[at : at + 8] = wide[: len(data[at : at + 8])]
    elif name == "swap":
        other = second % len(data)
        data[at], data[other] = data[other], data[at]
    else:
        found = [m.span() for m in re.finditer(rb"\d+" if name == "digits" else rb'"\w*"', data)]
        if found:
            begin, end = found[first % len(found)]
            number = str(WIDE[second % len(WIDE)]).encode()
            data[begin:end] = number if name == "digits" else b'"' + number + b'"'


# --- readers ----------------------------------------------------------------------------


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass" if len(data) % 2 else "replace")


def _schema(data: bytes) -> None:
    with library._scoped_library("fuzz_schemas", "FRAGMENT") as made:
        made.define(_text(data))


def _einsum(data: bytes) -> list[Any]:
    return [torch.einsum(_text(data), torch.ones(2, 2), torch.ones(2, 2))]


def _checkpoint(data: bytes) -> list[Any]:
    return _found(torch.load(io.BytesIO(data), weights_only=True))


def _mapped(data: bytes) -> list[Any]:
    with tempfile.NamedTemporaryFile(suffix=".pt") as file:
        file.write(data)
        file.flush()
        return _found(torch.load(file.name, weights_only=True, mmap=True))


def _pickle(data: bytes) -> list[Any]:
    """The pickle within an archive whose sums are right."""
    source = zipfile.ZipFile(io.BytesIO(_inputs("checkpoint")[0]))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in source.namelist():
            archive.writestr(name, data if name.endswith("data.pkl") else source.read(name))
    return _checkpoint(file.getvalue())


def _found(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return _found(list(value.values()))
    if isinstance(value, list | tuple):
        return [tensor for item in value[:50] for tensor in _found(item)]
    return []


def _buffer(data: bytes) -> list[Any]:
    """``frombuffer``, whose options are the first bytes."""
    options = (*data, 0, 0, 0, 0)
    dtype = [torch.float32, torch.int64, torch.bool, torch.complex64][options[0] % 4]
    count, offset = options[1] - 2, options[2] - 2
    return [torch.frombuffer(bytearray(data), dtype=dtype, count=count, offset=offset)]


def _state(data: bytes) -> list[Any]:
    torch.Generator().set_state(torch.tensor(list(data), dtype=torch.uint8))
    return []


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8 * 2),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


_ALIVE: list[Any] = []
"""Memory of capsules: it must outlive the tensors that were made of it."""


def _capsule(data: bytes) -> list[Any]:
    """A DLPack capsule of rank, code, bits, sizes and strides; its memory is as large as any of
    them that is not refused can reach."""
    rank, code, bits, *numbers = struct.unpack("<7q", (data + bytes(56))[:56])
    reach = sum(abs(n) for n in numbers)
    # What the producer promises cannot be checked: only promises that are kept are made.
    small = reach < 64 and -2 <= rank <= 2 and abs(bits) <= 128
    memory = ctypes.create_string_buffer(64 * 64 * 32)
    shape = (ctypes.c_int64 * 2)(*numbers[:2])
    strides = (ctypes.c_int64 * 2)(*numbers[2:])
    address = ctypes.addressof(memory) if small else None
    tensor = _Tensor(address, (1, 0), max(-(2**31), min(rank, 2)), (code & 255, bits & 255), 1)
    tensor.shape = ctypes.addressof(shape)
    tensor.strides = ctypes.addressof(strides) if numbers[2] or numbers[3] else None
    _ALIVE.append((memory, shape, strides, tensor))
    del _ALIVE[:-50]
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    made = torch.from_dlpack(make(ctypes.addressof(tensor), b"dltensor", None))
    return [made.clone()]


READERS: dict[str, Callable[[bytes], Any]] = {
    "schema": _schema,
    "einsum": _einsum,
    "device": lambda data: torch.device(_text(data)),
    "dtype": lambda data: torch.ones(1).type(_text(data)),
    "safetensors": lambda data: list(safetensors.load(data).values()),
    "checkpoint": _checkpoint,
    "checkpoint mapped": _mapped,
    "legacy": _checkpoint,
    "pickle": _pickle,
    "buffer": _buffer,
    "state": _state,
    "capsule": _capsule,
    "json": lambda data: safetensors.load(_with_length(data)),
}


def _with_length(data: bytes) -> bytes:
    """A file of safetensors whose header's length is right and whose header is anything."""
    header = json.dumps(
        {"x": {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]}}
    )
    text = header.encode().replace(b"U8", data[:8])
    return struct.pack("<Q", len(text)) + text + data
