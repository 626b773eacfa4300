"""Neural ODE: a network as the law of motion, learned from a pendulum by the adjoint method.

    python examples/python/neural_ode.py [--steps 500] [--seed 0] [--out demo-out]

`dy/dt = f(y)` is solved by Runge-Kutta. Backward keeps no step of the solver: an
`autograd.Function` solves a second equation backwards in time, that of the adjoint
`da/dt = -a df/dy`, and collects the gradient of the weights on its way (Chen, Rubanova,
Bettencourt and Duvenaud, 2018). The program compares these gradients with those through the
solver's steps before it relies on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from chart import INK, MUTED, PALETTE, Series, smooth
from command import parse, report
from figure import Figure, spread
from progress import Progress

import pullback as torch
from pullback import Tensor, nn

State = tuple[Tensor, ...]


def runge_kutta(law: Callable[[State], State], state: State, step: float) -> State:
    """One classical step of fourth order; `law` gives the derivative of each part."""

    def moved(slope: State, by: float) -> State:
        return tuple(part + by * d for part, d in zip(state, slope, strict=True))

    first = law(state)
    second = law(moved(first, step / 2))
    third = law(moved(second, step / 2))
    fourth = law(moved(third, step))
    slopes = zip(first, second, third, fourth, strict=True)
    return moved(tuple((a + 2 * b + 2 * c + d) / 6 for a, b, c, d in slopes), step)


def solve(law: nn.Module, start: Tensor, step: float, count: int) -> Tensor:
    """The states at `count` times from the start on, (count, batch, 2), through plain ops."""
    states = [start]
    for _ in range(count - 1):
        states.append(runge_kutta(lambda state: (law(state[0]),), (states[-1],), step)[0])
    return torch.stack(states)


class Adjoint(torch.autograd.Function):
    """`solve` with a backward that solves the adjoint's equation and keeps only the results."""

    @staticmethod
    def forward(
        ctx: Any, law: nn.Module, start: Tensor, step: float, count: int, *weights: Tensor
    ) -> Tensor:
        """Solves forwards; nothing is recorded."""
        states = solve(law, start, step, count)
        ctx.law, ctx.step = law, step
        ctx.save_for_backward(states, *weights)
        return states

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """Solves (state, adjoint, gradient of the weights) backwards from time to time."""
        (grad,) = grads
        states, *weights = ctx.saved_tensors

        def law(state: State) -> State:
            y, adjoint, *_ = state
            with torch.enable_grad():
                y = y.detach().requires_grad_()
                slope = ctx.law(y)
            pulled = torch.autograd.grad(slope, (y, *weights), -adjoint)
            return (slope.detach(), *pulled)

        adjoint, sums = grad[-1], [torch.zeros_like(weight) for weight in weights]
        for at in range(len(states) - 1, 0, -1):
            _, adjoint, *sums = runge_kutta(law, (states[at], adjoint, *sums), -ctx.step)
            adjoint = adjoint + grad[at - 1]
        return (None, adjoint, None, None, *sums)


def solve_adjoint(law: nn.Module, start: Tensor, step: float, count: int) -> Tensor:
    """The same states as of `solve`, with gradients by the adjoint method."""
    return Adjoint.apply(law, start, step, count, *law.parameters())


class Pendulum(nn.Module):
    """The law behind the data: a pendulum with friction, by its angle and its speed."""

    def forward(self, y: Tensor) -> Tensor:
        """The change of both at each state."""
        angle, speed = y.unbind(-1)
        return torch.stack((speed, -2 * torch.sin(angle) - 0.15 * speed), dim=-1)


def make_law() -> nn.Module:
    """A network from the state to its speed."""
    law = nn.Sequential(nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 2))
    with torch.no_grad():
        law[4].weight.mul_(0.1)
    return law


def compare_gradients(law: nn.Module, step: float) -> float:
    """How far the adjoint's gradients are from those through the solver, relative to these."""
    start = torch.randn(8, 2)
    weights = tuple(law.parameters())
    direct, adjoint = (
        torch.cat([g.flatten() for g in torch.autograd.grad(run.square().mean(), weights)])
        for run in (solve(law, start, step, 10), solve_adjoint(law, start, step, 10))
    )
    return ((direct - adjoint).norm() / direct.norm()).item()


def draw(path: Path, law: nn.Module, truth: Tensor, step: float, losses: Sequence[float]) -> None:
    """Writes the picture: the plane with the learned field, the course in time, the loss."""
    with torch.no_grad():
        run = solve(law, truth[0], step, len(truth))[:, 0]
        places = torch.linspace(-2.5, 2.5, 15)
        grid = torch.cartesian_prod(places, places)
        field = law(grid)
        field = 0.25 * field / field.norm(dim=1, keepdim=True).clamp_min(1e-9)
    figure = Figure("A law of motion, learned from one pendulum", 3, width=500, height=500)
    panel = figure.axes(
        (0, 0), "learned field and course", (-2.8, 2.8), (-2.8, 2.8), ("angle", "speed")
    )
    for (x, y), (dx, dy) in zip(grid.tolist(), field.tolist(), strict=True):
        panel.arrow(x, y, dx, dy, (203, 213, 225))
    known, found = truth[:, 0].T.tolist(), run.T.tolist()
    panel.points(known[0][::6], known[1][::6], INK, 2.6)
    panel.lines([Series("learned", found[0], found[1], PALETTE[0]), Series("data", [], [], INK)])
    times = [step * count for count in range(len(truth))]
    panel = figure.axes((1, 0), "course in time", (0, times[-1]), (-2.8, 2.8), ("time", "state"))
    panel.lines(
        [
            Series("angle", times, found[0], PALETTE[0]),
            Series("speed", times, found[1], PALETTE[1]),
            Series("data", [], [], INK),
        ]
    )
    for part in known:
        panel.points(times[::6], part[::6], INK, 2.4)
    panel = figure.axes(
        (2, 0), "error of short courses", (0, len(losses)), spread([0, *losses]),
        ("step", "mean absolute error"),
    )  # fmt: skip
    steps = list(range(len(losses)))
    panel.lines([Series("", steps, losses, MUTED, 1.0, 0.5), Series("", steps, smooth(losses))])
    figure.save(path)


@torch.no_grad()
def whole_error(law: nn.Module, truth: Tensor, step: float) -> float:
    """The mean absolute error of the whole course from its start."""
    return (solve(law, truth[0], step, len(truth)) - truth).abs().mean().item()


def main() -> None:
    """Learns the pendulum's law from short pieces of one swing."""
    options = parse(__doc__, steps=500)
    torch.manual_seed(options.seed)
    step, count, pieces, length = 0.05, 200, 32, 16
    with torch.no_grad():
        truth = solve(Pendulum(), torch.tensor([[2.2, 0.0]]), step, count)
    law = make_law()
    difference = compare_gradients(law, step)
    print(f"adjoint and direct gradients differ by {difference:.1e} of their length")
    before = whole_error(law, truth, step)
    optimizer = torch.optim.Adam(law.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)
    losses: list[float] = []
    progress = Progress("ODE", options.steps)
    for number in range(options.steps):
        first = torch.randint(count - length, (pieces,))
        expected = torch.stack([truth[first + later, 0] for later in range(length)])
        loss = (solve_adjoint(law, expected[0], step, length) - expected).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        progress.update(number + 1, f"error {losses[-1]:.4f}")
    after = whole_error(law, truth, step)
    progress.finish(f"{count} steps from the start on: mean error {after:.3f}")
    path = options.picture("neural_ode.png")
    draw(path, law, truth, step, losses)
    report("error of the whole course", before, after, path)


if __name__ == "__main__":
    main()
