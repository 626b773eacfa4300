"""Tensors on simulated devices: where they are, what goes between devices, what is refused."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING

import pytest

import pullback as torch

if TYPE_CHECKING:
    from collections.abc import Callable


def test_devices_are_there() -> None:
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() == 2
    assert torch.cuda.get_device_name(1) == "a simulated device"
    torch.cuda.synchronize()
    torch.cuda.simulate(1)
    assert torch.cuda.device_count() == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda d: torch.tensor([1.0, 2.0], device=d),
        lambda d: torch.as_tensor([1.0, 2.0], device=d),
        lambda d: torch.asarray([1.0, 2.0], device=d),
        lambda d: torch.ones(2, device=d),
        lambda d: torch.arange(2, device=d),
        lambda d: torch.eye(2, device=d),
        lambda d: torch.randn(2, device=d),
        lambda d: torch.zeros_like(torch.ones(2), device=d),
        lambda d: torch.ones(2).new_full((2,), 3.0, device=d),
        lambda d: torch.tril_indices(2, 2, device=d),
        lambda d: torch.ones(2, device=d).new_tensor([1.0, 2.0]),
        lambda d: torch.ones(2).to(d),
        lambda d: torch.empty(0, device=d),
    ],
)
def test_a_tensor_is_made_where_it_is_asked_for(make: Callable[[str], torch.Tensor]) -> None:
    made = make("cuda:1")
    assert made.device == torch.device("cuda:1")
    assert made.is_cuda
    assert made.get_device() == 1
    assert not made.is_cpu
    assert made.untyped_storage().device == torch.device("cuda:1")


def test_a_thread_has_a_device_that_cuda_means() -> None:
    assert torch.ones(1, device="cuda").device.index == 0
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1
        assert torch.ones(1, device="cuda").device.index == 1
        assert torch.ones(1).cuda().device.index == 1
        with torch.cuda.device(-1), torch.cuda.device_of(torch.ones(1)):
            assert torch.cuda.current_device() == 1
        with torch.cuda.device_of(torch.ones(1, device="cuda:0")):
            assert torch.cuda.current_device() == 0
    assert torch.cuda.current_device() == 0
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.cuda.set_device(2)
    with torch.device("cuda:1"):
        assert torch.ones(2).device.index == 1


def test_values_come_out() -> None:
    x = torch.tensor([[1.5, 2.0]], device="cuda:1")
    assert x.tolist() == [[1.5, 2.0]]
    assert x[0, 1].item() == 2.0
    assert repr(x) == "tensor([[1.5000, 2.0000]], device='cuda:1')"
    assert x.cpu().device.type == "cpu"
    assert x.type() == "torch.cuda.FloatTensor"
    assert x.type("torch.DoubleTensor").device.type == "cpu"
    with pytest.raises(TypeError, match=r"can't convert cuda:1 device type tensor to numpy"):
        x.numpy()
    with pytest.raises(BufferError, match=r"use tensor.cpu\(\)"):
        x.__dlpack__()


def test_copies_and_pickles_stay_on_the_device() -> None:
    x = torch.tensor([1.0, 2.0], device="cuda:1", requires_grad=True)
    for same in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone(), x.detach()):
        assert same.device.index == 1
        assert same.tolist() == [1.0, 2.0]
    storage = x.untyped_storage()
    assert storage.cpu().device.type == "cpu"
    assert storage.cuda(1) is storage
    assert storage.cuda(0).device.index == 0


@pytest.mark.parametrize(
    "mix",
    [
        lambda a, b: a + b,
        lambda a, b: a.mul_(b),
        lambda a, b: torch.cat([a, b]),
        lambda a, b: torch.dot(a, b),
        lambda a, b: torch.add(a, a, out=b),
        lambda a, b: torch.where(a > 0, a, b),
        lambda a, b: a.index_add_(0, torch.zeros(2, dtype=torch.int64), b),
    ],
)
def test_ops_take_tensors_of_one_device(
    mix: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> None:
    for other in ("cpu", "cuda:1"):
        a, b = torch.ones(2, device="cuda:0"), torch.ones(2, device=other)
        with pytest.raises(RuntimeError, match="on the same device, but found at least two"):
            mix(a, b)
        assert a.tolist() == b.tolist() == [1.0, 1.0]


def test_numbers_and_indices_may_be_in_main_memory() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], device="cuda:0")
    assert (x * torch.tensor(2.0)).tolist() == [2.0, 4.0, 6.0]
    assert x[torch.tensor([2, 0])].tolist() == [3.0, 1.0]
    x[torch.tensor([True, False, False])] = 7.0
    assert x.tolist() == [7.0, 2.0, 3.0]
    y = torch.zeros(3)
    y.copy_(x)
    assert y.tolist() == [7.0, 2.0, 3.0]
    assert y.device.type == "cpu"


def test_what_simulated_devices_lack_says_so() -> None:
    x = torch.ones(2, device="cuda")
    for missing in (
        lambda: torch.Generator("cuda"),
        lambda: x.to_sparse(),
        lambda: torch.nn.parallel.comm.scatter(x, [0], streams=[None]),
    ):
        with pytest.raises(NotImplementedError, match=r"simulated devices|other than the CPU"):
            missing()
    with pytest.raises(RuntimeError, match="device type for generator but found 'cpu'"):
        torch.randn(2, device="cuda", generator=torch.Generator())


def test_vmap_and_transforms_work_there() -> None:
    x = torch.arange(6.0, device="cuda:1").reshape(2, 3)
    rows = torch.func.vmap(torch.func.grad(lambda row: (row**3).sum()))(x)
    assert rows.device.index == 1
    assert rows.tolist() == [[0.0, 3.0, 12.0], [27.0, 48.0, 75.0]]
    tangent = torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),))[1]
    assert torch.equal(tangent, x.cos())
