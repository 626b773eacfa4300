"""Modules of ``nn`` take jagged tensors where their functions have rules."""

from __future__ import annotations

from typing import Any

import pytest
from test_jagged_rules import components

import pullback as torch

nn = torch.nn
MODULES = {
    "Linear": lambda: nn.Linear(5, 3),
    "LayerNorm": lambda: nn.LayerNorm(5),
    "RMSNorm": lambda: nn.RMSNorm(5),
    "GELU": nn.GELU,
    "ReLU": nn.ReLU,
    "SiLU": nn.SiLU,
    "LogSigmoid": nn.LogSigmoid,
    "Softmax": lambda: nn.Softmax(dim=-1),
    "Dropout": lambda: nn.Dropout(0.0),
    "Sequential": lambda: nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2)),
}


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_module_gives_what_a_loop_gives(name: str, layout: Any) -> None:
    module = MODULES[name]().to(torch.float64)
    parts = components()
    nested = torch.nested.as_nested_tensor(parts, layout=layout)
    leaves = [*parts, *module.parameters()]
    results, expected = module(nested).unbind(), [module(one) for one in parts]
    torch.testing.assert_close(list(results), expected)
    grads = [
        torch.autograd.grad(sum(one.square().sum() for one in given), leaves)
        for given in (results, expected)
    ]
    torch.testing.assert_close(*grads)
