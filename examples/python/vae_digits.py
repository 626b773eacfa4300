"""VAE: a variational autoencoder that learns to write digits from two numbers.

    python examples/python/vae_digits.py [--steps 3000] [--seed 0] [--out demo-out]

The encoder gives a normal distribution over a plane for each image, the decoder the ink of each
pixel for a point of the plane. Both learn at once by the reparameterised gradient of the evidence
lower bound (Kingma and Welling, 2014): how well the image comes back, less what the code costs,
`KL(q(z|x) || N(0, 1))`.
"""

from __future__ import annotations

from pathlib import Path

from canvas import WHITE
from chart import PALETTE, Series, smooth
from command import parse, report
from digits_data import Digits, load
from figure import CLASSES, Figure, spread
from progress import Progress

import pullback as torch
from pullback import Tensor, nn
from pullback.distributions import Normal, kl_divergence

BATCH = 128


class VAE(nn.Module):
    """An encoder to a plane and a decoder back to 8 by 8 pixels."""

    def __init__(self, hidden: int = 192, code: int = 2) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Flatten(), nn.Linear(64, hidden), nn.SiLU(),
            nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 2 * code),
        )  # fmt: skip
        self.decoder = nn.Sequential(
            nn.Linear(code, hidden), nn.SiLU(),
            nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 64), nn.Unflatten(1, (1, 8, 8)),
        )  # fmt: skip

    def encode(self, images: Tensor) -> Normal:
        """The distribution of the code of each image."""
        mean, log_scale = self.encoder(images).chunk(2, dim=1)
        return Normal(mean, log_scale.clamp(-6, 4).exp())

    def forward(self, images: Tensor) -> Tensor:
        """The negative evidence lower bound of each image, in nats."""
        code = self.encode(images)
        logits = self.decoder(code.rsample())
        errors = nn.functional.binary_cross_entropy_with_logits(logits, images, reduction="none")
        return errors.flatten(1).sum(1) + kl_divergence(code, Normal(0.0, 1.0)).sum(1)


@torch.no_grad()
def write(model: VAE, side: int = 13) -> list[list[list[float]]]:
    """Images of a grid of codes that divides the normal distribution evenly."""
    places = Normal(0.0, 1.0).icdf(torch.linspace(0.5 / side, 1 - 0.5 / side, side))
    up, along = torch.meshgrid(places.flip(0), places, indexing="ij")
    codes = torch.stack((along.flatten(), up.flatten()), dim=1)
    return model.decoder(codes).sigmoid().squeeze(1).tolist()


@torch.no_grad()
def draw(path: Path, model: VAE, digits: Digits, losses: list[float]) -> None:
    """Writes the picture: what is written where, where the digits lie, the loss."""
    figure = Figure("A variational autoencoder of handwritten digits", 3, width=520, height=500)
    figure.tiles((0, 0), "what the decoder writes across the plane", write(model), 13)
    means = model.encode(digits.images).loc
    xs, ys = means[:, 0].tolist(), means[:, 1].tolist()
    panel = figure.axes(
        (1, 0), "codes of test images, by digit", spread(xs), spread(ys),
        ("first number of the code", "second number"),
    )  # fmt: skip
    for digit in range(10):
        own = (digits.labels == digit).nonzero().flatten().tolist()
        panel.points([xs[i] for i in own], [ys[i] for i in own], CLASSES[digit], 3.4, 0.75)
        x, y = panel.place(*means[digits.labels == digit].median(0).values.tolist())
        panel.canvas.disc(x, y, 13, WHITE)
        panel.canvas.disc(x, y, 12, CLASSES[digit])
        panel.canvas.text(x, y, str(digit), WHITE, align=0.5, weight=1.3)
    steps = list(range(1, len(losses) + 1))
    shown = smooth(losses, 0.97)
    panel = figure.axes(
        (2, 0), "negative evidence lower bound", (1, max(2, len(steps))),
        spread(shown[len(shown) // 100 :]), ("step", "nats per image"),
    )  # fmt: skip
    panel.lines(
        [Series("", steps, losses, PALETTE[0], 1.0, 0.3), Series("", steps, shown, PALETTE[0])]
    )
    figure.save(path)


@torch.no_grad()
def evaluate(model: VAE, digits: Digits) -> float:
    """The mean loss over the images."""
    return model(digits.images).mean().item()


def main() -> None:
    """Trains the autoencoder and draws what it writes."""
    options = parse(__doc__, steps=3000)
    torch.manual_seed(options.seed)
    train, test = load()
    model = VAE()
    before = evaluate(model, test)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)
    losses: list[float] = []
    progress = Progress("VAE", options.steps)
    for step in range(options.steps):
        rows = torch.randint(len(train.images), (BATCH,))
        loss = model(train.images[rows]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        progress.update(step + 1, f"loss {losses[-1]:.2f} nats")
    after = evaluate(model, test)
    progress.finish(f"{len(losses)} steps, {after:.2f} nats per test image")
    path = options.picture("vae_digits.png")
    draw(path, model, test, losses)
    report("loss of test images in nats", before, after, path)


if __name__ == "__main__":
    main()
