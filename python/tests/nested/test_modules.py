"""Modules of ``nn`` take jagged tensors where their functions have rules."""

from __future__ import annotations

from typing import Any

import pytest
from test_jagged_rules import components

import pullback as torch

nn, nested = torch.nn, torch.nested
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


def of_rows(*lengths: int) -> Any:
    rows = [torch.linspace(-1.0, 1.0, 8 * n).reshape(n, 8) for n in lengths]
    return nested.nested_tensor(rows)


def test_each_component_attends_to_itself() -> None:
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = of_rows(3, 2)
    with torch.no_grad():
        output, weights = attention(x, x, x)
        heads = attention(x, x, x, average_attn_weights=False)[1]
        assert attention(x, x, x, need_weights=False)[1] is None
        assert output.is_nested
        assert (weights.shape, heads.shape) == ((2, 3, 3), (2, 2, 3, 3))
        assert (weights[1, 2:].any(), weights[1, :, 2:].any()) == (False, False)
        for part, got, shares in zip(x.unbind(), output.unbind(), weights, strict=True):
            expected, own = attention(*[part.unsqueeze(0)] * 3)
            torch.testing.assert_close(got, expected.squeeze(0))
            n = part.size(0)
            torch.testing.assert_close(shares[:n, :n], own.squeeze(0))


def test_nested_attention_takes_what_has_no_gradient_and_no_masks() -> None:
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    x, other = of_rows(3, 2), of_rows(3, 2)
    start = "does not support NestedTensor outside of its fast path.*"
    with torch.no_grad(), pytest.raises(AssertionError, match=start + "training is enabled"):
        attention(x, x, x)
    attention.eval()
    with pytest.raises(AssertionError, match=start + "biases requires_grad"):
        attention(x, x, x)
    with torch.no_grad():
        for call, phrase in [
            (lambda: attention(x, other, other), "non-self attention was used"),
            (lambda: attention(x, x, x, torch.zeros(2, 3).bool()), "masks .* are not supported"),
            (lambda: torch.nn.MultiheadAttention(8, 2).eval()(x, x, x), "batch_first was not True"),
        ]:
            with pytest.raises(AssertionError, match=start + phrase):
                call()
    for parameter in attention.parameters():
        parameter.requires_grad_(False)
    assert attention(x, x, x)[0].is_nested
