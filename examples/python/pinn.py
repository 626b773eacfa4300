"""Physics-informed network: solves Burgers' equation from the equation alone, without data.

    python examples/python/pinn.py [--steps 1200] [--seed 0] [--out demo-out]

A network `u(t, x)` is trained until it obeys

    u_t + u u_x = nu u_xx,   u(0, x) = -sin(pi x),   u(t, -1) = u(t, 1) = 0

at random points (Raissi, Perdikaris and Karniadakis, 2019). Its second derivative in `x` is a
gradient of a gradient, and training differentiates that once more. Start and edges hold by
construction. The exact solution, by Cole (1951) and Hopf (1950), tells how good it is.
"""

from __future__ import annotations

import math
from pathlib import Path

from chart import MUTED, PALETTE, Series
from command import parse, report
from figure import DIVERGING, Figure
from progress import Progress

import pullback as torch
from pullback import Tensor, nn

NU = 0.03
POINTS = 768


class Solution(nn.Module):
    """`u(t, x)`, which starts as `-sin(pi x)` and is zero at both edges whatever the weights."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
            nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1),
        )  # fmt: skip

    def forward(self, t: Tensor, x: Tensor) -> Tensor:
        """The values at points given as two columns."""
        free = self.body(torch.cat((2 * t - 1, x), dim=1))
        return -torch.sin(math.pi * x) + t * (1 - x * x) * free


def residual(model: nn.Module, t: Tensor, x: Tensor) -> Tensor:
    """How much the equation is violated at each point."""
    t.requires_grad_()
    x.requires_grad_()
    u = model(t, x)
    u_t, u_x = torch.autograd.grad(u.sum(), (t, x), create_graph=True)
    (u_xx,) = torch.autograd.grad(u_x.sum(), x, create_graph=True)
    return u_t + u * u_x - NU * u_xx


def exact(t: Tensor, x: Tensor) -> Tensor:
    """The solution by Cole and Hopf: a quotient of two integrals, for `t > 0`."""
    nodes = torch.linspace(-6, 6, 801, dtype=torch.float64)
    t, x = t.double().unsqueeze(-1), x.double().unsqueeze(-1)
    # eta = sqrt(4 nu t) node, so that the weight is exp(-node^2).
    y = x - torch.sqrt(4 * NU * t) * nodes
    weight = torch.exp(-torch.cos(math.pi * y) / (2 * math.pi * NU) - nodes**2)
    return -(torch.sin(math.pi * y) * weight).sum(-1) / weight.sum(-1)


def grid(times: int = 60, places: int = 120) -> tuple[Tensor, Tensor]:
    """Times without 0, and places, of a grid over the whole domain."""
    axes = torch.linspace(1 / times, 1, times), torch.linspace(-1, 1, places)
    t, x = torch.meshgrid(*axes, indexing="ij")
    return t, x


@torch.no_grad()
def on_grid(model: nn.Module, t: Tensor, x: Tensor) -> Tensor:
    """The network's solution on a grid."""
    return model(t.reshape(-1, 1), x.reshape(-1, 1)).view(t.shape)


def draw(path: Path, model: nn.Module, losses: list[float]) -> None:
    """Writes the picture: the solution, what differs from the exact one, sections, the loss."""
    t, x = grid()
    found, truth = on_grid(model, t, x), exact(t, x)
    error = (found - truth).abs()
    figure = Figure("Burgers' equation, solved by a network that knows only the equation", 2, 2)
    panel = figure.axes((0, 0), "u(t, x)", (0, 1), (-1, 1), ("t", "x"), right=90)
    panel.image(found.T.tolist(), -1.0, 1.0, DIVERGING)
    most = max(error.max().item(), 1e-6)
    panel = figure.axes(
        (1, 0), "distance from the exact solution", (0, 1), (-1, 1), ("t", "x"), right=90
    )
    panel.image(error.T.tolist(), 0.0, most)
    panel = figure.axes((0, 1), "sections", (-1, 1), (-1.1, 1.1), ("x", "u"))
    lines = []
    for row, color in zip((5, 17, 29, 59), PALETTE, strict=False):
        places = x[row].tolist()
        lines.append(Series("", places, truth[row].tolist(), MUTED, 5.0, 0.4))
        lines.append(Series(f"t = {t[row, 0].item():.1f}", places, found[row].tolist(), color, 2.0))
    panel.lines([*lines, Series("exact", [], [], MUTED, 5.0)])
    logs = [math.log10(max(loss, 1e-12)) for loss in losses]
    panel = figure.axes(
        (1, 1), "violation of the equation", (0, len(logs)),
        (math.floor(min(logs)), math.ceil(max(logs))), ("step", "log10 of mean square"),
    )  # fmt: skip
    panel.line(Series("", list(range(len(logs))), logs, PALETTE[0], 1.4))
    figure.save(path)


def relative_error(model: nn.Module) -> float:
    """The distance from the exact solution, relative to that."""
    t, x = grid()
    truth = exact(t, x)
    return ((on_grid(model, t, x) - truth).norm() / truth.norm()).item()


def main() -> None:
    """Trains the network to obey the equation."""
    options = parse(__doc__, steps=1200)
    torch.manual_seed(options.seed)
    model = Solution()
    before = relative_error(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=8e-3, total_steps=options.steps, cycle_momentum=False
    )
    losses: list[float] = []
    progress = Progress("PINN", options.steps)
    for step in range(options.steps):
        t, x = torch.rand(POINTS, 1), 2 * torch.rand(POINTS, 1) - 1
        loss = residual(model, t, x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        progress.update(step + 1, f"violation {losses[-1]:.5f}")
    after = relative_error(model)
    progress.finish(f"{after:.2%} from the exact solution after {len(losses)} steps")
    path = options.picture("pinn.png")
    draw(path, model, losses)
    report("relative error", before, after, path)


if __name__ == "__main__":
    main()
