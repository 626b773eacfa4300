"""Small ops on sets, bits and pieces: ``unique``, ``isin``, ``nextafter``, ``unsafe_split``."""

from __future__ import annotations

import math

import pytest

import pullback as torch


def test_unique_gives_what_was_asked_for() -> None:
    x = torch.tensor([[3, 1], [1, 2]])
    assert torch.unique(x).tolist() == [1, 2, 3]
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    assert values[inverse].tolist() == x.tolist()
    assert counts.tolist() == [2, 1, 1]
    rows, counts = torch.unique(torch.tensor([[1, 2], [0, 5], [1, 2]]), dim=0, return_counts=True)
    assert rows.tolist() == [[0, 5], [1, 2]]
    assert counts.tolist() == [1, 2]


def test_only_the_values_of_unique_require_grad_and_have_no_derivative() -> None:
    x = torch.tensor([2.0, 1.0, 2.0], requires_grad=True)
    for found in (
        torch.unique(x, return_inverse=True, return_counts=True),
        torch.unique(x, return_inverse=True, dim=0),
        torch.unique_consecutive(x, return_counts=True),
    ):
        assert [part.requires_grad for part in found] == [True] + [False] * (len(found) - 1)
        with pytest.raises(NotImplementedError, match=r"the derivative for .* is not implemented"):
            found[0].sum().backward()


def test_isin_compares_as_the_common_dtype_does() -> None:
    x = torch.tensor([[1, 2], [3, 4]])
    assert torch.isin(x, torch.tensor([2.0, 3.0])).tolist() == [[False, True], [True, False]]
    assert torch.isin(x, torch.tensor([2]), invert=True).tolist() == [[True, False], [True, True]]
    assert torch.isin(x, 4).tolist() == [[False, False], [False, True]]
    assert torch.isin(4, x).item() is True
    nan = torch.tensor([math.nan, 1.0])
    assert torch.isin(nan, nan).tolist() == [False, True]
    assert torch.isin(torch.tensor([2**53 + 1]), torch.tensor([2**53])).tolist() == [False]


def test_nextafter_goes_to_the_neighbour() -> None:
    x = torch.tensor([1.0, 0.0, 2.0, math.inf], dtype=torch.float64, requires_grad=True)
    to = torch.tensor([2.0, -1.0, 2.0, 0.0], dtype=torch.float64)
    result = torch.nextafter(x, to)
    expected = [math.nextafter(a, b) for a, b in zip(x.tolist(), to.tolist(), strict=True)]
    assert result.tolist() == expected
    result.sum().backward()
    # (Numbers that are equal have no neighbour to go to.)
    assert x.grad.tolist() == [1, 1, 0, 1]


def test_signbit_knows_negative_zero() -> None:
    x = torch.tensor([-0.0, 0.0, -1.0, -math.nan, 1.0], requires_grad=True)
    assert torch.signbit(x).tolist() == [True, False, True, True, False]
    assert torch.signbit(torch.tensor([-1, 0])).tolist() == [True, False]
    assert torch.signbit(torch.tensor([True])).tolist() == [False]


def test_unsafe_pieces_may_be_written_to() -> None:
    for cut in (
        lambda x: x.unsafe_split(1),
        lambda x: x.unsafe_split_with_sizes((1, 1)),
        lambda x: x.unsafe_chunk(2),
    ):
        leaf = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        first, second = cut(leaf * 1)
        assert not first._is_view()
        first.mul_(second)
        first.sum().backward()
        assert leaf.grad.tolist() == [[3.0, 4.0], [1.0, 2.0]]


def test_resize_as_takes_a_shape_and_counts_a_write() -> None:
    x = torch.rand(1)
    x.resize_((1, 2))
    assert x.resize_as_(torch.ones(3)) is x
    assert (x.shape, x._version) == ((3,), 2)
    torch.resize_as_(x, torch.ones(3))
    assert x._version == 2
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        torch.ones(1, requires_grad=True).resize_as_(x)


def test_float_power_is_in_double_precision() -> None:
    assert torch.float_power(torch.tensor([2, 3]), 2).tolist() == [4.0, 9.0]
    assert torch.float_power(torch.tensor([2, 3]), 2).dtype is torch.float64
    assert torch.float_power(2, torch.tensor([1j])).dtype is torch.complex128
    assert torch.ldexp(torch.tensor([1.5]), torch.tensor([3])).tolist() == [12.0]
