"""torchvision: a detector learns to find one square, its boxes go through pooling and suppression.

python -m pullback examples/ecosystem/torchvision_boxes.py
"""

from __future__ import annotations

import torch
from torchvision.models import resnet18
from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn
from torchvision.ops import nms, roi_align
from torchvision.transforms import v2


def losses(steps: int) -> list[float]:
    """Trains the detector on two images with a bright square each."""
    torch.manual_seed(0)
    detector = fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, num_classes=2, min_size=96, max_size=96
    )
    images = [torch.zeros(3, 96, 96) for _ in range(2)]
    targets = []
    for place, image in enumerate(images):
        left = 20 + 24 * place
        image[:, 30:62, left : left + 32] = 1
        box = torch.tensor([[left, 30.0, left + 32, 62]])
        targets.append({"boxes": box, "labels": torch.ones(1, dtype=torch.int64)})
    optimizer = torch.optim.SGD(detector.parameters(), lr=0.01, momentum=0.9)
    found = []
    for _ in range(steps):
        loss = sum(detector(images, targets).values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(float(loss))
    return found


def main() -> list[float]:
    """Runs the ops by themselves, a classifier with transforms, and the detector."""
    boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30]])
    assert nms(boxes, torch.tensor([0.9, 0.8, 0.7]), 0.5).tolist() == [0, 2]
    plane = torch.arange(16.0).view(1, 1, 4, 4).requires_grad_()
    whole = torch.tensor([[0.0, 0, 0, 4, 4]])
    pooled = roi_align(plane, whole, 2, sampling_ratio=2, aligned=True)
    assert pooled.flatten().tolist() == [2.5, 4.5, 10.5, 12.5]
    pooled.sum().backward()

    images = torch.randint(0, 256, (2, 3, 40, 40), dtype=torch.uint8)
    prepare = v2.Compose([v2.RandomCrop(32), v2.ToDtype(torch.float32, scale=True)])
    resnet18(num_classes=3)(prepare(images)).sum().backward()
    return losses(6)


if __name__ == "__main__":
    found = main()
    print(f"loss {found[0]:.2f} -> {found[-1]:.2f}")
    assert found[-1] < 0.8 * found[0]
