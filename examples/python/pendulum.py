"""Reinforcement learning: a pendulum learns to swing itself up and to stay there.

    python examples/python/pendulum.py [--steps 30] [--seed 0] [--out demo-out]

The motor is too weak to lift the pendulum at once, so that it has to swing to and fro first. The
pendulum is a few lines of tensor arithmetic, many of them side by side; the method is proximal
policy optimisation (Schulman et al., 2017) with generalised advantage estimates. A step is one
episode of 32 pendulums and the learning from it.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

from chart import INK, PALETTE, Series
from command import parse, report
from figure import CLASSES, DIVERGING, Figure
from progress import Progress

import pullback as torch
from pullback import Tensor, nn
from pullback.distributions import Normal

LENGTH = 200
PENDULUMS = 32
DISCOUNT, TRACE = 0.95, 0.95
TORQUE = 2.0


class Pendulum:
    """Pendulums of one metre and one kilogram; the angle is zero at the top."""

    def __init__(self, count: int) -> None:
        self.angle = math.pi * (2 * torch.rand(count) - 1)
        self.speed = 2 * torch.rand(count) - 1

    def observe(self) -> Tensor:
        """What the policy sees of each: the cosine and sine of the angle, and the speed."""
        return observation(self.angle, self.speed)

    def step(self, torque: Tensor) -> Tensor:
        """Moves all by a twentieth of a second and gives the rewards."""
        torque = torque.clamp(-TORQUE, TORQUE)
        turned = (self.angle + math.pi) % (2 * math.pi) - math.pi
        reward = -(turned.square() + 0.1 * self.speed.square() + 0.001 * torque.square())
        force = 15 * torch.sin(self.angle) + 3 * torque
        self.speed = (self.speed + 0.05 * force).clamp(-8, 8)
        self.angle = self.angle + 0.05 * self.speed
        return reward


def observation(angle: Tensor, speed: Tensor) -> Tensor:
    """The input of the networks, of size one or so."""
    return torch.stack((torch.cos(angle), torch.sin(angle), speed / 4), dim=-1)


class Agent(nn.Module):
    """A policy, normal around a torque, and a network that foresees the reward."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.policy, self.value = (
            nn.Sequential(
                nn.Linear(3, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
                nn.Linear(width, 1), nn.Flatten(-2),
            )
            for _ in range(2)
        )  # fmt: skip
        self.log_scale = nn.Parameter(torch.tensor(0.0))
        with torch.no_grad():
            self.policy[4].weight.mul_(0.01)

    def act(self, seen: Tensor) -> Normal:
        """The distribution of the torque."""
        return Normal(self.policy(seen), self.log_scale.exp())


class Episode(NamedTuple):
    """What was seen and done, (time, pendulums); rewards are a tenth of the pendulum's."""

    seen: Tensor
    torque: Tensor
    log_prob: Tensor
    reward: Tensor
    value: Tensor


@torch.no_grad()
def play(agent: Agent) -> Episode:
    """One episode; `seen` and `value` have one entry more, after the last action."""
    world = Pendulum(PENDULUMS)
    seen, torques, log_probs, rewards = [world.observe()], [], [], []
    for _ in range(LENGTH):
        policy = agent.act(seen[-1])
        torque = policy.sample()
        rewards.append(0.1 * world.step(torque))
        torques.append(torque)
        log_probs.append(policy.log_prob(torque))
        seen.append(world.observe())
    everything = torch.stack(seen)
    return Episode(
        everything, torch.stack(torques), torch.stack(log_probs), torch.stack(rewards),
        agent.value(everything),
    )  # fmt: skip


def advantages(episode: Episode) -> Tensor:
    """How much better each action was than foreseen: sums of errors, discounted twice."""
    value = episode.value
    errors = episode.reward + DISCOUNT * value[1:] - value[:-1]
    result, running = torch.empty_like(errors), torch.zeros(PENDULUMS)
    for time in reversed(range(LENGTH)):
        running = errors[time] + DISCOUNT * TRACE * running
        result[time] = running
    return result


def learn(agent: Agent, optimizer: torch.optim.Optimizer, episode: Episode) -> None:
    """Eight passes over the episode in parts, with PPO's clipped objective."""
    gain = advantages(episode)
    target = (gain + episode.value[:-1]).flatten()
    gain = ((gain - gain.mean()) / (gain.std() + 1e-8)).flatten()
    seen = episode.seen[:-1].flatten(0, 1)
    torque, old = episode.torque.flatten(), episode.log_prob.flatten()
    for _ in range(8):
        for rows in torch.randperm(len(gain)).split(1600):
            ratio = (agent.act(seen[rows]).log_prob(torque[rows]) - old[rows]).exp()
            best = torch.minimum(ratio * gain[rows], ratio.clamp(0.8, 1.2) * gain[rows])
            error = nn.functional.mse_loss(agent.value(seen[rows]), target[rows])
            loss = error - best.mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()


@torch.no_grad()
def evaluate(agent: Agent, count: int = 100) -> float:
    """The mean return of an episode without noise."""
    world = Pendulum(count)
    rewards = [world.step(agent.policy(world.observe())) for _ in range(LENGTH)]
    return torch.stack(rewards).sum(0).mean().item()


@torch.no_grad()
def draw(path: Path, agent: Agent, returns: list[float]) -> None:
    """Writes the picture: the policy with one swing-up, courses of the angle, the returns."""
    figure = Figure("A pendulum learns to swing up", 3, width=500, height=500)
    angles, speeds = torch.linspace(-math.pi, math.pi, 90), torch.linspace(-8, 8, 90)
    speed, angle = torch.meshgrid(speeds, angles, indexing="ij")
    torque = agent.policy(observation(angle, speed).flatten(0, 1)).view(90, 90)
    world = Pendulum(8)
    world.angle, world.speed = math.pi + 0.3 * torch.randn(8), torch.zeros(8)
    course = [(world.angle, world.speed)]
    for _ in range(LENGTH):
        world.step(agent.policy(world.observe()))
        course.append((world.angle, world.speed))
    turned = [[(a + math.pi) % (2 * math.pi) - math.pi for a in at.tolist()] for at, _ in course]
    panel = figure.axes(
        (0, 0), "torque by angle and speed", (-math.pi, math.pi), (-8, 8),
        ("angle (0 is up)", "speed"), right=90,
    )  # fmt: skip
    panel.image(torque.clamp(-TORQUE, TORQUE).tolist(), -TORQUE, TORQUE, DIVERGING)
    panel.points([at[0] for at in turned], [speed[0].item() for _, speed in course], INK, 2.2)
    panel.key([("one swing-up", INK)])
    times = [0.05 * time for time in range(LENGTH + 1)]
    panel = figure.axes(
        (1, 0), "eight pendulums from below", (0, times[-1]), (-1.1, 1.1),
        ("seconds", "height (1 is up)"),
    )  # fmt: skip
    for number in range(8):
        heights = [math.cos(at[number]) for at in turned]
        panel.line(Series("", times, heights, CLASSES[number], 1.6, 0.9))
    panel = figure.axes(
        (2, 0), "return of an episode", (0, max(1, len(returns) - 1)),
        (min(-1300.0, *returns), 0), ("step", "mean return"),
    )  # fmt: skip
    panel.line(Series("", list(range(len(returns))), returns, PALETTE[0]))
    figure.save(path)


def main() -> None:
    """Lets the pendulums play and learn in turns."""
    options = parse(__doc__, steps=30)
    torch.manual_seed(options.seed)
    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, options.steps)
    before = evaluate(agent)
    returns: list[float] = []
    progress = Progress("pendulum", options.steps)
    for step in range(options.steps):
        episode = play(agent)
        learn(agent, optimizer, episode)
        schedule.step()
        returns.append(10 * episode.reward.sum(0).mean().item())
        progress.update(step + 1, f"return {returns[-1]:.0f}")
    after = evaluate(agent)
    progress.finish(f"mean return {after:.0f} (0 is the best there is, -1200 is hanging about)")
    path = options.picture("pendulum.png")
    draw(path, agent, returns)
    report("mean return", before, after, path)


if __name__ == "__main__":
    main()
