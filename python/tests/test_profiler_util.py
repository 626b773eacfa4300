"""Lists of events that a program made itself: trees, sums, tables and exports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pullback.autograd.profiler import EnforceUnique, KinetoStepTracker
from pullback.autograd.profiler_util import (
    DeviceType,
    EventList,
    FunctionEvent,
    FunctionEventAvg,
    Interval,
    MemRecordsAcc,
    StringTable,
    _filter_name,
    _format_memory,
    _format_time,
    _format_time_share,
    _rewrite_name,
)


def event(id: int, name: str, start: float, end: float, **more: Any) -> FunctionEvent:
    return FunctionEvent(
        id=id, name=name, thread=more.pop("thread", 0), start_us=start, end_us=end, **more
    )


def tree(*events: FunctionEvent, **more: Any) -> EventList:
    made = EventList(events, **more)
    made._build_tree()
    return made


def children(events: EventList) -> dict[int, list[int]]:
    return {e.id: [child.id for child in e.cpu_children] for e in events if e.cpu_children}


def test_events_are_within_those_that_last_at_least_as_long() -> None:
    events = tree(
        event(1, "a", 0, 100),
        event(2, "b", 10, 20),
        event(3, "c", 12, 20),
        event(4, "d", 20, 30),
        event(5, "e", 90, 110),
        event(6, "f", 95, 99),
        event(7, "g", 5, 6, thread=1),
    )
    assert children(events) == {1: [2, 4], 2: [3], 5: [6]}
    assert events[0].self_cpu_time_total == 80
    assert events[6].cpu_parent is None


def test_of_events_that_begin_together_the_longer_is_around() -> None:
    events = tree(event(1, "short", 0, 5), event(2, "long", 0, 10))
    assert children(events) == {2: [1]}


def test_events_beside_the_thread_are_within_none() -> None:
    events = tree(
        event(1, "a", 0, 10),
        event(2, "b", 1, 5, is_async=True),
        event(3, "c", 1, 5, device_type=DeviceType.CUDA),
        event(4, "d", 2, 3, node_id=7),
    )
    assert children(events) == {}
    assert events[1].cpu_time_total == 4
    assert events[1].self_cpu_time_total == 0
    assert events[2].cpu_time_total == 0
    assert events[2].device_time_total == 4


def test_an_event_that_holds_only_its_own_name_takes_the_place_of_both() -> None:
    events = tree(
        event(1, "x", 0, 10),
        event(2, "x", 1, 9),
        event(3, "x", 2, 8),
        event(4, "y", 3, 4),
        event(5, "x", 20, 30),
        event(6, "x", 21, 22),
        event(7, "z", 23, 24),
    )
    assert [e.id for e in events] == [1, 4, 5, 6, 7]
    assert children(events) == {1: [4], 5: [6, 7]}
    assert events[1].cpu_parent is events[0]


def test_backward_has_the_lines_of_its_forward() -> None:
    events = tree(
        event(1, "made", 0, 1, thread=1, sequence_nr=3, stack=["here"]),
        event(2, "other thread", 0, 1, thread=2, sequence_nr=3, stack=["there"]),
        event(3, "node", 10, 20, thread=2, fwd_thread=1, sequence_nr=3, scope=1),
        event(4, "op", 11, 12, thread=2),
        event(5, "own", 13, 14, thread=2, stack=["in backward"]),
        event(6, "unknown", 30, 31, thread=2, fwd_thread=5, sequence_nr=3, scope=1),
    )
    assert [e.stack for e in events[2:]] == [["here"], ["here"], ["in backward"], []]


def test_sums_by_name_and_more() -> None:
    events = tree(
        event(1, "a", 0, 10, input_shapes=[[2]], stack=["one", "two"], cpu_memory_usage=8),
        event(2, "a", 20, 22, input_shapes=[[3]], stack=["one", "three"], flops=5),
        event(3, "b", 30, 31, overload_name="Scalar"),
        event(4, "b", 32, 33, overload_name="Tensor"),
        event(5, "m", 40, 50, is_python_function=True),
    )

    def counts(**by: Any) -> list[tuple[str, int]]:
        return [(total.key, total.count) for total in events.key_averages(**by)]

    assert counts() == [("a", 2), ("b", 2)]
    assert counts(group_by_input_shapes=True) == [("a", 1), ("a", 1), ("b", 2)]
    assert counts(group_by_stack_n=1) == [("a", 2), ("b", 2)]
    assert counts(group_by_stack_n=2) == [("a", 1), ("a", 1), ("b", 2)]
    assert counts(group_by_overload_name=True) == [("a", 2), ("b", 1), ("b", 1)]
    assert counts(include_python_functions=True) == [("a", 2), ("b", 2), ("m", 1)]
    a = events.key_averages()[0]
    assert (a.cpu_time_total, a.cpu_time, a.cpu_memory_usage, a.flops) == (12, 6, 8, 5)
    assert (a.input_shapes, a.stack) == ("", [])
    # The events are as they were.
    assert events[0].stack == ["one", "two"]
    total = events.total_average()
    assert (total.key, total.count, total.cpu_time_total) == ("Total", 5, 24)


def test_sums_are_of_one_name() -> None:
    total = FunctionEventAvg()
    total.add(event(1, "a", 10, 15)).add(event(2, "a", 20, 30))
    total += total
    assert (total.key, total.count) == ("a", 4)
    assert (total.cpu_time_total, total.self_cpu_time_total, total.cpu_time) == (30, 30, 7.5)
    assert total.device_time_total == 0
    with pytest.raises(ValueError, match="cannot be added"):
        total.add(event(3, "b", 0, 1))
    assert repr(FunctionEventAvg()).startswith("<FunctionEventAvg key=None self_cpu_time=0.000us")


def test_columns() -> None:
    plain = tree(event(1, "a", 0, 10))
    titles = plain.table().splitlines()[1]
    assert [t for t in (t.strip() for t in titles.split("  ")) if t] == [
        "Name",
        "Self CPU %",
        "Self CPU",
        "CPU total %",
        "CPU total",
        "CPU time avg",
        "# of Calls",
    ]
    full = tree(
        event(1, "a", 0, 10, input_shapes=[[2]], stack=["f.py(1): f"], flops=2_000_000, node_id=3),
        event(2, "b", 2, 4, flops=7_000_000_000),
        profile_memory=True,
        with_flops=True,
    )
    full[0].append_kernel("kernel", 0, 5)
    full[0].use_device = "cuda"
    titles = full.table().splitlines()[1]
    places = [
        titles.index(title)
        for title in (
            "CPU time avg",
            "Self CUDA ",
            "Self CUDA %",
            "CUDA total",
            "CUDA time avg",
            "CPU Mem",
            "Self CPU Mem",
            "CUDA Mem",
            "Self CUDA Mem",
            "# of Calls",
            "Node ID",
            "Input Shapes",
            "Source Location",
            "Total MFLOPs",
        )
    ]
    assert places == sorted(places)
    assert "7000.000" in full.table()
    assert "Self CUDA time total: 5.000us" in full.table()
    widths = {len(line) for line in full.table().splitlines()[:-2]}
    assert len(widths) == 1


def test_rows() -> None:
    events = tree(event(1, "a" * 60, 0, 1_500), event(2, "b", 0, 500), event(3, "c", 2_000, 2_001))
    text = events.table(header="WHAT IT IS")
    assert text.startswith("=")
    assert text.splitlines()[1] == "WHAT IT IS"
    assert "a" * 52 + "..." in text
    assert "a" * 53 not in text
    assert "1.500ms" in text
    assert "Self CPU time total: 1.501ms" in text
    assert "66.62%" in text
    rows = events.table(sort_by="cpu_time_total", row_limit=2).splitlines()[3:-2]
    assert [row.split()[0][0] for row in rows] == ["a", "b"]
    rows = events.table(sort_by="cuda_time_total", row_limit=-1).splitlines()[3:-2]
    assert len(rows) == 3
    rows = events.table(top_level_events_only=True).splitlines()[3:-2]
    assert [row.split()[0][0] for row in rows] == ["a", "c"]
    assert "0.002s" in events.table(time_unit="s")
    with pytest.raises(ValueError, match="time_unit should be one of"):
        events.table(time_unit="h")
    with pytest.raises(AttributeError, match="nonsense"):
        events.table(sort_by="nonsense")
    assert EventList().table() == ""


def test_lines_are_below_each_other_and_cut_in_front() -> None:
    stack = [f"a/long/path/to/file.py({at}): function{at}" for at in range(9)]
    events = tree(event(1, "a", 0, 1, stack=stack), event(2, "b", 2, 3))
    lines = events.table(max_src_column_width=20).splitlines()[3:]
    shown = [line.rstrip().rpartition("  ")[2] for line in lines[:5]]
    assert shown == [f"....py({at}): function{at}" for at in range(5)]
    assert lines[5].strip() == ""
    assert lines[6].split()[0] == "b"


def test_shares_of_no_time() -> None:
    events = tree(event(1, "a", 5, 5), event(2, "b", 0, 9, is_async=True))
    assert "NaN" in events.table()


def test_words_for_times_and_bytes() -> None:
    assert [_format_time(t) for t in (0, 0.5, 999.9, 1000, 1e6)] == [
        "0.000us",
        "0.500us",
        "999.900us",
        "1.000ms",
        "1.000s",
    ]
    assert _format_time_share(1, 3) == "33.33%"
    assert [_format_memory(n) for n in (0, -5, 1023, 1024, 1 << 20, 3 << 29, -(2 << 30))] == [
        "0 B",
        "-5 B",
        "1023 B",
        "1.00 KB",
        "1.00 MB",
        "1.50 GB",
        "-2.00 GB",
    ]


def test_memory_less_that_of_events_within() -> None:
    events = tree(
        event(1, "a", 0, 10, cpu_memory_usage=100, device_memory_usage=7),
        event(2, "b", 1, 2, cpu_memory_usage=130, device_memory_usage=2),
    )
    assert events[0].self_cpu_memory_usage == -30
    assert events[0].self_device_memory_usage == events[0].self_cuda_memory_usage == 5


def test_stacks_for_flame_graphs(tmp_path: Path) -> None:
    events = tree(
        event(1, "a", 0, 10, stack=["in ner;(1): f", "outer"]),
        event(2, "b", 1, 5, stack=["other"]),
        event(3, "none", 20, 30),
        event(4, "no time", 40, 40, stack=["x"]),
    )
    assert "self_cpu_time_total" in events.supported_export_stacks_metrics
    events.export_stacks(str(tmp_path / "out"), "self_cpu_time_total")
    lines = (tmp_path / "out").read_text().splitlines()
    assert lines == ["outer;in_ner_(1):_f 6", "other 4"]
    events.export_stacks(str(tmp_path / "out"), "self_cuda_time_total")
    assert (tmp_path / "out").read_text() == ""
    with pytest.raises(ValueError, match="metric should be one of"):
        events.export_stacks(str(tmp_path / "out"), "cpu_time")


def test_traces(tmp_path: Path) -> None:
    events = tree(event(1, 'a "b"', 0, 10), event(2, "far", 1, 2, is_remote=True, node_id=4))
    events[0].append_kernel("kernel", 0, 3)
    events.export_chrome_trace(tmp_path / "trace")
    first, arrow, far = json.loads((tmp_path / "trace").read_text())
    assert (first["name"], first["ts"], first["dur"], first["ph"]) == ('a "b"', 0, 10, "X")
    assert (arrow["ph"], arrow["id"]) == ("s", 0)
    assert "node_id:4" in far["tid"]
    EventList().export_chrome_trace(tmp_path / "empty")
    assert json.loads((tmp_path / "empty").read_text()) == []


def test_names_that_are_left_out_or_changed() -> None:
    assert _filter_name("[memory]")
    assert _filter_name("aten::_version")
    assert not _filter_name("aten::add")
    assert _rewrite_name("ProfilerStep#12", with_wildcard=True) == "ProfilerStep*"
    assert _rewrite_name("ProfilerStep#12") == "ProfilerStep#12"


def test_small_classes() -> None:
    assert Interval(2, 5).elapsed_us() == 3
    table = StringTable()
    assert table["a"] == "a"
    assert dict(table) == {"a": "a"}

    class Record:
        def __init__(self, at: int) -> None:
            self.at = at

        def start_ns(self) -> int:
            return self.at

    records = [(Record(at), None) for at in (5, 1, 9)]
    assert [r[0].at for r in MemRecordsAcc(records).in_interval(1, 5)] == [1, 5]
    unique = EnforceUnique()
    unique.see("a", 1)
    unique.see("a", 2)
    with pytest.raises(RuntimeError, match="duplicate key"):
        unique.see("a", 1)


def test_the_furthest_of_those_who_count_is_right() -> None:
    start = KinetoStepTracker.current_step()
    KinetoStepTracker.init_step_count("one")
    KinetoStepTracker.init_step_count("two")
    assert KinetoStepTracker.increment_step("one") == start + 1
    assert KinetoStepTracker.increment_step("two") == start + 1
    assert KinetoStepTracker.increment_step("two") == start + 2
    assert KinetoStepTracker.erase_step_count("one")
    assert not KinetoStepTracker.erase_step_count("one")
    assert KinetoStepTracker.erase_step_count("two")
    assert KinetoStepTracker.current_step() == start + 2


def test_an_event_says_what_it_is() -> None:
    text = repr(event(7, "a", 0, 3, use_device="cuda"))
    assert "id=7 name=a" in text
    assert "cuda_time=0.000us" in text
    assert "cpu_time=3.000us" in text
