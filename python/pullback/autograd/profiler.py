"""The profiler: what ran, how long it took, on what, and what memory it needed.

:class:`profile` records the thread that enters it and the threads that go on for it, until it is
left; :class:`record_function` names a part of a program. The events are in ``profiler_util``.
"""

from __future__ import annotations

import gc
import gzip
import json
import os
import shutil
import sys
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ContextDecorator, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from .. import _C
from . import kineto_available
from .profiler_util import (
    MEMORY_EVENT_NAME,
    EventList,
    FunctionEvent,
    MemRecordsAcc,
    _filter_name,
    _rewrite_name,
)

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

__all__ = [
    "EnforceUnique",
    "EventList",
    "FunctionEvent",
    "KinetoStepTracker",
    "MemRecordsAcc",
    "emit_itt",
    "emit_nvtx",
    "kineto_available",
    "load_nvprof",
    "parse_nvprof_trace",
    "profile",
    "record_function",
]

_F = TypeVar("_F")
# Devices that PyTorch has profilers for; none of them is in this build.
_DEVICES = ("cuda", "xpu", "mtia", "hpu", "privateuseone")


def _usable_device(use_device: str | None) -> str | None:
    """The device to profile, if it is there; a warning if not."""
    if use_device in (None, "cpu"):
        return None
    if use_device not in _DEVICES:
        warnings.warn(f"The {use_device} is not a valid device option.", stacklevel=3)
    else:
        name = str(use_device).upper()
        warnings.warn(f"{name} is not available, disabling {name} profiling", stacklevel=3)
    return None


@contextmanager
def _without_collection() -> Iterator[None]:
    """Makes many objects that all stay: the search for garbage among them took most of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class profile:
    """Records what the thread runs between entering this and leaving it.

    Ops, the nodes of backward and ranges of the program become events, which are put together when
    they are first asked for. A thread that nobody profiles pays nothing.

    Example:
        >>> x = torch.randn(3, requires_grad=True)
        >>> with torch.autograd.profiler.profile() as prof:
        ...     x.exp().sum().backward()
        >>> print(prof.key_averages().table(sort_by="self_cpu_time_total"))

    Args:
        enabled: if false, nothing is recorded.
        use_device: a further device to profile; there is none in this build.
        use_cuda: the same as ``use_device="cuda"``.
        record_shapes: notes the sizes of inputs, and the values of those that are no tensors.
        with_flops: notes how many operations on numbers products, convolutions, ``mul`` and ``add``
            make, and the sizes of inputs.
        profile_memory: notes memory that tensors take and give back.
        with_stack: notes the lines of the program that led to each event, and makes events of calls
            of its functions.
        with_modules: makes an event of each module that runs.
        use_kineto: has no effect: all that is recorded is always there.
        use_cpu: whether the CPU is profiled.
        experimental_config: has no effect.
        acc_events: keeps the events of earlier passes.
        custom_trace_id_callback: gives the name of a trace.
        post_processing_timeout_s: has no effect: there are no results of devices to wait for.
        activity_filters: is refused.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: Any = None,
    ) -> None:
        if activity_filters is not None:
            raise NotImplementedError("profile(): activities cannot be filtered")
        self.enabled = enabled
        self.entered = False
        self.use_device = _usable_device("cuda" if use_cuda else use_device) if enabled else None
        self.use_cuda = self.use_device == "cuda"
        self.with_flops = with_flops
        self.record_shapes = record_shapes or with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.use_cpu = use_cpu
        self.acc_events = acc_events
        self.experimental_config = experimental_config
        self.custom_trace_id_callback = custom_trace_id_callback
        self.trace_id = ""
        if enabled and not use_cpu:
            if not use_kineto:
                raise AssertionError(
                    "Device-only events supported only with Kineto (use_kineto=True)"
                )
            raise AssertionError("No activities specified for the profiler")
        self._modules: Any = None
        self._running = False
        self._traces = False
        # The recorded data; events are made of it on first access.
        self.kineto_results: Any = None
        self._function_events: EventList | None = None
        self._earlier: list[FunctionEvent] = []

    # ---- recording ----

    def __enter__(self) -> Self:
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._prepare_trace()
        self._start_trace()
        return self

    def _prepare_trace(self) -> None:
        self.entered = True
        if self.acc_events and self._function_events is not None:
            self._earlier = list(self._function_events)
        make = self.custom_trace_id_callback
        self.trace_id = uuid.uuid4().hex.upper() if make is None else make()

    def _start_trace(self) -> None:
        try:
            _C._profiler_start(
                self.record_shapes, self.profile_memory, self.with_stack, self.with_flops
            )
        except BaseException:
            self.entered = False
            raise
        self._running = True
        if self.with_stack:
            self._trace_functions()
        if self.with_modules:
            from ._module_ranges import ModuleRanges

            self._modules = ModuleRanges()

    def _trace_functions(self) -> None:
        """Makes events of calls of Python functions, unless somebody else is told of them."""
        if sys.getprofile() is None:
            _C._trace_python(True)
            self._traces = True
        else:
            warnings.warn(
                "another profiler of Python functions is at work: calls of the program's functions"
                " are not recorded",
                stacklevel=4,
            )

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        if self.enabled and self._running:
            # (An error if it is another thread: then all goes on.)
            self.kineto_results = _C._profiler_stop()
            self._function_events = None
            self._running = False
            if self._traces:
                self._traces = False
                _C._trace_python(False)
            if self._modules is not None:
                self._modules.close()
                self._modules = None

    # ---- what was recorded ----

    @property
    def _is_finished(self) -> bool:
        return self.kineto_results is not None

    @property
    def function_events(self) -> EventList:
        """The events, in the order in which they began; none before the end of the recording."""
        if self._function_events is None:
            if not self._is_finished:
                return self._list([])
            with _without_collection():
                self._function_events = self._read()
        return self._function_events

    def _list(self, events: Iterable[Any]) -> EventList:
        return EventList(
            events,
            use_device=self.use_device,
            profile_memory=self.profile_memory,
            with_flops=self.with_flops,
        )

    def _read(self) -> EventList:
        """The events of what was recorded."""
        raw = self.kineto_results.events()
        memory, outside = self._read_memory([event[7] for event in raw])
        # An event that is left out is None; events within it are within the event around it.
        made: list[FunctionEvent | None] = []
        parents: list[FunctionEvent | None] = []
        modules: list[str] = []
        for number, item in enumerate(raw):
            around = item[7]
            parent = made[around] if around >= 0 else None
            event = None if _filter_name(item[0]) else self._event(number, item, memory[number])
            hierarchy = modules[around] if around >= 0 else ""
            if item[9] == "Module":
                name = item[0].removeprefix("nn.Module: ").rpartition("_")[0]
                hierarchy = f"{hierarchy}.{name}" if hierarchy else name
            modules.append(hierarchy)
            made.append(event or parent)
            if event is not None:
                event.module_hierarchy = hierarchy
                parents.append(None if event.is_async else parent)
        events = [event for event in dict.fromkeys(made) if event is not None]
        for record in outside:
            events.append(self._memory_event(len(raw), record))
            parents.append(None)
        order = sorted(range(len(events)), key=lambda at: events[at].time_range.start)
        result = self._list(events[at] for at in order)
        result._build_tree([parents[at] for at in order])
        if self._earlier:
            result = self._list([*self._earlier, *result])
            result._tree_built = True
        return result

    def _event(self, number: int, item: tuple[Any, ...], memory: int) -> FunctionEvent:
        """One event of the list that the extension returns."""
        (name, overload, thread, forward, span, scope, nr, _, is_async, kind, inputs, stack) = item
        shapes, values, flops = inputs
        return FunctionEvent(
            id=number + 1,
            name=_rewrite_name(name, with_wildcard=True),
            trace_name=_rewrite_name(name),
            overload_name=overload,
            thread=thread,
            fwd_thread=forward,
            start_us=span[0] / 1000,
            end_us=span[1] / 1000,
            input_shapes=[] if shapes is None else shapes,
            concrete_inputs=[] if values is None else values,
            stack=stack,
            scope=scope,
            use_device=self.use_device,
            cpu_memory_usage=memory,
            is_async=is_async,
            sequence_nr=nr,
            flops=flops,
            is_user_annotation=kind == "User",
            is_python_function=kind in ("Module", "Program"),
        )

    def _read_memory(self, parents: list[int]) -> tuple[list[int], list[tuple[int, ...]]]:
        """The bytes of each event with what is within it, and the records outside of events."""
        sums = [0] * len(parents)
        outside = []
        for record in self.kineto_results.memory():
            if record[4] >= 0:
                sums[record[4]] += record[2]
            else:
                outside.append(record)
        # (Events come after those that they are within.)
        for number in range(len(parents) - 1, -1, -1):
            if parents[number] >= 0:
                sums[parents[number]] += sums[number]
        return sums, outside

    def _memory_event(self, number: int, record: tuple[int, ...]) -> FunctionEvent:
        time, _, nbytes, thread, _ = record
        return FunctionEvent(
            id=number + 1,
            name=MEMORY_EVENT_NAME,
            thread=thread,
            start_us=time / 1000,
            end_us=time / 1000,
            fwd_thread=0,
            input_shapes=[],
            cpu_memory_usage=nbytes,
            use_device=self.use_device,
            flops=0,
        )

    def __repr__(self) -> str:
        if not self._is_finished:
            return "<unfinished torch.autograd.profile>"
        return repr(self.function_events)

    def __str__(self) -> str:
        if not self._is_finished:
            return "<unfinished torch.autograd.profile>"
        return str(self.function_events)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """See :meth:`EventList.table`."""
        return self.function_events.table(
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            top_level_events_only=top_level_events_only,
        )

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> EventList:
        """See :meth:`EventList.key_averages`."""
        return self.function_events.key_averages(
            group_by_input_shape,
            group_by_stack_n,
            group_by_overload_name,
            include_python_functions,
        )

    def total_average(self) -> Any:
        """See :meth:`EventList.total_average`."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """See :attr:`EventList.self_cpu_time_total`."""
        return self.function_events.self_cpu_time_total

    def export_chrome_trace(
        self, path: str | os.PathLike[str], metadata: dict[str, str] | None = None
    ) -> None:
        """Writes a trace for ``chrome://tracing`` or Perfetto, packed if its name ends with `.gz`.

        Args:
            path: the file.
            metadata: further members of the trace, each of them JSON.

        Raises:
            AssertionError: before the end of the recording.
        """
        if not self._is_finished:
            raise AssertionError("Expected profiling results: the profiler didn't finish running")
        known = {"trace_id": json.dumps(self.trace_id), "traceName": json.dumps(os.fspath(path))}
        members = {**known, **(metadata or {})}
        if not os.fspath(path).endswith(".gz"):
            self.kineto_results.save(os.fspath(path), members)
            return
        with tempfile.TemporaryDirectory() as folder:
            plain = os.path.join(folder, "trace.json")
            self.kineto_results.save(plain, members)
            with open(plain, "rb") as source, gzip.open(path, "wb") as packed:
                shutil.copyfileobj(source, packed)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """See :meth:`EventList.export_stacks`.

        Raises:
            AssertionError: unless lines were recorded.
            ValueError: if there is no such metric.
        """
        if not self._is_finished:
            raise AssertionError("Expected profiling results: the profiler didn't finish running")
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)

    def toggle_collection_dynamic(self, enabled: bool, activities: Iterable[Any]) -> NoReturn:
        """Would pause the recording.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("a profile cannot be paused: leave it and enter another one")


class record_function(ContextDecorator):
    """Names a part of a program: an event from entering this until leaving it.

    It may also decorate a function; then each call is an event.

    Example:
        >>> with torch.autograd.profiler.record_function("loading"):
        ...     batch = load()

    Args:
        name: the event's name.
        args: anything to be kept with it.
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self.run_callbacks_on_exit = True
        self.record: Any = None

    def _recreate_cm(self) -> record_function:
        # Calls of a decorated function may nest, and come from several threads.
        return record_function(self.name, self.args)

    def __enter__(self) -> Self:
        self.record = _enter(self.name, self.args)
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        if self.run_callbacks_on_exit:
            self._opened().close()

    def _opened(self) -> Any:
        if self.record is None:
            raise AssertionError("Expected record to be set")
        return self.record

    def _call_end_callbacks_on_future(self, fut: Any) -> Any:
        """Lets the event end when ``fut`` is done; leaving the context no longer ends it.

        Args:
            fut: has ``add_done_callback``.

        Returns:
            The future.

        Raises:
            RuntimeError: if it was called before.
        """
        if not self.run_callbacks_on_exit:
            raise RuntimeError("_call_end_callbacks_on_future can only be called once.")
        record = self._opened()
        self.run_callbacks_on_exit = False
        fut.add_done_callback(lambda _: record.close())
        return fut


#: Called with the names of ranges that begin; what they give is called when the range ends.
_range_observers: list[Callable[[str], Callable[[], None] | None]] = []


class _ObservedRange:
    """A range that observers are told of."""

    def __init__(self, record: Any, ends: list[Callable[[], None]]) -> None:
        self._record, self._ends = record, ends

    def close(self) -> None:
        """Ends the range; a second call has no effect."""
        self._record.close()
        ends, self._ends = self._ends, []
        for end in reversed(ends):
            end()


def _enter(name: str, args: str | None = None) -> Any:
    """Opens a range of the program, and notifies observers.

    Raises:
        RuntimeError: if the name or the argument is no text.
    """
    record = _native(name, args)
    if not _range_observers:
        return record
    ends = [observer(name) for observer in _range_observers]
    return _ObservedRange(record, [end for end in ends if end is not None])


def _native(name: str, args: str | None) -> Any:
    """Opens a range of the profiler.

    Raises:
        RuntimeError: if the name or the argument is no text.
    """
    try:
        return _C._record_function_enter(name, args)
    except TypeError:
        for position, (what, value, kind) in enumerate(
            (("name", name, "str"), ("args", args, "Optional[str]"))
        ):
            if not isinstance(value, str) and not (value is None and position == 1):
                raise RuntimeError(
                    f"record_function() Expected a value of type '{kind}' for argument '{what}'"
                    f" but instead found type '{type(value).__name__}'."
                ) from None
        raise


class _Annotation:
    """Would pass ranges on to another tool, which has to be there."""

    _what = ""
    _missing = ""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.entered = False
        self.record_shapes = record_shapes

    def __enter__(self) -> Self:
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError(f"{self._what} annotation context manager is not reentrant")
        self.entered = True
        raise RuntimeError(self._missing)

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        pass


class emit_nvtx(_Annotation):
    """Shows ops to NVIDIA's profilers; only with CUDA.

    Raises:
        RuntimeError: when it is entered, as this build has no CUDA.
    """

    _what = "NVTX"
    _missing = "NVTX functions not installed. Are you sure you have a CUDA build?"


class emit_itt(_Annotation):
    """Shows ops, and ranges of the program, to Intel's profilers; needs the package ``ittapi``.

    The ops are those of the thread that enters this which have kernels.

    Args:
        enabled: whether anything is shown.
        record_shapes: whether names of ranges say the sizes of arguments.

    Raises:
        RuntimeError: when it is entered a second time, or without the package.
    """

    _what = "ITT"

    def __enter__(self) -> Self:
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError("ITT annotation context manager is not reentrant")
        self.entered = True
        from ..profiler import itt
        from ..profiler._annotation import Annotate

        itt._tool()
        self._mode = Annotate(self.record_shapes)
        self._mode.__enter__()
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        if self.enabled:
            self._mode.__exit__(exc_type, exc_val, exc_tb)


def load_nvprof(path: str) -> NoReturn:
    """Would read a profile of ``nvprof``.

    Raises:
        NotImplementedError: always: there is no CUDA.
    """
    raise NotImplementedError("load_nvprof(): profiles of CUDA cannot be read")


def parse_nvprof_trace(path: str) -> NoReturn:
    """Would read a profile of ``nvprof``.

    Raises:
        NotImplementedError: always: there is no CUDA.
    """
    raise NotImplementedError("parse_nvprof_trace(): profiles of CUDA cannot be read")


class EnforceUnique:
    """Refuses keys that it has seen before."""

    def __init__(self) -> None:
        self.seen: set[tuple[Any, ...]] = set()

    def see(self, *key: Any) -> None:
        """Remembers a key.

        Raises:
            RuntimeError: if it is known.
        """
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


class KinetoStepTracker:
    """Counts the steps of a training loop; of several who count, the furthest is right."""

    _current_step = 0
    _steps: dict[str, int] = {}  # noqa: RUF012 (shared on purpose)

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Registers a counter of steps, from the current step on."""
        cls._steps[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Removes a counter of steps; returns whether it was registered."""
        return cls._steps.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Counts one step further; gives the current step."""
        cls._steps[requester] = cls._steps.get(requester, cls._current_step) + 1
        cls._current_step = max(cls._current_step, *cls._steps.values())
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The current step."""
        return cls._current_step
