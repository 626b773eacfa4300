"""MAML: a network that learns to learn a new sine wave from ten points in one step.

    python examples/python/maml.py [--steps 2500] [--seed 0] [--out demo-out]

Model-agnostic meta-learning (Finn, Abbeel and Levine, 2017) looks for weights from which one step
of gradient descent on a few points of a new task already does well. The loss after that step is
differentiated through the step: a gradient of a gradient. `torch.func.grad` makes the inner one,
`vmap` computes all tasks of a batch at once, and `backward` goes through both.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

from chart import INK, MUTED, PALETTE, Series, smooth
from command import parse, report
from figure import Figure
from progress import Progress

import pullback as torch
from pullback import Tensor, nn
from pullback.func import functional_call, grad, vmap

TASKS = 25
POINTS = 10
INNER_RATE = 0.02
Weights = dict[str, Tensor]


class Task(NamedTuple):
    """Points to learn from and points to be judged by, for several waves: (tasks, points, 1)."""

    x: Tensor
    y: Tensor
    test_x: Tensor
    test_y: Tensor


def make_model() -> nn.Module:
    """Two hidden layers of 40, from one number to one number."""
    return nn.Sequential(
        nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1)
    )


def sample(tasks: int) -> Task:
    """Waves of random amplitude and phase, at random points."""
    amplitude = 0.5 + 4.5 * torch.rand(tasks, 1, 1)
    phase = math.pi * torch.rand(tasks, 1, 1)
    x, test_x = 10 * torch.rand(2, tasks, POINTS, 1) - 5
    return Task(x, amplitude * torch.sin(x + phase), test_x, amplitude * torch.sin(test_x + phase))


class Learner:
    """The inner loop over a model's weights."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def loss(self, weights: Weights, x: Tensor, y: Tensor) -> Tensor:
        """The mean squared error of one task."""
        return nn.functional.mse_loss(functional_call(self.model, weights, (x,)), y)

    def adapt(self, weights: Weights, x: Tensor, y: Tensor, steps: int = 1) -> Weights:
        """The weights after some steps of gradient descent on one task's points."""
        for _ in range(steps):
            slopes = grad(self.loss)(weights, x, y)
            weights = {name: w - INNER_RATE * slopes[name] for name, w in weights.items()}
        return weights

    def judged(self, weights: Weights, task: Task, steps: int = 1) -> Tensor:
        """The error of each task on points not seen, after adapting to it."""

        def one(x: Tensor, y: Tensor, test_x: Tensor, test_y: Tensor) -> Tensor:
            return self.loss(self.adapt(weights, x, y, steps), test_x, test_y)

        return vmap(one)(*task)


def train(model: nn.Module, steps: int, name: str, inner_steps: int) -> list[float]:
    """Adam on the error after `inner_steps` steps of adapting; without any it is plain training."""
    learner = Learner(model)
    weights: Weights = dict(model.named_parameters())
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    losses: list[float] = []
    progress = Progress(name, steps)
    for step in range(steps):
        loss = learner.judged(weights, sample(TASKS), inner_steps).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        progress.update(step + 1, f"error {losses[-1]:.3f}")
    progress.finish(f"error {sum(losses[-50:]) / len(losses[-50:]):.3f} in the last steps")
    return losses


def draw(path: Path, models: dict[str, nn.Module], losses: dict[str, list[float]]) -> None:
    """Writes the picture: one new wave before and after learning it, errors by steps."""
    figure = Figure("Learning to learn: a new sine wave from ten points", 3, width=500)
    x = torch.linspace(-5, 5, 200).unsqueeze(1)
    shown = 10 * torch.rand(POINTS, 1) - 5

    def wave(at: Tensor) -> Tensor:
        return 3.5 * torch.sin(at + 0.8)

    for column, (name, model) in enumerate(models.items()):
        learner = Learner(model)
        weights = {key: value.detach() for key, value in model.named_parameters()}
        panel = figure.axes((column, 0), name, (-5, 5), (-5.5, 5.5), ("x", "y"))
        curves = [Series("truth", x.flatten().tolist(), wave(x).flatten().tolist(), MUTED, 1.4)]
        for steps, label, color in (
            (0, "before", PALETTE[2]), (1, "1 step", PALETTE[1]), (10, "10 steps", PALETTE[0]),
        ):  # fmt: skip
            adapted = learner.adapt(weights, shown, wave(shown), steps)
            values = functional_call(model, adapted, (x,)).flatten().tolist()
            curves.append(Series(label, x.flatten().tolist(), values, color))
        panel.lines(curves)
        panel.points(shown.flatten().tolist(), wave(shown).flatten().tolist(), INK, 4)
    panel = figure.axes(
        (2, 0), "error on new points", (0, len(losses["MAML"])), (0, 7), ("step", "squared error")
    )
    panel.lines(
        [
            Series(name, list(range(len(run))), smooth(run, 0.97), color)
            for (name, run), color in zip(losses.items(), PALETTE, strict=False)
        ]
    )
    figure.save(path)


def main() -> None:
    """Trains with and without the inner step and compares them on new tasks."""
    options = parse(__doc__, steps=2500)
    torch.manual_seed(options.seed)
    models = {"MAML": make_model(), "plain training": make_model()}
    new = sample(200)

    def error(name: str) -> float:
        model = models[name]
        return Learner(model).judged(dict(model.named_parameters()), new).mean().item()

    before = error("MAML")
    losses = {
        name: train(model, options.steps, name, inner_steps=int(name == "MAML"))
        for name, model in models.items()
    }
    print(f"error on 200 new waves after one step: {error('MAML'):.3f} with MAML, ", end="")
    print(f"{error('plain training'):.3f} from plain training")
    path = options.picture("maml.png")
    draw(path, models, losses)
    report("error after one step", before, error("MAML"), path)


if __name__ == "__main__":
    main()
