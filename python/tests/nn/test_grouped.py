"""``grouped_mm``: products of groups of rows, columns or terms."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
from pullback.nn import functional as F


def ends(*values: int) -> Any:
    return torch.tensor(values, dtype=torch.int32)


def close(found: Any, expected: Any) -> None:
    torch.testing.assert_close(found, expected)


def test_rows_meet_the_matrix_of_their_group() -> None:
    a, b = torch.randn(6, 4), torch.randn(3, 4, 5)
    found = F.grouped_mm(a, b, offs=ends(2, 2, 5))
    close(found[:2], a[:2] @ b[0])
    close(found[2:5], a[2:5] @ b[2])
    # Behind the last group there is nothing.
    assert found[5].tolist() == [0.0] * 5


def test_columns_meet_the_matrix_of_their_group() -> None:
    a, b = torch.randn(2, 3, 4), torch.randn(4, 6)
    close(F.grouped_mm(a, b, offs=ends(1, 6)), torch.cat([a[0] @ b[:, :1], a[1] @ b[:, 1:]], 1))


def test_terms_of_a_sum_are_grouped() -> None:
    a, b = torch.randn(3, 6), torch.randn(6, 5)
    found = F.grouped_mm(a, b, offs=ends(2, 5))
    close(found, torch.stack([a[:, :2] @ b[:2], a[:, 2:5] @ b[2:5]]))


def test_lists_of_matrices_need_no_ends() -> None:
    a, b = torch.randn(2, 3, 4), torch.randn(2, 4, 5)
    close(F.grouped_mm(a, b), a @ b)


def test_gradients_are_those_of_the_products() -> None:
    a = torch.randn(5, 3, requires_grad=True)
    b = torch.randn(2, 3, 2, requires_grad=True)
    grad = torch.randn(5, 2)
    found = torch.autograd.grad(F.grouped_mm(a, b, offs=ends(2, 5)), (a, b), grad)
    close(found[0], torch.cat([grad[:2] @ b[0].T, grad[2:] @ b[1].T]))
    close(found[1], torch.stack([a[:2].T @ grad[:2], a[2:].T @ grad[2:]]))


@pytest.mark.parametrize(
    ("a", "b", "offs", "phrase"),
    [
        ((6, 4), (2, 4, 5), None, "Have to provide offsets if there is a 2d matrix"),
        ((2, 6, 4), (2, 4, 5), ends(1, 2), "or no offset if both matrices are 3d"),
        ((6, 4), (2, 3, 5), ends(1, 2), "contraction dimension of mat_a and mat_b must match"),
        ((6, 4), (3, 4, 5), ends(1, 2), "matrix batch sizes have to match"),
        ((4,), (2, 4, 5), ends(1, 2), "mat_a has to be 2 or 3d"),
        ((6, 4), (2, 4, 5), ends(4, 2), "ends of groups in order, from 0 to 6"),
        ((6, 4), (2, 4, 5), ends(4, 7), "ends of groups in order, from 0 to 6"),
        ((6, 4), (2, 4, 5), torch.tensor([1, 2]), "offs has to be 1d and int32"),
    ],
)
def test_what_does_not_fit_is_refused(a: Any, b: Any, offs: Any, phrase: str) -> None:
    with pytest.raises(RuntimeError, match=phrase):
        F.grouped_mm(torch.ones(a), torch.ones(b), offs=offs)


def test_only_short_floating_dtypes_are_taken() -> None:
    with pytest.raises(RuntimeError, match="Expected mat_a to be Float32, BFloat16 or Float16"):
        F.grouped_mm(torch.ones(6, 4).double(), torch.ones(2, 4, 5).double(), offs=ends(1, 6))


def test_scaled_products_say_what_is_missing() -> None:
    assert F.ScalingType.RowWise != F.ScalingType.TensorWise
    assert F.SwizzleType(0) is F.SwizzleType.NO_SWIZZLE
    for product in (F.scaled_grouped_mm, F.scaled_addmm, F.scaled_addmm_):
        with pytest.raises(NotImplementedError, match="is not available; use"):
            product(torch.ones(2, 2), torch.ones(2, 2))
