"""Lazy clones: tensors that show the same bytes until one of them is written."""

from __future__ import annotations

import copy
import ctypes
import gc
import io
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import _C

torch: Any = pullback

SIZES = [6, 1000]


def is_lazy(tensor: pullback.Tensor) -> bool:
    return bool(_C._is_cow_tensor(tensor))


def addresses(tensor: pullback.Tensor) -> tuple[int, int]:
    """Where the storage is, and where the elements are."""
    return _C._storage_address(tensor), _C._data_address(tensor)


@pytest.mark.parametrize("size", SIZES)
def test_a_lazy_clone_has_a_storage_of_its_own_over_the_same_bytes(size: int) -> None:
    x = torch.arange(float(size))
    before = addresses(x)
    for y in (x._lazy_clone(), torch._lazy_clone(x)):
        assert is_lazy(x)
        assert is_lazy(y)
        assert addresses(x) == before
        assert _C._storage_address(y) != before[0]
        assert _C._data_address(y) == before[1]
        assert not y.is_set_to(x)
        torch.testing.assert_close(y, x)
    view = x.view(-1)
    assert is_lazy(view)
    assert addresses(view) == before


READERS: dict[str, Callable[[pullback.Tensor], object]] = {
    "ops": lambda t: (t + t).sum().item(),
    "printing": repr,
    "lists": pullback.Tensor.tolist,
    "copies": lambda t: (t.clone(), t.double(), copy.copy(t), t.contiguous()),
    "deepcopy": copy.deepcopy,
    "being copied": lambda t: torch.empty_like(t).copy_(t),
    "comparison": lambda t: torch.equal(t, t),
    "indexing": lambda t: (t[1:], t[[0, 1]], t[0].item()),
    "its storage": lambda t: (t.untyped_storage()[0], t.untyped_storage().tolist()),
    "a copy of its storage": lambda t: t.untyped_storage().clone(),
    "aliases": lambda t: (t.detach(), t.data, torch.empty(0).set_(t.untyped_storage())),
    "transposing": lambda t: t.view(2, -1).t_(),
    "shrinking": lambda t: t.resize_(2),
    "another lazy clone": pullback.Tensor._lazy_clone,
    "requires_grad_": lambda t: t.requires_grad_(),
    "statistics that are not updated": lambda t: torch.nn.functional.batch_norm(
        torch.rand(4, 6), t, torch.ones(6)
    ),
    "its address to read": lambda t: t.const_data_ptr(),
}


@pytest.mark.parametrize("reads", READERS.values(), ids=READERS)
def test_readers_leave_it_lazy(reads: Callable[[pullback.Tensor], object]) -> None:
    x = torch.arange(6.0)
    y = x._lazy_clone()
    kept = reads(y)
    assert is_lazy(x)
    assert is_lazy(y)
    assert _C._data_address(x) == _C._data_address(y)
    del kept


def through(address: int) -> None:
    ctypes.c_float.from_address(address).value = 7.0


def by_array(t: Any) -> None:
    t.numpy()[0] = 7.0


def by_dlpack(t: Any) -> None:
    torch.from_dlpack(t)[0] = 7.0


def by_storage(t: Any) -> None:
    t.untyped_storage()[3] = 65


def shared_memory(t: Any) -> None:
    t.share_memory_()
    t[0] = 7.0


WRITERS: dict[str, Callable[[Any], object]] = {
    "in place": lambda t: t.add_(1),
    "items": lambda t: t.__setitem__(0, 7.0),
    "a view": lambda t: t.view(-1)[1:].mul_(3),
    "a view's view": lambda t: t.view(2, -1).t()[0].fill_(9),
    "out=": lambda t: torch.add(t, 1, out=t),
    "copies": lambda t: t.copy_(torch.ones(())),
    "zeros": lambda t: t.zero_(),
    "random numbers": lambda t: t.uniform_(10, 11),
    "NumPy": by_array,
    "DLPack": by_dlpack,
    "its address": lambda t: through(t.data_ptr()),
    "its storage's address": lambda t: through(t.untyped_storage().data_ptr()),
    "its storage's bytes": by_storage,
    "its storage's fill_": lambda t: t.untyped_storage().fill_(1),
    "its storage's copy_": lambda t: t.untyped_storage().copy_(torch.ones(6).untyped_storage()),
    "a part of its storage": lambda t: t.untyped_storage()[0:4].fill_(66),
    "growing": lambda t: t.resize_(4000).zero_(),
    "growing its storage": lambda t: t.untyped_storage().resize_(40000).fill_(3),
    "shared memory": shared_memory,
    "no_grad": lambda t: torch.nn.init.constant_(t, 4.0),
    "foreach": lambda t: torch._foreach_add_([t], 1.0),
    "running statistics": lambda t: torch.nn.functional.batch_norm(
        torch.rand(4, 6), t, torch.ones(6), training=True
    ),
    "optimizers": lambda t: sgd(t),
}


def sgd(t: pullback.Tensor) -> None:
    p = torch.nn.Parameter(t)
    p.grad = torch.ones_like(p)
    torch.optim.SGD([p], lr=1.0).step()


@pytest.mark.parametrize("writes", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("to_source", [False, True])
def test_a_write_to_one_is_not_seen_by_the_other(
    writes: Callable[[Any], object], to_source: bool
) -> None:
    x = torch.arange(6.0)
    y = x._lazy_clone()
    written, other = (x, y) if to_source else (y, x)
    address = _C._data_address(other)
    writes(written)
    assert not is_lazy(written)
    assert is_lazy(other)
    assert other.tolist() == [0, 1, 2, 3, 4, 5]
    assert written.flatten()[:6].tolist() != [0, 1, 2, 3, 4, 5]
    # The last one that shows the bytes takes them as they are.
    other.mul_(2)
    assert not is_lazy(other)
    assert _C._data_address(other) == address
    assert other.tolist() == [0, 2, 4, 6, 8, 10]


def test_arrays_that_show_the_memory_are_not_surprised() -> None:
    x = torch.arange(6.0)
    array = x.numpy()
    y = x._lazy_clone()
    assert not is_lazy(x)
    array[0] = 5.0
    assert (x[0].item(), y[0].item()) == (5.0, 0.0)
    x[1] = 8.0
    assert array[1] == 8.0
    of_numpy = torch.from_numpy(np.ones(3, np.float32))
    assert _C._data_address(of_numpy._lazy_clone()) != _C._data_address(of_numpy)
    shared = torch.ones(3).share_memory_()
    assert not is_lazy(shared._lazy_clone())
    assert not shared._lazy_clone().is_shared()


def test_pickles_and_files_hold_two_tensors() -> None:
    x = torch.arange(6.0)
    y = x._lazy_clone()
    file = io.BytesIO()
    torch.save([x, y], file)
    file.seek(0)
    a, b = torch.load(file)
    a[0] = 9
    assert b.tolist() == [0, 1, 2, 3, 4, 5]


def test_gradients_flow_and_saved_values_stay() -> None:
    x = torch.arange(4.0, requires_grad=True)
    y = x._lazy_clone()
    assert y.grad_fn is not None
    assert y.grad_fn.name() == "LazyCloneBackward0"
    product = y * y
    with torch.no_grad():
        x.zero_()
    product.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0, 2, 4, 6]
    z = torch.arange(4.0)._lazy_clone().requires_grad_()
    square = z * z
    with torch.no_grad():
        z.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.sum().backward()


def test_transforms_and_devices() -> None:
    x = torch.arange(6.0).view(3, 2)
    torch.testing.assert_close(torch.vmap(torch._lazy_clone)(x), x)
    value, tangent = torch.func.jvp(torch._lazy_clone, (x,), (2 * x,))
    torch.testing.assert_close((value, tangent), (x, 2 * x))
    meta = torch.ones(3, device="meta")._lazy_clone()
    assert meta.device.type == "meta"
    with pytest.raises(NotImplementedError):
        torch.eye(2).to_sparse()._lazy_clone()
    part = x[:, 1:]._lazy_clone()
    assert (part.stride(), part.storage_offset()) == ((2, 1), 1)
    assert torch.tensor([1 + 2j]).conj()._lazy_clone().tolist() == [1 - 2j]


@pytest.mark.parametrize("size", SIZES)
def test_the_memory_goes_with_the_last_one(size: int) -> None:
    gc.collect()
    x = torch.rand(size)
    expected = x.tolist()
    clones = [x._lazy_clone() for _ in range(4)]
    clones[0].add_(1)
    del x
    other = [torch.rand(size) for _ in range(20)]
    while len(clones) > 1:
        assert clones[-1].tolist() == expected
        del clones[1]
    del other
    assert clones[0].tolist() != expected


def test_threads_write_their_own_clones() -> None:
    x = torch.arange(1000.0)
    clones = [x._lazy_clone() for _ in range(8)]
    start = threading.Barrier(8)

    def write(place: int) -> None:
        start.wait()
        clones[place].add_(place)

    threads = [threading.Thread(target=write, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    base = torch.arange(1000.0)
    torch.testing.assert_close(x, base)
    for place, clone in enumerate(clones):
        torch.testing.assert_close(clone, base + place)


def test_what_is_asked_of_other_things_is_refused() -> None:
    for ask in (_C._is_cow_tensor, _C._data_address, _C._storage_address):
        with pytest.raises(TypeError, match="expected a Tensor, but got int"):
            ask(3)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="invalid storage"):
        _C._data_address(torch.eye(2).to_sparse())
