"""Writes `names.json`: the public names of PyTorch, of its tensors and of its functional module.

Run it with a Python that has PyTorch; the tests only read the file.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch

PLACES = {"main": torch, "tensor": torch.Tensor, "functional": torch.nn.functional}

record = {"torch": torch.__version__.split("+")[0]}
for place, holder in PLACES.items():
    record[place] = " ".join(name for name in dir(holder) if not name.startswith("_"))
Path(__file__).with_name("names.json").write_text(json.dumps(record, indent=1) + "\n")
