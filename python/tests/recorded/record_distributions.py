"""Records what PyTorch's distributions answer, as `distributions.json.xz`.

Run with a Python that has PyTorch: `python record_distributions.py`. Cases and questions are
in `distribution_program.py`.
"""

from __future__ import annotations

import json
import lzma
import warnings
from pathlib import Path

import torch
from distribution_program import CASES, divergences, draws, values

warnings.simplefilter("ignore")
record = {}
for name, expression in CASES.items():
    streams = {dtype: draws(torch, expression, dtype) for dtype in ("float32", "float64")}
    answers = values(torch, expression, streams["float64"]["many"])
    record[name] = {"draws": streams, "values": answers}
text = json.dumps({"version": torch.__version__, "cases": record, "kl": divergences(torch)})
target = Path(__file__).with_name("distributions.json.xz")
target.write_bytes(lzma.compress(text.encode(), preset=9))
