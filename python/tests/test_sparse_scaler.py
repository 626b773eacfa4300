"""Scaling of gradients that are sparse."""

from __future__ import annotations

import pytest

import pullback as torch


@pytest.mark.parametrize(("last", "is_found"), [(8.0, False), (float("inf"), True)])
def test_sparse_gradients_are_unscaled(last: float, is_found: bool) -> None:
    at = torch.tensor([[0, 1, 1], [2, 0, 0]])
    weight = torch.nn.Parameter(torch.zeros(2, 3))
    weight.grad = torch.sparse_coo_tensor(at, torch.tensor([2.0, 4.0, last]), (2, 3))
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    scaler.scale(torch.ones(()))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler.unscale_(optimizer)
    if not is_found:
        assert weight.grad.to_dense().tolist() == [[0.0, 0.0, 1.0], [6.0, 0.0, 0.0]]
    scaler.step(optimizer)
    assert bool(weight.any()) != is_found
