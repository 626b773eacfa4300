"""Execution traces: the ops of a program with their arguments and parents, as a file of JSON.

The file has the form that PyTorch's observer writes (the schema of MLCommons' Chakra), read by
tools that play traces back. An op becomes a node when it ends; its parent is the innermost range of
the program, module of a backward pass or op around it. Written are the ops that have kernels:
composites are made of others, which are there. Only the thread that starts an observer is observed.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Any

from .. import _C
from ..autograd import profiler as prof
from ..utils._python_dispatch import _WatchingMode

if TYPE_CHECKING:
    from typing_extensions import Self

_SCHEMA = "1.1.1-chakra.0.0.4"
_PROCESS, _THREAD = 1, 2
# The scopes of ranges: functions, those of backward passes, the program's own.
_FUNCTION, _BACKWARD, _USER = 0, 1, 7
# PyTorch's names for elements in C++, and its numbers for dtypes.
_ELEMENTS = {
    _C.uint8: ("unsigned char", 0),
    _C.int8: ("signed char", 1),
    _C.int16: ("short int", 2),
    _C.int32: ("int", 3),
    _C.int64: ("long int", 4),
    _C.float16: ("c10::Half", 5),
    _C.float32: ("float", 6),
    _C.float64: ("double", 7),
    _C.complex64: ("c10::complex<float>", 9),
    _C.complex128: ("c10::complex<double>", 10),
    _C.bool: ("bool", 11),
    _C.bfloat16: ("c10::BFloat16", 15),
}


class _Values:
    """How arguments and results are written to the trace."""

    def __init__(self, number: Callable[[], int]) -> None:
        self._number = number
        self._known: dict[tuple[str, int], int] = {}

    def all(self, values: Sequence[Any]) -> dict[str, Any]:
        """Values, shapes, types and strides."""
        parts = [self._one(value) for value in values]
        names = ("values", "shapes", "types", "strides")
        return {name: [part[at] for part in parts] for at, name in enumerate(names)}

    def _one(self, value: Any) -> tuple[Any, Any, str, Any]:
        if isinstance(value, _C.TensorBase):
            return self._tensor(value)
        if isinstance(value, (tuple, list)):
            parts = [self._one(item) for item in value]
            kinds = ",".join(part[2] for part in parts)
            columns = [[part[at] for part in parts] for at in (0, 1, 3)]
            return columns[0], columns[1], f"GenericList[{kinds}]", columns[2]
        return (*self._plain(value), [])

    def _tensor(self, tensor: Any) -> tuple[Any, Any, str, Any]:
        element = _ELEMENTS.get(tensor.dtype, (str(tensor.dtype), 0))[0]
        kind, shape = f"Tensor({element})", [int(size) for size in tensor.shape]
        own = self._id("tensor", tensor._cdata)
        try:
            storage = tensor.untyped_storage()
            strides = list(tensor.stride())
        except (RuntimeError, NotImplementedError):
            return [own, 0, 0, 0, 0, ""], shape, kind, []
        memory = self._id("storage", storage._cdata)
        size = tensor.element_size()
        place = [own, memory, tensor.storage_offset(), tensor.numel(), size, str(tensor.device)]
        return place, shape, kind, strides

    def _id(self, what: str, address: int) -> int:
        known = self._known.get((what, address))
        if known is None:
            known = self._known[what, address] = self._number()
        return known

    @staticmethod
    def _plain(value: Any) -> tuple[Any, Any, str]:
        if value is None:
            return "<None>", [], "None"
        if isinstance(value, bool):
            return value, [], "Bool"
        if isinstance(value, int):
            return value, [], "Int"
        if isinstance(value, float):
            return value if math.isfinite(value) else str(value), [], "Double"
        if isinstance(value, str):
            return value, [], "String"
        if isinstance(value, _C.device):
            return str(value), [], "Device"
        if value in _ELEMENTS:
            return _ELEMENTS[value][1], [], "Int"
        return str(value), [], type(value).__name__


class _Open:
    """A node that has not ended."""

    def __init__(self, number: int, name: str, scope: int, run: int) -> None:
        self.number, self.name, self.scope, self.run = number, name, scope, run
        self.sequence = -1
        self.schema = ""


class _Writer:
    """Writes nodes to a file, and keeps those that are open."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._last = _THREAD
        self._runs = 0
        self._separator = ""
        self._values = _Values(self._next)
        root = _Open(_THREAD, "[pytorch|profiler|execution_trace|thread]", _USER, 0)
        self._stack = [root]
        head = {
            "schema": _SCHEMA,
            "pid": os.getpid(),
            "time": time.strftime("%Y-%m-%d %H:%M:%S"),
            "start_ts": time.monotonic_ns() // 1_000_000,
        }
        file.write(json.dumps(head)[:-1] + ', "nodes": [')
        self._put(root, _PROCESS, (), ())

    def _next(self) -> int:
        self._last += 1
        return self._last

    def open(self, name: str, scope: int) -> _Open:
        """Begins a node inside of the innermost one."""
        self._runs += 1
        node = _Open(self._next(), name, scope, self._runs)
        self._stack.append(node)
        return node

    def end(self, node: _Open, inputs: Sequence[Any] = (), outputs: Sequence[Any] = ()) -> None:
        """Writes a node, and those inside of it that were left open."""
        if node not in self._stack:
            return
        while self._stack[-1] is not node:
            self.end(self._stack[-1])
        self._stack.pop()
        self._put(node, self._stack[-1].number, inputs, outputs)

    def _put(self, node: _Open, parent: int, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        attributes = (
            ("rf_id", "uint64", node.run),
            ("fw_parent", "uint64", parent if node.scope == _BACKWARD else 0),
            ("seq_id", "int64", node.sequence),
            ("scope", "uint64", node.scope),
            ("tid", "uint64", 0 if node.number == _PROCESS else 1),
            ("fw_tid", "uint64", 1 if node.scope == _BACKWARD else 0),
            ("op_schema", "string", node.schema),
            ("kernel_backend", "string", ""),
            ("kernel_file", "string", ""),
            ("tensor_range", "string", ""),
        )
        row = {
            "id": node.number,
            "name": node.name,
            "ctrl_deps": parent,
            "inputs": self._values.all(inputs),
            "outputs": self._values.all(outputs),
            "attrs": [{"name": n, "type": t, "value": v} for n, t, v in attributes],
        }
        self._file.write(f"{self._separator}\n{json.dumps(row)}")
        self._separator = ","

    def close(self) -> None:
        """Ends everything, and the file."""
        while len(self._stack) > 1:
            self.end(self._stack[-1])
        root = _Open(_PROCESS, "[pytorch|profiler|execution_trace|process]", _USER, 0)
        self._put(root, _PROCESS, (), ())
        self._file.write(f'\n], "finish_ts": {time.monotonic_ns() // 1_000_000}}}\n')
        self._file.close()


class _Watch(_WatchingMode):
    """Sees the ops of a thread, and runs them unchanged."""

    def __init__(self, writer: _Writer) -> None:
        super().__init__()
        self.writer = writer
        # The node of a backward pass that runs, and what was opened for it.
        self._node: Any = None
        self._opened: list[_Open] = []

    def __exit__(self, *error: Any) -> None:
        try:
            self.follow(None)
        finally:
            super().__exit__(*error)

    def follow(self, node: Any) -> None:
        """Opens the nodes of what runs in a backward pass, and ends those of what ran before."""
        if node is self._node:
            return
        if self._opened:
            self.writer.end(self._opened[0])
        self._node, self._opened = node, []
        if node is not None:
            name = node.name()
            outer = self.writer.open(f"autograd::engine::evaluate_function: {name}", _FUNCTION)
            inner = self.writer.open(name, _BACKWARD)
            inner.sequence = node._sequence_nr() if hasattr(node, "_sequence_nr") else -1
            self._opened = [outer, inner]

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Runs an op and records it."""
        kwargs = kwargs or {}
        self.follow(_C._current_autograd_node())
        writer = self.writer
        node = writer.open(f"{func.namespace}::{func._opname}", _FUNCTION)
        node.schema = str(func._schema)
        result: Any = ()
        try:
            result = func(*args, **kwargs)
        finally:
            outputs = result if isinstance(result, (tuple, list)) else (result,)
            with _C._DisableTorchDispatch():
                writer.end(node, (*args, *kwargs.values()), tuple(outputs))
        return result


class ExecutionTraceObserver:
    """Writes the ops of a program with their arguments to a file, as PyTorch's observer does.

    Register a file, then ``start`` and ``stop`` around what is to be written, or give the observer
    to :func:`profile`. The file is complete after :meth:`unregister_callback`. Ops of this thread
    that have kernels are nodes, with ranges of the program and nodes of backward passes around
    them; composites show as what they are made of.

    Example::

        observer = ExecutionTraceObserver().register_callback("trace.json")
        with profile(execution_trace_observer=observer):
            model(x).sum().backward()
    """

    def __init__(self) -> None:
        self._path: str | None = None
        self._registered = False
        self._writer: _Writer | None = None
        self._watch: _Watch | None = None
        self._thread = 0
        #: Whether a folder is made for other files of a trace.
        self.extra_resources_collection = False
        self.resources_dir = ""

    @staticmethod
    def build_execution_trace_obs_from_env() -> ExecutionTraceObserver | None:
        """An observer with a file of its own, if ``ENABLE_PYTORCH_EXECUTION_TRACE`` is 1."""
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE", "0") != "1":
            return None
        number, path = tempfile.mkstemp(suffix=".et.json")
        os.close(number)
        observer = ExecutionTraceObserver()
        extras = os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS", "0")
        observer.set_extra_resource_collection(extras == "1")
        return observer.register_callback(path)

    def set_extra_resource_collection(self, val: bool) -> None:
        """Says whether a folder is made beside the file; nothing is put into it here."""
        self.extra_resources_collection = val
        if val:
            self.get_resources_dir(can_create=True)

    def get_resources_dir(self, can_create: bool = False) -> str | None:
        """The folder beside the file, if one is made."""
        if not self.extra_resources_collection:
            return None
        if not self.resources_dir and can_create and self._path is not None:
            self.resources_dir = self.get_resources_dir_for_et_path(self._path, True) or ""
        return self.resources_dir or None

    @staticmethod
    def get_resources_dir_for_et_path(trace_path: str, create_dir: bool = False) -> str | None:
        """The folder that belongs to a file: its name with ``_resources``."""
        folder = f"{os.path.splitext(trace_path)[0]}_resources"
        if create_dir:
            os.makedirs(folder, exist_ok=True)
        return folder if os.path.isdir(folder) else None

    def register_callback(self, output_file_path: str) -> Self:
        """Begins a file; if there is one already, nothing happens.

        Raises:
            OSError: if it cannot be written.
        """
        if not self._registered:
            path = os.fspath(output_file_path)
            # (It stays open until the end of the trace.)
            self._writer = _Writer(open(path, "w", encoding="utf-8"))  # noqa: SIM115
            self._path, self._registered = path, True
            self.get_resources_dir(can_create=True)
        return self

    def unregister_callback(self) -> None:
        """Ends the file."""
        self.stop()
        if self._writer is not None:
            self._writer.close()
        self._writer, self._registered = None, False

    @property
    def is_registered(self) -> bool:
        """Whether there is a file."""
        return self._registered

    def is_running(self) -> bool:
        """Whether ops are being recorded."""
        return self._watch is not None

    def start(self) -> None:
        """Records the ops of this thread from now on; without a file, nothing happens."""
        if self._writer is not None and self._watch is None:
            self._thread = threading.get_ident()
            self._watch = _Watch(self._writer)
            self._watch.__enter__()
            prof._range_observers.append(self._opened)

    def stop(self) -> None:
        """Stops recording.

        Raises:
            RuntimeError: in another thread than the one that started it.
        """
        if self._watch is None:
            return
        if threading.get_ident() != self._thread:
            raise RuntimeError("ExecutionTraceObserver: stop it in the thread that started it")
        watch, self._watch = self._watch, None
        prof._range_observers.remove(self._opened)
        watch.__exit__(None, None, None)

    def _opened(self, name: str) -> Callable[[], None] | None:
        """Begins a range of the program; the result ends it."""
        watch, writer = self._watch, self._writer
        if watch is None or writer is None or threading.get_ident() != self._thread:
            return None
        watch.follow(_C._current_autograd_node())
        node = writer.open(name, _USER)

        def end() -> None:
            if self._writer is writer:
                writer.end(node)

        return end

    def cleanup(self) -> None:
        """Ends the file, if there is one."""
        self.unregister_callback()

    def get_output_file_path(self) -> str | None:
        """The file that was registered last."""
        return self._path
