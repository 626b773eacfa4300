"""Layers against what was recorded of PyTorch: printed form, state dict, output, gradients.

The program is `recorded/layer_program.py`; the same seed must give the same parameters.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import pullback

RECORDED = Path(__file__).parents[1] / "recorded"
sys.path.insert(0, str(RECORDED))

from layer_program import CASES, run  # noqa: E402

RECORDS = json.loads((RECORDED / "layers.json").read_text())


def near(value: Any, scale: float = 2e-4) -> Any:
    return pytest.approx(value, rel=scale, abs=scale / 2)


@pytest.mark.parametrize("name", CASES)
def test_layer_is_as_recorded(name: str) -> None:
    expected = RECORDS[name]
    record = run(pullback, name)
    for key in ("text", "made", "after", "versions"):
        assert record[key] == expected[key], key
    assert list(record["state"]) == list(expected["state"])
    for key, (shape, value) in expected["state"].items():
        assert record["state"][key] == [shape, near(value)], key
    for (shape, value), mine in zip(expected["outputs"], record["outputs"], strict=True):
        assert mine == [shape, near(value)]
    assert ("gradients" in record) == ("gradients" in expected)
    pairs = zip(expected.get("gradients", ()), record.get("gradients", ()), strict=True)
    for index, (value, mine) in enumerate(pairs):
        assert mine == (None if value is None else near(value, 1e-3)), index
