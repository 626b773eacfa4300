"""Profiles of training loops: which steps to record, and what to do with each recording."""

from __future__ import annotations

import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any

from ..autograd import profiler as prof
from ._config import (
    CuspyConfig,
    PerformanceMetricsConfig,
    ProfilerActivity,
    ProfilerActivityConfig,
    parsed,
)
from ._execution_trace import ExecutionTraceObserver

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..autograd.profiler_util import EventList

__all__ = [
    "CuspyConfig",
    "ExecutionTraceObserver",
    "PerformanceMetricsConfig",
    "ProfilerAction",
    "ProfilerActivity",
    "ProfilerActivityConfig",
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

PROFILER_STEP_NAME = "ProfilerStep"


class ProfilerAction(Enum):
    """What a profiler does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


_RECORDS = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def supported_activities() -> set[ProfilerActivity]:
    """The activities that can be profiled in this build."""
    return {ProfilerActivity.CPU}


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """Which steps to record: of each cycle the steps after ``wait`` and ``warmup`` other steps.

    Args:
        wait: steps to pass over at the start of a cycle.
        warmup: steps to run before the recording.
        active: steps to record.
        repeat: how many cycles; no end if it is 0.
        skip_first: steps before the first cycle.
        skip_first_wait: if not 0, the first cycle does not wait.

    Raises:
        AssertionError: if a number is out of its range.
    """
    if not (
        wait >= 0
        and warmup >= 0
        and active > 0
        and repeat >= 0
        and skip_first >= 0
        and skip_first_wait >= 0
    ):
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0),"
            f" warmup={warmup} (need >= 0), active={active} (need > 0),"
            f" repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn(
            "Profiler won't be using warmup, this can skew profiler results", stacklevel=2
        )

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        # A first cycle that does not wait counts as if the waiting were over.
        step += (wait if skip_first_wait else 0) - skip_first
        length = wait + warmup + active
        if repeat > 0 and step >= repeat * length:
            return ProfilerAction.NONE
        at = step % length
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def _always(_: int) -> ProfilerAction:
    return ProfilerAction.RECORD


_default_schedule_fn = _always


def tensorboard_trace_handler(
    dir_name: str,
    worker_name: str | None = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[Any], None]:
    """Writes each trace into a folder, for ``on_trace_ready``.

    Args:
        dir_name: the folder, made if it is not there.
        worker_name: how the names of files begin; if not given, the machine's and the process's.
        use_gzip: packs the files.
        use_python_export: has no effect: traces are always written in the same way.
    """

    def handle(profiler: Any) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError("Can't create directory: " + dir_name) from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        # (With the time, so that the files of one run have names of their own.)
        name = f"{worker}.{time.time_ns()}.pt.trace.json"
        profiler.export_chrome_trace(os.path.join(dir_name, name + (".gz" if use_gzip else "")))

    return handle


class _KinetoProfile:
    """A recording that is started and stopped by hand."""

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity | dict[ProfilerActivity, Any]] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        self.activity_configs = parsed(supported_activities() if activities is None else activities)
        self.activities = set(self.activity_configs)
        if ProfilerActivity.CPU not in self.activities:
            warnings.warn(
                "none of the activities can be profiled in this build: nothing is recorded",
                stacklevel=3,
            )
        self.record_shapes = record_shapes
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.experimental_config = experimental_config
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.execution_trace_observer = (
            execution_trace_observer
            if execution_trace_observer is not None
            else ExecutionTraceObserver.build_execution_trace_obs_from_env()
        )
        self.profiler: prof.profile | None = None
        # Addresses of parameters and gradients at the end, for the timeline of memory.
        self._leaves: tuple[dict[int, int], dict[int, int]] | None = None
        self._earlier: list[Any] = []
        self._metadata: dict[str, str] = {}

    def start(self) -> None:
        """Begins the recording."""
        self.prepare_trace()
        self.start_trace()

    def stop(self) -> None:
        """Ends it."""
        self.stop_trace()

    def prepare_trace(self) -> None:
        """Makes a new recording, which has not begun."""
        if self.acc_events and self.profiler is not None:
            self._earlier = list(self.profiler.function_events)
        self.profiler = prof.profile(
            enabled=ProfilerActivity.CPU in self.activities,
            record_shapes=self.record_shapes,
            with_flops=self.with_flops,
            profile_memory=self.profile_memory,
            with_stack=self.with_stack,
            with_modules=self.with_modules,
            acc_events=self.acc_events,
            custom_trace_id_callback=self.custom_trace_id_callback,
        )
        self.profiler._earlier = self._earlier

    def start_trace(self) -> None:
        """Begins it."""
        made = self._made("starting trace")
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.start()
        made.__enter__()

    def stop_trace(self) -> None:
        """Ends it."""
        made = self._made("stopping trace")
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.stop()
        made.__exit__(None, None, None)
        if self.profile_memory:
            from ._memory_timeline import leaves

            # (Now: later there may be others at their addresses.)
            self._leaves = leaves()

    def _made(self, what: str) -> prof.profile:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {what}")
        return self.profiler

    def export_chrome_trace(self, path: str) -> None:
        """Writes a trace for ``chrome://tracing`` or Perfetto, packed if its name ends with `.gz`.

        Raises:
            AssertionError: before a recording.
        """
        self._made("exporting chrome trace").export_chrome_trace(path, self._metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes lines of the program with a number each, as tools for flame graphs read them.

        Raises:
            AssertionError: before a recording, or if lines were not recorded.
            ValueError: if there is no such metric.
        """
        self._made("exporting stacks").export_stacks(path, metric)

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> EventList:
        """The events added up by name, and by further keys if asked for.

        Raises:
            AssertionError: before a recording.
        """
        return self._made("getting key averages").key_averages(
            group_by_input_shape,
            group_by_stack_n,
            group_by_overload_name,
            include_python_functions,
        )

    def events(self) -> EventList:
        """The events.

        Raises:
            AssertionError: before a recording.
        """
        return self._made("accessing events").function_events

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[Any]) -> None:
        """Would pause the recording.

        Raises:
            NotImplementedError: during a recording.
        """
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    def add_metadata(self, key: str, value: str) -> None:
        """Adds a text to the traces that are written."""
        self.add_metadata_json(key, json.dumps(str(value)))

    def add_metadata_json(self, key: str, value: str) -> None:
        """Adds JSON to the traces that are written.

        Raises:
            ValueError: if the value is not JSON.
        """
        json.loads(value)
        self._metadata[key] = value

    preset_metadata_json = add_metadata_json

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Writes the bytes that tensors hold over time, by what they are for.

        The ending of the name says the format: ``.html`` (a picture), ``.json`` and ``.json.gz``
        (times in microseconds, and for each a zero and the bytes of each category),
        ``.raw.json.gz`` (each change: time in nanoseconds, action, bytes, category). Categories
        are parameters, optimizer state, inputs, temporaries, activations, gradients, what a
        backward needs by the way, and what is not known; they are read from when blocks came and
        went. Here optimizer state and inputs are not told apart from what is not known.

        Args:
            path: the file.
            device: the processor, the only device that has memory.

        Raises:
            ValueError: unless ``profile_memory=True`` was given, and for other endings and devices.
            RuntimeError: before the profiler was stopped.
        """
        from . import _memory_timeline

        if not self.profile_memory:
            raise ValueError("profile_memory=True required for memory profiling.")
        if device is not None and not str(device).startswith("cpu"):
            raise ValueError(f"export_memory_timeline(): no memory of '{device}' was noted")
        results = self._made("exporting a memory timeline").kineto_results
        if self._leaves is None:
            raise RuntimeError("export_memory_timeline(): the profiler has not been stopped")
        _memory_timeline.export(results, self._leaves, path)


class profile(_KinetoProfile):
    """Records a program, or steps of it by a schedule.

    Example:
        >>> with torch.profiler.profile(
        ...     schedule=torch.profiler.schedule(wait=1, warmup=1, active=2),
        ...     on_trace_ready=torch.profiler.tensorboard_trace_handler("traces"),
        ... ) as p:
        ...     for batch in loader:
        ...         train(batch)
        ...         p.step()

    Args:
        activities: what to profile; all that can be, if not given. An item may be a dict of a kind
            with its types of events, or with a :class:`ProfilerActivityConfig`; of the CPU all
            types are recorded.
        schedule: says of each step what to do with it; all are recorded if not given.
        on_trace_ready: called with this object when a recording is complete.
        record_shapes: notes the sizes of inputs.
        profile_memory: notes memory that tensors take and give back.
        with_stack: notes the lines of the program that led to each event.
        with_flops: estimates the operations of products and convolutions.
        with_modules: makes an event of each module that runs.
        experimental_config: has no effect.
        execution_trace_observer: writes the ops of recorded steps with their arguments to a file;
            one comes from the environment if ``ENABLE_PYTORCH_EXECUTION_TRACE`` is 1.
        acc_events: keeps the events of earlier recordings.
        use_cuda: the former way to ask for CUDA.
        custom_trace_id_callback: gives the name of a trace.
        post_processing_timeout_s: has no effect: there are no results of devices to wait for.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity | dict[ProfilerActivity, Any]] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[Any], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        if use_cuda is not None:
            warnings.warn(
                "`use_cuda` is deprecated, use `activities` argument instead",
                FutureWarning,
                stacklevel=2,
            )
        super().__init__(
            activities=activities,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            experimental_config=experimental_config,
            execution_trace_observer=execution_trace_observer,
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
            post_processing_timeout_s=post_processing_timeout_s,
        )
        self.schedule = _always if schedule is None else schedule
        # With a schedule, each step is an event.
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.step_rec_fn: prof.record_function | None = None
        self._is_on = False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self.stop()
        prof.KinetoStepTracker.erase_step_count("Torch")

    def start(self) -> None:
        """Begins with the first step."""
        self._move(ProfilerAction.NONE, self.current_action)
        self._begin_step()

    def stop(self) -> None:
        """Ends the profile; the recording in progress is complete now."""
        self._end_step()
        self._move(self.current_action, None)
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.cleanup()

    def step(self) -> None:
        """Tells the profiler that the next step begins."""
        self._end_step()
        previous = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self._move(previous, self.current_action)
        prof.KinetoStepTracker.increment_step("Torch")
        self._begin_step()

    def get_trace_id(self) -> str | None:
        """The name of the recording."""
        return None if self.profiler is None else self.profiler.trace_id

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Lets ``callback`` name the recordings that follow."""
        self.custom_trace_id_callback = callback

    def _begin_step(self) -> None:
        if self.record_steps and self._is_on:
            self.step_rec_fn = prof.record_function(f"{PROFILER_STEP_NAME}#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _end_step(self) -> None:
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def _move(self, previous: ProfilerAction, action: ProfilerAction | None) -> None:
        """Goes from a step to the next one, or to the end."""
        if previous is ProfilerAction.RECORD and action in (
            ProfilerAction.NONE,
            ProfilerAction.WARMUP,
        ):
            warnings.warn(f"Incorrect schedule: RECORD followed by {action.name}", stacklevel=3)
        if self._is_on and (previous is ProfilerAction.RECORD_AND_SAVE or action not in _RECORDS):
            self._is_on = False
            self.stop_trace()
            if previous is ProfilerAction.RECORD_AND_SAVE or action is None:
                self._trace_ready()
        if action in _RECORDS and not self._is_on:
            self.prepare_trace()
            self.start_trace()
            self._is_on = True

    def _trace_ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)
