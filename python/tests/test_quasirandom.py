"""Sobol sequences: their points, how evenly they lie, scrambling, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
from pullback._gen.sobol import packed, read
from pullback.quasirandom import SobolEngine, _directions, _listed

# Recorded from PyTorch 2.15: SobolEngine(3, scramble=True, seed=1).
SCRAMBLED = [[287468019, 388430972, 764873974], [0.2677, 0.3618, 0.7123], [0.8840, 0.6187, 0.1758]]


def test_the_first_dimension_mirrors_the_bits_of_the_number() -> None:
    points = SobolEngine(1).draw(8, dtype=torch.float64).flatten().tolist()
    # In the order of Gray codes, each of which is the mirror image of a fraction's bits.
    gray = [k ^ (k >> 1) for k in range(8)]
    assert points == [int(f"{g:03b}"[::-1], 2) / 8 for g in gray]


def test_every_interval_gets_its_share_in_every_dimension() -> None:
    points = SobolEngine(50).draw_base2(6)
    for column in points.t():
        assert torch.equal(column.mul(64).floor().sort().values, torch.arange(64.0))


def test_pairs_of_dimensions_fill_the_square() -> None:
    # Of 16 points one lies in each of the squares of side 1/4.
    x, y = (SobolEngine(2).draw(16) * 4).floor().t()
    assert sorted((x * 4 + y).tolist()) == list(range(16))


def test_drawing_goes_on_where_it_ended() -> None:
    for scramble in (False, True):
        whole = SobolEngine(4, scramble, seed=5).draw(20)
        engine = SobolEngine(4, scramble, seed=5)
        parts = [engine.draw(n) for n in (1, 0, 6, 13)]
        assert torch.equal(torch.cat(parts), whole)
        assert engine.num_generated == 20
        assert torch.equal(engine.reset().draw(20), whole)
        assert engine.reset().fast_forward(0).fast_forward(7) is engine
        assert torch.equal(engine.draw(13), whole[7:])


def test_scrambling_is_that_of_the_seed() -> None:
    engine = SobolEngine(3, scramble=True, seed=1)
    assert engine.shift.tolist() == SCRAMBLED[0]
    torch.testing.assert_close(engine.draw(2), torch.tensor(SCRAMBLED[1:]), atol=1e-4, rtol=0)
    assert repr(engine) == "SobolEngine(dimension=3, scramble=True, seed=1)"
    points = engine.reset().draw(64)
    for column in points.t():
        assert torch.equal(column.mul(64).floor().sort().values, torch.arange(64.0))


def test_points_are_written_where_they_are_wanted() -> None:
    out = torch.empty(0, dtype=torch.float64)
    assert SobolEngine(2).draw(3, out) is out
    assert out.tolist() == [[0.0, 0.0], [0.5, 0.5], [0.75, 0.25]]
    assert SobolEngine(2).draw(2, dtype=torch.float16).dtype is torch.float16
    assert SobolEngine(2).draw(2, dtype=torch.int32).tolist() == [[0, 0], [0, 0]]


def test_all_dimensions_have_direction_numbers() -> None:
    found = _listed(SobolEngine.MAXDIM)
    assert len(found) == SobolEngine.MAXDIM - 1
    assert packed(found[:100]) == packed(_listed(101))
    # (Those of the list's first lines: degree, inner coefficients, numbers.)
    lines = ["d s a m_i", "2 1 0 1", "3 2 1 1 3", "4 3 1 1 3 1", "5 3 2 1 1 1", "6 4 1 1 1 3 3"]
    assert found[:5] == read(lines)
    last = _directions(SobolEngine.MAXDIM)[-1]
    assert last.shape == (30,)
    assert int(last[0]) == 1 << 29


@pytest.mark.parametrize(
    ("call", "phrase"),
    [
        (lambda: SobolEngine(0), "Supported range of dimensionality for SobolEngine is"),
        (lambda: SobolEngine(21202), r"is \[1, 21201\]"),
        (lambda: SobolEngine(1).draw(-1), "n must be non-negative, but got -1"),
        (lambda: SobolEngine(1).fast_forward(-1), "n must be non-negative, but got -1"),
        (lambda: SobolEngine(1).fast_forward(3).draw_base2(3), r"then: n=3\+2\*\*3=11"),
        (lambda: SobolEngine(1).fast_forward(2**30).draw(), "number 1073741825 is asked for"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call: Any, phrase: str) -> None:
    with pytest.raises(ValueError, match=phrase):
        call()
