"""Calls with wrong arguments raise what PyTorch raises: class and message, from recorded calls."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import pullback

RECORDS = json.loads((Path(__file__).parent / "recorded" / "argument_errors.json").read_text())[
    "records"
]

# Where the list of overloads that a message shows is another one.
EXPECTED_DIFFERENT = {
    "torch.where()": "the overload of only a condition is another op",
    "torch.where(t, 1)": "the overload of only a condition is another op",
    "torch.where(1, 'x', 3)": "the overload of only a condition is another op",
    "torch.randint('x')": "one overload takes a generator or none",
    "torch.rand(2, generator='x')": "one overload takes a generator or none",
}


def raised(expression: str) -> tuple[str, str]:
    scope: dict[str, Any] = {"torch": pullback, "t": pullback.ones(2, 3)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            eval(expression, scope)
        except Exception as error:
            return type(error).__name__, str(error)
    raise AssertionError(f"{expression} raises nothing")


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r["expression"])
def test_raises_as_recorded(record: dict[str, str]) -> None:
    expression = record["expression"]
    kind, message = raised(expression)
    assert kind == record["error"]
    if expression in EXPECTED_DIFFERENT:
        assert message != record["message"], "no longer different: take it off the list"
    else:
        assert message == record["message"]


def test_the_list_of_differences_names_recorded_calls() -> None:
    assert EXPECTED_DIFFERENT.keys() <= {r["expression"] for r in RECORDS}
