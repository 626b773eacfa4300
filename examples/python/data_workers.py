"""DataLoader with workers: images are turned and shifted by other processes while a network learns.

    python examples/python/data_workers.py [--steps 120] [--seed 0] [--out demo-out]

Each image is turned, moved and resized anew every time it is read, pixel by pixel in Python: as
much work as the training itself. `DataLoader` hands it to worker processes, which send their
batches through shared memory. The random numbers of an image depend on the seed and on its place in
the epoch only, so that batches are the same with any number of workers; the program checks that.
"""

from __future__ import annotations

import math
import os
import random
import time
from pathlib import Path
from typing import NamedTuple

from chart import PALETTE, Series, smooth
from command import parse, report
from digits_data import Digits, load
from figure import CLASSES, Figure, spread
from progress import Progress

import pullback as torch
from pullback import Tensor, nn
from pullback.utils.data import DataLoader, Dataset, get_worker_info

BATCH = 32
Item = tuple[Tensor, int, int, float, float]


class Turned(Dataset[Item]):
    """Digits, each one turned, shifted and resized at random whenever it is read."""

    def __init__(self, digits: Digits, count: int, seed: int) -> None:
        self.images = digits.images.squeeze(1).tolist()
        self.labels = digits.labels.tolist()
        self.count = count
        self.seed = seed

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        """The image and its label, the worker that read it, and from when to when."""
        started = time.perf_counter()
        draws = random.Random(self.seed * 1_000_003 + index)
        row = draws.randrange(len(self.labels))
        image = turn(self.images[row], draws)
        worker = get_worker_info()
        return (
            torch.tensor(image).unsqueeze(0), self.labels[row],
            worker.id if worker is not None else -1, started, time.perf_counter(),
        )  # fmt: skip


def turn(image: list[list[float]], draws: random.Random) -> list[list[float]]:
    """An image seen through a random turn, shift and change of size, by bilinear weights."""
    angle, scale = draws.uniform(-0.35, 0.35), draws.uniform(0.85, 1.15)
    shift_x, shift_y = draws.uniform(-0.8, 0.8), draws.uniform(-0.8, 0.8)
    cosine, sine = math.cos(angle) * scale, math.sin(angle) * scale
    size = len(image)
    middle = (size - 1) / 2

    def pixel(y: int, x: int) -> float:
        return image[y][x] if 0 <= y < size and 0 <= x < size else 0.0

    def value(y: float, x: float) -> float:
        top, left = math.floor(y), math.floor(x)
        down, right = y - top, x - left
        upper = pixel(top, left) * (1 - right) + pixel(top, left + 1) * right
        lower = pixel(top + 1, left) * (1 - right) + pixel(top + 1, left + 1) * right
        return upper * (1 - down) + lower * down

    return [
        [
            value(
                middle + shift_y + cosine * (y - middle) - sine * (x - middle),
                middle + shift_x + sine * (y - middle) + cosine * (x - middle),
            )
            for x in range(size)
        ]
        for y in range(size)
    ]


class Work(NamedTuple):
    """When who worked on which batch, in seconds from the start: a worker's number, or -1."""

    worker: int
    started: float
    ended: float


def make_model() -> nn.Module:
    """A small convolutional network."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip


def train(
    model: nn.Module, loader: DataLoader[Item], steps: int, started: float
) -> tuple[list[float], list[Work]]:
    """Learns from the loader's batches; notes when each was read and learned from."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    losses: list[float] = []
    work: list[Work] = []
    progress = Progress(f"{loader.num_workers} workers", steps)
    for images, labels, workers, begun, ended in loader:
        learning = time.perf_counter()
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        reading = Work(
            workers[0].item(), begun.min().item() - started, ended.max().item() - started
        )
        work += [reading, Work(-1, learning - started, time.perf_counter() - started)]
        progress.update(len(losses), f"loss {losses[-1]:.3f}")
    per_second = len(losses) / (time.perf_counter() - started)
    progress.finish(f"{len(losses)} batches, {per_second:.0f} per second")
    return losses, work


@torch.no_grad()
def loss_of(model: nn.Module, digits: Digits) -> float:
    """The loss of images as they are."""
    return nn.functional.cross_entropy(model(digits.images), digits.labels).item()


def draw(path: Path, images: Tensor, work: list[Work], losses: list[float], workers: int) -> None:
    """Writes the picture: turned images, who worked when, the loss."""
    figure = Figure("Images turned by workers while a network learns", 3, width=500, height=480)
    figure.tiles((0, 0), "what the workers send", images.squeeze(1).clamp(0, 1).tolist(), 6)
    # Twelve batches from the middle, where all are at work.
    learned = [entry for entry in work if entry.worker < 0]
    begun = learned[len(learned) // 3].started
    span = learned[min(len(learned) // 3 + 12, len(learned) - 1)].ended - begun
    names = ["learning", *(f"worker {number}" for number in range(workers))]
    panel = figure.axes(
        (1, 0), "who works when", (0, 1000 * span), (-1.5, workers - 0.5), ("milliseconds", ""),
        names={"y": names},
    )  # fmt: skip
    for worker, started, ended in work:
        first, last = max(0.0, started - begun), min(span, ended - begun)
        if first < last:
            left, top = panel.place(1000 * first, worker + 0.3)
            right, bottom = panel.place(1000 * last, worker - 0.3)
            size = (max(2, round(right - left) - 1), round(bottom - top))
            panel.canvas.fill(round(left), round(top), *size, CLASSES[worker + 1])
    steps = list(range(1, len(losses) + 1))
    panel = figure.axes(
        (2, 0), "loss of turned images", (0, len(steps)), spread([0, *losses]),
        ("step", "cross-entropy"),
    )  # fmt: skip
    panel.lines(
        [
            Series("", steps, losses, PALETTE[0], 1.0, 0.3),
            Series("", steps, smooth(losses), PALETTE[0]),
        ]
    )
    figure.save(path)


def main() -> None:
    """Trains with workers and without; both see the same images."""
    options = parse(__doc__, steps=120)
    digits, test = load()
    data = Turned(digits, options.steps * BATCH, options.seed)
    workers = min(2, os.cpu_count() or 1)
    courses = []
    for number in (0, workers):
        torch.manual_seed(options.seed)
        model = make_model()
        before = loss_of(model, test)
        # (Batches are read ahead by workers only.)
        ahead = 4 if number else None
        loader = DataLoader(data, BATCH, num_workers=number, prefetch_factor=ahead)
        losses, work = train(model, loader, options.steps, time.perf_counter())
        courses.append(losses)
    if courses[0] != courses[1]:
        raise SystemExit("the batches differ between numbers of workers")
    print("The losses are the same to the last bit with workers and without.")
    images = torch.stack([data[number][0] for number in range(36)])
    path = options.picture("data_workers.png")
    draw(path, images, work, courses[1], workers)
    report("loss of test images", before, loss_of(model, test), path)


if __name__ == "__main__":
    main()
