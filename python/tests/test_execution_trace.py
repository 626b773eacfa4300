"""`ExecutionTraceObserver` writes ops with their arguments and parents, in PyTorch's form."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

import pullback as torch
from pullback.profiler import ExecutionTraceObserver, profile, record_function, schedule


def read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    head = json.loads(path.read_text())
    return head, head.pop("nodes")


def attribute(node: dict[str, Any], name: str) -> Any:
    return next(each["value"] for each in node["attrs"] if each["name"] == name)


def test_ops_ranges_and_backward_nodes_are_a_tree(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    observer = ExecutionTraceObserver().register_callback(str(path))
    x = torch.ones(3, 2, requires_grad=True)
    observer.start()
    with record_function("mine"):
        y = (x * 2.0).relu()
    y.sum().backward()
    observer.stop()
    torch.ones(7)
    observer.unregister_callback()
    head, nodes = read(path)
    assert head["schema"] == "1.1.1-chakra.0.0.4"
    assert head["finish_ts"] >= head["start_ts"]
    by_id = {node["id"]: node for node in nodes}
    assert len(by_id) == len(nodes)
    assert by_id[1]["name"] == "[pytorch|profiler|execution_trace|process]"
    assert by_id[2]["name"] == "[pytorch|profiler|execution_trace|thread]"
    assert all(node["ctrl_deps"] in by_id for node in nodes)
    named: dict[str, Any] = {}
    for node in nodes:
        named.setdefault(node["name"], node)
    mul, mine = named["aten::mul"], named["mine"]
    assert mul["ctrl_deps"] == named["aten::relu"]["ctrl_deps"] == mine["id"]
    assert (mine["ctrl_deps"], attribute(mine, "scope")) == (2, 7)
    inner = named["MulBackward0"]
    outer = by_id[inner["ctrl_deps"]]
    assert outer["name"] == "autograd::engine::evaluate_function: MulBackward0"
    assert (attribute(inner, "scope"), attribute(inner, "fw_parent")) == (1, outer["id"])
    assert attribute(inner, "seq_id") >= 0
    assert any(node["ctrl_deps"] == inner["id"] for node in nodes)
    assert attribute(mul, "op_schema").startswith("aten::mul.Tensor(Tensor self")
    # What one op gave is what the next one takes: tensors and storages have numbers.
    assert mul["outputs"]["values"][0][1] == named["aten::relu"]["inputs"]["values"][0][1]
    assert mul["inputs"]["shapes"][0] == [3, 2]
    assert mul["inputs"]["strides"][0] == [2, 1]
    assert mul["inputs"]["types"][0] == "Tensor(float)"
    assert mul["inputs"]["values"][0][2:] == [0, 6, 4, "cpu"]
    assert not any(node["outputs"]["shapes"] == [[7]] for node in nodes)


def test_arguments_of_all_kinds_are_written(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    observer = ExecutionTraceObserver().register_callback(str(path))
    observer.start()
    parts = torch.cat([torch.ones(2, dtype=torch.bfloat16), torch.zeros(3, dtype=torch.bfloat16)])
    parts.to(torch.float64).clamp(min=0.5, max=float("inf")).sum(0, keepdim=True)
    torch.eye(2).to_sparse()
    observer.unregister_callback()
    _, nodes = read(path)
    cat = next(node for node in nodes if node["name"] == "aten::cat")
    assert cat["inputs"]["types"][0] == "GenericList[Tensor(c10::BFloat16),Tensor(c10::BFloat16)]"
    assert cat["inputs"]["shapes"][0] == [[2], [3]]
    clamp = next(node for node in nodes if node["name"] == "aten::clamp")
    assert clamp["inputs"]["values"][1:] == [0.5, "inf"]
    assert clamp["inputs"]["types"] == ["Tensor(double)", "Double", "Double"]
    for node in nodes:
        for side in ("inputs", "outputs"):
            assert len({len(column) for column in node[side].values()}) == 1


def test_results_are_those_without_an_observer(tmp_path: Path) -> None:
    def run() -> list[Any]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.LayerNorm(16))
        model(torch.randn(4, 8)).square().sum().backward()
        return [p.grad for p in model.parameters()]

    expected = run()
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "trace.json"))
    with profile(execution_trace_observer=observer):
        found = run()
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_profiles_write_the_steps_that_they_record(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    observer = ExecutionTraceObserver().register_callback(str(path))
    plan = schedule(wait=1, warmup=1, active=1)
    with profile(schedule=plan, execution_trace_observer=observer) as prof:
        for step in range(4):
            torch.ones(step + 1)
            prof.step()
    assert not observer.is_registered
    _, nodes = read(path)
    shapes = [node["outputs"]["shapes"] for node in nodes if node["name"] == "aten::ones"]
    assert shapes == [[[3]]]
    assert any(node["name"] == "ProfilerStep#2" for node in nodes)


def test_errors_end_nodes_and_observers_can_be_used_again(tmp_path: Path) -> None:
    observer = ExecutionTraceObserver()
    assert (observer.is_registered, observer.get_output_file_path()) == (False, None)
    observer.start()
    assert not observer.is_running()
    first = tmp_path / "first.json"
    assert observer.register_callback(str(first)).register_callback("other") is observer
    assert observer.get_output_file_path() == str(first)
    observer.start()
    assert observer.is_running()
    with pytest.raises(RuntimeError):
        torch.ones(2) + torch.ones(3)
    with pytest.raises(ZeroDivisionError), record_function("fails"):
        torch.ones(1).add(1 // 0)
    caught: list[Any] = []

    def elsewhere() -> None:
        torch.ones(5)
        try:
            observer.stop()
        except RuntimeError as error:
            caught.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert "thread that started it" in str(caught[0])
    observer.cleanup()
    _, nodes = read(first)
    assert any(node["name"] == "fails" for node in nodes)
    assert not any(node["outputs"]["shapes"] == [[5]] for node in nodes)
    assert torch._C._len_torch_dispatch_stack() == 0
    second = tmp_path / "second.json"
    observer.register_callback(str(second)).start()
    torch.ones(1)
    observer.cleanup()
    assert any(node["name"] == "aten::ones" for node in read(second)[1])
    with pytest.raises(OSError, match="absent"):
        ExecutionTraceObserver().register_callback(str(tmp_path / "absent" / "x.json"))


def test_environment_asks_for_a_trace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    build = ExecutionTraceObserver.build_execution_trace_obs_from_env
    monkeypatch.delenv("ENABLE_PYTORCH_EXECUTION_TRACE", raising=False)
    assert build() is None
    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE", "1")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with profile() as prof:
        torch.ones(3)
    observer: Any = prof.execution_trace_observer
    path = Path(observer.get_output_file_path())
    assert path.parent == tmp_path
    assert any(node["name"] == "aten::ones" for node in read(path)[1])


def test_folder_for_what_belongs_to_a_trace(tmp_path: Path) -> None:
    observer = ExecutionTraceObserver()
    observer.set_extra_resource_collection(True)
    assert observer.get_resources_dir() is None
    observer.register_callback(str(tmp_path / "trace.json"))
    assert observer.get_resources_dir() == str(tmp_path / "trace_resources")
    assert (tmp_path / "trace_resources").is_dir()
    observer.cleanup()
