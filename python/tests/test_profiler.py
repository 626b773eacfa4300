"""The profiler as programs use it: events, their order, shapes, stacks, memory, traces."""

from __future__ import annotations

import concurrent.futures
import gzip
import json
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pullback as torch
from pullback import nn
from pullback.autograd.profiler import emit_itt, emit_nvtx, profile, record_function


def only(prof: Any, name: str) -> Any:
    """The only event of this name."""
    found = [event for event in prof.function_events if event.name == name]
    assert len(found) == 1, f"{len(found)} events {name}"
    return found[0]


def names(prof: Any) -> list[str]:
    return [event.name for event in prof.function_events]


def test_events_of_forward_and_backward() -> None:
    x = torch.ones(3, requires_grad=True)
    with profile() as prof:
        assert torch.autograd._profiler_enabled()
        x.exp().sum().backward()
    assert not torch.autograd._profiler_enabled()
    assert names(prof)[0] == "aten::exp"
    exp, node = only(prof, "aten::exp"), only(prof, "ExpBackward0")
    assert exp.sequence_nr == node.sequence_nr >= 0
    assert (exp.fwd_thread, node.fwd_thread) == (0, exp.thread)
    assert (exp.scope, node.scope) == (0, 1)
    outer = only(prof, "autograd::engine::evaluate_function: ExpBackward0")
    assert node.cpu_parent is outer
    assert outer.sequence_nr == exp.sequence_nr
    assert [child.name for child in node.cpu_children] == ["aten::mul"]
    leaf = only(prof, "torch::autograd::AccumulateGrad")
    assert (leaf.sequence_nr, leaf.fwd_thread) == (-1, 0)
    assert only(prof, "aten::mul").sequence_nr == -1


def test_nothing_is_recorded_outside() -> None:
    x = torch.ones(3)
    with profile() as prof:
        pass
    x.exp()
    assert names(prof) == []
    assert prof.table() == ""
    assert str(prof.key_averages()) == ""
    assert prof.self_cpu_time_total == 0


def test_number_of_an_op_that_is_not_recorded() -> None:
    x, leaf = torch.ones(3), torch.ones(3, requires_grad=True)
    with profile() as prof:
        x.exp()
        node = leaf.cos().grad_fn
        with torch.no_grad():
            leaf.sin()
    # It is the number that its node would have.
    assert node is not None
    assert only(prof, "aten::exp").sequence_nr == node._sequence_nr()
    assert only(prof, "aten::sin").sequence_nr == -1


def test_forms_have_names() -> None:
    x = torch.ones(3)
    out = torch.empty(3)
    with profile() as prof:
        x.mul_(2)
        torch.exp(x, out=out)
        x.zero_()
        x += 1
        x[0]
        torch.linalg.vector_norm(x)
    known = names(prof)
    for name in (
        "aten::mul_",
        "aten::exp",
        "aten::zero_",
        "aten::add_",
        "aten::linalg_vector_norm",
    ):
        assert known.count(name) == 1, known


def test_own_times_add_up() -> None:
    x = torch.ones(50, 50, requires_grad=True)
    with profile() as prof:
        for _ in range(5):
            (x @ x).exp().sum().backward()
    events = prof.function_events
    outermost = sum(event.cpu_time_total for event in events if event.cpu_parent is None)
    assert events.self_cpu_time_total == pytest.approx(outermost)
    assert prof.self_cpu_time_total == pytest.approx(outermost)
    sums = prof.key_averages()
    assert sum(total.self_cpu_time_total for total in sums) == pytest.approx(outermost)
    exp = next(total for total in sums if total.key == "aten::exp")
    assert exp.count == 5
    assert exp.cpu_time == pytest.approx(exp.cpu_time_total / 5)
    assert all(event.self_cpu_time_total >= 0 for event in events)
    assert prof.total_average().count == len(events)


def test_ranges_of_the_program() -> None:
    x = torch.ones(3)
    with profile() as prof, record_function("outer", "with an argument"):
        x.exp()
        with record_function("inner"):
            x.sin()
    outer, inner = only(prof, "outer"), only(prof, "inner")
    assert inner.cpu_parent is outer
    assert only(prof, "aten::sin").cpu_parent is inner
    assert outer.is_user_annotation
    assert not only(prof, "aten::sin").is_user_annotation
    assert (outer.scope, outer.sequence_nr, outer.count) == (7, -1, 1)


def test_ranges_decorate_functions_that_call_themselves() -> None:
    @record_function("factorial")
    def factorial(n: int) -> int:
        """Says what it does."""
        return n * factorial(n - 1) if n else 1

    assert factorial.__doc__ == "Says what it does."
    with profile() as prof:
        assert factorial(3) == 6
    assert "factorial" in str(prof)
    # Ranges that hold nothing but one of the same name count as one with it.
    assert names(prof) == ["factorial"]
    assert factorial(2) == 2


def test_ranges_end_in_any_order() -> None:
    with profile() as prof:
        first = record_function("first")
        first.__enter__()
        with record_function("second"):
            first.__exit__(None, None, None)
        first.__exit__(None, None, None)
    assert names(prof) == ["first", "second"]
    with pytest.raises(AssertionError, match="Expected record to be set"):
        record_function("never entered").__exit__(None, None, None)


def test_ranges_end_with_futures() -> None:
    with profile() as prof:
        future: concurrent.futures.Future[int] = concurrent.futures.Future()
        with record_function("waits") as rf:
            assert rf._call_end_callbacks_on_future(future) is future
        with pytest.raises(RuntimeError, match="can only be called once"):
            rf._call_end_callbacks_on_future(future)
        torch.ones(3).exp()
        thread = threading.Thread(target=future.set_result, args=(1,))
        thread.start()
        thread.join()
    waits = only(prof, "waits")
    assert waits.is_async
    assert waits.self_cpu_time_total == 0
    assert waits.time_range.end >= only(prof, "aten::exp").time_range.end
    assert not waits.cpu_children


def test_ranges_are_opened_by_ops_too() -> None:
    with profile() as prof:
        handle = torch.ops.profiler._record_function_enter("by hand", None)
        torch.ops.profiler._record_function_exit(handle)
        handle = torch.ops.profiler._record_function_enter_new("new")
        torch.ops.profiler._record_function_exit(handle)
    assert names(prof) == ["by hand", "new"]


@pytest.mark.parametrize("enabled", [False, True])
def test_names_of_ranges_are_texts(enabled: bool) -> None:
    with profile(enabled=enabled):
        with pytest.raises(
            RuntimeError, match="Expected a value of type 'str' for argument 'name'"
        ):
            record_function(3).__enter__()  # type: ignore[arg-type]
        with pytest.raises(RuntimeError, match=r"'Optional\[str\]' for argument 'args'"):
            record_function("a", 3).__enter__()  # type: ignore[arg-type]


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * 2


def test_custom_functions() -> None:
    x = torch.ones(3, requires_grad=True)
    with profile(record_shapes=True) as prof:
        Double.apply(x).sum().backward()
    call, node = only(prof, "Double"), only(prof, "DoubleBackward")
    assert call.sequence_nr == node.sequence_nr
    assert call.input_shapes == [[3]]
    assert [child.name for child in call.cpu_children] == ["aten::mul"]
    assert call.cpu_children[0].sequence_nr == -1
    assert [child.name for child in node.cpu_children] == ["aten::mul"]


def test_shapes_and_values_of_inputs() -> None:
    x, w, b = torch.ones(2, 3), torch.ones(4, 3), torch.ones(4)
    with profile(record_shapes=True) as prof:
        nn.functional.linear(x, w, b)
        torch.cat([x, x], dim=1)
        torch.sum(x, 1, keepdim=True)
    assert only(prof, "aten::linear").input_shapes == [[2, 3], [4, 3], [4]]
    cat = only(prof, "aten::cat")
    assert (cat.input_shapes, cat.concrete_inputs) == ([[[2, 3], [2, 3]], []], [None, 1])
    assert only(prof, "aten::sum").concrete_inputs[:3] == [None, [1], True]
    with profile() as plain:
        x.exp()
    assert only(plain, "aten::exp").input_shapes == []
    by_shape = [
        (total.key, total.input_shapes) for total in prof.key_averages(group_by_input_shape=True)
    ]
    assert ("aten::linear", [[2, 3], [4, 3], [4]]) in by_shape


def the_caller(x: torch.Tensor) -> torch.Tensor:
    return the_callee(x)


def the_callee(x: torch.Tensor) -> torch.Tensor:
    return x.exp()


@pytest.mark.parametrize("numel", [3, 100_000])
def test_stacks_are_lines_of_the_program(numel: int, tmp_path: Path) -> None:
    # (For large tensors the interpreter is free while the op runs.)
    x = torch.ones(numel, requires_grad=True)
    with profile(with_stack=True) as prof:
        with record_function("range"):
            y = the_caller(x)
        y.sum().backward()
    stack = only(prof, "aten::exp").stack
    assert [line.rpartition(" ")[2] for line in stack[:2]] == ["the_callee", "the_caller"]
    assert all(line.startswith(f"{__file__}(") for line in stack[:2])
    assert not any("pullback/autograd" in line for line in stack)
    # Backward has the lines of its forward.
    assert only(prof, "ExpBackward0").stack == stack
    assert only(prof, "aten::mul").stack == stack
    assert only(prof, "autograd::engine::evaluate_function: ExpBackward0").stack == stack
    table = prof.key_averages(group_by_stack_n=2).table(max_src_column_width=30)
    assert "Source Location" in table
    assert "the_callee" in table
    prof.export_stacks(str(tmp_path / "stacks"), "self_cpu_time_total")
    lines = (tmp_path / "stacks").read_text().splitlines()
    assert any(";" in line and "the_callee" in line for line in lines)
    assert all(int(line.rpartition(" ")[2]) > 0 for line in lines)


def test_calls_of_functions_are_events() -> None:
    x = torch.ones(3)

    def fails() -> None:
        raise ValueError("as it is meant to")

    def generates() -> Any:
        yield the_callee(x)
        yield len("abc")

    with profile(with_stack=True) as prof:
        the_caller(x)
        with pytest.raises(ValueError, match="as it is meant to"):
            fails()
        list(generates())
        sorted([3, 1, 2], key=lambda at: -at)
    found = {event.name.rpartition(" ")[2]: event for event in prof.function_events}
    events = prof.function_events
    exp = next(event for event in events if event.name == "aten::exp")
    assert exp.cpu_parent.name.endswith(": the_callee")
    assert exp.cpu_parent.cpu_parent.name.endswith(": the_caller")
    assert exp.cpu_parent.is_python_function
    assert exp.cpu_parent.name.startswith(__file__)
    around = exp.cpu_parent.cpu_parent.cpu_parent
    assert around.name.endswith("test_calls_of_functions_are_events")
    # What was running when it began is around everything, and each call within its caller.
    last = next(event for event in reversed(events) if event.name == "aten::exp")
    assert last.cpu_parent.name == f"{__file__}({line_of(the_callee)}): the_callee"
    assert last.cpu_parent.cpu_parent.name.endswith("generates")
    assert found["len>"].cpu_parent.name.endswith("generates")
    assert "<built-in function sorted>" in [event.name for event in events]
    own = [event.name for event in events if event.name.startswith(__file__)]
    assert sum("<lambda>" in name for name in own) == 3
    assert not any("pullback/autograd" in event.name for event in events)
    assert not any(total.key.endswith("the_callee") for total in prof.key_averages())
    # It is over.
    assert sys.getprofile() is None
    with profile() as plain:
        the_caller(x)
    assert names(plain) == ["aten::exp"]


def line_of(function: Any) -> int:
    return int(function.__code__.co_firstlineno)


def test_another_profiler_of_functions_keeps_its_place() -> None:
    calls: list[str] = []
    sys.setprofile(lambda frame, event, arg: calls.append(event))
    try:
        prof = profile(with_stack=True)
        with pytest.warns(UserWarning, match="another profiler of Python functions"):
            prof.__enter__()
        the_caller(torch.ones(3))
        prof.__exit__(None, None, None)
        assert sys.getprofile() is not None
    finally:
        sys.setprofile(None)
    assert calls
    assert only(prof, "aten::exp").stack[0].endswith("the_callee")
    assert not any(event.is_python_function for event in prof.function_events)


def test_stacks_within_a_backward_of_the_program() -> None:
    class Own(Double):
        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return the_callee(grad)

    x = torch.ones(3, requires_grad=True)
    with profile(with_stack=True) as prof:
        Own.apply(x).sum().backward()
    stack = only(prof, "aten::exp").stack
    assert stack[0].endswith("the_callee")
    assert "backward" in stack[1]


def test_memory() -> None:
    x = torch.ones(100, dtype=torch.float64)
    with profile(profile_memory=True) as prof:
        y = x.exp()
        z = nn.functional.linear(x.view(10, 10), x.view(10, 10))
        del y
    exp, linear = only(prof, "aten::exp"), only(prof, "aten::linear")
    assert exp.cpu_memory_usage == exp.self_cpu_memory_usage == 800
    assert linear.cpu_memory_usage == 800
    outside = only(prof, "[memory]")
    assert outside.cpu_memory_usage == -800
    assert "CPU Mem" in prof.table()
    assert "-800 B" in prof.key_averages().table()
    with profile() as plain:
        x.exp()
    assert only(plain, "aten::exp").cpu_memory_usage == 0
    assert "CPU Mem" not in plain.table()
    del z


def test_operations_are_counted() -> None:
    a, b = torch.ones(4, 5), torch.ones(5, 6)
    batch = torch.ones(2, 3, 4), torch.ones(2, 4, 5)
    image, filters = torch.ones(1, 4, 8, 8), torch.ones(6, 2, 3, 3)
    with profile(with_flops=True) as prof:
        torch.mm(a, b)
        torch.addmm(torch.ones(6), a, b)
        torch.bmm(*batch)
        torch.baddbmm(torch.ones(2, 3, 5), *batch)
        torch.mul(a, a)
        torch.add(a, torch.ones(5))
        torch.conv2d(image, filters, stride=2, padding=1, groups=2)
        torch.exp(a)
    flops = {event.name: event.flops for event in prof.function_events if event.cpu_parent is None}
    assert flops["aten::mm"] == flops["aten::addmm"] == 2 * 4 * 5 * 6
    assert flops["aten::bmm"] == flops["aten::baddbmm"] == 2 * 2 * 3 * 4 * 5
    assert flops["aten::mul"] == flops["aten::add"] == 20
    # 16 places, 6 filters of 2 x 3 x 3.
    assert flops["aten::conv2d"] == 2 * 16 * 6 * 18
    assert flops["aten::exp"] == 0
    assert "Total FLOPs" in prof.key_averages().table(sort_by="flops")
    meta = torch.ones(4, 5, device="meta")
    with profile(with_flops=True) as others:
        torch.mul(torch.ones(3, 1), torch.ones(4))
        torch.add(a, 2)
        a.clone().mul_(2)
        torch.mul(meta, meta)
        torch.mm(meta, meta.t())
        torch.conv1d(torch.ones(2, 3, 8), torch.ones(4, 3, 3))
    events = others.function_events
    # (As in PyTorch: the elements of the first argument, none in place. Other than there, every
    # convolution is counted.)
    assert [e.flops for e in events if e.name == "aten::mul"] == [3, 20]
    assert [e.flops for e in events if e.name == "aten::add"] == [20]
    assert [e.flops for e in events if e.name == "aten::mm"] == [160]
    assert [e.flops for e in events if e.name == "aten::mul_"] == [0]
    assert [e.flops for e in events if e.name == "aten::conv1d"] == [2 * 2 * 6 * 4 * 9]
    with profile(record_shapes=True) as without:
        torch.mm(a, b)
    assert [event.flops for event in without.function_events] == [0]
    with profile(with_flops=True) as strings:
        torch.conv2d(image, filters, padding="same", groups=2)
    assert any(e.flops == 2 * 64 * 6 * 18 for e in strings.function_events)


def test_modules() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    x = torch.ones(1, 3)
    with profile(with_modules=True) as prof:
        model(x)
    first = only(prof, "nn.Module: Linear_0")
    assert first.cpu_parent is only(prof, "nn.Module: Sequential_0")
    linear = [event for event in prof.function_events if event.name == "aten::linear"]
    assert [event.cpu_parent.name for event in linear] == [
        "nn.Module: Linear_0",
        "nn.Module: Linear_1",
    ]
    assert linear[0].module_hierarchy == "Sequential.Linear"
    assert not any("nn.Module" in total.key for total in prof.key_averages())
    with_modules = prof.key_averages(include_python_functions=True)
    assert any("nn.Module" in total.key for total in with_modules)
    with profile() as plain:
        model(x)
    assert not any("nn.Module" in name for name in names(plain))


def test_modules_that_fail_leave_no_range_open() -> None:
    model = nn.Sequential(nn.Linear(3, 4))
    with profile(with_modules=True) as prof:
        with pytest.raises(RuntimeError):
            model(torch.ones(1, 5))
        torch.ones(3).exp()
    assert only(prof, "aten::exp").cpu_parent is None


def test_trace(tmp_path: Path) -> None:
    x = torch.ones(3, requires_grad=True)
    config = {"record_shapes": True, "profile_memory": True, "with_stack": True}
    with profile(**config) as prof, record_function('a "name"'):
        x.exp().sum().backward()
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    trace = json.loads(path.read_text())
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    kinds = {"cpu_op", "user_annotation", "python_function"}
    assert {event["cat"] for event in events} == kinds
    exp = next(event for event in events if event["name"] == "aten::exp")
    assert exp["args"]["Input Dims"] == [[3]]
    assert exp["args"]["Input type"] == ["float32"]
    assert "test_trace" in exp["args"]["Call stack"]
    node = next(event for event in events if event["name"] == "ExpBackward0")
    assert node["args"]["Sequence number"] == exp["args"]["Sequence number"]
    assert node["args"]["Fwd thread id"] == exp["tid"]
    flows = {
        phase: {
            event["id"]: event["ts"]
            for event in trace["traceEvents"]
            if event["ph"] == phase and event["cat"] == "fwdbwd"
        }
        for phase in "sf"
    }
    assert flows["s"].keys() == flows["f"].keys()
    assert (exp["ts"], node["ts"]) in [(flows["s"][id], flows["f"][id]) for id in flows["s"]]
    assert any(event["name"] == "[memory]" for event in trace["traceEvents"])
    assert trace["trace_id"] == prof.trace_id
    prof.export_chrome_trace(str(path) + ".gz")
    with gzip.open(str(path) + ".gz", "rt") as packed:
        assert len(json.load(packed)["traceEvents"]) == len(trace["traceEvents"])
    prof.function_events.export_chrome_trace(str(path))
    listed = json.loads(path.read_text())
    assert len(listed) == len(prof.function_events)
    assert {event["pid"] for event in listed} == {"CPU functions"}
    with pytest.raises(OSError, match="No such file"):
        prof.export_chrome_trace(str(tmp_path / "not" / "there"))


def test_a_profile_is_entered_once() -> None:
    prof = profile()
    assert repr(prof) == str(prof) == "<unfinished torch.autograd.profile>"
    assert prof.function_events == []
    assert prof.key_averages() == []
    with pytest.raises(AssertionError, match="didn't finish running"):
        prof.export_chrome_trace("nowhere")
    with prof, pytest.raises(RuntimeError, match="Profiler context manager is not reentrant"):
        prof.__enter__()
    with pytest.raises(RuntimeError, match="Profiler context manager is not reentrant"):
        prof.__enter__()
    assert str(prof) == prof.table()


def test_profiles_do_not_nest() -> None:
    with profile() as outer:
        with pytest.raises(RuntimeError, match="Profiler is already enabled on this thread"):
            profile().__enter__()
        torch.ones(3)
    assert names(outer) == ["aten::ones"]


def test_a_profile_is_left_on_the_thread_that_entered_it() -> None:
    caught: list[BaseException] = []

    def leave() -> None:
        try:
            prof.__exit__(None, None, None)
        except RuntimeError as error:
            caught.append(error)

    prof = profile()
    prof.__enter__()
    thread = threading.Thread(target=leave)
    thread.start()
    thread.join()
    assert "can't disable profiler when it's not running" in str(caught[0])
    torch.ones(3)
    prof.__exit__(None, None, None)
    assert names(prof) == ["aten::ones"]


def test_profiles_of_several_threads() -> None:
    def run(result: list[Any]) -> None:
        x = torch.ones(3, requires_grad=True)
        with profile() as prof:
            x.exp().sum().backward()
        result.append(prof)

    results: list[Any] = []
    threads = [threading.Thread(target=run, args=(results,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({only(prof, "aten::exp").thread for prof in results}) == 3
    for prof in results:
        assert only(prof, "ExpBackward0").fwd_thread == only(prof, "aten::exp").thread


def test_a_profile_that_is_turned_off() -> None:
    with profile(enabled=False) as prof:
        assert not torch.autograd._profiler_enabled()
        torch.ones(3)
    assert prof.function_events == []
    assert repr(prof) == "<unfinished torch.autograd.profile>"
    with prof:
        pass


def test_devices_that_are_not_there() -> None:
    with pytest.warns(UserWarning, match="CUDA is not available, disabling CUDA profiling"):
        prof = profile(use_device="cuda")
    assert prof.use_device is None
    with pytest.warns(UserWarning, match="CUDA is not available"):
        profile(use_cuda=True)
    with pytest.warns(UserWarning, match="The banana is not a valid device option"):
        profile(use_device="banana")
    with pytest.raises(AssertionError, match="use_kineto=True"):
        profile(use_cpu=False)
    with pytest.raises(AssertionError, match="No activities specified"):
        profile(use_cpu=False, use_kineto=True)


def test_metrics_of_stacks(tmp_path: Path) -> None:
    with profile() as prof:
        torch.ones(3)
    with pytest.raises(AssertionError, match="requires with_stack=True"):
        prof.export_stacks(str(tmp_path / "stacks"))
    with profile(with_stack=True) as prof:
        torch.ones(3)
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks(str(tmp_path / "stacks"), "beauty")


@pytest.fixture
def without_ittapi(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "ittapi", None)
    torch.profiler.itt._found.cache_clear()
    yield
    torch.profiler.itt._found.cache_clear()


@pytest.mark.usefixtures("without_ittapi")
@pytest.mark.parametrize(("tool", "name"), [(emit_nvtx, "NVTX"), (emit_itt, "ITT")])
def test_annotations_need_a_library(tool: Any, name: str) -> None:
    with tool(enabled=False):
        pass
    annotation = tool()
    with pytest.raises(RuntimeError, match=f"{name} functions not installed"):
        annotation.__enter__()
    with pytest.raises(RuntimeError, match=f"{name} annotation context manager is not reentrant"):
        annotation.__enter__()
    assert not torch.profiler.itt.is_available()
    with pytest.raises(RuntimeError, match="ITT functions not installed"):
        torch.profiler.itt.range_push("range")


class FakeItt(ModuleType):
    """Notes what is asked of the package ``ittapi``."""

    def __init__(self) -> None:
        super().__init__("ittapi")
        self.said: list[str] = []

    def domain(self, name: str) -> str:
        return name

    def string_handle(self, text: str) -> tuple[str]:
        return (text,)

    def task_begin(self, domain: str, name: tuple[str]) -> None:
        self.said.append(f"{domain}: {name[0]}")

    def task_end(self, domain: str) -> None:
        self.said.append(f"{domain} end")


def test_ops_and_ranges_are_shown_by_ittapi(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeItt()
    monkeypatch.setitem(sys.modules, "ittapi", fake)
    itt = torch.profiler.itt
    itt._found.cache_clear()
    try:
        assert itt.is_available()
        itt.mark("now")
        with pytest.raises(ZeroDivisionError), itt.range("step {}", 3):
            1 // 0  # noqa: B018
        assert fake.said == ["PyTorch: now", "PyTorch end", "PyTorch: step 3", "PyTorch end"]
        fake.said.clear()
        x = torch.ones(2, 3)
        with emit_itt(record_shapes=True) as annotation, record_function("mine"):
            torch.cat([x, x]) * 2.0
        with pytest.raises(RuntimeError, match="not reentrant"):
            annotation.__enter__()
        torch.ones(1)
        begun = [text for text in fake.said if text != "PyTorch end"]
        assert begun == [
            "PyTorch: mine",
            "PyTorch: aten::cat, sizes = [[[2, 3], [2, 3]]]",
            "PyTorch: aten::mul, sizes = [[4, 3], []]",
        ]
        assert fake.said.count("PyTorch end") == 3
        assert fake.said[-1] == "PyTorch end"
    finally:
        itt._found.cache_clear()


def test_an_error_ends_the_recording() -> None:
    prof = profile()
    with pytest.raises(RuntimeError, match="must match"), prof, record_function("range"):
        torch.ones(2) + torch.ones(3)
    assert not torch.autograd._profiler_enabled()
    assert only(prof, "aten::add").cpu_parent is only(prof, "range")


def test_ops_on_batches_are_events() -> None:
    with profile() as prof:
        torch.vmap(lambda x: x.exp() * 2)(torch.ones(2, 3))
    assert "aten::exp" in names(prof)


def test_earlier_profilers() -> None:
    from pullback.autograd import profiler_legacy

    prof = profiler_legacy.profile(record_shapes=True)
    with pytest.raises(RuntimeError, match="Profiler didn't finish running"):
        prof.key_averages()
    with prof:
        torch.ones(3).exp()
    assert only(prof, "aten::exp").input_shapes == [[3]]
    with pytest.raises(NotImplementedError):
        torch.autograd.profiler.load_nvprof("file")


def test_events_keep_no_tensor_alive() -> None:
    x = torch.ones(1000)
    before = torch.memory.live_bytes()
    with profile(record_shapes=True) as prof:
        for _ in range(50):
            x.exp()
    assert len(names(prof)) == 50
    # (What is noted of tensors does not keep them alive.)
    assert torch.memory.live_bytes() - before < 4 * 4000


def test_a_trace_that_cannot_be_written_names_its_path(tmp_path: Path) -> None:
    with torch.autograd.profiler.profile() as profile:
        torch.ones(2) + 1
    missing = str(tmp_path / "none" / "trace.json")
    with pytest.raises(FileNotFoundError, match=re.escape(missing)):
        profile.export_chrome_trace(missing)
