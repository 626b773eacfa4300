"""timm: a small residual network with mixed images learns which half is bright.

python -m pullback examples/ecosystem/timm_classifier.py
"""

from __future__ import annotations

import numpy as np
import timm
import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.utils import ModelEmaV3


def main() -> float:
    """Trains, and gives the share of new images that the averaged model tells right."""
    torch.manual_seed(0)
    np.random.seed(0)  # `Mixup` draws from NumPy.
    model = timm.create_model("resnet10t", num_classes=2)
    average = ModelEmaV3(model, decay=0.9)
    optimizer = create_optimizer_v2(model, "adamw", lr=2e-3, weight_decay=0.05)
    mixup = Mixup(mixup_alpha=0.1, num_classes=2)
    loss_of = SoftTargetCrossEntropy()
    for _ in range(30):
        images, labels = batch()
        mixed, targets = mixup(images, labels)
        loss = loss_of(model(mixed), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(model)
    images, labels = batch()
    average.module.eval()
    with torch.no_grad():
        return float((average.module(images).argmax(1) == labels).float().mean())


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    """Noise, brighter in the left or in the right half."""
    labels = torch.randint(0, 2, (16,))
    images = torch.randn(16, 3, 32, 32)
    for image, label in zip(images, labels.tolist(), strict=True):
        image[:, :, 16 * label : 16 * label + 16] += 2
    return images, labels


if __name__ == "__main__":
    share = main()
    print(f"{100 * share:.0f}% of new images are told right")
    assert share > 0.9
