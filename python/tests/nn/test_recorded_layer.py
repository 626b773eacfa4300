"""Layers against what was recorded of PyTorch: printed form, state dict, output, gradients.

The program is `recorded/layer_program.py`; the same seed must give the same parameters.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from op_presence import needs

import pullback

RECORDED = Path(__file__).parents[1] / "recorded"
sys.path.insert(0, str(RECORDED))

from layer_program import CASES, run  # noqa: E402

RECORDS = json.loads((RECORDED / "layers.json").read_text())


# By the first word of a case's name: the ops that are asked for (of `nn.functional`).
OPS = {
    "AdaptiveAvgPool3d": "adaptive_avg_pool3d",
    "AdaptiveMaxPool1d": "adaptive_max_pool1d",
    "AdaptiveMaxPool2d": "adaptive_max_pool2d",
    "AdaptiveMaxPool3d": "adaptive_max_pool3d",
    "AvgPool3d": "avg_pool3d",
    "CTCLoss": "ctc_loss",
    "ChannelShuffle": "channel_shuffle",
    "Fold": "fold",
    "FractionalMaxPool2d": "fractional_max_pool2d",
    "FractionalMaxPool3d": "fractional_max_pool3d",
    "LPPool1d": "lp_pool1d",
    "LPPool2d": "lp_pool2d",
    "LPPool3d": "lp_pool3d",
    "LocalResponseNorm": "local_response_norm",
    "MaxPool3d": "max_pool3d",
    "MaxUnpool1d": "max_unpool1d",
    "MaxUnpool2d": "max_unpool2d",
    "MaxUnpool3d": "max_unpool3d",
    "MultiLabelMarginLoss": "multilabel_margin_loss",
    "RReLU": "rrelu",
    "Unfold": "unfold",
    "Upsample": "interpolate",
    "UpsamplingBilinear2d": "interpolate",
    "UpsamplingNearest2d": "interpolate",
}
OTHERS = {
    "orthogonal, exponential": "linalg.matrix_exp",
    "orthogonal, reflections": "linalg.householder_product",
}


def cases() -> list[Any]:
    """The cases, those that need an op marked so."""
    found = []
    for name in CASES:
        op = OTHERS.get(name)
        function = OPS.get(name.partition(",")[0])
        if function is not None:
            op = f"nn.functional.{function}"
        found.append(pytest.param(name, marks=[needs(op)] if op else []))
    return found


def near(value: Any, scale: float = 2e-4) -> Any:
    return pytest.approx(value, rel=scale, abs=scale / 2)


@pytest.mark.parametrize("name", cases())
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
