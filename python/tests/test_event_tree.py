"""The tree of a profile's events, and the numbers of Python functions in traces."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pullback as torch
from pullback import nn
from pullback._C import _profiler
from pullback.profiler import profile, record_function

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def walk(events: list[Any]) -> Iterator[Any]:
    for event in events:
        yield event
        yield from walk(event.children)


def named(events: list[Any], name: str) -> Any:
    return next(event for event in walk(events) if event.name == name)


def tree(prof: profile) -> list[Any]:
    return prof.profiler.kineto_results.experimental_event_tree()


def test_events_are_within_those_around_them() -> None:
    x = torch.randn(2, 3, requires_grad=True)
    with profile(record_shapes=True, profile_memory=True) as prof:
        with record_function("mine"):
            y = x.mul(2.0)
        y.sum().backward()
    events = tree(prof)
    for event in walk(events):
        assert event.duration_time_ns == event.end_time_ns - event.start_time_ns >= 0
        assert all(child.parent is event for child in event.children)
        assert all(event.start_time_ns <= child.start_time_ns for child in event.children)
        assert event.typed == (event.tag, event.extra_fields)
    mine = named(events, "mine")
    assert mine.parent is None
    assert mine.typed[1].scope is _profiler.RecordScope.USER_SCOPE
    mul = named([mine], "aten::mul")
    assert any(child.tag is _profiler._EventType.Allocation for child in mul.children)
    node = named(events, "MulBackward0")
    assert node.typed[1].scope is _profiler.RecordScope.BACKWARD_FUNCTION
    assert node.parent.name == "autograd::engine::evaluate_function: MulBackward0"
    assert node.typed[1].sequence_number == mul.typed[1].sequence_number >= 0
    ops = [event for event in walk(events) if event.tag is _profiler._EventType.TorchOp]
    assert sorted(op.correlation_id for op in ops) == list(range(1, len(ops) + 1))


def test_inputs_are_described_as_they_were() -> None:
    x = torch.randn(3, 2).t()
    with profile(record_shapes=True) as prof:
        torch.add(x, x, alpha=2)
        torch.cat([x, x], 1)
    events = tree(prof)
    first, second, alpha = named(events, "aten::add").typed[1].inputs
    assert first == second
    assert (first.sizes, first.strides, first.dim) == ([2, 3], [1, 2], 2)
    assert (first.dtype, first.device) == (torch.float32, torch.device("cpu"))
    assert first.layout is torch.strided
    assert alpha == 2
    tensors, dim = named(events, "aten::cat").typed[1].inputs
    assert [tensor.sizes for tensor in tensors] == [[2, 3], [2, 3]]
    assert dim == 1


def test_without_shapes_there_are_no_inputs() -> None:
    with profile() as prof:
        torch.ones(2).exp()
    assert named(tree(prof), "aten::exp").typed[1].inputs == []


def test_memory_is_counted_and_both_ends_have_one_number() -> None:
    with profile(profile_memory=True) as prof:
        x = torch.empty(1000)
        del x
        torch.empty(10)
    found = [event for event in walk(tree(prof)) if event.name == "[memory]"]
    ends = [event.typed[1] for event in found]
    taken = next(end for end in ends if end.alloc_size >= 4000)
    given = next(end for end in ends if end.alloc_size == -taken.alloc_size)
    assert taken.allocation_id == given.allocation_id == taken.id
    assert taken.ptr == given.ptr
    assert ends[-1].total_allocated == sum(end.alloc_size for end in ends)


def profiled_step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return model(x).sum()


def test_functions_and_modules_of_the_program(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    with profile(with_stack=True, with_modules=True) as prof:
        profiled_step(model, torch.ones(2, 3))
    events = tree(prof)
    calls = [event for event in walk(events) if event.tag is _profiler._EventType.PyCall]
    [step] = [call for call in calls if call.name.endswith(": profiled_step")]
    site = step.typed[1].callsite
    assert site.function_name == "profiled_step"
    assert site.file_name.endswith("test_event_tree.py")
    assert site.line_number == profiled_step.__code__.co_firstlineno
    modules = [call for call in walk([step]) if call.name.startswith("nn.Module: ")]
    assert [call.typed[1].module.cls_name for call in modules] == ["Sequential", "Linear", "Linear"]
    assert modules[0].typed[1].caller == site
    assert named([modules[1]], "aten::linear").typed[1].scope is _profiler.RecordScope.FUNCTION

    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    traced = json.loads(path.read_text())["traceEvents"]
    functions = [event for event in traced if event.get("cat") == "python_function"]
    by_number = {event["args"]["Python id"]: event for event in functions}
    assert sorted(by_number) == list(range(1, len(functions) + 1))
    [outer] = [event for event in functions if event["name"] == "nn.Module: Sequential_0"]
    assert outer["args"]["Python module id"] == 0
    [inner] = [event for event in functions if event["name"] == "nn.Module: Linear_1"]
    assert inner["args"]["Python module id"] == 1
    numbers = []
    while "Python parent id" in inner["args"]:
        inner = by_number[inner["args"]["Python parent id"]]
        numbers.append(inner["args"]["Python id"])
    assert outer["args"]["Python id"] in numbers
    assert all("Python id" not in event["args"] for event in traced if event.get("cat") == "cpu_op")
