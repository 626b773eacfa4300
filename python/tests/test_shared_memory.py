"""`share_memory_`: memory that processes which are forked later share."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback import nn

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


def in_child(body: Callable[[], Any]) -> None:
    """Runs something in a forked process, and waits for its end."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            body()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# Storages of each kind: behind the header, in a block of their own, of somebody else.
SIZES = {"short": 3, "long": 5000}


@pytest.mark.parametrize("count", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.int8, torch.complex128, torch.bool], ids=str
)
def test_the_content_moves_with_the_tensor(count: int, dtype: Any) -> None:
    x = torch.arange(count).to(dtype)
    expected, version, storage = x.tolist(), x._version, x.untyped_storage()
    before = x.data_ptr()
    assert not x.is_shared()
    assert x.share_memory_() is x
    assert x.is_shared()
    assert storage.is_shared()
    assert x.untyped_storage() is storage
    assert x.data_ptr() != before
    assert (x.tolist(), x._version) == (expected, version)
    assert storage.nbytes() == count * dtype.itemsize
    moved = x.data_ptr()
    assert x.share_memory_().data_ptr() == moved


@forks
@pytest.mark.parametrize("count", SIZES.values(), ids=SIZES)
def test_a_child_writes_what_its_parent_reads(count: int) -> None:
    shared, own = torch.zeros(count).share_memory_(), torch.zeros(count)

    def write() -> None:
        shared[1:].add_(7)
        own[1:].add_(7)

    in_child(write)
    assert shared[:3].tolist() == [0, 7, 7]
    assert shared[-1].item() == 7
    assert not own.any()


@forks
def test_a_parent_writes_what_its_child_reads() -> None:
    flag = torch.zeros(2, dtype=torch.int64).share_memory_()
    flag[0] = 41

    def answer() -> None:
        flag[1] = flag[0] + 1

    in_child(answer)
    assert flag.tolist() == [41, 42]


def test_views_go_with_it_and_results_do_not() -> None:
    x = torch.arange(6.0)
    view = x[2:].reshape(2, 2)
    x.share_memory_()
    assert view.is_shared()
    assert x.detach().is_shared()
    x[2] = 9
    assert view.tolist() == [[9, 3], [4, 5]]
    view.zero_()
    assert x.tolist() == [0, 1, 0, 0, 0, 0]
    for other in (x.clone(), x + 1, copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert not other.is_shared()


def test_gradients_flow_as_before() -> None:
    x = torch.ones(3, requires_grad=True)
    y = (x * 2).exp()
    x.share_memory_()
    y.sum().backward()
    assert x.requires_grad
    assert torch.allclose(x.grad, 2 * torch.full((3,), 2.0).exp())


def test_memory_of_others_is_left_to_them() -> None:
    array = np.arange(3.0)
    alive = weakref.ref(array)
    x = torch.from_numpy(array).share_memory_()
    x[0] = 5
    assert array.tolist() == [0, 1, 2]
    assert x.tolist() == [5, 1, 2]
    del array
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("count", SIZES.values(), ids=SIZES)
def test_arrays_over_the_old_memory_keep_it(count: int) -> None:
    x = torch.zeros(count)
    array = x.numpy()
    x.share_memory_()
    x.fill_(3)
    del x
    gc.collect()
    torch.ones(count).share_memory_()
    assert not array.any()


def test_shared_memory_cannot_grow() -> None:
    x = torch.zeros(4).share_memory_()
    assert x.resize_(2).shape == (2,)
    with pytest.raises(RuntimeError, match="not resizable"):
        x.resize_(100)
    with pytest.raises(RuntimeError, match="not resizable"):
        x.untyped_storage().resize_(1000)
    assert not x.untyped_storage().resizable()


def test_storages_without_elements_and_others() -> None:
    assert torch.empty(0).share_memory_().is_shared()
    storage = torch.UntypedStorage(4)
    assert storage.share_memory_() is storage
    assert storage.is_shared()
    assert storage.filename is None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "TypedStorage is deprecated")
        typed = torch.storage._typed(torch.UntypedStorage(4), torch.float32)
        assert typed.share_memory_() is typed
        assert typed.is_shared()
    sparse = torch.sparse_coo_tensor([[0]], [1.0], (2,))
    for ask in (sparse.share_memory_, sparse.is_shared):
        with pytest.raises(NotImplementedError, match="Cannot access storage of SparseTensorImpl"):
            ask()


def test_modules_share_their_parameters() -> None:
    model = nn.Linear(2, 2)
    assert model.share_memory() is model
    assert all(parameter.is_shared() for parameter in model.parameters())


def mapped() -> int:
    """How many bytes of memory that it can share the process has mapped."""
    with open("/proc/self/maps", encoding="ascii") as lines:
        ranges = [
            line.split()[0].split("-")
            for line in lines
            if "/memfd:pullback" in line or "/torch_" in line
        ]
    return sum(int(end, 16) - int(start, 16) for start, end in ranges)


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="maps are listed in /proc only")
def test_the_memory_is_given_back() -> None:
    gc.collect()
    before = mapped()
    kept = [torch.zeros(10_000).share_memory_() for _ in range(5)]
    assert mapped() >= before + 5 * 40_000
    assert torch.stack(kept).sum().item() == 0
    del kept
    gc.collect()
    assert mapped() == before


def test_moving_does_not_hold_twice_the_memory() -> None:
    live = torch._C._memory_live()
    x = torch.zeros(1_000_000)
    assert torch._C._memory_live() >= live + 4_000_000
    x.share_memory_()
    # What held the content before is free; what holds it now is not the allocator's.
    assert torch._C._memory_live() < live + 1_000_000


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated:UserWarning")
def test_typed_storages_say_where_their_shared_memory_is() -> None:
    x = torch.tensor([1, 2, 3], dtype=torch.int32)
    descriptor, nbytes = x.storage()._share_fd_cpu_()
    assert (os.pread(descriptor, nbytes, 0), x.is_shared()) == (x.numpy().tobytes(), True)
    assert x.storage()._share_fd_cpu_() == (descriptor, nbytes)
    x.fill_(7)
    assert os.pread(descriptor, nbytes, 0) == x.numpy().tobytes()
    y = torch.tensor([4, 5], dtype=torch.int16)
    _, path, nbytes = y.storage()._share_filename_cpu_()
    with open(path, "rb") as file:
        assert file.read(nbytes) == y.numpy().tobytes()
    with pytest.raises(RuntimeError, match="shared in another way already"):
        x.storage()._share_filename_cpu_()
    for name in ("_share_fd_cpu_", "_share_filename_cpu_"):
        with pytest.raises(RuntimeError, match="only available on CPU"):
            getattr(torch.zeros(2, device="meta").storage(), name)()
    del y
    assert not os.path.exists(path)
