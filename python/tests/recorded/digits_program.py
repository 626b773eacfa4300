"""The first steps of training on the digits, for any library with these names.

The recorder runs it with PyTorch, the test with pullback. Everything random (initial
values, dropout, the order of the images) comes from the library's own generator.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "examples" / "python"))

from digits_model import make_cnn, make_mlp, train_rows  # noqa: E402

COUNT = 1797
KINDS = ("mlp", "mlp_adamw", "cnn")


def _make(library: Any, kind: str) -> tuple[Any, Any]:
    model = make_cnn(library) if kind == "cnn" else make_mlp(library)
    if kind == "mlp_adamw":
        # Where a gradient is next to zero, Adam with its usual eps turns the rounding of the
        # gradient into a full step; with a large eps the course depends on the mathematics.
        return model, library.optim.AdamW(model.parameters(), lr=2e-3, eps=1e-3)
    return model, library.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def read_digits(library: Any) -> tuple[Any, Any]:
    """The training images, values 0 to 1 and shape (n, 1, 8, 8), and their labels."""
    raw = (ROOT / "examples" / "data" / "digits.bin").read_bytes()
    rows = train_rows(COUNT)
    pixels = [[value / 16 for value in raw[64 * row : 64 * (row + 1)]] for row in rows]
    labels = [raw[64 * COUNT + row] for row in rows]
    images = library.tensor(pixels, dtype=library.float32).reshape(len(rows), 1, 8, 8)
    return images, library.tensor(labels)


def first_losses(library: Any, kind: str, count: int, seed: int = 0) -> list[float]:
    """The losses of the first `count` steps."""
    data = library.utils.data
    library.manual_seed(seed)
    model, optimizer = _make(library, kind)
    loader = data.DataLoader(data.TensorDataset(*read_digits(library)), batch_size=64, shuffle=True)
    loss_of = library.nn.CrossEntropyLoss()
    losses: list[float] = []
    while True:
        for images, labels in loader:
            optimizer.zero_grad()
            loss = loss_of(model(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if len(losses) == count:
                return losses
