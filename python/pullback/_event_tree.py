"""The events of a profile as a tree, under the names of ``torch._C._profiler``.

``prof.profiler.kineto_results.experimental_event_tree()`` gives the outermost events, each with the
events that began and ended within it: ops, nodes of backward, ranges of the program, calls of
Python functions and modules (``with_stack=True``), and memory that was taken or given back
(``profile_memory=True``).
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pullback as torch

__all__ = ["RecordScope"]


def gather_traceback(python: bool, script: bool, cpp: bool) -> Any:
    """Where the program is, to be read later by :func:`symbolize_tracebacks`.

    Args:
        python: with the frames of Python.
        script: with those of TorchScript, of which there are none.
        cpp: with those of compiled code, which are not read here.
    """
    import sys

    from .utils._traceback import CapturedTraceback, captured

    return captured(sys._getframe(1)) if python else CapturedTraceback([])


def symbolize_tracebacks(tracebacks: list[Any]) -> list[list[dict[str, Any]]]:
    """The frames of tracebacks as dictionaries (name, filename, line), the innermost first."""
    return [
        [
            {"name": frame.name, "filename": frame.filename, "line": frame.lineno}
            for frame in reversed(one.summary())
        ]
        for one in tracebacks
    ]


class _EventType(enum.Enum):
    """The kind of an event; there are no events of backends, Vulkan and Kineto here."""

    TorchOp = 0
    Backend = 1
    Vulkan = 2
    Allocation = 3
    PyCall = 5
    PyCCall = 6
    Kineto = 7


class RecordScope(enum.Enum):
    """The kind of a range."""

    FUNCTION = 0
    BACKWARD_FUNCTION = 1
    TORCHSCRIPT_FUNCTION = 2
    KERNEL_FUNCTION_DTYPE = 3
    CUSTOM_CLASS = 4
    BUILD_FEATURE = 5
    LITE_INTERPRETER = 6
    USER_SCOPE = 7
    STATIC_RUNTIME_OP = 8
    STATIC_RUNTIME_MODEL = 9


@dataclass(frozen=True)
class _TensorMetadata:
    """The record of a tensor argument of an op. Its address was not recorded."""

    sizes: list[int]
    strides: list[int]
    dtype: torch.dtype
    device: torch.device
    layout: torch.layout
    impl_ptr: int | None = None
    storage_data_ptr: int | None = None
    id: int | None = None
    allocation_id: int | None = None

    @property
    def dim(self) -> int:
        return len(self.sizes)


@dataclass(frozen=True)
class _ExtraFields_TorchOp:
    name: str
    # Tensors as `_TensorMetadata`, lists of them as lists, all else as it is; none if not recorded.
    inputs: list[Any]
    scope: RecordScope
    sequence_number: int
    allow_tf32_cublas: bool = False


@dataclass(frozen=True)
class _ExtraFields_Allocation:
    ptr: int
    # Bytes; negative if they were given back.
    alloc_size: int
    # Bytes that were taken since the profile began, less those given back.
    total_allocated: int
    device: torch.device
    # The number of the allocation, which the end of its life has as well; none of older memory.
    id: int | None
    allocation_id: int | None
    total_reserved: int = 0


@dataclass(frozen=True)
class _PyFrameState:
    """A function of the program, and the line where it begins."""

    file_name: str
    line_number: int
    function_name: str


@dataclass(frozen=True)
class _NNModuleInfo:
    """A module that ran."""

    cls_name: str


@dataclass(frozen=True)
class _ExtraFields_PyCall:
    # None for the call of a module, which `module` names.
    callsite: _PyFrameState | None
    # The innermost function around it that was recorded, too.
    caller: _PyFrameState | None
    module: _NNModuleInfo | None
    # (Steps of optimizers are ranges of the program here.)
    optimizer: None = None


@dataclass(frozen=True)
class _ExtraFields_PyCCall:
    caller: _PyFrameState | None


_Fields = (
    _ExtraFields_TorchOp | _ExtraFields_Allocation | _ExtraFields_PyCall | _ExtraFields_PyCCall
)


@dataclass(eq=False)
class _ProfilerEvent:
    """An event of a profile. Times are nanoseconds since 1970."""

    id: int
    name: str
    overload_name: str
    tag: _EventType
    extra_fields: _Fields
    start_tid: int
    start_time_ns: int
    end_time_ns: int
    # The number of an op among the ops, from 1 on; 0 of all else.
    correlation_id: int
    parent: _ProfilerEvent | None = field(default=None, repr=False)
    children: list[_ProfilerEvent] = field(default_factory=list, repr=False)

    @property
    def duration_time_ns(self) -> int:
        return self.end_time_ns - self.start_time_ns

    @property
    def typed(self) -> tuple[_EventType, _Fields]:
        return self.tag, self.extra_fields


_FUNCTION = re.compile(r"(?P<file>.*)\((?P<line>\d+)\): (?P<name>.*)", re.DOTALL)


def _frame(name: str) -> _PyFrameState | None:
    """The function that an event ``file(line): function`` names."""
    found = _FUNCTION.fullmatch(name)
    return found and _PyFrameState(found["file"], int(found["line"]), found["name"])


def _caller(event: _ProfilerEvent | None) -> _PyFrameState | None:
    while event is not None:
        if isinstance(event.extra_fields, _ExtraFields_PyCall) and event.extra_fields.callsite:
            return event.extra_fields.callsite
        event = event.parent
    return None


def _input(recorded: Any) -> Any:
    """An input: the extension gives a tensor as a tuple of what it knows."""
    if isinstance(recorded, tuple):
        return _TensorMetadata(*recorded)
    return [_input(item) for item in recorded] if isinstance(recorded, list) else recorded


def _fields(
    item: Sequence[Any], inputs: list[Any] | None, parent: _ProfilerEvent | None
) -> tuple[_EventType, _Fields]:
    name, kind = item[0], item[9]
    if kind == "Module":
        cls = name.removeprefix("nn.Module: ").rpartition("_")[0]
        call = _ExtraFields_PyCall(None, _caller(parent), _NNModuleInfo(cls))
        return _EventType.PyCall, call
    if kind == "Program":
        frame = _frame(name)
        if frame is None:
            return _EventType.PyCCall, _ExtraFields_PyCCall(_caller(parent))
        return _EventType.PyCall, _ExtraFields_PyCall(frame, _caller(parent), None)
    given = [] if inputs is None else [_input(each) for each in inputs]
    op = _ExtraFields_TorchOp(name, given, RecordScope(item[5]), item[6])
    return _EventType.TorchOp, op


def _allocations(records: Sequence[tuple[int, ...]]) -> Iterator[_ExtraFields_Allocation]:
    """The allocations and releases of memory, in the order of time."""
    from . import device

    cpu = device("cpu")
    total, count = 0, 0
    live: dict[int, int] = {}
    for _, address, nbytes, _, _ in records:
        total += nbytes
        if nbytes >= 0:
            count += 1
            number: int | None = live.setdefault(address, count)
        else:
            number = live.pop(address, None)
        yield _ExtraFields_Allocation(address, nbytes, total, cpu, number, number)


def event_tree(result: Any) -> list[_ProfilerEvent]:
    """The outermost events of what was recorded (``_ProfilerResult``), in the order of time."""
    origin = result.trace_start_ns()
    events: list[_ProfilerEvent] = []
    ops = 0
    for number, (item, inputs) in enumerate(zip(result.events(), result.inputs(), strict=True)):
        # (An event that another thread ended is within no other.)
        parent = events[item[7]] if item[7] >= 0 and not item[8] else None
        tag, fields = _fields(item, inputs, parent)
        ops += tag is _EventType.TorchOp
        start, end = item[4]
        events.append(
            _ProfilerEvent(
                id=number,
                name=item[0],
                overload_name=item[1],
                tag=tag,
                extra_fields=fields,
                start_tid=item[2],
                start_time_ns=origin + start,
                end_time_ns=origin + end,
                correlation_id=ops if tag is _EventType.TorchOp else 0,
                parent=parent,
            )
        )
    records = result.memory()
    for record, fields in zip(records, _allocations(records), strict=True):
        time, _, _, thread, around = record
        events.append(
            _ProfilerEvent(
                id=len(events),
                name="[memory]",
                overload_name="",
                tag=_EventType.Allocation,
                extra_fields=fields,
                start_tid=thread,
                start_time_ns=origin + time,
                end_time_ns=origin + time,
                correlation_id=0,
                parent=events[around] if around >= 0 else None,
            )
        )
    roots: list[_ProfilerEvent] = []
    for event in sorted(events, key=lambda event: (event.start_time_ns, event.id)):
        (roots if event.parent is None else event.parent.children).append(event)
    return roots


def __getattr__(name: str) -> Any:
    if name == "CapturedTraceback":
        from .utils._traceback import CapturedTraceback

        return CapturedTraceback
    raise AttributeError(f"module 'torch._C._profiler' has no attribute {name!r}")
