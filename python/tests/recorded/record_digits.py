"""Writes `digits_losses.json`: the first losses on the digits, as PyTorch computes them.

Run it with a Python that has PyTorch; the tests only read the file.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from digits_program import KINDS, first_losses

COUNT = 50

torch.set_num_threads(1)
record = {
    "torch": torch.__version__.split("+")[0],
    "seed": 0,
    "losses": {kind: first_losses(torch, kind, COUNT) for kind in KINDS},
}
Path(__file__).with_name("digits_losses.json").write_text(json.dumps(record, indent=1) + "\n")
