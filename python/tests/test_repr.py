"""Printed tensors equal the texts recorded from PyTorch, under all print options."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

import pullback

RECORDS = json.loads((Path(__file__).parent / "recorded" / "repr.json").read_text())["records"]


@pytest.fixture(autouse=True)
def _options() -> Iterator[None]:
    pullback.set_printoptions(profile="default")
    yield
    pullback.set_printoptions(profile="default")


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r["setup"])
def test_prints_as_recorded(record: dict[str, Any]) -> None:
    pullback.set_printoptions(**record["printoptions"])
    tensor = eval(record["setup"], {"torch": pullback, "inf": inf, "nan": nan})
    assert repr(tensor) == record["expected"]
