"""A soak: training, loaders, hooks, exceptions, threads, forks at once, as long as one likes.

``python soak.py --minutes N`` prints a line now and then: seconds, resident memory, descriptors,
threads, rounds. It fails if, after a first fifth of the time, memory grows by more than
``--growth`` percent, or if descriptors or threads become more. Started by ``cargo xtask soak``.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pullback as torch
from pullback import nn
from pullback.utils.data import DataLoader, TensorDataset


class Sample(NamedTuple):
    """What the process holds at a moment."""

    seconds: float
    memory: int
    descriptors: int
    threads: int
    rounds: int


def sample(start: float, rounds: int) -> Sample:
    """What the process holds now; memory in bytes."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    held = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
    return Sample(time.monotonic() - start, pages * resource.getpagesize(), *held, rounds)


def train(loader: Any) -> None:
    """One pass of a small network over a loader, in a fixed number of steps."""
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for inputs, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()


def with_hooks() -> None:
    """A graph with hooks of every kind, which goes with what they hold."""
    x = torch.ones(64, requires_grad=True)
    y = (x * x).exp()
    held = torch.ones(1000)
    y.register_hook(lambda grad: grad * held[0])
    y.grad_fn.register_hook(lambda *_: None)
    handle = x.register_post_accumulate_grad_hook(lambda _: None)
    y.sum().backward()
    handle.remove()


def with_exceptions() -> None:
    """Errors of arguments, of hooks, of a graph that is gone, of memory that is not there."""
    x = torch.ones(8, requires_grad=True)

    def fail(_: Any) -> Any:
        raise ValueError("on purpose")

    y = x * 2
    y.register_hook(fail)
    used = (x * x).sum()
    used.backward()
    calls: list[Callable[[], Any]] = [
        lambda: torch.ones(2) + torch.ones(3),
        y.sum().backward,
        used.backward,
        lambda: torch.empty(2**45),
    ]
    for call in calls:
        try:
            call()
        except (RuntimeError, ValueError):
            continue
        raise AssertionError("an error was expected")


def with_threads() -> None:
    """Threads that go backward on one retained graph, started and joined."""
    x = torch.ones(32, requires_grad=True)
    y = (x * x).sum()
    work = [threading.Thread(target=y.backward, kwargs={"retain_graph": True}) for _ in range(4)]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    expected = 2.0 * len(work)
    if x.grad is None or x.grad.tolist() != [expected] * 32:
        raise AssertionError(f"the threads' gradients do not add up to {expected}: {x.grad}")


def with_fork() -> None:
    """A forked child that computes and goes."""
    child = os.fork()
    if child == 0:
        x = torch.ones(8, requires_grad=True)
        (x * x).sum().backward()
        os._exit(0 if x.grad is not None and x.grad.tolist() == [2.0] * 8 else 1)
    if os.waitpid(child, 0)[1] != 0:
        raise AssertionError("a forked child failed")


def shown(at: Sample) -> str:
    """A line of the curve."""
    return (
        f"{at.seconds:7.1f} s  {at.memory / 2**20:8.1f} MiB  {at.descriptors:3} descriptors"
        f"  {at.threads:2} threads  {at.rounds} rounds"
    )


def verdict(curve: list[Sample], growth: float) -> str | None:
    """What is not flat in the curve, if anything."""
    settled = curve[len(curve) // 5 :]
    third = max(1, len(settled) // 3)
    before = statistics.median(at.memory for at in settled[:third])
    after = statistics.median(at.memory for at in settled[-third:])
    print(f"resident memory: {100 * (after / before - 1):+.2f} %")
    if after > before * (1 + growth / 100):
        return f"resident memory grew from {before / 2**20:.1f} to {after / 2**20:.1f} MiB"
    for name in ("descriptors", "threads"):
        first, last = getattr(settled[0], name), getattr(settled[-1], name)
        if last > first:
            return f"{name}: {first} became {last}"
    return None


def main(words: list[str]) -> int:
    """Runs for so many minutes and judges the curve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--growth", type=float, default=1.0, help="of memory, in percent")
    parser.add_argument("--workers", type=int, default=2, help="processes of the loader")
    given = parser.parse_args(words)
    data = TensorDataset(torch.randn(256, 16), torch.randint(4, (256,)))
    start, rounds, curve = time.monotonic(), 0, list[Sample]()
    while time.monotonic() - start < 60 * given.minutes:
        train(DataLoader(data, batch_size=32, shuffle=True))
        if rounds % 5 == 0:
            train(DataLoader(data, batch_size=64, num_workers=given.workers))
        for part in (with_hooks, with_exceptions, with_threads, with_fork):
            part()
        rounds += 1
        if time.monotonic() - start > 60 * given.minutes * len(curve) / 50:
            curve.append(sample(start, rounds))
            print(shown(curve[-1]), flush=True)
    wrong = verdict(curve, given.growth)
    if wrong:
        print(f"not flat: {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
