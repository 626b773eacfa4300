"""Backward over simulated devices: threads, errors, warnings, and a model trained there."""

from __future__ import annotations

import threading
import traceback
import warnings
from typing import Any

import pytest

import pullback as torch


def _thread_watcher() -> tuple[list[int], Any]:
    seen: list[int] = []
    return seen, lambda grad: seen.append(threading.get_ident())


def test_device_nodes_run_in_a_thread_and_others_in_the_callers() -> None:
    seen, watch = _thread_watcher()
    x = torch.ones(2, requires_grad=True)
    here = x * 2
    here.register_hook(watch)
    there = here.cuda() * 3
    there.register_hook(watch)
    there.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [6.0, 6.0]
    assert seen[0] != threading.get_ident()
    assert seen[1] == threading.get_ident()
    with torch.autograd.set_multithreading_enabled(False):
        (x.cuda() * 3).sum().backward()
        y = x.cuda() * 3
        y.register_hook(watch)
        y.sum().backward()
    assert seen[2] == threading.get_ident()


class _Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        raise LookupError("nothing found")


def test_an_exception_of_a_devices_thread_is_raised_with_its_traceback() -> None:
    x = torch.ones(2, device="cuda:1", requires_grad=True)
    y = _Broken.apply(x).sum()
    with pytest.raises(LookupError, match="nothing found") as caught:
        y.backward()
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert frames[-1].name == "backward"
    assert "nothing found" in (frames[-1].line or "")
    (x * 2).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_warning_of_a_devices_thread_is_given_in_the_callers() -> None:
    x = torch.ones(2, device="cuda", requires_grad=True)
    y = x * 2

    def hook(grad: torch.Tensor) -> None:
        torch.empty(3).add_(0)
        torch.add(torch.ones(2), torch.ones(2), out=torch.empty(3))

    y.register_hook(hook)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        y.sum().backward()
    assert any("output with one or more elements was resized" in str(w.message) for w in given)
    again = x * 2
    again.register_hook(hook)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="was resized"):
            again.sum().backward()


def test_callbacks_and_introspection_know_the_task() -> None:
    ids, ends = [], []
    x = torch.ones(2, device="cuda:1", requires_grad=True)
    y = x * 2

    def hook(grad: torch.Tensor) -> None:
        ids.append(torch._C._current_graph_task_id())
        torch.autograd.Variable._execution_engine.queue_callback(
            lambda: ends.append(threading.get_ident())
        )

    x.register_hook(hook)
    y.cpu().register_hook(hook)
    y.sum().backward()
    assert len(ids) == 1
    assert ids[0] >= 0
    assert ends == [threading.get_ident()]


def test_checkpoint_and_saved_hooks_work_on_a_devices_thread() -> None:
    packed = []

    def pack(t: torch.Tensor) -> torch.Tensor:
        packed.append(t.device)
        return t.cpu()

    x = torch.tensor([1.0, 2.0], device="cuda:1", requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t.to("cuda:1")):
        y = x.exp() * x
    y.sum().backward()
    assert packed
    assert all(d == torch.device("cuda:1") for d in packed)
    expected = (x.detach() + 1) * x.detach().exp()
    assert x.grad is not None
    assert torch.allclose(x.grad, expected)
    x.grad = None
    with torch.autograd.graph.save_on_cpu():
        z = x.exp() * x
    z.sum().backward()
    assert torch.allclose(x.grad, expected)
    for reentrant in (True, False):
        x.grad = None
        torch.utils.checkpoint.checkpoint(
            lambda t: t.exp() * t, x, use_reentrant=reentrant
        ).sum().backward()
        assert torch.allclose(x.grad, expected)


def test_a_gradient_belongs_on_the_device_of_its_tensor() -> None:
    x = torch.ones(2, device="cuda:1", requires_grad=True)
    with pytest.raises(RuntimeError, match=r"device|cuda"):
        x.grad = torch.ones(2)
    with pytest.raises(RuntimeError, match="expected device cuda:1 but got cpu"):
        (x * 2).backward(torch.ones(2))


def test_a_model_is_trained_to_the_same_bits_on_a_device() -> None:
    def train(device: str, kind: Any) -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Conv2d(1, 4, 3),
            torch.nn.BatchNorm2d(4),
            torch.nn.ReLU(),
            torch.nn.MaxPool2d(2),
            torch.nn.Flatten(),
            torch.nn.Dropout(0.1),
            torch.nn.Linear(36, 10),
        )
        x, target = torch.randn(8, 1, 8, 8), torch.randint(0, 10, (8,))
        model, x, target = model.to(device), x.to(device), target.to(device)
        optimizer = kind(model.parameters(), lr=0.05)
        for _ in range(5):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), target).backward()
            optimizer.step()
        assert all(str(p.device) == device for p in model.parameters())
        return [p.detach().cpu() for p in model.state_dict().values()]

    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        here, there = train("cpu", kind), train("cuda:1", kind)
        assert all(torch.equal(a, b) for a, b in zip(here, there, strict=True)), kind


def test_layers_on_two_devices_are_one_model() -> None:
    first, second = torch.nn.Linear(3, 4).to("cuda:0"), torch.nn.Linear(4, 2).to("cuda:1")
    y = second(first(torch.randn(5, 3, device="cuda:0")).relu().to("cuda:1"))
    y.sum().backward()
    for layer, index in ((first, 0), (second, 1)):
        assert layer.weight.grad is not None
        assert layer.weight.grad.device.index == index


class _Two(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + 1, x * 2

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        return grads[0] + 2 * grads[1]


def test_gradients_that_nobody_gave_are_zeros_and_ones_of_the_device() -> None:
    x = torch.ones(2, device="cuda:1", requires_grad=True)
    _Two.apply(x)[1].sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0]
    one = (x.detach()[:1].requires_grad_() * 3).exp()
    edge = torch.autograd.graph.get_gradient_edge(one)
    del one
    torch.autograd.backward(edge)
    unused = torch.ones(1, device="cuda:0", requires_grad=True)
    given = torch.autograd.grad((x * 2).sum(), [x, unused], materialize_grads=True)
    assert [str(g.device) for g in given] == ["cuda:1", "cuda:0"]


def test_jacobians_and_tangents_are_of_the_device() -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, device="cuda:1")
    for matrix in (
        torch.func.jacrev(torch.sin)(x),
        torch.func.jacfwd(torch.sin)(x),
        torch.autograd.functional.jacobian(torch.sin, x),
        torch.autograd.functional.jacobian(torch.sin, x, vectorize=True),
    ):
        assert torch.equal(matrix, x.cos().diag())
    assert torch.autograd.gradcheck(torch.sin, (x.requires_grad_(),), check_forward_ad=True)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x.detach(), torch.ones_like(x))
        tangent = torch.autograd.forward_ad.unpack_dual((dual * 3).cuda(0)).tangent
    assert tangent is not None
    assert str(tangent.device) == "cuda:0"
    assert tangent.tolist() == [3.0, 3.0]
