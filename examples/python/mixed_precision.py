"""Mixed precision: autocast and GradScaler, beside training in single precision.

    python examples/python/mixed_precision.py [--steps 150] [--seed 0] [--out demo-out]

Within `torch.autocast` products of matrices and convolutions take and give half precision, while
sums, softmax and losses stay in single precision, and so do the weights. `bfloat16` has the range
of float32 and needs nothing more; `float16` loses gradients below 6e-8, so that `GradScaler`
enlarges the loss. The same network is trained in all three ways, from the same weights on the same
images.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from chart import PALETTE, Series, smooth
from command import parse, report
from digits_data import Digits, load
from figure import Figure
from progress import Progress

import pullback as torch
from pullback import Tensor, nn
from pullback.utils._python_dispatch import TorchDispatchMode

BATCH = 64
WAYS = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}


class Seen(TorchDispatchMode):
    """Counts the dtypes of what each op gives, below autocast and autograd."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[tuple[str, str]] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs the op and looks at its result."""
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and result.is_floating_point():
            dtype = str(result.dtype).removeprefix("torch.")
            self.counts[func.overloadpacket.__name__, dtype] += 1
        return result


class Run(NamedTuple):
    """What one training left behind; `memory` is what the graph of a step keeps, in bytes."""

    losses: list[float]
    accuracy: float
    ms_per_step: float
    memory: int


def make_model() -> nn.Module:
    """Two convolutions and two linear layers."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip


def precision(dtype: torch.dtype | None) -> Any:
    """The context in which forward runs."""
    if dtype is None:
        return contextlib.nullcontext()
    return torch.autocast("cpu", dtype=dtype)


def kept_bytes(model: nn.Module, digits: Digits, dtype: torch.dtype | None) -> int:
    """How much a step's graph keeps for backward, counted once for each memory."""
    kept: dict[int, int] = {}
    weights = {parameter.data_ptr() for parameter in model.parameters()}

    def pack(tensor: Tensor) -> Tensor:
        if tensor.data_ptr() not in weights:
            storage = tensor.untyped_storage()
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    hooks = torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor)
    with precision(dtype), hooks:
        loss = nn.functional.cross_entropy(model(digits.images[:BATCH]), digits.labels[:BATCH])
    del loss
    return sum(kept.values())


def train(name: str, train_set: Digits, test: Digits, steps: int, seed: int) -> Run:
    """Trains one network in one precision."""
    dtype = WAYS[name]
    torch.manual_seed(seed)
    model = make_model()
    memory = kept_bytes(model, train_set, dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    # Does nothing but for float16, whose smallest gradients would become zero.
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14, enabled=dtype is torch.float16)
    losses: list[float] = []
    progress = Progress(name, steps)
    started = time.perf_counter()
    for step in range(steps):
        rows = torch.randint(len(train_set.labels), (BATCH,))
        with precision(dtype):
            output = model(train_set.images[rows])
            loss = nn.functional.cross_entropy(output, train_set.labels[rows])
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
        progress.update(step + 1, f"loss {losses[-1]:.4f}")
    ms_per_step = 1000 * (time.perf_counter() - started) / steps
    with torch.no_grad(), precision(dtype):
        is_right = model(test.images).argmax(1) == test.labels
    run = Run(losses, is_right.float().mean().item(), ms_per_step, memory)
    progress.finish(
        f"test accuracy {run.accuracy:.2%}, {ms_per_step:.2f} ms per step, "
        f"{memory / 1024:.0f} KB kept for backward"
    )
    return run


def show_dtypes(digits: Digits) -> None:
    """Prints which ops of a step give which dtype under autocast."""
    model = make_model()
    with Seen() as seen, precision(torch.bfloat16):
        nn.functional.cross_entropy(model(digits.images[:8]), digits.labels[:8]).backward()
    by_dtype: dict[str, list[str]] = {}
    for op, dtype in sorted(seen.counts):
        by_dtype.setdefault(dtype, []).append(op)
    for dtype, ops in sorted(by_dtype.items()):
        print(f"under autocast, {dtype}: {', '.join(ops)}")


def draw(path: Path, runs: dict[str, Run]) -> None:
    """Writes the picture: losses, how far they are from single precision, what is kept."""
    figure = Figure("One training in three precisions", 3, width=500)
    steps = list(range(1, len(runs["float32"].losses) + 1))
    panel = figure.axes(
        (0, 0), "training loss", (0, len(steps)), (0, max(runs["float32"].losses) * 1.02),
        ("step", "cross-entropy"),
    )  # fmt: skip
    looks = list(zip(runs.items(), PALETTE, (5.0, 3.0, 1.4), strict=False))
    panel.lines(
        [Series(name, steps, smooth(run.losses, 0.8), c, width) for (name, run), c, width in looks]
    )
    apart = {
        name: [abs(a - b) for a, b in zip(run.losses, runs["float32"].losses, strict=True)]
        for name, run in runs.items()
    }
    panel = figure.axes(
        (1, 0), "distance from float32", (0, len(steps)),
        (0, 1.05 * max(1e-6, *(max(smooth(values, 0.8)) for values in apart.values()))),
        ("step", "difference of loss"),
    )  # fmt: skip
    panel.lines(
        [
            Series(name, steps, smooth(apart[name], 0.8), c, 1.8)
            for (name, _), c, _ in looks
            if name != "float32"
        ]
    )
    most = max(run.memory for run in runs.values()) / 1024
    panel = figure.axes(
        (2, 0), "kept for backward, per step", (0, 3), (0, 1.1 * most),
        ("precision of products", "KB"), names={"x": list(runs)},
    )  # fmt: skip
    for at, ((_, run), color, _) in enumerate(looks):
        panel.bars([at + 0.2, at + 0.8], [run.memory / 1024], color)
        x, y = panel.place(at + 0.5, run.memory / 1024)
        panel.canvas.text(x, y - 14, f"{run.memory / 1024:.0f}", color, align=0.5)
    figure.save(path)


def main() -> None:
    """Trains in all three ways and compares them."""
    options = parse(__doc__, steps=150)
    train_set, test = load()
    show_dtypes(train_set)
    runs = {name: train(name, train_set, test, options.steps, options.seed) for name in WAYS}
    path = options.picture("mixed_precision.png")
    draw(path, runs)
    losses = runs["bfloat16"].losses
    report("loss in bfloat16", losses[0], sum(losses[-10:]) / len(losses[-10:]), path)


if __name__ == "__main__":
    main()
