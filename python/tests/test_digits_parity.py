"""Training on the digits takes the same course as in PyTorch, loss by loss.

One test per network goes through most of the library: initial values, shuffling, forward,
backward, dropout and the optimiser. The recorded numbers are PyTorch's.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import pullback

RECORDED = Path(__file__).with_name("recorded")
sys.path.insert(0, str(RECORDED))

from digits_program import first_losses  # noqa: E402

RECORD = json.loads((RECORDED / "digits_losses.json").read_text())


@pytest.mark.parametrize("kind", sorted(RECORD["losses"]))
def test_first_losses_equal_the_recorded_ones(kind: str) -> None:
    expected = RECORD["losses"][kind]
    losses = first_losses(pullback, kind, len(expected), RECORD["seed"])
    for step, (loss, recorded) in enumerate(zip(losses, expected, strict=True)):
        assert abs(loss - recorded) <= 1e-4, f"step {step}: {loss} against {recorded}"
