"""``torch.profiler``: recordings of training loops by schedules."""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import pullback as torch
from pullback.profiler import (
    CuspyConfig,
    DeviceType,
    PerformanceMetricsConfig,
    ProfilerAction,
    ProfilerActivity,
    ProfilerActivityConfig,
    kineto_available,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

NONE, WARMUP, RECORD, SAVE = ProfilerAction


def actions(count: int, **numbers: int) -> list[ProfilerAction]:
    act = schedule(**numbers)  # type: ignore[arg-type]
    return [act(step) for step in range(count)]


def test_schedules() -> None:
    cycle = [NONE, WARMUP, RECORD, SAVE]
    assert actions(9, wait=1, warmup=1, active=2) == [*cycle, *cycle, NONE]
    assert actions(9, wait=1, warmup=1, active=2, repeat=1) == [*cycle, *[NONE] * 5]
    assert actions(6, wait=1, warmup=1, active=2, skip_first=2) == [NONE, NONE, *cycle]
    assert actions(2, wait=0, warmup=1, active=1) == [WARMUP, SAVE]
    first_at_once = actions(7, wait=1, warmup=1, active=2, skip_first_wait=1)
    assert first_at_once == [*cycle[1:], *cycle]


def test_schedules_with_wrong_numbers() -> None:
    with pytest.raises(AssertionError, match="Invalid profiler schedule arguments"):
        schedule(wait=-1, warmup=1, active=1)
    with pytest.raises(AssertionError, match="Invalid profiler schedule arguments"):
        schedule(wait=1, warmup=1, active=0)
    with pytest.warns(UserWarning, match="won't be using warmup"):
        act = schedule(wait=0, warmup=0, active=1)
    with pytest.raises(AssertionError, match=r"Step must be non-negative\. Got -1"):
        act(-1)


def test_everything_is_recorded_without_schedule() -> None:
    ready: list[Any] = []
    with profile(activities=[ProfilerActivity.CPU], on_trace_ready=ready.append) as prof:
        for _ in range(3):
            torch.ones(3)
            prof.step()
    assert ready == [prof]
    assert prof.step_num == 3
    assert [event.name for event in prof.events()] == ["aten::ones"] * 3
    assert prof.key_averages()[0].count == 3


def test_steps_of_a_schedule() -> None:
    ready: list[list[str]] = []
    with profile(
        schedule=schedule(wait=1, warmup=1, active=2),
        on_trace_ready=lambda p: ready.append([e.trace_name for e in p.events()]),
    ) as prof:
        for step in range(9):
            with record_function(f"work {step}"):
                pass
            prof.step()
    assert ready == [
        ["ProfilerStep#2", "work 2", "ProfilerStep#3", "work 3"],
        ["ProfilerStep#6", "work 6", "ProfilerStep#7", "work 7"],
    ]
    steps = next(total for total in prof.key_averages() if total.key == "ProfilerStep*")
    assert steps.count == 2


def test_a_recording_that_is_cut_off_is_complete() -> None:
    ready: list[Any] = []
    with profile(
        schedule=schedule(wait=0, warmup=1, active=5), on_trace_ready=ready.append
    ) as prof:
        prof.step()
        torch.ones(3)
    assert len(ready) == 1
    assert [event.name for event in prof.events()] == ["ProfilerStep*", "aten::ones"]


def test_recordings_one_after_the_other() -> None:
    def run(acc_events: bool) -> list[int]:
        counts: list[int] = []
        with profile(
            schedule=schedule(wait=0, warmup=1, active=1, repeat=3),
            on_trace_ready=lambda p: counts.append(len(p.events())),
            acc_events=acc_events,
        ) as prof:
            for _ in range(6):
                prof.step()
        return counts

    assert run(False) == [1, 1, 1]
    assert run(True) == [1, 2, 3]


def test_schedules_that_break_off_warn() -> None:
    order = [RECORD, NONE, RECORD, SAVE]
    with profile(schedule=lambda step: order[min(step, 3)]) as prof:
        with pytest.warns(UserWarning, match="Incorrect schedule: RECORD followed by NONE"):
            prof.step()
        prof.step()
        prof.step()
    assert len(prof.events()) == 2


def test_before_a_recording() -> None:
    prof = profile(schedule=lambda _: NONE)
    for ask, what in (
        (prof.events, "accessing events"),
        (prof.key_averages, "getting key averages"),
        (lambda: prof.export_chrome_trace("nowhere"), "exporting chrome trace"),
        (lambda: prof.export_stacks("nowhere"), "exporting stacks"),
    ):
        with pytest.raises(AssertionError, match=f"Profiler must be initialized before {what}"):
            ask()
    with prof:
        prof.step()
    assert prof.profiler is None


def test_activities() -> None:
    assert supported_activities() == {ProfilerActivity.CPU}
    assert list(ProfilerActivity.__members__) == [
        "CPU",
        "XPU",
        "MTIA",
        "CUDA",
        "HPU",
        "PrivateUse1",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
            torch.ones(3)
    assert len(prof.events()) == 1
    with pytest.warns(UserWarning, match="nothing is recorded"):
        prof = profile(activities=[ProfilerActivity.CUDA])
    with prof:
        torch.ones(3)
    assert prof.events() == []
    with pytest.raises(AssertionError, match="No valid profiler activities found"):
        profile(activities=[])
    with pytest.raises(TypeError, match="Expected ProfilerActivity"):
        profile(activities=["CPU"])  # type: ignore[list-item]
    with pytest.warns(FutureWarning, match="use_cuda"):
        profile(use_cuda=False)
    assert kineto_available()
    assert DeviceType.CPU.value == 0


@pytest.mark.parametrize("packed", [False, True])
def test_traces_in_a_folder(packed: bool, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    handler = tensorboard_trace_handler(str(folder), "worker", use_gzip=packed)
    with profile(on_trace_ready=handler, record_shapes=True) as prof:
        prof.add_metadata("text", 'some "text"')
        prof.add_metadata_json("numbers", "[1, 2]")
        torch.ones(3).exp()
    (path,) = folder.iterdir()
    assert path.name.startswith("worker.")
    assert path.name.endswith(".pt.trace.json" + ".gz" * packed)
    raw = path.read_bytes()
    trace = json.loads(gzip.decompress(raw) if packed else raw)
    assert (trace["text"], trace["numbers"]) == ('some "text"', [1, 2])
    assert "aten::exp" in [event["name"] for event in trace["traceEvents"]]
    with pytest.raises(ValueError, match="Expecting"):
        prof.add_metadata_json("bad", "{")


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    handler = tensorboard_trace_handler(str(tmp_path / "file" / "folder"))
    with pytest.raises(RuntimeError, match="Can't create directory"):
        handler(None)


def test_names_of_recordings() -> None:
    numbers = iter("abc")
    prof = profile(custom_trace_id_callback=lambda: next(numbers))
    assert prof.get_trace_id() is None
    with prof:
        assert prof.get_trace_id() == "a"
    prof.set_custom_trace_id_callback(lambda: "other")
    prof.start()
    prof.stop()
    assert prof.get_trace_id() == "other"


def test_what_is_not_there_is_refused() -> None:
    with profile() as prof, pytest.raises(NotImplementedError, match="cannot be paused"):
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
    with pytest.raises(ValueError, match="profile_memory=True required"):
        prof.export_memory_timeline("timeline.html")


def test_activities_have_types_of_events() -> None:
    types = {ProfilerActivity.CPU: ["CPU_OP"]}
    config = ProfilerActivityConfig(["CPU_OP"], [CuspyConfig(enable_event_node_ids=True)])
    for activities in ([ProfilerActivity.CPU], [types], [{ProfilerActivity.CPU: config}]):
        with profile(activities=activities) as recorded:
            torch.ones(2) + 1
        assert recorded.activities == {ProfilerActivity.CPU}
        assert any(event.name == "aten::add" for event in recorded.events())
    with pytest.raises(ValueError, match="specified more than once"):
        profile(activities=[ProfilerActivity.CPU, types])
    with pytest.raises(RuntimeError, match="activity type name: 'NOPE'"):
        profile(activities=[{ProfilerActivity.CPU: ["NOPE"]}])
    counters = ProfilerActivityConfig(None, [PerformanceMetricsConfig(["cycles"])])
    with pytest.raises(RuntimeError, match="no device with counters"):
        profile(activities=[{ProfilerActivity.CPU: counters}])


def test_settings_of_counters_are_texts() -> None:
    config = PerformanceMetricsConfig(["a", "b"], sampling_interval_ms=0.5)
    assert config._to_config_entries() == {
        "PERFORMANCE_METRICS": "a,b",
        "PERFORMANCE_METRICS_SAMPLING_INTERVAL_MS": "0.5",
    }
    found = ProfilerActivityConfig(None, [CuspyConfig(), config])
    assert found._get_profiler_config(PerformanceMetricsConfig) is config
