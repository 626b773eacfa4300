"""`export_memory_timeline`: the bytes over time, in PyTorch's formats."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import pullback as torch
from pullback import nn
from pullback.profiler import profile

PARAMETER, TEMPORARY, ACTIVATION, GRADIENT = 0, 3, 4, 5


def recorded() -> tuple[Any, Any]:
    """A profile of a forward and a backward, and the model, which must stay."""
    net = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 8))
    x = torch.randn(32, 64)
    with profile(profile_memory=True) as prof:
        net(x).sum().backward()
    return prof, net


def raw(prof: Any, folder: Path) -> list[list[int]]:
    path = folder / "timeline.raw.json.gz"
    prof.export_memory_timeline(str(path))
    with gzip.open(path, "rt") as file:
        changes: list[list[int]] = json.load(file)
    return changes


def test_blocks_are_told_apart_by_what_they_are_for(tmp_path: Path) -> None:
    prof, net = recorded()
    changes = raw(prof, tmp_path)
    size = sum(parameter.nbytes for parameter in net.parameters())
    before = [change for change in changes if change[0] == -1 and change[3] == PARAMETER]
    # (Parameters of other tests may live, too.)
    assert sum(change[2] for change in before) >= size
    assert {change[2] for change in before} >= {p.nbytes for p in net.parameters()}
    made = [change for change in changes if change[1] == 2]
    # The result of tanh lives until its backward, that of the layer before it does not.
    assert [c[2] for c in made if c[3] == ACTIVATION] == [32 * 64 * 4]
    assert next(c[2] for c in made if c[3] == TEMPORARY) == 32 * 64 * 4
    assert sum(c[2] for c in made if c[3] == GRADIENT) == size


def test_changes_add_up_to_what_the_sums_say_in_each_format(tmp_path: Path) -> None:
    prof, net = recorded()
    changes = raw(prof, tmp_path)
    plain, packed = tmp_path / "timeline.json", tmp_path / "timeline.json.gz"
    prof.export_memory_timeline(str(plain))
    prof.export_memory_timeline(str(packed), device="cpu")
    times, sizes = json.loads(plain.read_text())
    assert json.loads(gzip.decompress(packed.read_bytes())) == [times, sizes]
    assert times == sorted(times)
    assert all(len(row) == 9 and row[0] == 0 and min(row) >= 0 for row in sizes)
    assert sum(sizes[-1]) == sum(change[2] for change in changes)
    assert len(list(net.parameters())) == 4


def test_picture_loads_nothing_and_names_what_it_shows(tmp_path: Path) -> None:
    prof, _net = recorded()
    path = tmp_path / "timeline.html"
    prof.export_memory_timeline(str(path))
    text = path.read_text()
    assert "activation" in text
    assert "<polygon" in text
    assert "<script" not in text


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    prof, _net = recorded()
    with pytest.raises(ValueError, match="must end in one of"):
        prof.export_memory_timeline(str(tmp_path / "timeline.txt"))
    with pytest.raises(ValueError, match="no memory of 'cuda:0'"):
        prof.export_memory_timeline(str(tmp_path / "timeline.json"), device="cuda:0")
    assert not list(tmp_path.iterdir())
