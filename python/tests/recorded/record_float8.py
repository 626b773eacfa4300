"""Records what PyTorch does with the floating dtypes of one byte, as `float8.json.xz`.

Run with a Python that has PyTorch: `python record_float8.py`. The calls are in `float8_program.py`.
"""

from __future__ import annotations

import json
import lzma
import warnings
from pathlib import Path

import float8_program
import torch

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = [list(fact) for fact in float8_program.facts(torch)]
    record = {"version": torch.__version__, "facts": found}
    text = json.dumps(record, indent=0, sort_keys=True).encode()
    path = Path(__file__).with_name("float8.json.xz")
    path.write_bytes(lzma.compress(text, preset=9))
    print(f"{len(found)} facts, {path.stat().st_size} bytes")
