"""diffusers: a small U-Net learns to take noise off one image; a pipeline samples with it.

python -m pullback examples/ecosystem/diffusers_points.py
"""

from __future__ import annotations

import torch
from diffusers import DDIMScheduler, DDPMPipeline, DDPMScheduler, UNet2DModel
from torch.nn import functional


def main() -> tuple[float, float]:
    """Trains, and gives the first and the last loss."""
    torch.manual_seed(0)
    model = UNet2DModel(
        sample_size=8,
        in_channels=1,
        out_channels=1,
        layers_per_block=1,
        block_out_channels=(16, 32),
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        norm_num_groups=8,
    )
    scheduler = DDPMScheduler(num_train_timesteps=50)
    image = torch.zeros(8, 1, 8, 8)
    image[:, :, 2:6, 2:6] = 1
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    losses = []
    for _ in range(40):
        noise, steps = torch.randn_like(image), torch.randint(0, 50, (8,))
        found = model(scheduler.add_noise(image, noise, steps), steps).sample
        loss = functional.mse_loss(found, noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    pipeline = DDPMPipeline(unet=model, scheduler=DDIMScheduler(num_train_timesteps=50))
    pipeline.set_progress_bar_config(disable=True)
    sampled = pipeline(batch_size=1, num_inference_steps=5, output_type="np").images
    assert sampled.shape == (1, 8, 8, 1)
    return sum(losses[:5]) / 5, sum(losses[-5:]) / 5


if __name__ == "__main__":
    first, last = main()
    print(f"loss {first:.3f} -> {last:.3f}")
    assert last < 0.7 * first
