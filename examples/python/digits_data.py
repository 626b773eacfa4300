"""The handwritten digits of `examples/data`, as tensors; no other package is needed."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from digits_model import test_rows, train_rows

import pullback as torch
from pullback import Tensor

PATH = Path(__file__).parents[1] / "data" / "digits.bin"
COUNT = 1797


class Digits(NamedTuple):
    """Images of shape (n, 1, 8, 8) with values from 0 to 1, and their labels."""

    images: Tensor
    labels: Tensor


def load() -> tuple[Digits, Digits]:
    """The training images and the test images (every fifth one)."""
    raw = torch.frombuffer(bytearray(PATH.read_bytes()), dtype=torch.uint8)
    images = raw[: 64 * COUNT].view(COUNT, 1, 8, 8).float() / 16
    labels = raw[64 * COUNT :].long()
    train, test = (torch.tensor(rows(COUNT)) for rows in (train_rows, test_rows))
    return Digits(images[train], labels[train]), Digits(images[test], labels[test])
