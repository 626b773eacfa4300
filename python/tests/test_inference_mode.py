"""What inference mode leaves unrecorded, inside and afterwards."""

from __future__ import annotations

import pytest

import pullback as torch


def test_nothing_is_recorded_in_inference_mode_whatever_else_is_turned_on() -> None:
    outside = torch.ones(2, requires_grad=True)
    with torch.inference_mode(), torch.enable_grad():
        inside = torch.ones(2).requires_grad_()
        assert torch.is_grad_enabled()
        for x in (outside, inside):
            for y in (x * 2, x**2, x.sum()):
                assert not y.requires_grad
                assert y.grad_fn is None


def test_what_is_made_of_inference_tensors_alone_is_not_recorded() -> None:
    normal = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        x = torch.ones(2).requires_grad_()
    for y in (x.view(1, 2), x.sum(), x.exp(), x * x):
        assert not y.requires_grad
    assert x.view(1, 2).is_inference()
    assert (x + normal).grad_fn.name() == "AddBackward0"
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * normal
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        x.resize_(3)
