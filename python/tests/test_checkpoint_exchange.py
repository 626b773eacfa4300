"""Files between the library and PyTorch: theirs are read, ours name what PyTorch has.

PyTorch's files are recorded (`recorded/record_checkpoints.py`). Of ours, each name in the pickle is
compared with where PyTorch has it.
"""

from __future__ import annotations

import io
import pickletools
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest

import pullback as torch
from pullback import nn
from pullback.nn import functional as F

RECORDED = Path(__file__).with_name("recorded") / "checkpoints"


def names_in(value: Any) -> set[str]:
    """The modules and names that a file of ours names."""
    buffer = io.BytesIO()
    torch.save(value, buffer)
    data = zipfile.ZipFile(buffer).read("archive/data.pkl")
    found = {arg for op, arg, _ in pickletools.genops(data) if op.name == "GLOBAL"}
    return {str(name).replace(" ", ".") for name in found}


def test_nested_tensors_of_pytorch_are_read() -> None:
    with pytest.raises(Exception, match="Weights only load failed"):
        torch.load(RECORDED / "nested.pt")
    found = torch.load(RECORDED / "nested.pt", weights_only=False)
    for layout in ("strided", "jagged"):
        assert str(found[layout].layout) == f"torch.{layout}"
        parts = [part.tolist() for part in found[layout].unbind()]
        assert parts == [[1.0, 2.0], [3.0, 4.0, 5.0]]
    assert found["jagged"].requires_grad
    assert not found["strided"].requires_grad


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
@pytest.mark.parametrize("weights_only", [True, False])
def test_nested_tensors_are_written_as_pytorch_does(layout: Any, weights_only: bool) -> None:
    parts = [torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [5.0, 6.0]])]
    x = torch.nested.nested_tensor(parts, layout=layout)
    name = {
        torch.strided: "torch._utils._rebuild_nested_tensor",
        torch.jagged: "torch.nested._internal.nested_tensor._rebuild_njt",
    }[layout]
    assert name in names_in(x)
    buffer = io.BytesIO()
    torch.save([x, x.detach().requires_grad_()], buffer)
    buffer.seek(0)
    plain, leaf = torch.load(buffer, weights_only=weights_only)
    assert leaf.requires_grad
    for found in (plain, leaf.detach()):
        assert found.layout is layout
        for one, part in zip(found.unbind(), parts, strict=True):
            assert torch.equal(one, part)


def test_a_nested_tensor_outside_its_buffer_is_refused() -> None:
    one = torch.tensor([[3]])
    with pytest.raises(RuntimeError, match="out of bounds"):
        torch._utils._rebuild_nested_tensor(torch.ones(2), one, torch.ones_like(one), one[0])


@pytest.mark.parametrize("name", ["modules", "modules_legacy"])
def test_modules_of_pytorch_with_hooks_and_functions_are_read(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = torch.load(RECORDED / f"{name}.pt", weights_only=False)
    assert found["functions"][0](torch.tensor([-1.0])).tolist() == [0.0]
    assert found["functions"][1] is F.gelu
    assert found["functions"][2] is F.relu
    lazy = found["lazy"]
    assert lazy(torch.ones(2, 5)).shape == (2, 3)
    assert type(lazy) is nn.Linear
    lstm = found["lstm"]
    output, _ = lstm(torch.ones(4, 1, 2))
    assert output.shape == (4, 1, 3)
    assert [id(one) for one in lstm._flat_weights] == [id(one) for one in lstm.parameters()]
    spectral = found["spectral"]
    for _ in range(100):
        spectral(torch.ones(1, 2))
    assert torch.linalg.matrix_norm(spectral.weight, 2).item() == pytest.approx(1.0, abs=1e-3)
    assert found["layer"].activation is F.gelu
    assert found["layer"](torch.ones(2, 1, 4)).shape == (2, 1, 4)


@pytest.mark.parametrize("name", ["quantized", "quantized_legacy"])
def test_quantized_tensors_are_refused_by_name(name: str) -> None:
    with pytest.raises(NotImplementedError, match=r"quantized tensor \(torch.QUInt8Storage\)"):
        torch.load(RECORDED / f"{name}.pt", weights_only=False)


def test_classes_and_functions_are_named_where_pytorch_has_them() -> None:
    pools = [nn.LPPool1d(2, 2), nn.LPPool2d(2, 2), nn.FractionalMaxPool2d(2, 2)]
    lazy = [nn.LazyConv2d(2, 3), nn.LazyBatchNorm1d(), nn.LazyInstanceNorm3d()]
    layer = nn.TransformerEncoderLayer(4, 2)
    transforms = [
        torch.distributions.ComposeTransform([torch.distributions.StickBreakingTransform()])
    ]
    found = names_in([pools, lazy, layer, transforms, torch.relu, F.gelu, F.softplus])
    assert {
        "torch.nn.modules.pooling.LPPool1d",
        "torch.nn.modules.pooling.LPPool2d",
        "torch.nn.modules.pooling.FractionalMaxPool2d",
        "torch.nn.modules.conv.LazyConv2d",
        "torch.nn.modules.batchnorm.LazyBatchNorm1d",
        "torch.nn.modules.instancenorm.LazyInstanceNorm3d",
        "torch.utils.hooks.RemovableHandle",
        "torch.nn.functional.relu",
        "torch.distributions.transforms.ComposeTransform",
        "torch.distributions.transforms.StickBreakingTransform",
        "torch.relu",
        "torch.nn.functional.gelu",
        "torch.nn.functional.softplus",
    } <= found
    assert not [name for name in found if name.startswith("pullback")]


def test_an_lstm_tells_pytorch_its_weights_and_keeps_its_own() -> None:
    lstm = nn.LSTM(2, 3, num_layers=2)
    state = lstm.__getstate__()
    assert state["_flat_weights_names"] == [name for name, _ in lstm.named_parameters()]
    assert all(a is b for a, b in zip(state["_flat_weights"], lstm.parameters(), strict=True))
    buffer = io.BytesIO()
    torch.save(lstm, buffer)
    buffer.seek(0)
    found = torch.load(buffer, weights_only=False)
    assert "_flat_weights" not in vars(found)
    x = torch.ones(4, 1, 2)
    assert torch.equal(found(x)[0], lstm(x)[0])


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("weights_only", [True, False])
def test_a_record_that_is_longer_than_its_storage_is_refused(
    method: int, weights_only: bool
) -> None:
    buffer = io.BytesIO()
    torch.save(torch.ones(4), buffer)
    longer = io.BytesIO()
    with zipfile.ZipFile(buffer) as source, zipfile.ZipFile(longer, "w", method) as target:
        for name in source.namelist():
            data = source.read(name)
            target.writestr(name, bytes(1 << 20) if name.endswith("data/0") else data)
    longer.seek(0)
    with pytest.raises(RuntimeError, match="more than the 16 bytes that its storage has"):
        torch.load(longer, weights_only=weights_only)


def test_bytes_after_the_last_element_may_be_left() -> None:
    storage = torch.UntypedStorage(10)
    x = torch.empty(0, dtype=torch.float32).set_(storage, 0, (2,))
    buffer = io.BytesIO()
    torch.save(x.fill_(3), buffer)
    buffer.seek(0)
    assert torch.load(buffer).tolist() == [3.0, 3.0]
