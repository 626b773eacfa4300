"""Every distribution's streams, moments and densities beside PyTorch's recorded ones."""

from __future__ import annotations

import json
import lzma
import math
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import pullback as torch

RECORDED = Path(__file__).with_name("recorded")
sys.path.insert(0, str(RECORDED))

import distribution_program as program  # noqa: E402

RECORD = json.loads(lzma.decompress((RECORDED / "distributions.json.xz").read_bytes()))

# What PyTorch's approximations are off by: of derivatives of gamma and beta numbers, and of
# Bessel's functions.
LOOSE = {
    ("rsample_grad", name): 3e-3
    for name in (
        "beta",
        "chi2",
        "dirichlet",
        "fisher_snedecor",
        "gamma",
        "inverse_gamma",
        "student_t",
    )
} | {(name, "von_mises"): 1e-6 for name in ("log_prob", "log_prob_grad", "variance", "stddev")}
# PyTorch's gradient has elements above the diagonal, of which the factor has none.
DIFFERENT = {("log_prob_grad", "wishart_factor")}


def is_close(found: Any, recorded: Any, tolerance: float) -> bool:
    """Whether numbers are equal to a tolerance, relative for large ones."""
    if isinstance(recorded, list):
        return len(found) == len(recorded) and all(
            is_close(f, r, tolerance) for f, r in zip(found, recorded, strict=True)
        )
    if isinstance(recorded, float) and math.isfinite(recorded):
        return bool(abs(found - recorded) <= tolerance * max(1.0, abs(recorded)))
    return found == recorded or (found != found and recorded != recorded)


def expect(found: Any, recorded: Any, tolerance: float, what: str) -> None:
    assert is_close(found, recorded, tolerance), f"{what}: {found} against {recorded}"


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Low df values")
        yield


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", program.CASES)
def test_samples_are_those_of_pytorch_for_the_seed(name: str, dtype: str) -> None:
    found = program.draws(torch, program.CASES[name], dtype)
    recorded = RECORD["cases"][name]["draws"][dtype]
    assert found["after"] == recorded["after"], "the stream is at another place"
    # Functions of the same numbers of the stream, each rounded.
    tolerance = 3e-6 if dtype == "float32" else 2e-14
    for what, expected in recorded.items():
        expect(found[what], expected, tolerance, what)


@pytest.mark.parametrize("name", program.CASES)
def test_placeholders_are_those_of_pytorch(name: str) -> None:
    case = RECORD["cases"][name]
    found = program.values(torch, program.CASES[name], case["draws"]["float64"]["many"])
    for what, expected in case["values"].items():
        if expected == "RuntimeError" or (what, name) in DIFFERENT:
            continue
        expect(found[what], expected, LOOSE.get((what, name), 1e-9), what)


def test_divergences_are_those_of_pytorch() -> None:
    found = program.divergences(torch)
    missing = set(RECORD["kl"]) - set(found)
    assert not missing
    for pair, expected in RECORD["kl"].items():
        expect(found[pair], expected, 1e-9, pair)
