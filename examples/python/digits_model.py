"""The two networks and the split of the handwritten-digits example.

The functions take the library as an argument, so that the same program can be run with
another one that has these names, to compare.
"""

from __future__ import annotations

from typing import Any


def test_rows(count: int) -> list[int]:
    """Every fifth image is for the test: a split that needs no random numbers."""
    return list(range(0, count, 5))


def train_rows(count: int) -> list[int]:
    """The images that are not for the test."""
    return [row for row in range(count) if row % 5]


def make_mlp(library: Any) -> Any:
    """64 pixels, 64 hidden units, 10 classes."""
    nn = library.nn
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def make_cnn(library: Any) -> Any:
    """Two 3x3 convolutions, pooling, dropout, two linear layers."""
    nn = library.nn
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.25),
        nn.Linear(512, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def make_optimizer(library: Any, kind: str, model: Any) -> Any:
    """SGD with momentum for the MLP, AdamW for the CNN."""
    if kind == "mlp":
        return library.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    return library.optim.AdamW(model.parameters(), lr=2e-3)
