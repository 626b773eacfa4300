"""In which dtype reductions with ``out=`` compute, and which targets they take."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch

X = torch.tensor([[0.75, 1.5], [0.75, 2.5]])


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("sum", [0, 3]),
        ("prod", [0, 2]),
        ("cumsum", [[0, 1], [0, 3]]),
        ("cumprod", [[0, 1], [0, 2]]),
    ],
)
def test_the_target_says_what_is_computed_in(name: str, numbers: Any) -> None:
    function = getattr(torch, name)
    target = torch.empty(0, dtype=torch.int64)
    assert function(X, 0, out=target) is target
    assert target.tolist() == numbers == function(X, 0, dtype=torch.int64).tolist()
    # (What single precision cannot add or multiply, double can.)
    parts = torch.tensor([2.0**30, 1.0 + 2.0**-20])
    wide = torch.empty(0, dtype=torch.float64)
    assert torch.equal(function(parts, 0, out=wide), function(parts.double(), 0))


@pytest.mark.parametrize("name", ["mean", "nansum", "nanmean"])
def test_means_are_computed_in_the_precision_of_the_target(name: str) -> None:
    function = getattr(torch, name)
    parts = torch.tensor([2.0**30, 1.0 + 2.0**-20])
    exact = function(parts.double(), 0)
    assert torch.equal(function(parts, 0, out=torch.empty(0, dtype=torch.float64)), exact)
    single = function(parts, 0, out=torch.empty(0)).double()
    assert not torch.equal(single, exact)
    # (A target that takes no fractions is refused, as without a target's say.)
    with pytest.raises((RuntimeError, NotImplementedError)):
        function(parts, 0, out=torch.empty((), dtype=torch.int64))


def test_the_mean_of_integers_is_refused_whatever_the_target() -> None:
    target = torch.empty((), dtype=torch.float64)
    for name in ("mean", "nanmean"):
        with pytest.raises(NotImplementedError):
            getattr(torch, name)(torch.arange(3), 0, out=target)
    assert torch.nansum(torch.arange(3), 0, out=target).item() == 3


def test_a_sum_in_whole_numbers_skips_what_is_not_a_number() -> None:
    x = torch.tensor([[1.5, float("nan")], [-2.5, 4.0]])
    assert torch.nansum(x, dtype=torch.int64).item() == 3
    assert torch.nansum(x, 0, dtype=torch.int32).tolist() == [-1, 4]
    with pytest.raises(RuntimeError, match="Optional dtype must be either a floating point"):
        torch.nanmean(x, dtype=torch.int64)


def test_powers_of_double_precision_go_into_no_other_target() -> None:
    for target in (torch.ones(2), torch.ones(2, dtype=torch.int64)):
        before = target.clone()
        for call in ((torch.ones(2), 2), (2, torch.ones(2)), (torch.ones(2), torch.ones(2))):
            with pytest.raises(RuntimeError, match="dtype double"):
                torch.float_power(*call, out=target)
        assert torch.equal(target, before)
    wide = torch.empty(2, dtype=torch.float64)
    assert torch.float_power(torch.tensor([2, 3]), 2, out=wide).tolist() == [4, 9]


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "cumsum", "cumprod", "nansum", "softmax"])
def test_a_target_of_another_dtype_than_the_one_asked_for_is_refused(name: str) -> None:
    target = torch.full((7,), 5.0)
    phrase = "Expected out tensor to have dtype double, but got float instead"
    with pytest.raises(RuntimeError, match=phrase):
        getattr(torch, name)(X, 0, dtype=torch.float64, out=target)
    assert target.tolist() == [5.0] * 7


@pytest.mark.parametrize("name", ["any", "all"])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.float32, torch.bool])
def test_logical_reductions_take_bools_and_bytes(name: str, dtype: torch.dtype) -> None:
    x = torch.tensor([[0, 2], [3, 4]]).to(dtype)
    expected = getattr(torch.tensor([[False, True], [True, True]]), name)(0).tolist()
    for target in (torch.bool, torch.uint8):
        got = getattr(torch, name)(x, 0, out=torch.empty(0, dtype=target))
        assert (got.dtype, got.tolist()) == (target, expected)
        whole = getattr(torch, name)(x, out=torch.empty((), dtype=target))
        assert whole.item() == (name == "any")


def test_the_distance_of_integers_is_not_taken_in_their_dtype() -> None:
    a = torch.tensor([-128, 127, 0, 5, -128], dtype=torch.int8)
    b = torch.tensor([127, -128, -128, 6, -127], dtype=torch.int8)
    assert not torch.isclose(a, b).any()
    assert torch.isclose(a, b, rtol=1, atol=1).tolist() == [False, False, True, True, True]
    u = torch.tensor([0, 255], dtype=torch.uint8)
    assert torch.isclose(u, u.flip(0), rtol=0, atol=1).tolist() == [False, False]


def test_nothing_is_drawn_for_no_elements_of_any_dtype() -> None:
    assert torch.randn(0, 3, dtype=torch.int32).shape == (0, 3)
    assert torch.empty(0, dtype=torch.int64).normal_().dtype == torch.int64
    with pytest.raises(NotImplementedError, match="normal_kernel_cpu"):
        torch.randn(1, dtype=torch.int32)
