"""A process alone is a group of one: what goes around comes back, and the rest is refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import pullback as torch
import pullback.distributed as dist
from pullback import nn
from pullback.nn.parallel import DistributedDataParallel
from pullback.utils.data.distributed import DistributedSampler


@pytest.fixture
def world() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), world_size=1, rank=0)
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def test_programs_that_ask_first_train_alone() -> None:
    assert dist.is_available()
    assert not dist.is_initialized()
    assert dist.is_backend_available("gloo")
    assert not dist.is_nccl_available()
    assert not dist.is_mpi_available()


def test_nothing_goes_without_a_group() -> None:
    for use in (
        dist.get_rank,
        dist.get_world_size,
        dist.get_backend,
        dist.barrier,
        lambda: dist.all_reduce(torch.ones(1)),
        lambda: dist.new_group([0]),
    ):
        with pytest.raises(ValueError, match="process group has not been initialized"):
            use()
    with pytest.raises(AssertionError, match="Process group cannot be None"):
        dist.destroy_process_group()
    assert dist.group.WORLD is None


def init_env(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in values.items():
        monkeypatch.setenv(name, value)


def test_a_group_is_made_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    init_env(monkeypatch, RANK="0", WORLD_SIZE="1", MASTER_ADDR="localhost")
    with pytest.raises(ValueError, match="environment variable MASTER_PORT expected, but not set"):
        dist.init_process_group("gloo")
    monkeypatch.setenv("MASTER_PORT", "29500")
    dist.init_process_group()
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "gloo")
    dist.destroy_process_group()
    init_env(monkeypatch, RANK="0", WORLD_SIZE="4", MASTER_ADDR="localhost", MASTER_PORT="29500")
    with pytest.raises(RuntimeError, match="a world of 4 processes is not available: a process"):
        dist.init_process_group("gloo")
    assert not dist.is_initialized()


def test_a_group_is_made_by_an_address_or_a_file(tmp_path: Path) -> None:
    for url in ("tcp://127.0.0.1:29500", f"file://{tmp_path}/store"):
        dist.init_process_group("gloo", init_method=url, rank=0, world_size=1)
        assert dist.is_initialized()
        dist.destroy_process_group()
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:1?rank=0&world_size=1")
    dist.destroy_process_group()
    with pytest.raises(ValueError, match="rank parameter missing"):
        dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29500")
    with pytest.raises(RuntimeError, match="No rendezvous handler for foo://"):
        dist.init_process_group("gloo", init_method="foo://x", rank=0, world_size=1)


def test_arguments_of_a_group_are_checked(world: None) -> None:
    with pytest.raises(ValueError, match="initialize the default process group twice"):
        dist.init_process_group("gloo", store=dist.HashStore(), world_size=1, rank=0)
    dist.destroy_process_group()
    store = dist.HashStore()
    for arguments, error, text in (
        ({"backend": "nope"}, AssertionError, "Unknown backend type nope"),
        ({"backend": "nccl"}, RuntimeError, "doesn't have NCCL built in"),
        ({"rank": 3}, ValueError, "rank must be from 0 to world_size - 1"),
        ({"world_size": -1}, AssertionError, "world_size must be positive if using store"),
        ({"rank": -1}, AssertionError, "rank must be non-negative if using store"),
        ({"init_method": "env://"}, AssertionError, "both init_method and store"),
    ):
        given: dict[str, Any] = {"world_size": 1, "rank": 0, "store": store, **arguments}
        with pytest.raises(error, match=text):
            dist.init_process_group(**given)
    dist.init_process_group("cpu:gloo,cuda:nccl", store=store, world_size=1, rank=0)
    assert dist.get_backend_config() == "cpu:gloo,cuda:gloo"


def test_reductions_leave_tensors_as_they_are(world: None) -> None:
    x = torch.tensor([3.0, 2.0])
    for name in ("SUM", "AVG", "PRODUCT", "MIN", "MAX"):
        assert dist.all_reduce(x, op=getattr(dist.ReduceOp, name)) is None
    assert dist.reduce(x, 0) is None
    assert dist.all_reduce_coalesced([x, x]) is None
    assert x.tolist() == [3, 2]
    with pytest.raises(RuntimeError, match=r"Cannot use ReduceOp\.BAND with non-integral dtype"):
        dist.all_reduce(x, op=dist.ReduceOp.BAND)
    dist.all_reduce(torch.tensor([3, 2]), op=dist.ReduceOp.BAND)
    with pytest.raises(ValueError, match=r"all_reduce does not support RedOpType\.MAX on complex"):
        dist.all_reduce(torch.ones(2, dtype=torch.complex64), op=dist.ReduceOp.MAX)
    with pytest.raises(TypeError, match=r"Expected parameter `tensor` of type torch\.Tensor"):
        dist.all_reduce(3)
    with pytest.raises(TypeError, match="op must be a member of ReduceOp"):
        dist.all_reduce(x, op="sum")
    with pytest.raises(RuntimeError, match="reduce: invalid root rank: 1"):
        dist.reduce(x, 1)


def test_a_handle_is_done(world: None) -> None:
    x = torch.ones(2)
    work = dist.all_reduce(x, async_op=True)
    assert work.wait()
    assert (work.is_completed(), work.is_success(), work.exception()) == (True, True, None)
    assert work.result()[0] is x
    assert work.get_future().wait()[0] is x
    with pytest.raises(RuntimeError, match="recv or recv-from-any call"):
        work.source_rank()
    assert dist.barrier(async_op=True).wait()
    assert dist.barrier() is None
    dist.monitored_barrier()


def test_broadcasts_are_from_this_process(world: None) -> None:
    x = torch.ones(2)
    assert dist.broadcast(x, 0) is None
    assert dist.broadcast(x, group_src=0, async_op=True).wait()
    for arguments, error, text in (
        ({"src": 1}, RuntimeError, "broadcast: invalid root rank: 1"),
        ({}, ValueError, "Must specify global_rank or group_rank"),
        ({"src": 0, "group_src": 0}, ValueError, "Can't specify both group_rank and global_rank"),
    ):
        with pytest.raises(error, match=text):
            dist.broadcast(x, **arguments)


WRITES = {
    "all_gather": lambda out, x: dist.all_gather([out], x),
    "all_gather_coalesced": lambda out, x: dist.all_gather_coalesced([[out]], [x]),
    "all_gather_into_tensor": lambda out, x: dist.all_gather_into_tensor(out, x),
    "reduce_scatter": lambda out, x: dist.reduce_scatter(out, [x]),
    "reduce_scatter_tensor": lambda out, x: dist.reduce_scatter_tensor(out, x),
    "scatter": lambda out, x: dist.scatter(out, [x], src=0),
    "gather": lambda out, x: dist.gather(x, [out], dst=0),
    "all_to_all": lambda out, x: dist.all_to_all([out], [x]),
    "all_to_all_single": lambda out, x: dist.all_to_all_single(out, x),
}


@pytest.mark.parametrize("name", sorted(WRITES))
def test_what_is_sent_is_written(name: str, world: None) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    output = torch.zeros(2)
    assert WRITES[name](output, x) is None
    assert output.tolist() == [1, 2]
    assert not output.requires_grad
    with pytest.raises(RuntimeError, match="invalid tensor size at index 0"):
        WRITES[name](torch.zeros(3), x)
    with pytest.raises(ValueError, match="tensors with different dtypes"):
        WRITES[name](torch.zeros(2, dtype=torch.float64), x)


def test_lists_have_a_tensor_for_each_process(world: None) -> None:
    x = torch.ones(2)
    for outputs in ([], [x, x]):
        with pytest.raises(RuntimeError, match="expected length 1, got"):
            dist.all_gather(outputs, x)
    with pytest.raises(TypeError, match="Expected parameter `tensor_list` of type List"):
        dist.all_gather(x, x)
    with pytest.raises(RuntimeError, match="invalid input tensor list size, must be world size"):
        dist.reduce_scatter(x, [x, x])
    with pytest.raises(ValueError, match="``scatter_list`` must be specified on source rank"):
        dist.scatter(x)
    with pytest.raises(RuntimeError, match="Incorrect input list size 2"):
        dist.scatter(x, [x, x], src=0)
    with pytest.raises(ValueError, match="``gather_list`` must be specified on destination rank"):
        dist.gather(x)
    with pytest.raises(RuntimeError, match="Split sizes doesn't match total dim 0 size"):
        dist.all_to_all_single(x, x, [1], [1])


def test_there_is_nobody_to_send_to(world: None) -> None:
    x = torch.ones(2)
    for send in (dist.send, dist.isend, dist.recv, dist.irecv):
        with pytest.raises(ValueError, match="same as the rank of the current process"):
            send(x, 0)
        with pytest.raises(ValueError, match="Global rank 1 is not part of group"):
            send(x, 1)
    with pytest.raises(ValueError, match="Global rank 1 is not part of group"):
        dist.batch_isend_irecv([dist.P2POp(dist.isend, x, 1)])
    with pytest.raises(ValueError, match="Invalid ``op``"):
        dist.P2POp(print, x, 1)


def test_objects_are_copied(world: None) -> None:
    thing = {"a": [1]}
    found: list[Any] = [None]
    dist.all_gather_object(found, thing)
    assert found == [thing]
    assert found[0] is not thing
    dist.gather_object(3, found, 0)
    assert found == [3]
    dist.scatter_object_list(found, [7], 0)
    assert found == [7]
    kept = [thing]
    dist.broadcast_object_list(kept, 0)
    assert kept[0] is thing
    with pytest.raises(IndexError):
        dist.all_gather_object([], 1)
    with pytest.raises(ValueError, match="list of size at least 1"):
        dist.scatter_object_list([], [7], 0)
    with pytest.raises(ValueError, match="must be specified on destination rank"):
        dist.gather_object(3)


def test_groups_of_this_process(world: None) -> None:
    group = dist.new_group([0], group_desc="mine")
    assert (group.rank(), group.size(), group.name(), group.group_desc) == (0, 1, "gloo", "mine")
    assert dist.get_process_group_ranks(group) == [0]
    assert (dist.get_group_rank(group, 0), dist.get_global_rank(group, 0)) == (0, 0)
    assert dist.new_subgroups(1)[1][0].size() == 1
    assert dist.get_pg_count() == 3
    for ranks, text in (([1], "Rank 1 is out of range"), ([0, 0], "duplicate entries")):
        with pytest.raises(ValueError, match=text):
            dist.new_group(ranks)
    with pytest.raises(ValueError, match="Global rank 3 is not part of group"):
        dist.get_group_rank(group, 3)
    dist.destroy_process_group(group)
    with pytest.raises(ValueError, match="Invalid process group specified"):
        dist.all_reduce(torch.ones(1), group=group)
    none = dist.new_group([])
    assert (dist.get_rank(none), dist.get_world_size(none)) == (-1, -1)
    with pytest.warns(UserWarning, match="does not contain this process"):
        assert dist.all_reduce(torch.ones(1), group=none) is None


def test_a_mesh_of_one(world: None) -> None:
    mesh = dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("a", "b"))
    assert (mesh.shape, mesh.ndim, mesh.size()) == ((1, 1), 2, 1)
    assert mesh["a"].get_group() is mesh.get_group("a")
    assert mesh["a"].get_group().size() == 1
    assert mesh.get_coordinate() == (0, 0)
    assert mesh == dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("a", "b"))
    assert mesh != dist.init_device_mesh("cpu", (1, 1))
    assert repr(mesh["b"]) == "DeviceMesh((1,), 'cpu', mesh_dim_names=('b',))"
    with pytest.raises(KeyError, match="'c' does not exist"):
        mesh.get_group("c")
    with pytest.raises(RuntimeError, match="a mesh of 4 processes is not available"):
        dist.init_device_mesh("cpu", (4,))
    with pytest.raises(RuntimeError, match="Device type with index"):
        dist.init_device_mesh("cuda:0", (1,))


@pytest.mark.parametrize("kind", ["hash", "file", "prefix", "tcp"])
def test_stores(kind: str, tmp_path: Path) -> None:
    store = {
        "hash": lambda: dist.HashStore(),
        "file": lambda: dist.FileStore(str(tmp_path / "store"), 1),
        "prefix": lambda: dist.PrefixStore("pre", dist.HashStore()),
        "tcp": lambda: dist.TCPStore("localhost", 0, 1, is_master=True),
    }[kind]()
    store.set("a", "b")
    store.append("a", b"c")
    assert store.get("a") == b"bc"
    assert (store.add("n", 2), store.add("n", 3), store.get("n")) == (2, 5, b"5")
    assert store.compare_set("q", "", "v") == b"v"
    assert store.compare_set("q", "zz", "w") == b"v"
    assert store.check(["a", "q"])
    assert (store.num_keys(), store.delete_key("q"), store.delete_key("q")) == (3, True, False)
    store.multi_set(["x", "y"], ["1", "2"])
    assert store.multi_get(["x", "y"]) == [b"1", b"2"]
    store.set_timeout(timedelta(milliseconds=10))
    with pytest.raises(dist.DistStoreError, match="Wait timeout"):
        store.get("nope")
    with pytest.raises(TypeError, match="a store keeps strings and bytes, not int"):
        store.set("a", 3)


def test_stores_see_each_other(tmp_path: Path) -> None:
    inner = dist.HashStore()
    dist.PrefixStore("pre", inner).set("k", "v")
    assert inner.get("pre/k") == b"v"
    path = str(tmp_path / "a b")
    dist.FileStore(path).set("k\n", "v")
    assert dist.FileStore(path).get("k\n") == b"v"
    with pytest.raises(dist.DistNetworkError, match="a process trains alone here"):
        dist.TCPStore("localhost", 29500, 2, is_master=False)


def test_a_data_parallel_module_is_the_module(world: None) -> None:
    linear = nn.Linear(2, 1)
    model = DistributedDataParallel(linear, find_unused_parameters=True)
    assert list(model.state_dict()) == ["module.weight", "module.bias"]
    x = torch.tensor([[1.0, 2.0]])
    with model.no_sync():
        assert not model.require_backward_grad_sync
        model(x).sum().backward()
    assert model.require_backward_grad_sync
    with model.join():
        model(x).sum().backward()
    assert linear.weight.grad.tolist() == [[2, 4]]
    for module, arguments, error, text in (
        (nn.ReLU(), {}, RuntimeError, "doesn't have any parameter that requires a gradient"),
        (linear, {"device_ids": [0]}, ValueError, "device_ids and output_device arguments"),
        (3, {}, TypeError, "expects a Module"),
        (linear, {"mixed_precision": 1}, NotImplementedError, "use torch.autocast"),
    ):
        with pytest.raises(error, match=text):
            DistributedDataParallel(module, **arguments)
    with pytest.raises(NotImplementedError, match="sends no gradients"):
        model.register_comm_hook(None, print)


def test_a_data_parallel_module_wants_a_group() -> None:
    with pytest.raises(ValueError, match="process group has not been initialized"):
        DistributedDataParallel(nn.Linear(1, 1))


def test_indices_are_divided_as_pytorch_divides_them() -> None:
    # (Recorded with PyTorch 2.15.)
    given = {"num_replicas": 3, "rank": 1}
    assert list(DistributedSampler(range(10), seed=3, **given)) == [0, 8, 9, 6]
    assert list(DistributedSampler(range(10), shuffle=False, **given)) == [1, 4, 7, 0]
    last = DistributedSampler(range(10), 3, 2, shuffle=False, drop_last=True)
    assert (list(last), len(last)) == ([2, 5, 8], 3)
    sampler = DistributedSampler(range(10), num_replicas=4, rank=3, seed=1)
    sampler.set_epoch(5)
    assert (list(sampler), len(sampler), sampler.total_size) == ([1, 2, 7], 3, 12)
    assert list(DistributedSampler(range(2), 5, 4, shuffle=False)) == [0]
    with pytest.raises(ValueError, match=r"rank should be in the interval \[0, 1\]"):
        DistributedSampler(range(3), num_replicas=2, rank=2)
    with pytest.raises(ValueError, match="process group has not been initialized"):
        DistributedSampler(range(3))


def test_levels_and_ranks_of_the_machine(monkeypatch: pytest.MonkeyPatch, world: None) -> None:
    assert dist.get_debug_level() == dist.DebugLevel.OFF
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "INFO")
    dist.set_debug_level_from_env()
    assert dist.get_debug_level() == dist.DebugLevel.INFO
    dist.set_debug_level(dist.DebugLevel.OFF)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    with pytest.raises(RuntimeError, match="LOCAL_RANK is not in the environment"):
        dist.get_node_local_rank()
    assert dist.get_node_local_rank(fallback_rank=2) == 2
    assert not dist.supports_complex(dist.ReduceOp.MAX)
    assert dist.get_default_backend_for_device("cpu") == "gloo"


def test_what_needs_several_processes_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"FullyShardedDataParallel is not available: a process"):
        dist.fsdp.FullyShardedDataParallel(nn.Linear(1, 1))
    with pytest.raises(RuntimeError, match="init_rpc is not available"):
        dist.rpc.init_rpc("worker")
    assert not dist.rpc.is_available()
