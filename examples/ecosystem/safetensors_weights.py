"""safetensors: the weights of a model written to a file, read lazily, and loaded into another one.

python -m pullback examples/ecosystem/safetensors_weights.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, load_model, save_file, save_model
from torch import nn


def model() -> nn.Sequential:
    """A small network, two of whose layers share their weight."""
    layers = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.BatchNorm1d(4))
    layers[2].weight = layers[0].weight
    return layers.eval()


def main() -> int:
    """Writes and reads; gives how many tensors the file holds."""
    torch.manual_seed(0)
    first, second = model(), model()
    inputs = torch.randn(3, 4)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        save_model(first, str(path), metadata={"format": "pt"})
        assert load_model(second, str(path)) == (set(), [])
        assert torch.equal(first(inputs), second(inputs))
        with safe_open(str(path), framework="pt") as file:
            names = list(file.keys())
            assert file.metadata()["format"] == "pt"
            rows = file.get_slice(names[0])
            assert tuple(rows.get_shape()) == tuple(file.get_tensor(names[0]).shape)
        halves = {"half": torch.ones(2, 2, dtype=torch.bfloat16), "int": torch.arange(3)}
        save_file(halves, str(path))
        loaded = load_file(str(path))
        assert all(torch.equal(loaded[name], tensor) for name, tensor in halves.items())
        assert loaded["half"].dtype == torch.bfloat16
    return len(names)


if __name__ == "__main__":
    print(f"{main()} tensors were written and read")
