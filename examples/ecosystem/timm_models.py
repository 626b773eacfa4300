"""timm: ten models of different families, forward and backward, with their state read again.

python -m pullback examples/ecosystem/timm_models.py
"""

from __future__ import annotations

import timm
import torch
from torch import nn

# The smallest of each family that takes images of 64 pixels, with the arguments that say so.
MODELS = {
    "resnet10t": {},
    "mobilenetv3_small_050": {},
    "efficientnet_lite0": {},
    "regnetx_002": {},
    "densenet121": {},
    "convnext_atto": {},
    "mixer_s32_224": {"img_size": 64},
    "vit_tiny_patch16_224": {"img_size": 64},
    "deit_tiny_patch16_224": {"img_size": 64},
    "swin_tiny_patch4_window7_224": {"img_size": 64, "window_size": 4},
}


def backward(model: nn.Module) -> int:
    """A loss and its gradients; gives how many numbers are trained."""
    images, labels = torch.randn(2, 3, 64, 64), torch.tensor([0, 1])
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    assert bool(torch.isfinite(loss))
    count = 0
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(torch.isfinite(parameter.grad).all()), name
        count += parameter.numel()
    assert any(bool(parameter.grad.any()) for parameter in model.parameters())
    return count


def is_restored(name: str, model: nn.Module) -> bool:
    """Whether a new model that reads the state of this one computes the same."""
    again = timm.create_model(name, num_classes=2, **MODELS[name])
    again.load_state_dict(model.state_dict())
    images = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        return torch.equal(model.eval()(images), again.eval()(images))


def main() -> dict[str, int]:
    """Runs all of them; gives the size of each."""
    torch.manual_seed(0)
    sizes = {}
    for name, arguments in MODELS.items():
        model = timm.create_model(name, num_classes=2, **arguments)
        sizes[name] = backward(model)
        assert is_restored(name, model), name
    return sizes


if __name__ == "__main__":
    for name, size in (sizes := main()).items():
        print(f"{name}: {size / 1e6:.1f} million parameters")
    assert len(sizes) == 10
    print(f"{len(sizes)} models ran forward and backward")
