"""Modules on two simulated devices: copies, calls at the same time, joined outputs."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as torch
from pullback import nn


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2)).cuda()


def test_outputs_and_gradients_are_those_of_one_device() -> None:
    whole = model().eval()
    parallel = nn.DataParallel(model()).eval()
    assert parallel.device_ids == [0, 1]
    x = torch.randn(5, 3, device="cuda:0")
    expected, found = whole(x), parallel(x)
    assert str(found.device) == "cuda:0"
    np.testing.assert_allclose(
        found.detach().cpu().numpy(), expected.detach().cpu().numpy(), rtol=1e-5
    )
    expected.square().sum().backward()
    found.square().sum().backward()
    for one, other in zip(whole.parameters(), parallel.module.parameters(), strict=True):
        np.testing.assert_allclose(
            other.grad.cpu().numpy(), one.grad.cpu().numpy(), rtol=1e-4, atol=1e-6
        )


def test_replicas_are_on_their_devices_and_have_no_parameters_of_their_own() -> None:
    network = model()
    replicas = nn.parallel.replicate(network, [0, 1])
    second = replicas[1]
    assert type(second) is type(network)
    assert str(second[0].weight.device) == "cuda:1"
    assert not second[0].weight.is_leaf
    assert list(second.parameters()) == []
    assert str(second[1].running_mean.device) == "cuda:1"
    second(torch.ones(2, 3, device="cuda:1")).sum().backward()
    assert network[0].weight.grad is not None
    detached = nn.parallel.replicate(network, [0, 1], detach=True)
    assert detached[1][0].weight.grad_fn is None


def test_keywords_and_parts_fewer_than_devices() -> None:
    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factor = nn.Parameter(torch.full((1,), 2.0))

        def forward(self, x: torch.Tensor, *, shift: float = 0.0) -> torch.Tensor:
            return x * self.factor + shift

    parallel = nn.DataParallel(Scale().cuda())
    assert parallel(torch.ones(1, 2).cuda()).tolist() == [[2.0, 2.0]]
    assert parallel(torch.ones(4, 1).cuda(), shift=1.0).tolist() == [[3.0]] * 4


def test_a_module_elsewhere_and_errors_of_copies() -> None:
    with pytest.raises(RuntimeError, match=r"parameters and buffers on device cuda:0"):
        nn.DataParallel(nn.Linear(2, 2))(torch.ones(2, 2).cuda())

    class Failing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.device.index == 1:
                raise ValueError("not here")
            return x * self.weight

    with pytest.raises(ValueError, match="not here"):
        nn.DataParallel(Failing().cuda())(torch.ones(4, 1).cuda())
    lazy = nn.DataParallel(nn.LazyLinear(2))
    lazy.module.cuda()
    with pytest.raises((RuntimeError, ValueError), match="uninitialized parameter"):
        lazy(torch.ones(4, 2).cuda())


def test_data_parallel_as_a_function() -> None:
    network = model().eval()
    x = torch.randn(4, 3).cuda()
    found = nn.parallel.data_parallel(network, x, [0, 1])
    np.testing.assert_allclose(
        found.detach().cpu().numpy(), network(x).detach().cpu().numpy(), rtol=1e-5
    )
