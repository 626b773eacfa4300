"""Writes small checkpoints with PyTorch, for `test_serialization.py`, which knows what they hold.

Run with an interpreter that has PyTorch: ``python record_checkpoints.py``.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import torch

FOLDER = Path(__file__).with_name("checkpoints")
NUMBERS = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8")


def plain() -> dict[str, Any]:
    """Data of all kinds, and tensors of every dtype, in views that share memory."""
    base = torch.arange(6.0)
    tensors = {name: torch.arange(3).to(getattr(torch, name)) for name in NUMBERS}
    tensors["bool"] = torch.tensor([True, False])
    tensors["complex64"] = torch.tensor([1 + 2j])
    tensors["complex128"] = torch.tensor([3 - 4j], dtype=torch.complex128)
    tensors["conj"] = torch.tensor([1 + 2j]).conj()
    leaf = torch.tensor([0.5, -0.5], requires_grad=True)
    marked = torch.ones(1)
    marked.note = "kept"
    return {
        "tensors": tensors,
        "base": base,
        "row": base.view(2, 3)[1],
        "column": base.view(2, 3)[:, 1],
        "empty": torch.empty(0, 4),
        "scalar": torch.tensor(7),
        "leaf": leaf,
        "parameter": torch.nn.Parameter(torch.tensor([1.0, 2.0])),
        "marked": marked,
        "storage": torch.TypedStorage(
            wrap_storage=base.untyped_storage(), dtype=torch.float32, _internal=True
        ),
        "ordered": OrderedDict([("b", 1), ("a", 2)]),
        "data": [None, True, -1, 2**70, 1.5, 1j, "tëxt", b"\x00\xff", (1, (2,)), {3}],
        "of torch": [torch.float32, torch.Size([2, 3]), torch.device("cuda", 1), torch.strided],
    }


def unsigned() -> dict[str, Any]:
    """Dtypes that have no class of storages."""
    return {name: torch.tensor([1, 2]).to(getattr(torch, name)) for name in ("uint16", "uint64")}


def sparse() -> dict[str, Any]:
    """Sparse tensors of all layouts, of one matrix."""
    dense = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    return {
        "coo": dense.to_sparse(),
        "csr": dense.to_sparse_csr(),
        "csc": dense.to_sparse_csc(),
        "bsr": dense.to_sparse_bsr((1, 1)),
        "bsc": dense.to_sparse_bsc((1, 1)),
    }


def trained() -> tuple[torch.nn.Module, dict[str, Any]]:
    """A model after a step, and its state with that of its optimizer."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.arange(parameter.numel()).view_as(parameter) / 4 + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.25)
    model(torch.tensor([[1.0, 2.0], [3.0, 5.0]])).pow(3).sum().backward()
    optimizer.step()
    return model, {"model": model.state_dict(), "optimizer": optimizer.state_dict()}


def nested() -> dict[str, Any]:
    """Nested tensors of both layouts."""
    parts = [torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0, 5.0])]
    return {
        "strided": torch.nested.nested_tensor(parts),
        "jagged": torch.nested.nested_tensor(parts, layout=torch.jagged, requires_grad=True),
    }


def modules() -> dict[str, Any]:
    """Modules with hooks, lists of weights and functions among their attributes."""
    torch.manual_seed(0)
    return {
        "lazy": torch.nn.LazyLinear(3),
        "lstm": torch.nn.LSTM(2, 3),
        "spectral": torch.nn.utils.spectral_norm(torch.nn.Linear(2, 2)),
        "layer": torch.nn.TransformerEncoderLayer(4, 2, 4, activation="gelu"),
        "functions": [torch.relu, torch.nn.functional.gelu, torch.nn.functional.relu],
    }


def quantized() -> torch.Tensor:
    """A quantized tensor, which is refused."""
    return torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.quint8)


def main() -> None:
    """Writes the files."""
    FOLDER.mkdir(exist_ok=True)
    model, state = trained()
    torch.save(plain(), FOLDER / "plain.pt")
    torch.save(unsigned(), FOLDER / "unsigned.pt")
    torch.save(plain(), FOLDER / "plain_legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(sparse(), FOLDER / "sparse.pt")
    torch.save(sparse(), FOLDER / "sparse_legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(state, FOLDER / "state.pt")
    torch.save(model, FOLDER / "module.pt")
    torch.save(nested(), FOLDER / "nested.pt")
    torch.save(modules(), FOLDER / "modules.pt")
    torch.save(modules(), FOLDER / "modules_legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(quantized(), FOLDER / "quantized.pt")
    torch.save(quantized(), FOLDER / "quantized_legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(plain()["data"], FOLDER / "protocol_5.pt", pickle_protocol=5)


if __name__ == "__main__":
    main()
