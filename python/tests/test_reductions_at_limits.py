"""Histograms and running sums where there is nothing to count, or infinities to add."""

from __future__ import annotations

import math

import pytest

import pullback as torch


def test_points_without_coordinates_are_counted_nowhere() -> None:
    # (As PyTorch has it: no element, nothing to count.)
    for weight in (None, torch.ones(3)):
        found = torch.histogramdd(torch.zeros(3, 0), bins=[], weight=weight)
        assert found.hist.shape == ()
        assert found.hist.item() == 0
        assert found.bin_edges == ()
        density = torch.histogramdd(torch.zeros(3, 0), bins=[], weight=weight, density=True)
        assert density.hist.isnan()


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8])
def test_bad_limits_of_a_histogram_of_integers_are_named(dtype: torch.dtype) -> None:
    x = torch.tensor([1, 2, 3], dtype=dtype)
    with pytest.raises(RuntimeError, match="max must be larger than min"):
        torch.histc(x, 3, min=3, max=1)
    with pytest.raises(RuntimeError, match="bins must be > 0, but got -3"):
        torch.histc(x, -3)
    with pytest.raises(RuntimeError, match="is not finite"):
        torch.histc(x, 3, min=0, max=math.inf)
    with pytest.raises(NotImplementedError, match="not implemented for"):
        torch.histc(x, 3)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_running_sums_of_powers_at_infinity(dtype: torch.dtype) -> None:
    def scanned(*items: complex) -> list[complex]:
        result: list[complex] = torch.logcumsumexp(torch.tensor(items, dtype=dtype), 0).tolist()
        return result

    inf, nan = math.inf, math.nan
    # Powers that are 0 have no angle.
    assert scanned(complex(-inf, 1), complex(-inf, 2)) == [complex(-inf, 0)] * 2
    assert scanned(complex(-inf, inf), 1j) == [complex(-inf, 0), 1j]
    # Infinite powers that point to one quarter, and those that do not.
    first, second = scanned(complex(inf, 1), complex(inf, 0.5))
    assert (first, second.real) == (complex(inf, 1), inf)
    assert second.imag == pytest.approx(math.pi / 4)
    apart = scanned(complex(inf, 1), complex(inf, 2))[1]
    assert apart.real == inf
    assert math.isnan(apart.imag)
    assert scanned(complex(inf, 0), complex(-inf, 0), 2j) == [complex(inf, 0)] * 3
    lost = scanned(complex(nan, 0), 1)[1]
    assert math.isnan(lost.real)
    assert math.isnan(lost.imag)
