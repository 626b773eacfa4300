"""Hessian spectrum by Lanczos: how curved a loss is, and how training meets the edge of stability.

    python examples/python/hessian_spectrum.py [--steps 400] [--seed 0] [--out demo-out]

Products of the Hessian with a vector cost two gradients: `jvp` of `grad`. From a few dozen of them
Lanczos' method finds the largest eigenvalues and, averaged over random vectors, the density of all
(Ghorbani, Krishnan and Xiao, 2019). The network is small, so that `torch.func.hessian` can say how
right that is. Plain gradient descent drives the largest eigenvalue up until it meets 2 / rate
(Cohen et al., 2021).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from chart import MUTED, PALETTE, Series
from command import parse, report
from digits_data import load
from figure import Figure
from progress import Progress

import pullback as torch
from pullback import Tensor, nn
from pullback.func import functional_call, grad, hessian, jvp

RATE = 0.35
HIDDEN = 8
Loss = Callable[[Tensor], Tensor]


class Spectrum(NamedTuple):
    """Eigenvalues found, rising, and how much of a random vector lies at each."""

    values: Tensor
    weights: Tensor


def make_model() -> nn.Module:
    """64 pixels, eight hidden units, ten classes: 610 weights."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 10))


def loss_of(model: nn.Module, images: Tensor, labels: Tensor) -> Loss:
    """The loss as a function of all weights in one vector."""
    names, shapes = zip(*((name, p.shape) for name, p in model.named_parameters()), strict=True)
    sizes = [math.prod(shape) for shape in shapes]
    target = nn.functional.one_hot(labels, 10).to(images.dtype)

    def loss(weights: Tensor) -> Tensor:
        parts = (p.view(shape) for p, shape in zip(weights.split(sizes), shapes, strict=True))
        output = functional_call(model, dict(zip(names, parts, strict=True)), (images,))
        return nn.functional.mse_loss(output, target, reduction="sum") / len(labels) / 2

    return loss


def product(loss: Loss, weights: Tensor, vector: Tensor) -> Tensor:
    """The Hessian times a vector, by forward mode over reverse mode."""
    return jvp(grad(loss), (weights,), (vector,))[1]


def lanczos(loss: Loss, weights: Tensor, start: Tensor, count: int) -> Spectrum:
    """The spectrum as a random vector sees it, from `count` products with the Hessian."""
    basis = [start / start.norm()]
    diagonal: list[Tensor] = []
    beside: list[Tensor] = []
    for _ in range(min(count, len(weights))):
        vector = product(loss, weights, basis[-1])
        diagonal.append(vector @ basis[-1])
        # In exact arithmetic two of them would do; rounding makes all of them necessary.
        against = torch.stack(basis)
        for _ in range(2):
            vector = vector - against.T @ (against @ vector)
        beside.append(vector.norm())
        if beside[-1] < 1e-10:
            break
        basis.append(vector / beside[-1])
    off = torch.stack(beside[: len(diagonal) - 1]) if len(diagonal) > 1 else weights.new_empty(0)
    band = torch.diag(torch.stack(diagonal)) + torch.diag(off, 1) + torch.diag(off, -1)
    values, vectors = torch.linalg.eigh(band)
    return Spectrum(values, vectors[0].square())


def density(loss: Loss, weights: Tensor, vectors: int = 8, count: int = 60) -> Spectrum:
    """The mean of several random vectors' spectra, which estimates the density of all."""
    parts = [lanczos(loss, weights, torch.randn_like(weights), count) for _ in range(vectors)]
    values = torch.cat([part.values for part in parts])
    return Spectrum(values, torch.cat([part.weights for part in parts]) / vectors)


def smeared(spectrum: Spectrum, at: Tensor, width: float) -> Tensor:
    """The density at the places `at`, each eigenvalue spread to a bell of a width."""
    bells = torch.exp(-((at[:, None] - spectrum.values) ** 2) / (2 * width**2))
    return (bells * spectrum.weights).sum(1) / (width * math.sqrt(2 * math.pi))


def draw_density(figure: Figure, column: int, title: str, found: Spectrum, exact: Tensor) -> None:
    """Draws the density by Lanczos over that of the exact eigenvalues."""
    low, high = exact.min().item(), exact.max().item()
    room = 0.05 * (high - low)
    at = torch.linspace(low - room, high + room, 300, dtype=torch.float64)
    width = 0.008 * (high - low)
    true = Spectrum(exact, torch.full_like(exact, 1 / len(exact)))
    curves = [smeared(spectrum, at, width).clamp_min(1e-9).log10() for spectrum in (true, found)]
    panel = figure.axes(
        (column, 0), title, (at[0].item(), at[-1].item()), (-4, 2),
        ("eigenvalue", "log10 of density"),
    )  # fmt: skip
    panel.lines(
        [
            Series("all eigenvalues", at.tolist(), curves[0].tolist(), MUTED, 6.0, 0.45),
            Series("Lanczos", at.tolist(), curves[1].tolist(), PALETTE[0], 2.0),
        ]
    )


def train(loss: Loss, weights: Tensor, steps: int) -> tuple[Tensor, list[float], Series]:
    """Gradient descent on all images; measures the largest eigenvalue on its way."""
    losses: list[float] = []
    times: list[int] = []
    largest: list[float] = []
    progress = Progress("descent", steps)
    start = torch.randn_like(weights)
    for step in range(steps):
        if step % max(1, steps // 80) == 0:
            times.append(step)
            largest.append(lanczos(loss, weights, start, 12).values[-1].item())
        slope = grad(loss)(weights)
        losses.append(loss(weights).item())
        weights = weights - RATE * slope
        progress.update(step + 1, f"loss {losses[-1]:.4f}  curvature {largest[-1]:.2f}")
    progress.finish(f"loss {losses[-1]:.4f}, largest eigenvalue {largest[-1]:.2f}")
    return weights, losses, Series("largest eigenvalue", times, largest)


def compare(name: str, found: Spectrum, exact: Tensor) -> None:
    """Prints the largest eigenvalue by both ways."""
    ours, theirs = found.values.max().item(), exact[-1].item()
    print(f"{name}: largest eigenvalue {ours:.4f} by Lanczos, {theirs:.4f} of the whole Hessian")


def main() -> None:
    """Measures the spectrum before and after gradient descent."""
    options = parse(__doc__, steps=400)
    torch.manual_seed(options.seed)
    digits, _ = load()
    model = make_model().double()
    loss = loss_of(model, digits.images[::2].double(), digits.labels[::2])
    first = nn.utils.parameters_to_vector(model.parameters()).detach()
    last, losses, course = train(loss, first, options.steps)
    figure = Figure("Curvature of a loss: the Hessian's eigenvalues", 3, width=500, height=500)
    for column, (name, weights) in enumerate((("before training", first), ("after", last))):
        exact = torch.linalg.eigvalsh(hessian(loss)(weights))
        found = density(loss, weights)
        compare(name, found, exact)
        draw_density(figure, column, f"density, {name}", found, exact)
    edge = 2 / RATE
    panel = figure.axes(
        (2, 0), "sharpness in gradient descent", (0, max(1, options.steps)),
        (0, 1.4 * max(edge, *course.ys)), ("step", "eigenvalue"),
    )  # fmt: skip
    panel.lines([course, Series("2 / rate", [0, options.steps], [edge, edge], PALETTE[4], 1.6)])
    path = options.picture("hessian_spectrum.png")
    figure.save(path)
    report("loss", losses[0], loss(last).item(), path)


if __name__ == "__main__":
    main()
