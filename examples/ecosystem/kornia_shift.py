"""kornia: by how much an image was moved is found by gradients through its warp.

python -m pullback examples/ecosystem/kornia_shift.py
"""

from __future__ import annotations

import kornia
import torch
from torch.nn import functional


def main() -> list[float]:
    """The offset in pixels that makes the two images alike; it was 2 and -1."""
    torch.manual_seed(0)
    image = kornia.filters.gaussian_blur2d(torch.rand(1, 1, 32, 32), (9, 9), (3.0, 3.0))
    moved = kornia.geometry.transform.translate(image, torch.tensor([[2.0, -1.0]]))
    offset = torch.zeros(1, 2, requires_grad=True)
    optimizer = torch.optim.Adam([offset], lr=0.1)
    inside = (slice(None), slice(None), slice(6, 26), slice(6, 26))
    for _ in range(80):
        found = kornia.geometry.transform.translate(image, offset)
        loss = functional.mse_loss(found[inside], moved[inside])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [round(part, 1) for part in offset[0].tolist()]


if __name__ == "__main__":
    found = main()
    print(f"moved by {found}")
    assert all(abs(part - true) < 0.2 for part, true in zip(found, (2.0, -1.0), strict=True))
