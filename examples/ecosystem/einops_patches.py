"""einops: a network on patches of images, whose reshapes are patterns, learns which half is bright.

python -m pullback examples/ecosystem/einops_patches.py
"""

from __future__ import annotations

import torch
from einops import einsum, rearrange, reduce, repeat
from einops.layers.torch import Rearrange, Reduce
from torch import nn


def images(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Noise with one half of each image brighter than the other, and which one it is."""
    labels = torch.randint(0, 2, (count,))
    picture = torch.randn(count, 1, 8, 8)
    left = repeat(torch.tensor([1.0, 0.0]), "half -> h (half w)", h=8, w=4)
    sides = torch.stack([left, 1 - left])
    return picture + rearrange(sides[labels], "b h w -> b 1 h w"), labels


def main() -> float:
    """Trains, and gives the share of new images that are told right."""
    torch.manual_seed(0)
    model = nn.Sequential(
        Rearrange("b c (h p) (w q) -> b (h w) (c p q)", p=4, q=4),
        nn.Linear(16, 16),
        nn.GELU(),
        Rearrange("b patch feature -> b (patch feature)"),
        nn.Linear(64, 2),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        inputs, labels = images(64)
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    inputs, labels = images(500)
    with torch.no_grad():
        right = (model(inputs).argmax(-1) == labels).float()
    # The same mean in three notations.
    mean = reduce(right, "b -> ", "mean")
    assert torch.allclose(mean, einsum(right, right, "b, b -> ") / len(right))
    assert torch.allclose(mean, Reduce("b -> ", "mean")(right))
    return float(mean)


if __name__ == "__main__":
    share = main()
    print(f"{share:.1%} of new images are told right")
    assert share > 0.9
