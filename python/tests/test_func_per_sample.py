"""Gradients of each example of the demo's convolutional network: all at once, and one by one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pullback as torch
from pullback.func import functional_call, grad, vmap

EXAMPLES = Path(__file__).parents[2] / "examples" / "python"


def network() -> Any:
    sys.path.insert(0, str(EXAMPLES))
    try:
        import digits_model
    finally:
        sys.path.remove(str(EXAMPLES))
    torch.manual_seed(0)
    return digits_model.make_cnn(torch).eval()


def test_gradients_of_examples_at_once_equal_those_of_a_loop() -> None:
    model = network()
    images, labels = torch.rand(16, 1, 8, 8), torch.arange(16) % 10
    parameters = {name: value.detach() for name, value in model.named_parameters()}

    def loss(parameters: Any, image: Any, label: Any) -> Any:
        scores = functional_call(model, parameters, (image.unsqueeze(0),))
        return torch.nn.functional.cross_entropy(scores, label.unsqueeze(0))

    at_once = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, images, labels)
    for i in range(16):
        model.zero_grad()
        scores = model(images[i : i + 1])
        torch.nn.functional.cross_entropy(scores, labels[i : i + 1]).backward()
        for name, parameter in model.named_parameters():
            assert torch.allclose(at_once[name][i], parameter.grad, rtol=1e-4, atol=1e-6)
    model.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels, reduction="sum").backward()
    for name, parameter in model.named_parameters():
        assert torch.allclose(at_once[name].sum(0), parameter.grad, rtol=1e-4, atol=1e-5)
