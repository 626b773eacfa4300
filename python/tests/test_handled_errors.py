"""Errors that a call handles on its way, or ends with, do not live on.

The extension's slots drop such errors where PyO3 does not know that the interpreter is attached,
which would postpone their release until some other call attaches.
"""

from __future__ import annotations

import contextlib
import gc
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pullback

RECORDED = json.loads((Path(__file__).parent / "recorded" / "argument_errors.json").read_text())
EXPRESSIONS = [record["expression"] for record in RECORDED["records"]]
# Objects that are asked for what they do not have.
EXPRESSIONS += [
    "torch.tensor(object())",
    "torch.tensor([object()])",
    "torch.tensor([[1, 2], [3]])",
    "torch.as_tensor(object())",
    "torch.asarray(object())",
    "torch.ones(object())",
    "t + object()",
    "t + [1]",
    "object() + t",
    "t @ object()",
    "t < object()",
    "t == object()",
    "t[object()]",
    "t['a']",
    "t in [t, object()]",
    "t.type('x')",
    "t.to('x')",
    "t.view('a')",
    "t.resize_('a')",
    "t.no_such_name",
    "torch.Size([1.5])",
    "torch.Size((1,)) + ('a',)",
    "torch.device('x')",
    "torch.result_type(t, 'a')",
    "bool(t)",
    "float(t)",
]


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """Nothing that other tests have made is looked at: there may be a million objects of theirs."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def errors_alive() -> int:
    return sum(isinstance(thing, BaseException) for thing in gc.get_objects())


def test_an_error_that_is_kept_is_counted() -> None:
    before = errors_alive()
    kept = ValueError("kept")
    assert errors_alive() == before + 1
    del kept
    assert errors_alive() == before


def call(code: Any, scope: dict[str, Any]) -> None:
    with warnings.catch_warnings(), contextlib.suppress(Exception):
        warnings.simplefilter("ignore")
        eval(code, scope)


@pytest.mark.parametrize("start", range(0, len(EXPRESSIONS), 50))
def test_no_error_lives_on(start: int) -> None:
    scope: dict[str, Any] = {"torch": pullback, "t": pullback.ones(2, 3)}
    for expression in EXPRESSIONS[start : start + 50]:
        code = compile(expression, "<expression>", "eval")
        call(code, scope)
        before = errors_alive()
        for _ in range(3):
            call(code, scope)
        assert errors_alive() == before, expression
