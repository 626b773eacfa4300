"""Records what PyTorch gives for every call of the op table: `PYTHON_WITH_TORCH record_ops.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent.parent))

from op_table.record import write

torch.set_num_threads(1)
write(torch)
