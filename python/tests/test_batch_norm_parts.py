"""Batch normalisation in parts: several batches are as one, and gradients go the same way."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch

EPS = 1e-5


def batches(dtype: Any = torch.float64) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """A batch, and the same in two pieces of different sizes."""
    torch.manual_seed(0)
    whole = (torch.randn(5, 3, 4, dtype=torch.float64) * 2 + 1).to(dtype)
    return whole, [whole[:2], whole[2:]]


def joined(
    pieces: list[torch.Tensor], running: tuple[Any, Any] = (None, None)
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    parts = [torch.batch_norm_stats(piece, EPS) for piece in pieces]
    means, invstds = (torch.stack(list(part)) for part in zip(*parts, strict=True))
    counts = torch.tensor([float(piece.numel() // 3) for piece in pieces], dtype=means.dtype)
    mean, invstd = torch.batch_norm_gather_stats_with_counts(
        pieces[0], means, invstds, *running, 0.25, EPS, counts
    )
    return mean, invstd, counts


def test_statistics_of_pieces_join_to_those_of_the_batch() -> None:
    whole, pieces = batches()
    mean, invstd, _ = joined(pieces)
    torch.testing.assert_close((mean, invstd), torch.batch_norm_stats(whole, EPS))
    torch.testing.assert_close(mean, whole.mean((0, 2)))
    expected = (whole.var((0, 2), correction=0) + EPS).rsqrt()
    torch.testing.assert_close(invstd, expected)


def test_running_statistics_move_as_those_of_one_batch() -> None:
    whole, pieces = batches()
    running = (torch.zeros(3, dtype=whole.dtype), torch.ones(3, dtype=whole.dtype))
    expected = (running[0].clone(), running[1].clone())
    torch.nn.functional.batch_norm(whole, *expected, training=True, momentum=0.25, eps=EPS)
    joined(pieces, running)
    torch.testing.assert_close(running, expected)


def test_batches_of_one_size_need_one_count() -> None:
    whole, _ = batches()
    pieces = [whole[:2], whole[2:4]]
    parts = [torch.batch_norm_stats(piece, EPS) for piece in pieces]
    means, invstds = (torch.stack(list(part)) for part in zip(*parts, strict=True))
    found = torch.batch_norm_gather_stats(whole, means, invstds, None, None, 0.1, EPS, 8)
    torch.testing.assert_close(found, torch.batch_norm_stats(whole[:4], EPS))


@pytest.mark.parametrize("is_affine", [False, True])
def test_results_and_gradients_are_those_of_batch_norm(is_affine: bool) -> None:
    whole, pieces = batches()
    weight = torch.tensor([0.5, -2.0, 3.0], dtype=whole.dtype) if is_affine else None
    bias = torch.tensor([1.0, 0.0, -1.0], dtype=whole.dtype) if is_affine else None
    leaves = [whole.clone().requires_grad_()]
    leaves += [t.clone().requires_grad_() for t in (weight, bias) if t is not None]
    affine = dict(zip(("weight", "bias"), leaves[1:], strict=False))
    result = torch.nn.functional.batch_norm(leaves[0], None, None, training=True, **affine)
    grad = torch.randn_like(whole)
    expected = torch.autograd.grad(result, leaves, grad)

    mean, invstd, counts = joined(pieces)
    ours = [torch.batch_norm_elemt(x, weight, bias, mean, invstd, EPS) for x in pieces]
    torch.testing.assert_close(torch.cat(ours), result.detach())
    grads = [grad[:2], grad[2:]]
    sums = [
        torch.batch_norm_backward_reduce(g, x, mean, invstd, weight, True, is_affine, is_affine)
        for g, x in zip(grads, pieces, strict=True)
    ]
    added = [None if a is None or b is None else a + b for a, b in zip(*sums, strict=True)]
    sum_dy, sum_dy_xmu, *rest = added
    assert sum_dy is not None
    assert sum_dy_xmu is not None
    found = [
        torch.batch_norm_backward_elemt(g, x, mean, invstd, weight, sum_dy, sum_dy_xmu, counts)
        for g, x in zip(grads, pieces, strict=True)
    ]
    torch.testing.assert_close(torch.cat(found), expected[0])
    torch.testing.assert_close([r for r in rest if r is not None], list(expected[1:]))


def test_inputs_of_16_bits_have_statistics_of_32() -> None:
    whole, _ = batches(torch.bfloat16)
    mean, invstd = torch.batch_norm_stats(whole, EPS)
    assert (mean.dtype, invstd.dtype) == (torch.float32, torch.float32)
    torch.testing.assert_close(mean, whole.float().mean((0, 2)))
    result = torch.batch_norm_elemt(whole, None, None, mean, invstd, EPS)
    assert result.dtype is torch.bfloat16
    sums = torch.batch_norm_backward_reduce(whole, whole, mean, invstd, None, True, True, False)
    assert [None if s is None else s.dtype for s in sums] == [torch.float32] * 3 + [None]


def test_parts_can_be_differentiated() -> None:
    whole, _ = batches()
    x = whole.clone().requires_grad_()

    def normalised(x: torch.Tensor) -> torch.Tensor:
        mean, invstd = torch.batch_norm_stats(x, EPS)
        return torch.batch_norm_elemt(x, None, None, mean, invstd, EPS)

    assert torch.autograd.gradcheck(normalised, [x])


def test_there_are_channels() -> None:
    vector = torch.ones(3)
    with pytest.raises(RuntimeError, match=r"at least 2 dimensions, but got shape \[3\]"):
        torch.batch_norm_stats(vector, EPS)
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        torch.batch_norm_elemt(vector, None, None, vector, vector, EPS)
