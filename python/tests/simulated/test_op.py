"""Every op of the op table gives on a device what it gives in main memory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from op_table.observe import Run, is_meant
from test_op_elsewhere import OPS, PRESENT, agree, outcome

import pullback as torch


class OnDevice(Run):
    """A call on tensors of a simulated device."""

    def build(self, gradient: bool) -> list[Any]:
        return [
            t.detach().to("cuda").requires_grad_(t.requires_grad) for t in super().build(gradient)
        ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PRESENT)
def test_op_gives_the_same_on_a_device(name: str) -> None:
    op = OPS[name]
    for call in op.calls:
        if is_meant(call, "f64") and call.determined:
            expected = outcome(Run(torch, op, call, "f64"))
            found = outcome(OnDevice(torch, op, call, "f64"))
            assert agree(found, expected), (call, found, expected)
