"""`torch.multiprocessing`: tensors that processes share, and processes started together."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import pytest
import shared_work

import pullback as torch
import pullback.multiprocessing as mp
from pullback import nn

STRATEGIES = sorted(mp.get_all_sharing_strategies())


@pytest.fixture(params=STRATEGIES)
def strategy(request: Any) -> Iterator[str]:
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy(request.param)
    assert mp.get_sharing_strategy() == request.param
    yield request.param
    mp.set_sharing_strategy(before)


def files() -> set[str]:
    folder = "/dev/shm"
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return {name for name in names if name.startswith(f"torch_{os.getpid()}_")}


def sent(value: Any) -> Any:
    """What another process would get, here: the memory comes back by another map."""
    return pickle.loads(bytes(ForkingPickler.dumps(value)))


def test_every_name_of_multiprocessing_is_there() -> None:
    assert set(multiprocessing.__all__) <= set(dir(mp))
    assert set(mp.__all__) >= {"spawn", "start_processes", "Queue", "set_sharing_strategy"}


def test_a_strategy_that_there_is_not_is_refused() -> None:
    with pytest.raises(AssertionError, match="'nonsense'"):
        mp.set_sharing_strategy("nonsense")


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_processes_write_into_a_tensor_of_their_parent(start_method: str, strategy: str) -> None:
    x = torch.zeros(3)
    x.share_memory_()
    mp.start_processes(shared_work.add, (x,), nprocs=2, start_method=start_method)
    assert x.tolist() == [1, 2, 0]


def test_a_model_that_shares_its_memory_is_trained_by_processes() -> None:
    model = nn.Linear(2, 2)
    model.share_memory()
    mp.spawn(shared_work.train, (model,), nprocs=2)
    assert model.weight.tolist() == [[0, 0], [1, 1]]


def test_a_queue_carries_memory_and_no_copy(strategy: str) -> None:
    context: Any = mp.get_context("spawn")
    queue, answers = context.Queue(), context.Queue()
    process = context.Process(target=shared_work.receive, args=(queue, answers))
    process.start()
    x = torch.zeros(2000)
    queue.put(x)
    assert answers.get(timeout=60) == 2000
    assert x.is_shared()
    assert x.sum().item() == 2000
    queue.put(x[:10])
    assert answers.get(timeout=60) == 20
    queue.put(None)
    process.join()
    assert process.exitcode == 0
    assert x.sum().item() == 2010


def test_the_same_memory_is_one_storage_in_the_other_process() -> None:
    context: Any = mp.get_context("spawn")
    queue, answers = context.Queue(), context.Queue()
    process = context.Process(target=shared_work.identity, args=(queue, answers))
    process.start()
    parameter = nn.Parameter(torch.zeros(4))
    queue.put(parameter)
    queue.put(parameter.detach())
    assert answers.get(timeout=60) == (True, True, True)
    process.join()


def test_a_pool_takes_and_gives_tensors() -> None:
    with mp.get_context("spawn").Pool(1) as pool:
        assert pool.apply(shared_work.double, (torch.arange(3),)).tolist() == [0, 2, 4]


def test_what_has_a_history_is_refused() -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        ForkingPickler.dumps(x * 2)
    assert sent(x).requires_grad


@pytest.mark.skipif("file_system" not in STRATEGIES, reason="there is no such strategy")
def test_files_live_as_long_as_their_memory() -> None:
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy("file_system")
    try:
        gc.collect()
        known = files()
        x = torch.ones(3).share_memory_()
        assert len(files() - known) == 1
        y = sent(x)
        y.add_(1)
        assert x.tolist() == [2, 2, 2]
        del x, y
        gc.collect()
        assert files() == known
    finally:
        mp.set_sharing_strategy(before)


@pytest.mark.skipif(
    not os.path.isdir("/proc/self/fd"), reason="descriptors are listed in /proc only"
)
def test_descriptors_live_as_long_as_their_memory(strategy: str) -> None:
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    kept = [torch.ones(3).share_memory_() for _ in range(5)]
    assert len(os.listdir("/proc/self/fd")) <= before + 10
    del kept
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_empty_tensors_and_views_of_a_file_are_sent(tmp_path: Any) -> None:
    assert sent(torch.empty(0, 3)).shape == (0, 3)
    path = tmp_path / "numbers"
    x = torch.from_file(str(path), shared=True, size=3)
    x.copy_(torch.arange(3))
    assert sent(x).tolist() == [0, 1, 2]


def test_other_layouts_and_dtypes_are_sent() -> None:
    sparse = torch.tensor([[0.0, 1.0], [2.0, 0.0]]).to_sparse()
    assert sent(sparse).to_dense().tolist() == [[0, 1], [2, 0]]
    for dtype in (torch.bfloat16, torch.complex64, torch.bool):
        x = torch.ones(2, dtype=dtype)
        assert torch.equal(sent(x), x)
        assert sent(x.untyped_storage()).nbytes() == x.untyped_storage().nbytes()


def test_the_first_failure_is_raised_with_its_traceback() -> None:
    with pytest.raises(mp.ProcessRaisedException, match="the second one fails") as caught:
        mp.spawn(shared_work.fail, nprocs=2)
    assert caught.value.error_index == 1
    assert caught.value.error_pid == caught.value.pid > 0  # type: ignore[attr-defined]
    assert "-- Process 1 terminated with the following error:" in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.error_index, again.pid) == (
        str(caught.value),
        1,
        caught.value.pid,
    )


@pytest.mark.parametrize(("code", "text"), [(3, "exit code 3"), (-15, "signal SIGTERM")])
def test_a_process_that_ends_otherwise_is_named(code: int, text: str) -> None:
    with pytest.raises(mp.ProcessExitedException, match=f"process 0 terminated with {text}") as e:
        mp.spawn(shared_work.leave, (code,))
    assert e.value.exit_code == code


def test_processes_need_not_be_waited_for() -> None:
    x = torch.zeros(2).share_memory_()
    group = mp.spawn(shared_work.add, (x,), nprocs=2, join=False)
    assert group is not None
    assert len(group.pids()) == 2
    while not group.join(timeout=60):
        pass
    assert group.join()
    assert x.tolist() == [1, 2]


def test_another_start_method_of_spawn_is_used_with_a_warning() -> None:
    x = torch.zeros(1).share_memory_()
    with pytest.warns(FutureWarning, match="start_method=spawn"):
        mp.spawn(shared_work.add, (x,), start_method="fork")
    assert x.item() == 1


def test_a_process_that_only_imports_the_package_sends_shared_memory(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import multiprocessing\n"
        "import pullback\n"
        "def send(queue, done):\n"
        "    queue.put(pullback.arange(3.0))\n"
        "    done.wait(60)\n"
        "if __name__ == '__main__':\n"
        "    context = multiprocessing.get_context('spawn')\n"
        "    queue, done = context.Queue(), context.Event()\n"
        "    process = context.Process(target=send, args=(queue, done))\n"
        "    process.start()\n"
        "    found = queue.get(timeout=60)\n"
        "    print(found.tolist(), found.is_shared())\n"
        "    done.set()\n"
        "    process.join()\n"
    )
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[0.0, 1.0, 2.0] True", done.stderr
