"""Trains two classifiers on scikit-learn's 1,797 handwritten digits and shows the result.

    python examples/python/digits.py [--out demo-out] [--epochs 15] [--seed 0]

An MLP and a small convolutional network are trained on four fifths of the images and tested
on the rest. Into the output folder go the curves of loss and accuracy and the confusion
matrix (PNG), the autograd graph of one step (SVG and HTML) and a checkpoint (safetensors),
which is read back to classify a few digits that are drawn in the terminal.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from chart import PALETTE, Series, confusion_matrix, line_chart, smooth
from digits_model import make_cnn, make_mlp, make_optimizer, test_rows, train_rows
from progress import Progress

import pullback as torch
from pullback.utils.data import DataLoader, TensorDataset
from pullback.utils.graph import draw_graph
from pullback.utils.safetensors import load_file, save_file

BATCH_SIZE = 64
MAKERS = {"mlp": make_mlp, "cnn": make_cnn}


class Split(NamedTuple):
    """Images of shape (n, 1, 8, 8) with values from 0 to 1, and their labels."""

    images: Any
    labels: Any


class History(NamedTuple):
    """What a training left behind."""

    model: Any
    losses: list[float]
    train_accuracy: list[float]
    test_accuracy: list[float]
    ms_per_step: float


def load_digits() -> tuple[Split, Split]:
    """The training and the test images from scikit-learn's wheel."""
    try:
        from sklearn.datasets import load_digits as read
    except ImportError:
        sys.exit(
            "This example reads the digits that come with scikit-learn, which is not installed.\n"
            "Install it with:  python -m pip install scikit-learn"
        )
    data = read()
    images = torch.tensor(data.images.tolist(), dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(data.target.tolist())
    train, test = (torch.tensor(rows(len(labels))) for rows in (train_rows, test_rows))
    return Split(images[train], labels[train]), Split(images[test], labels[test])


def classify(model: Any, images: Any) -> Any:
    """The most likely class of each image."""
    model.eval()
    with torch.no_grad():
        return model(images).argmax(1)


def accuracy(model: Any, split: Split) -> float:
    """The share of right answers."""
    return float((classify(model, split.images) == split.labels).float().mean())


def train(kind: str, train_split: Split, test_split: Split, epochs: int, seed: int) -> History:
    """Trains one network and shows how it goes."""
    torch.manual_seed(seed)
    model = MAKERS[kind](torch)
    optimizer = make_optimizer(torch, kind, model)
    loader = DataLoader(TensorDataset(*train_split), batch_size=BATCH_SIZE, shuffle=True)
    top = 5 * optimizer.param_groups[0]["lr"] if kind == "cnn" else 0.2
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=top, total_steps=epochs * len(loader), cycle_momentum=False
    )
    loss_of = torch.nn.CrossEntropyLoss()
    progress = Progress(f"{kind.upper()}", epochs * len(loader))
    losses: list[float] = []
    history = History(model, losses, [], [], 0.0)
    busy = 0.0
    for epoch in range(epochs):
        right = seen = 0
        model.train()
        for images, labels in loader:
            started = time.perf_counter()
            optimizer.zero_grad()
            output = model(images)
            loss = loss_of(output, labels)
            loss.backward()
            optimizer.step()
            schedule.step()
            busy += time.perf_counter() - started
            losses.append(loss.item())
            right += int((output.detach().argmax(1) == labels).sum())
            seen += len(labels)
            score = f"loss {losses[-1]:.4f}  accuracy {right / seen:.1%}"
            text = f"epoch {epoch + 1:2d}/{epochs}  {score}"
            progress.update(len(losses), text)
        history.train_accuracy.append(right / seen)
        history.test_accuracy.append(accuracy(model, test_split))
        progress.note(f"{text}  test {history.test_accuracy[-1]:.2%}")
    history = history._replace(ms_per_step=1000 * busy / len(losses))
    progress.finish(
        f"test accuracy {history.test_accuracy[-1]:.2%} after {len(history.losses)} steps, "
        f"{history.ms_per_step:.3f} ms per step"
    )
    return history


def draw_charts(out: Path, runs: dict[str, History], test_split: Split) -> None:
    """Writes the two curves and the confusion matrix of the CNN."""
    losses, accuracies = [], []
    for color, (kind, run) in zip(PALETTE, runs.items(), strict=False):
        steps = list(range(1, len(run.losses) + 1))
        losses.append(Series("", steps, run.losses, color, 1.3, 0.28))
        losses.append(Series(kind.upper(), steps, smooth(run.losses, 0.85), color))
        epochs = list(range(1, len(run.test_accuracy) + 1))
        accuracies.append(
            Series(f"{kind.upper()}, training", epochs, run.train_accuracy, color, 1.6, 0.45)
        )
        accuracies.append(
            Series(f"{kind.upper()}, test", epochs, run.test_accuracy, color, markers=True)
        )
    line_chart(out / "loss.png", losses, "Training loss", "step", "cross-entropy")
    line_chart(
        out / "accuracy.png", accuracies, "Accuracy", "epoch", "share of right answers",
        y_range=(0.8, 1.0), percent=True, legend="bottom",
    )  # fmt: skip
    counts = [[0] * 10 for _ in range(10)]
    predicted = classify(runs["cnn"].model, test_split.images).tolist()
    for truth, answer in zip(test_split.labels.tolist(), predicted, strict=True):
        counts[truth][answer] += 1
    names = [str(digit) for digit in range(10)]
    confusion_matrix(out / "confusion.png", counts, names, "CNN, test images")


def draw_step(out: Path, model: Any, split: Split) -> None:
    """Writes the autograd graph of one training step."""
    model.train()
    loss = torch.nn.CrossEntropyLoss()(model(split.images[:BATCH_SIZE]), split.labels[:BATCH_SIZE])
    names = dict(model.named_parameters())
    draw_graph(loss, out / "graph.svg", names, title="one training step of the CNN")
    draw_graph(
        loss, out / "graph.html", names, show_saved=True, title="one training step of the CNN"
    )


def reload_and_show(out: Path, model: Any, split: Split) -> None:
    """Saves the CNN, reads it back into a fresh one and classifies a few digits with that."""
    path = out / "cnn.safetensors"
    save_file(model.state_dict(), path, {"format": "pt", "classes": "0-9"})
    fresh = make_cnn(torch)
    fresh.load_state_dict(load_file(path))
    answers = classify(fresh, split.images)
    if not bool((answers == classify(model, split.images)).all()):
        sys.exit(f"{path}: the network that was read back answers differently")
    wrong = (answers != split.labels).nonzero().flatten().tolist()
    rows = [*range(0, len(answers), len(answers) // 5)][: 6 - min(len(wrong), 2)] + wrong[:2]
    print(f"\nRead back from {path}: digits it has never seen, and what it makes of them\n")
    pictures = [block_picture(split.images[row][0].tolist()) for row in rows]
    for parts in zip(*pictures, strict=True):
        print("   " + "   ".join(parts))
    said = [f"{answers[row].item()} ({split.labels[row].item()})" for row in rows]
    print("   " + "   ".join(f"{text:^16}" for text in said))
    print("\n   what it says (what it is)")


def block_picture(pixels: list[list[float]]) -> list[str]:
    """An 8x8 image as eight lines of sixteen block characters, darker for more ink."""
    shades = " ░▒▓█"
    return ["".join(2 * shades[min(4, int(value * 4.999))] for value in row) for row in pixels]


def peak_memory() -> str:
    """The most memory that tensors held at once, or of the process where that is unknown."""
    memory = getattr(torch, "memory", None)
    if memory is not None and hasattr(memory, "peak_bytes"):
        return f"peak memory of tensors {memory.peak_bytes() / 2**20:.1f} MB"
    try:
        import resource
    except ImportError:
        return "peak memory unknown on this system"
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return f"peak memory of the process {kilobytes / 1024:.0f} MB"


def main() -> None:
    """Runs the whole example."""
    parser = argparse.ArgumentParser(description="Train on handwritten digits and show the result.")
    parser.add_argument("--out", type=Path, default=Path("demo-out"), help="folder for the results")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started = time.perf_counter()
    train_split, test_split = load_digits()
    print(f"{len(train_split.labels)} digits to learn from, {len(test_split.labels)} to test on\n")
    runs = {
        kind: train(kind, train_split, test_split, options.epochs, options.seed) for kind in MAKERS
    }
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    draw_charts(out, runs, test_split)
    draw_step(out, runs["cnn"].model, train_split)
    reload_and_show(out, runs["cnn"].model, test_split)
    print(f"\nWritten to {out}/:")
    for path in sorted(out.iterdir()):
        print(f"   {path.name:<18} {path.stat().st_size / 1024:8.1f} KB")
    print()
    for kind, run in runs.items():
        score = f"test accuracy {run.test_accuracy[-1]:.2%}, {run.ms_per_step:.3f} ms per step"
        print(f"{kind.upper()}: {score}")
    print(f"{peak_memory()}, {time.perf_counter() - started:.1f} s in all")


if __name__ == "__main__":
    main()
