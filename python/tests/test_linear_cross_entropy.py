"""Cross entropy of logits that a matrix gives: the same as of the logits themselves."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.nn import functional as F


def leaf(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def operands(*weight_shape: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Inputs of seven rows, a matrix, and a bias, all with gradients."""
    torch.manual_seed(0)
    return leaf(7, weight_shape[-1]), leaf(*weight_shape), leaf(*weight_shape[:-1])


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weight_shape", [(4, 3), (4, 2, 3)])
def test_is_the_cross_entropy_of_the_logits(reduction: str, weight_shape: tuple[int, ...]) -> None:
    input, weight, bias = operands(*weight_shape)
    target = torch.randint(0, 4, (7, *weight_shape[1:-1]))
    target[0] = -100
    found = F.linear_cross_entropy(input, weight, target, linear_bias=bias, reduction=reduction)
    logits = (input @ weight.reshape(-1, 3).T + bias.reshape(-1)).reshape(7, *weight_shape[:-1])
    expected = F.cross_entropy(logits, target, reduction=reduction)
    torch.testing.assert_close(found, expected)
    ours = torch.autograd.grad(found.sum(), (input, weight, bias), retain_graph=True)
    theirs = torch.autograd.grad(expected.sum(), (input, weight, bias))
    torch.testing.assert_close(ours, theirs)


SHAPES_THAT_DO_NOT_FIT = [
    ((2, 3, 3), (2, 3), None, "expected input with dimensionality 1 or 2, got 3"),
    ((2, 3), (2,), None, "expected linear_weight with dimensionality at least 2, got 1"),
    ((2, 3), (2, 4), None, r"last dimensions \(in_features\), got 3 and 4, respectively"),
    ((3,), (2, 4, 3), None, r"requires batched input, \(N, 3\), got unbatched input"),
    ((2, 3), (2, 3), 3, r"expected linear_bias shape \(2,\), got \(3,\)"),
]


@pytest.mark.parametrize(("input", "weight", "bias", "phrase"), SHAPES_THAT_DO_NOT_FIT)
def test_refuses_shapes_that_do_not_fit(
    input: tuple[int, ...], weight: tuple[int, ...], bias: int | None, phrase: str
) -> None:
    linear_bias = None if bias is None else torch.zeros(bias)
    target = torch.zeros(input[:-1], dtype=torch.int64)
    with pytest.raises(RuntimeError, match=phrase):
        F.linear_cross_entropy(
            torch.zeros(input), torch.zeros(weight), target, linear_bias=linear_bias
        )


def test_refuses_ignore_index_beside_probabilities() -> None:
    input, weight, target = torch.zeros(2, 3), torch.zeros(4, 3), torch.zeros(2, 4)
    with pytest.raises(RuntimeError, match="ignore_index cannot be specified"):
        F.linear_cross_entropy(input, weight, target, ignore_index=0)
