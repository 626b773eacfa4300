"""Public names are PyTorch's, from its recorded ones; those that are not are listed."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pullback as torch
import pullback.nn.functional as F

NAMES = json.loads((Path(__file__).parent / "recorded" / "names.json").read_text())

# Names that modules show because they import them for their annotations.
IMPORTS = {"Any", "annotations"}
OURS = {
    "main": {
        "as_torch": "makes `import torch` mean this package",
        "absolute_": "an alias has all forms of its op, and abs_ is a function",
        "get_printoptions": "beside set_printoptions; PyTorch keeps it in a private module",
        "capture": "records a step and replays its kernels; docs/capture.md",
        "memory_budget": "holds a limit by computing again; docs/memory.md",
        "memory_report": "says what a graph keeps for backward; docs/memory.md",
        "record": "writes down what each op computes; docs/errors.md",
        "trace_nan": "finds the first value that is not finite; docs/errors.md",
    },
    "tensor": {},
    "functional": {},
}


@pytest.mark.parametrize(
    ("place", "holder"), [("main", torch), ("tensor", torch.Tensor), ("functional", F)]
)
def test_no_name_is_of_our_own_making(place: str, holder: Any) -> None:
    for name in OURS[place]:
        assert hasattr(holder, name)
    # Subpackages appear once something has imported them, or before that, to be loaded then.
    ours = {
        name
        for name in dir(holder)
        if not name.startswith("_") and not isinstance(getattr(holder, name), ModuleType)
    }
    assert ours - IMPORTS - set(NAMES[place].split()) == set(OURS[place])


def test_functions_by_their_inner_names() -> None:
    x = torch.tensor([[2, 1], [0, 3], [2, 1]])
    values, inverse, counts = torch._VF.unique_dim(x, 0, return_counts=True)
    assert values.tolist() == [[0, 3], [2, 1]]
    assert inverse.numel() == 0
    assert counts.tolist() == [1, 2]
    assert torch._VF.add(x, x).tolist() == (x + x).tolist()
    with pytest.raises(AttributeError, match="no_such_function"):
        torch._VF.no_such_function  # noqa: B018 (asking is the point)


def test_in_place_forms_that_are_methods_only() -> None:
    for name in ("add_", "scatter_", "pow_", "logical_not_", "tril_"):
        assert hasattr(torch.Tensor, name)
        assert not hasattr(torch, name)
    for name in ("abs_", "relu_", "fill_", "clamp_", "celu_"):
        assert hasattr(torch, name)
    assert not hasattr(torch.Tensor, "celu_")
