"""Derivatives of the connectionist temporal classification loss that PyTorch does not have."""

from __future__ import annotations

from functools import partial

import pullback as torch
import pullback.nn.functional as F


def test_the_connectionist_loss_has_a_second_derivative() -> None:
    torch.manual_seed(0)
    logits = torch.randn(6, 3, 4, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([[1, 1, 2], [3, 2, 0], [2, 0, 0]])
    lengths = [6, 5, 4], [3, 2, 0]

    def loss(x: torch.Tensor, labels: torch.Tensor, reduction: str) -> torch.Tensor:
        return F.ctc_loss(x.log_softmax(-1), labels, *lengths, reduction=reduction)

    joined = torch.cat([row[:n] for row, n in zip(targets, lengths[1], strict=True)])
    for labels in (targets, joined):
        for reduction in ("none", "mean", "sum"):
            call = partial(loss, labels=labels, reduction=reduction)
            assert torch.autograd.gradcheck(call, logits, check_forward_ad=True)
            assert torch.autograd.gradgradcheck(call, logits, check_fwd_over_rev=True)


def test_an_impossible_target_bends_no_loss_that_leaves_it_out() -> None:
    logits = torch.zeros(2, 1, 3, dtype=torch.float64, requires_grad=True)
    probs = logits.log_softmax(-1)
    loss = F.ctc_loss(probs, torch.tensor([[1, 1]]), [2], [2], zero_infinity=True)
    (slope,) = torch.autograd.grad(loss, logits, create_graph=True)
    (bend,) = torch.autograd.grad(slope.square().sum(), logits)
    assert loss == 0
    assert bend.count_nonzero() == 0
