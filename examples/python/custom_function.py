"""Custom Function: the solution of Kepler's equation with its exact derivatives, to find a planet.

    python examples/python/custom_function.py [--steps 500] [--seed 0] [--out demo-out]

A planet on an ellipse moves by `E - e sin E = M`: the mean anomaly `M` grows evenly with time,
the position follows from `E`, for which there is no formula. Newton's method finds it. Derivatives
need none of Newton's steps: the implicit function theorem gives them from the solution,

    dE/dM = 1 / (1 - e cos E),    dE/de = sin E / (1 - e cos E).

`Kepler` is a `torch.autograd.Function` with a backward that can be differentiated again, with
forward mode (`jvp`) and under `vmap`. With it an orbit is fitted to a star's wobble.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from chart import INK, PALETTE, Series
from command import parse, report
from figure import Figure, spread
from progress import Progress

import pullback as torch
from pullback import Tensor


class Kepler(torch.autograd.Function):
    """`E` from the mean anomaly `M` and the eccentricity `e`, elementwise, for `0 <= e < 1`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(mean: Tensor, eccentricity: Tensor) -> Tensor:
        """Newton's method, ten steps from a start from which it always converges."""
        anomaly = mean + 0.85 * eccentricity * torch.sin(mean).sign()
        for _ in range(10):
            residual = anomaly - eccentricity * torch.sin(anomaly) - mean
            anomaly = anomaly - residual / (1 - eccentricity * torch.cos(anomaly))
        return anomaly

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        """Keeps what the derivatives need: the eccentricity and the solution."""
        _, eccentricity = inputs
        ctx.save_for_backward(eccentricity, output)
        ctx.save_for_forward(eccentricity, output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        """The implicit function theorem; made of ops, so that it can be differentiated again."""
        eccentricity, anomaly = ctx.saved_tensors
        grad_mean = grad / (1 - eccentricity * torch.cos(anomaly))
        grad_eccentricity = grad_mean * torch.sin(anomaly)
        return grad_mean, grad_eccentricity.sum_to_size(eccentricity.shape)

    @staticmethod
    def jvp(ctx: Any, mean_t: Tensor, eccentricity_t: Tensor) -> Tensor:
        """The same in forward mode."""
        eccentricity, anomaly = ctx.saved_tensors
        slope = 1 - eccentricity * torch.cos(anomaly)
        return (mean_t + torch.sin(anomaly) * eccentricity_t) / slope


class Orbit(torch.nn.Module):
    """The speed of a star along our line of sight, pulled by one planet."""

    def __init__(self, period: float) -> None:
        super().__init__()
        self.log_period = torch.nn.Parameter(torch.tensor(math.log(period), dtype=torch.float64))
        # Eccentricity before the sigmoid, half of the speeds' range, angles, speed of the system.
        start = torch.tensor([-2.0, 40.0, 0.5, 0.0, 0.0], dtype=torch.float64)
        self.shape = torch.nn.Parameter(start)

    @property
    def eccentricity(self) -> Tensor:
        """How long the ellipse is: 0 for a circle, less than 1."""
        return torch.sigmoid(self.shape[0])

    def forward(self, time: Tensor) -> Tensor:
        """Metres per second at each time in days."""
        _, amplitude, periastron, phase, system = self.shape
        e = self.eccentricity
        mean = 2 * math.pi * time / self.log_period.exp() + phase
        anomaly = Kepler.apply(mean, e)
        distance = 1 - e * torch.cos(anomaly)
        cosine = (torch.cos(anomaly) - e) / distance
        sine = torch.sqrt(1 - e * e) * torch.sin(anomaly) / distance
        # cos(true anomaly + periastron), by the sum of angles.
        turned = cosine * torch.cos(periastron) - sine * torch.sin(periastron)
        return amplitude * (turned + e * torch.cos(periastron)) + system


class Observed(NamedTuple):
    """Times in days and speeds in metres per second, with noise."""

    time: Tensor
    speed: Tensor
    truth: Orbit


def observe(noise: float = 4.0) -> Observed:
    """Sixty nights of a star whose planet is known to us only."""
    truth = Orbit(period=4.23)
    with torch.no_grad():
        truth.shape.copy_(torch.tensor([0.1, 56.0, 1.1, 0.7, -12.0]))
        time = torch.rand(60, dtype=torch.float64).sort().values * 20
        speed = truth(time) + noise * torch.randn(60, dtype=torch.float64)
    return Observed(time, speed, truth)


def check() -> None:
    """Compares the derivatives of `Kepler` with differences, in first and second order."""
    mean = (torch.rand(5, dtype=torch.float64) * 6).requires_grad_()
    eccentricity = (torch.rand(5, dtype=torch.float64) * 0.8).requires_grad_()
    both = (mean, eccentricity)
    torch.autograd.gradcheck(Kepler.apply, both, check_forward_ad=True)
    torch.autograd.gradgradcheck(Kepler.apply, both)
    # The same one by one, under vmap.
    slopes = torch.func.vmap(torch.func.grad(Kepler.apply))(mean, eccentricity)
    (expected,) = torch.autograd.grad(Kepler.apply(*both).sum(), mean)
    torch.testing.assert_close(slopes, expected)
    print("Kepler: derivatives of first and second order, jvp and vmap are right")


def draw(path: Any, observed: Observed, first: Tensor, orbit: Orbit, losses: list[float]) -> None:
    """Writes the picture: speeds and fit, the course of the fit."""
    figure = Figure("A planet found by its pull on a star", columns=3, width=480)
    time = torch.linspace(0, 20, 500, dtype=torch.float64)
    with torch.no_grad():
        fitted = orbit(time).tolist()
    days, speeds = observed.time.tolist(), observed.speed.tolist()
    panel = figure.axes(
        (0, 0), "speed of the star", (0, 20), spread(speeds + fitted, 0.1),
        ("days", "metres per second"), span=2,
    )  # fmt: skip
    panel.lines(
        [
            Series("first guess", time.tolist(), first.tolist(), PALETTE[1], 1.6, 0.5),
            Series("fitted orbit", time.tolist(), fitted, PALETTE[0]),
        ]
    )
    panel.points(days, speeds, INK, 3.2)
    roots = [math.sqrt(loss) for loss in losses]
    panel = figure.axes(
        (2, 0), "misfit (noise is 4)", (0, len(roots)), (0, max(roots) * 1.05),
        ("step", "metres per second"),
    )  # fmt: skip
    panel.line(Series("", list(range(len(roots))), roots))
    figure.save(path)


def main() -> None:
    """Checks the function, fits the orbit and draws both."""
    options = parse(__doc__, steps=500)
    torch.manual_seed(options.seed)
    check()
    observed = observe()
    orbit = Orbit(period=4.1)
    first = orbit(torch.linspace(0, 20, 500, dtype=torch.float64)).detach()
    optimizer = torch.optim.Adam(
        [
            {"params": [orbit.log_period], "lr": 3e-4},
            {"params": [orbit.shape], "lr": 5e-2},
        ]
    )
    # Speeds are tens of metres per second: such a step for them is as large as 0.05 for angles.
    scale = torch.tensor([1.0, 20.0, 1.0, 1.0, 20.0], dtype=torch.float64)
    losses: list[float] = []
    progress = Progress("orbit", options.steps)
    for step in range(options.steps):
        before = orbit.shape.detach().clone()
        loss = torch.nn.functional.mse_loss(orbit(observed.time), observed.speed)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            orbit.shape.copy_(before + (orbit.shape - before) * scale)
        losses.append(loss.item())
        progress.update(step + 1, f"misfit {math.sqrt(losses[-1]):.2f} m/s")
    found, truth = orbit.eccentricity.item(), observed.truth.eccentricity.item()
    days = orbit.log_period.exp().item()
    progress.finish(f"period {days:.3f} days (4.23), eccentricity {found:.3f} ({truth:.3f})")
    path = options.picture("custom_function.png")
    draw(path, observed, first, orbit, losses)
    report("misfit in m/s", math.sqrt(losses[0]), math.sqrt(losses[-1]), path)


if __name__ == "__main__":
    main()
