"""Records what PyTorch's layers look like: `layers.json`, for `nn/test_recorded_layer.py`.

Run it with an interpreter that has PyTorch: `python record_layers.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from layer_program import CASES, run


def main() -> None:
    """Runs the program and writes the file."""
    version = torch.__version__.partition("+")[0]
    # (A line for each layer.)
    lines = [f'{{"torch": "{version}"']
    for name in CASES:
        record = json.dumps(run(torch, name), default=str)
        lines.append(f"{json.dumps(name)}: {record}")
    Path(__file__).with_name("layers.json").write_text(",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
