"""Whether deterministic algorithms are asked for, and what becomes of memory that nobody set."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

import pullback as torch


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    yield
    torch.use_deterministic_algorithms(False)
    torch.utils.deterministic.fill_uninitialized_memory = True


def test_the_setting_is_kept_and_reported() -> None:
    def seen() -> tuple[Any, ...]:
        return (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
            torch.get_deterministic_debug_mode(),
        )

    assert seen() == (False, False, 0)
    torch.use_deterministic_algorithms(True)
    assert seen() == (True, False, 2)
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert seen() == (True, True, 1)
    for mode, expected in (("error", 2), (0, 0), ("warn", 1), ("default", 0), (2, 2)):
        torch.set_deterministic_debug_mode(mode)
        assert torch.get_deterministic_debug_mode() == expected
        assert torch.are_deterministic_algorithms_enabled() == (expected > 0)


def test_other_values_are_refused() -> None:
    for value in ("a", 1, None):
        with pytest.raises(TypeError, match=r"'mode' \(position 1\) must be bool, not"):
            torch.use_deterministic_algorithms(value)
    with pytest.raises(TypeError, match="'warn_only' must be bool, not int"):
        torch.use_deterministic_algorithms(True, warn_only=2)
    with pytest.raises(TypeError, match="debug_mode must be str or int, but got <class 'float'>"):
        torch.set_deterministic_debug_mode(1.0)
    with pytest.raises(RuntimeError, match="`default`, `warn`, `error`, but got x"):
        torch.set_deterministic_debug_mode("x")
    with pytest.raises(RuntimeError, match="expected 0, 1, or 2, but got 5"):
        torch.set_deterministic_debug_mode(5)
    with pytest.raises(RuntimeError, match="expected a bool, but got int"):
        torch.utils.deterministic.fill_uninitialized_memory = 3
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.utils.deterministic.fill_uninitialized_memory is True


FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
COMPLEX = [torch.complex32, torch.complex64, torch.complex128]
LARGEST = {
    dtype: torch.iinfo(dtype).max
    for dtype in (
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.uint8,
        torch.uint16,
        torch.uint32,
        torch.uint64,
    )
}


def is_filled(values: Any, dtype: Any) -> bool:
    """Whether all of these numbers are what such memory is filled with."""
    if dtype in FLOATS:
        return all(math.isnan(value) for value in values)
    if dtype in COMPLEX:
        return all(math.isnan(value.real) and value.imag == 0 for value in values)
    return all(value == LARGEST.get(dtype, True) for value in values)


# Ways to get memory that nobody has set; each gives six elements.
EMPTY = {
    "empty": lambda dtype: torch.empty(2, 3, dtype=dtype),
    "empty_channels_last": lambda dtype: torch.empty(
        1, 3, 2, 1, dtype=dtype, memory_format=torch.channels_last
    ),
    "empty_out": lambda dtype: torch.empty(6, out=torch.zeros(6, dtype=dtype)),
    "empty_like": lambda dtype: torch.empty_like(torch.zeros(2, 3, dtype=dtype)),
    "empty_like_transposed": lambda dtype: torch.empty_like(torch.zeros(2, 3, dtype=dtype).t()),
    "empty_strided": lambda dtype: torch.empty_strided((2, 3), (7, 2), dtype=dtype),
    "empty_permuted": lambda dtype: torch.empty_permuted((2, 3), (1, 0), dtype=dtype),
    "new_empty": lambda dtype: torch.zeros(1, dtype=dtype).new_empty(6),
    "new_empty_strided": lambda dtype: torch.zeros(1, dtype=dtype).new_empty_strided(
        (2, 3), (1, 2)
    ),
    "new": lambda dtype: torch.zeros(1, dtype=dtype).new(2, 3),
    "new_of_size": lambda dtype: torch.zeros(1, dtype=dtype).new(torch.Size((2, 3))),
    "resize_": lambda dtype: torch.zeros(0, dtype=dtype).resize_(2, 3),
    "resize_as_": lambda dtype: torch.zeros(0, dtype=dtype).resize_as_(torch.zeros(2, 3)),
}


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX, *LARGEST, torch.bool], ids=str)
@pytest.mark.parametrize("way", EMPTY)
def test_memory_that_nobody_set_shows(way: str, dtype: Any) -> None:
    torch.use_deterministic_algorithms(True)
    made = EMPTY[way](dtype)
    assert (made.dtype, made.numel()) == (dtype, 6)
    assert is_filled(made.flatten().tolist(), dtype)


def test_legacy_constructors_are_filled() -> None:
    torch.use_deterministic_algorithms(True)
    assert is_filled(torch.Tensor(2, 3).flatten().tolist(), torch.float32)
    assert is_filled(torch.IntTensor(2).tolist(), torch.int32)


def test_growing_keeps_what_there_was() -> None:
    torch.use_deterministic_algorithms(True)
    grown = torch.tensor([1, 2]).resize_(4)
    assert grown.tolist() == [1, 2, 2**63 - 1, 2**63 - 1]
    rows = torch.arange(3.0).resize_(2, 3)
    assert rows[0].tolist() == [0, 1, 2]
    assert is_filled(rows[1].tolist(), torch.float32)
    # Elements that the storage had all along are as they were.
    assert torch.arange(6)[:2].resize_(8).tolist() == [0, 1, 2, 3, 4, 5, 2**63 - 1, 2**63 - 1]
    assert torch.ones(4).resize_(2).resize_(4).tolist() == [1, 1, 1, 1]


def test_nothing_is_filled_unless_asked_for() -> None:
    for deterministic, fills in ((False, True), (True, False)):
        torch.use_deterministic_algorithms(deterministic)
        torch.utils.deterministic.fill_uninitialized_memory = fills
        # The block was zeros a moment ago, and is handed out again.
        for way in ("empty", "empty_strided", "new_empty", "resize_"):
            torch.zeros(64, dtype=torch.int16)
            assert not is_filled(EMPTY[way](torch.int16).flatten().tolist(), torch.int16)
    torch.utils.deterministic.fill_uninitialized_memory = True
    assert is_filled(torch.empty(3, dtype=torch.int16).tolist(), torch.int16)


def test_results_are_what_they_are() -> None:
    x = torch.randn(5, 5)
    plain = (x @ x, x.sort().values, torch.cat([x, x]), x.cumsum(0))
    torch.use_deterministic_algorithms(True)
    again = (x @ x, x.sort().values, torch.cat([x, x]), x.cumsum(0))
    assert all(torch.equal(a, b) for a, b in zip(plain, again, strict=True))


def test_the_setting_of_products_is_kept_and_checked() -> None:
    assert torch.get_float32_matmul_precision() == "highest"
    torch.set_float32_matmul_precision("high")
    assert torch.get_float32_matmul_precision() == "high"
    torch.set_float32_matmul_precision("highest")
    with pytest.raises(RuntimeError, match="'highest', 'high' or 'medium', not 'low'"):
        torch.set_float32_matmul_precision("low")


def test_the_setting_is_that_of_the_extension_too() -> None:
    torch.utils.deterministic.fill_uninitialized_memory = False
    assert not torch._C._get_deterministic_fill_uninitialized_memory()
    torch._C._set_deterministic_fill_uninitialized_memory(True)
    assert torch.utils.deterministic.fill_uninitialized_memory
