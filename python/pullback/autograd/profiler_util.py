"""Events of a profile: lists of them, who was within whom, sums, tables and exports.

An :class:`EventList` holds :class:`FunctionEvent` objects, whoever made them; times are in
microseconds.
``key_averages`` adds them up by name into :class:`FunctionEventAvg`, ``table`` shows either.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

from . import _profiler_table
from ._profiler_table import (
    _format_memory as _format_memory,
)
from ._profiler_table import (
    _format_time as _format_time,
)
from ._profiler_table import (
    _format_time_share as _format_time_share,
)

__all__ = [
    "EventList",
    "EventMetadata",
    "FormattedTimesMixin",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
    "MemRecordsAcc",
    "StringTable",
]

MEMORY_EVENT_NAME = "[memory]"
OUT_OF_MEMORY_EVENT_NAME = "[OutOfMemory]"
# Events that the profiler itself causes, and events without information.
_FILTERED = frozenset(
    {
        MEMORY_EVENT_NAME,
        OUT_OF_MEMORY_EVENT_NAME,
        "profiler::_record_function_enter",
        "profiler::_record_function_enter_new",
        "profiler::_record_function_exit",
        "aten::is_leaf",
        "aten::output_nr",
        "aten::_version",
    }
)
_BACKWARD_SCOPE = 1
# The metrics of `export_stacks`; devices other than the CPU have theirs where there are any.
_STACK_METRICS = [
    "self_cpu_time_total",
    "self_cuda_time_total",
    "self_xpu_time_total",
    "self_privateuse1_time_total",
]


class DeviceType(Enum):
    """The device and the time span of an event."""

    CPU = 0
    CUDA = 1
    HIP = 6
    XLA = 9
    XPU = 12
    MPS = 13
    HPU = 15
    MTIA = 19
    PrivateUse1 = 20


def _filter_name(name: str) -> bool:
    """Whether events of this name are left out of lists."""
    return name in _FILTERED


def _rewrite_name(name: str, with_wildcard: bool = False) -> str:
    """The name under which an event is added up: steps of a training loop are all the same."""
    if with_wildcard and name.startswith("ProfilerStep#"):
        return "ProfilerStep*"
    return name


def _metric(name: str) -> str:
    """The attribute that has a metric: what devices are called does not matter."""
    for device in ("cuda", "xpu", "privateuse1", "hpu", "mtia"):
        name = name.replace(device, "device")
    return name


class FormattedTimesMixin:
    """Times as text, and per call."""

    cpu_time_total: float
    device_time_total: float
    self_cpu_time_total: float
    self_device_time_total: float
    count: int

    @property
    def cpu_time(self) -> float:
        """Time per call."""
        return 0.0 if self.count == 0 else 1.0 * self.cpu_time_total / self.count

    @property
    def device_time(self) -> float:
        """The device's time per call."""
        return 0.0 if self.count == 0 else 1.0 * self.device_time_total / self.count

    @property
    def cuda_time(self) -> float:
        """The former name of ``device_time``."""
        return self.device_time

    @property
    def cpu_time_str(self) -> str:
        """``cpu_time`` as text."""
        return _format_time(self.cpu_time)

    @property
    def device_time_str(self) -> str:
        """``device_time`` as text."""
        return _format_time(self.device_time)

    @property
    def cpu_time_total_str(self) -> str:
        """``cpu_time_total`` as text."""
        return _format_time(self.cpu_time_total)

    @property
    def device_time_total_str(self) -> str:
        """``device_time_total`` as text."""
        return _format_time(self.device_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        """``self_cpu_time_total`` as text."""
        return _format_time(self.self_cpu_time_total)

    @property
    def self_device_time_total_str(self) -> str:
        """``self_device_time_total`` as text."""
        return _format_time(self.self_device_time_total)


class Interval:
    """The interval from ``start`` to ``end``, in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        """The length of the interval."""
        return self.end - self.start


class EventMetadata(NamedTuple):
    """What the profiler of a device, or of messages between processes, says of an event.

    Each is None where it was not said: there is no such device here.
    """

    registers_per_thread: int | None
    shared_memory: int | None
    grid: list[int] | None
    block: list[int] | None
    priority: int | None
    blocks_per_sm: float | None
    warps_per_sm: float | None
    occupancy: dict[str, Any] | None
    est_occupancy_pct: float | None
    queued: int | None
    graph_id: int | None
    graph_node_id: int | None
    stream: int | None
    context: int | None
    channel: int | None
    channel_type: int | None
    hsa_queue: int | None
    bytes: int | None
    bandwidth_gb_s: float | None
    collective_name: str | None
    dtype: str | None
    in_msg_nelems: int | None
    out_msg_nelems: int | None
    in_split_size: str | None
    out_split_size: str | None
    global_rank_start: int | None
    global_rank_stride: int | None
    group_size: int | None
    process_group_name: str | None
    process_group_desc: str | None
    group_ranks: str | None
    rank: int | None
    src_rank: int | None
    dst_rank: int | None
    seq: int | None
    is_async: bool | None


class Kernel(NamedTuple):
    """A kernel that ran on a device for an event."""

    name: str
    device: int
    duration: float


class FunctionEvent(FormattedTimesMixin):
    """A range that began and ended: an op, a node of the graph, a part of the program."""

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        overload_name: str | None = None,
        fwd_thread: int | None = None,
        input_shapes: Any = None,
        stack: list[str] | None = None,
        scope: int = 0,
        use_device: str | None = None,
        cpu_memory_usage: int = 0,
        device_memory_usage: int = 0,
        is_async: bool = False,
        is_remote: bool = False,
        sequence_nr: int = -1,
        node_id: int = -1,
        device_type: DeviceType = DeviceType.CPU,
        device_index: int = 0,
        device_resource_id: int | None = None,
        is_legacy: bool = False,
        flops: int | None = None,
        trace_name: str | None = None,
        concrete_inputs: list[Any] | None = None,
        kwinputs: dict[str, Any] | None = None,
        is_user_annotation: bool = False,
        is_python_function: bool = False,
        metadata: str | None = None,
    ) -> None:
        self.id = id
        self.node_id = node_id
        self.name = name
        self.overload_name = overload_name
        self.trace_name = name if trace_name is None else trace_name
        self.time_range = Interval(start_us, end_us)
        self.thread = thread
        self.fwd_thread = fwd_thread
        self.kernels: list[Kernel] = []
        self.count = 1
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.input_shapes = input_shapes
        self.concrete_inputs = concrete_inputs
        self.kwinputs = kwinputs
        self.stack: list[str] = [] if stack is None else stack
        self.scope = scope
        self.use_device = use_device
        self.cpu_memory_usage = cpu_memory_usage
        self.device_memory_usage = device_memory_usage
        self.is_async = is_async
        self.is_remote = is_remote
        self.sequence_nr = sequence_nr
        self.device_type = device_type
        self.device_index = device_index
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.is_legacy = is_legacy
        self.flops = flops
        self.is_user_annotation = is_user_annotation
        self.is_python_function = is_python_function
        self.metadata = metadata
        self.module_hierarchy = ""

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Notes something that ran on a device for this event."""
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Notes an event directly within this one."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Notes the event that this one is directly within."""
        self.cpu_parent = parent

    @property
    def _counts(self) -> bool:
        """Whether the time of the event is the CPU's own, not that of work elsewhere meanwhile."""
        return not self.is_async and self.device_type is DeviceType.CPU

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes allocated less bytes freed, without those of events within it."""
        if not self._counts:
            return 0
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def self_device_memory_usage(self) -> int:
        """The memory allocated on a device by the event itself."""
        if not self._counts:
            return 0
        within = sum(child.device_memory_usage for child in self.cpu_children)
        return self.device_memory_usage - within

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """The duration of the event."""
        return self.time_range.elapsed_us() if self.device_type is DeviceType.CPU else 0

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        """The duration of the event without the events directly within it."""
        if not self._counts:
            return 0
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def device_time_total(self) -> float:  # type: ignore[override]
        """The duration on devices of the kernels that the event started."""
        if self.device_type is not DeviceType.CPU:
            return self.time_range.elapsed_us()
        own = sum(kernel.duration for kernel in self.kernels)
        return own + sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_device_time_total(self) -> float:  # type: ignore[override]
        """The duration on devices without the events directly within it."""
        if self.device_type is not DeviceType.CPU:
            return self.device_time_total
        return sum(kernel.duration for kernel in self.kernels)

    cuda_time_total = device_time_total
    self_cuda_time_total = self_device_time_total
    self_cuda_memory_usage = self_device_memory_usage

    @property
    def key(self) -> str:
        """The key by which the event is added up."""
        return self.name

    def __repr__(self) -> str:
        device = self.use_device
        children = [child.id for child in self.cpu_children]
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name}"
            f" device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str}"
            f" start_us={self.time_range.start} end_us={self.time_range.end}"
            f" cpu_children={children} {device}_time={self.device_time_str} name={self.name}"
            f" thread={self.thread} input_shapes={self.input_shapes}"
            f" cpu_memory_usage={self.cpu_memory_usage}"
            f" {device}_memory_usage={self.device_memory_usage} is_async={self.is_async}"
            f" is_remote={self.is_remote} seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>"
        )


class FunctionEventAvg(FormattedTimesMixin):
    """The sum of several events."""

    # Fields in which the first event stands for all of them.
    _COPIED = (
        "node_id",
        "is_async",
        "is_remote",
        "use_device",
        "overload_name",
        "stack",
        "scope",
        "cpu_parent",
        "cpu_children",
        "device_type",
        "is_legacy",
        "is_user_annotation",
    )
    _SUMMED = (
        "cpu_time_total",
        "device_time_total",
        "self_cpu_time_total",
        "self_device_time_total",
        "cpu_memory_usage",
        "device_memory_usage",
        "self_cpu_memory_usage",
        "self_device_memory_usage",
        "count",
    )

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.node_id = 0
        self.is_async = False
        self.is_remote = False
        self.use_device: str | None = None
        self.cpu_time_total: float = 0
        self.device_time_total: float = 0
        self.self_cpu_time_total: float = 0
        self.self_device_time_total: float = 0
        self.input_shapes: Any = None
        self.overload_name: str | None = None
        self.stack: list[str] = []
        self.scope: int | None = None
        self.cpu_memory_usage = 0
        self.device_memory_usage = 0
        self.self_cpu_memory_usage = 0
        self.self_device_memory_usage = 0
        self.cpu_children: list[FunctionEvent] | None = None
        self.cpu_parent: FunctionEvent | None = None
        self.device_type = DeviceType.CPU
        self.is_legacy = False
        self.is_user_annotation = False
        self.flops = 0

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Adds an event, or a sum, of the same name.

        Raises:
            ValueError: if the name is another one.
        """
        if self.key is None:
            self.key = other.key
            self.input_shapes = other.input_shapes
            for name in self._COPIED:
                setattr(self, name, getattr(other, name))
        if self.key != other.key:
            raise ValueError(
                f"events of the name {other.key} cannot be added to those of {self.key}"
            )
        for name in self._SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.flops += other.flops or 0
        return self

    def __iadd__(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        return self.add(other)

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str}"
            f" cpu_time={self.cpu_time_str}  self_{device}_time={self.self_device_time_total_str}"
            f" {device}_time={self.device_time_str} input_shapes={self.input_shapes}"
            f" cpu_memory_usage={self.cpu_memory_usage}"
            f" {device}_memory_usage={self.device_memory_usage}>"
        )


class EventList(list[Any]):
    """Events, or sums of events."""

    def __init__(
        self,
        *args: Any,
        use_device: str | None = None,
        profile_memory: bool = False,
        with_flops: bool = False,
    ) -> None:
        super().__init__(*args)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._tree_built = False

    def _like(self, events: Iterable[Any]) -> EventList:
        """A list of other events with the same display options."""
        return EventList(
            events,
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )

    # ---- who is within whom ----

    def _build_tree(self, parents: list[FunctionEvent | None] | None = None) -> None:
        """Finds out who is within whom, unless ``parents`` says so of each event."""
        if parents is None:
            self._populate_cpu_children()
        else:
            for event, parent in zip(self, parents, strict=True):
                if parent is not None:
                    parent.append_cpu_child(event)
                    event.set_cpu_parent(parent)
        self._remove_dup_nodes()
        self._set_backward_stacktraces()
        self._tree_built = True

    def _populate_cpu_children(self) -> None:
        """Puts each event into the innermost one that lasted at least as long, thread by thread."""
        threads: dict[Any, list[FunctionEvent]] = defaultdict(list)
        for event in self:
            if event._counts:
                threads[event.thread, event.node_id].append(event)
        for events in threads.values():
            events.sort(key=lambda event: (event.time_range.start, -event.time_range.end))
            around: list[FunctionEvent] = []
            for event in events:
                span = event.time_range
                # An event that ends earlier is not around this one.
                while around and (
                    span.start >= around[-1].time_range.end or span.end > around[-1].time_range.end
                ):
                    around.pop()
                if around:
                    around[-1].append_cpu_child(event)
                    event.set_cpu_parent(around[-1])
                around.append(event)

    def _remove_dup_nodes(self) -> None:
        """Takes out events whose only purpose was another one of the same name within them."""
        gone: set[int] = set()
        for event in self:
            if id(event) in gone:
                continue
            while len(event.cpu_children) == 1 and event.cpu_children[0].name == event.name:
                (inner,) = event.cpu_children
                event.cpu_children = inner.cpu_children
                event.kernels += inner.kernels
                for child in event.cpu_children:
                    child.set_cpu_parent(event)
                gone.add(id(inner))
        if gone:
            self[:] = [event for event in self if id(event) not in gone]

    def _set_backward_stacktraces(self) -> None:
        """Gives events of a backward without lines of their own those of the forward."""
        stacks: dict[tuple[int, int], list[str]] = {}
        for event in self:
            if event.stack and event.sequence_nr >= 0 and event.scope != _BACKWARD_SCOPE:
                stacks.setdefault((event.sequence_nr, event.thread), event.stack)
        for event in self:
            node = event
            while node is not None and not node.fwd_thread:
                node = node.cpu_parent
            if node is not None and not event.stack:
                event.stack = stacks.get((node.sequence_nr, node.fwd_thread), [])

    # ---- sums ----

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, each without those within it."""
        total: float = sum(event.self_cpu_time_total for event in self)
        return total

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> EventList:
        """Adds events up by name, and by what else is asked for.

        Args:
            group_by_input_shapes: tells events apart by the sizes of their inputs.
            group_by_stack_n: tells them apart by so many of the lines that led to them.
            group_by_overload_name: tells overloads of an op apart.
            include_python_functions: counts modules as well.
        """
        sums: dict[tuple[Any, ...], FunctionEventAvg] = defaultdict(FunctionEventAvg)
        for event in self:
            if event.is_python_function and not include_python_functions:
                continue
            key = (
                event.key,
                event.node_id,
                event.device_type,
                event.is_legacy,
                event.is_user_annotation,
                event.overload_name if group_by_overload_name else "",
                str(event.input_shapes) if group_by_input_shapes else "",
                tuple(event.stack[:group_by_stack_n]) if group_by_stack_n > 0 else (),
            )
            sums[key].add(event)
        for total in sums.values():
            total.stack = total.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                total.input_shapes = ""
            if not group_by_overload_name:
                total.overload_name = ""
        return self._like(sums.values())

    def total_average(self) -> FunctionEventAvg:
        """All events added up. Time within another event counts again."""
        total = FunctionEventAvg()
        for event in self:
            total.key = None
            total.add(event)
        total.key = "Total"
        if self:
            total.input_shapes = None
        return total

    # ---- what is shown of them ----

    def __str__(self) -> str:
        return self.table()

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as a table; nothing if there are none.

        Args:
            sort_by: an attribute, ``"self_cpu_time_total"`` or the like; the largest come first.
            row_limit: how many rows to show; all if negative.
            max_src_column_width: how many characters to show of lines of the program.
            max_name_column_width: how many to show of names.
            max_shapes_column_width: how many to show of sizes.
            header: a line above the table.
            top_level_events_only: leaves events out that are within others.
            time_unit: ``"us"``, ``"ms"`` or ``"s"``; each number has its own if not given.
        """
        events = [e for e in self if e.cpu_parent is None] if top_level_events_only else list(self)
        if sort_by is not None:
            events.sort(key=attrgetter(_metric(sort_by)), reverse=True)
        widths = _profiler_table.Widths(
            max_name_column_width, max_src_column_width, max_shapes_column_width
        )
        shown = events if row_limit < 0 else list(islice(events, row_limit))
        return _profiler_table.table(
            shown,
            self,
            widths,
            header=header,
            time_unit=time_unit,
            with_memory=self._profile_memory,
            with_flops=self._with_flops,
        )

    @property
    def supported_export_stacks_metrics(self) -> list[str]:
        """The metrics that :meth:`export_stacks` can write."""
        return list(_STACK_METRICS)

    def export_stacks(self, path: str, metric: str) -> None:
        """Writes lines of the program with a number each, as tools for flame graphs read them.

        Raises:
            ValueError: for another metric than those of ``supported_export_stacks_metrics``.
        """
        if metric not in _STACK_METRICS:
            raise ValueError(f"metric should be one of: {_STACK_METRICS}")
        # The separators of frames and numbers must not occur in them.
        clean = str.maketrans(" ;\t\n", "____")
        with open(path, "w", encoding="utf-8") as out:
            for event in self:
                value = int(getattr(event, _metric(metric)))
                if event.stack and value > 0:
                    frames = ";".join(line.translate(clean) for line in reversed(event.stack))
                    out.write(f"{frames} {value}\n")

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the events as a list that ``chrome://tracing`` shows."""
        with open(path, "w", encoding="utf-8") as out:
            json.dump(list(self._trace_events()), out)

    def _trace_events(self) -> Iterator[dict[str, Any]]:
        flow = 0
        for event in self:
            start = event.time_range.start
            yield {
                "name": event.trace_name,
                "ph": "X",
                "ts": start,
                "dur": event.time_range.elapsed_us(),
                "tid": event.thread
                if not event.is_remote
                else f'" node_id:{event.node_id}, thread_id:{event.thread} "',
                "pid": "CPU functions",
                "args": {} if not event.input_shapes else {"Input Dims": event.input_shapes},
            }
            for _ in event.kernels:
                # An arrow from the op to what it started on a device.
                arrow = {"name": event.trace_name, "id": flow, "ts": start, "cat": "cpu_to_device"}
                yield {**arrow, "ph": "s", "tid": event.thread, "pid": "CPU functions", "args": {}}
                flow += 1


class StringTable(defaultdict[str, str]):
    """Names as they are shown, each computed once."""

    def __missing__(self, key: str) -> str:
        self[key] = key
        return key


class MemRecordsAcc:
    """Records of memory by their times."""

    def __init__(self, mem_records: list[Any]) -> None:
        self._mem_records = sorted(mem_records, key=lambda record: record[0].start_ns())

    def in_interval(self, start_ns: int, end_ns: int) -> Iterator[Any]:
        """The events that began from ``start_ns`` to ``end_ns``."""
        for record in self._mem_records:
            if start_ns <= record[0].start_ns() <= end_ns:
                yield record
