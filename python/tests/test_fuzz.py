"""The fuzzers find what they look for, kill nothing but their children, and run what they kept.

The cases themselves run as a step of their own (`cargo xtask test --python`, `python -m fuzz`).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from random import Random

import pytest
from fuzz import child, corpus
from fuzz.__main__ import targets
from fuzz.minimise import minimise
from fuzz.target import Case, Target, Wrong, without

import pullback as torch


class Planted(Target):
    """Goes wrong in a known way where a number of the list asks for it."""

    name = "planted"

    def draw(self, choose: Random) -> Case:
        return {"numbers": [choose.randrange(50) for _ in range(10)]}

    def run(self, case: Case) -> str:
        for number in case["numbers"]:
            if number == 100:
                os.kill(os.getpid(), signal.SIGSEGV)
            elif number == 101:
                time.sleep(60)
            elif number == 102:
                raise Wrong("wrong", "as planted")
            elif number == 103:
                torch.ones(2**33)
        return "well"

    def smaller(self, case: Case) -> Iterator[Case]:
        for numbers in without(case["numbers"]):
            yield {"numbers": numbers}

    def program(self, case: Case) -> str:
        return str(case)


@pytest.mark.parametrize(
    ("number", "kind"), [(100, "SIGSEGV"), (101, "hang"), (102, "wrong"), (1, None)]
)
def test_a_child_says_what_became_of_its_cases(number: int, kind: str | None) -> None:
    cases = [{"numbers": [1, 2]}, {"numbers": [3, number]}, {"numbers": [4]}]
    target = Planted()
    if kind == "hang":
        target.patience = 5.0
    outcome = child.run(target, cases)
    assert [finding.kind for finding in outcome.findings] == ([] if kind is None else [kind])
    assert outcome.died_at == (1 if kind in ("SIGSEGV", "hang") else None)


def test_memory_beyond_the_limit_is_refused_and_no_finding() -> None:
    outcome = child.run(Planted(), [{"numbers": [103]}])
    assert outcome.findings == [] or outcome.findings[0].kind == "OutOfMemoryError"
    assert outcome.died_at is None


@pytest.mark.parametrize(("number", "kind"), [(100, "SIGSEGV"), (102, "wrong")])
def test_a_finding_becomes_as_small_as_it_can(number: int, kind: str) -> None:
    case = {"numbers": [1, 2, 3, number, 4, 5, 6, 7]}
    assert minimise(Planted(), case, kind) == {"numbers": [number]}


@pytest.mark.parametrize("name", ["calls", "programs", "parsers", "threads"])
def test_cases_are_drawn_from_a_seed_kept_and_shown(name: str) -> None:
    target = targets()[name]
    for number in range(20):
        case = target.draw(Random(number))
        assert case == target.draw(Random(number))
    assert target.program(case)
    for kept in corpus.cases(target):
        assert target.program(kept)
    assert child.run(target, corpus.cases(target)).findings == []


def test_the_model_sees_a_wrong_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    from fuzz import model

    programs = targets()["programs"]
    case = {"steps": [["sin", 0, 0, 0, 0, False]]}
    assert child.run(programs, [case]).findings == []
    monkeypatch.setitem(model.UNARY, "sin", (model.UNARY["sin"][0], model.UNARY["sin"][0]))
    assert [f.kind for f in child.run(programs, [case]).findings] == ["gradient"]
