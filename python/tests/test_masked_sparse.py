"""Masked reductions of sparse tensors: the elements of the strided ones, in sparse results."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
from pullback import masked
from pullback.autograd import gradcheck

X = torch.tensor([[0.0, 0.0, 16.0], [-32.0, 0.0, 64.0], [3.0, -5.0, 0.0]], dtype=torch.float64)
MASK = torch.tensor([[True, False, True], [True, True, False], [False, False, False]])
NAMES = ["sum", "prod", "amax", "amin", "mean"]


def mask_in(layout: Any) -> Any:
    return MASK if layout is torch.strided else MASK.to_sparse(layout=layout)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dim", [(), 0, 1, -1, (0, 1)])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("layout", [torch.strided, torch.sparse_coo, torch.sparse_csr])
def test_lines_of_coordinates(name: str, dim: Any, keepdim: bool, layout: Any) -> None:
    function = getattr(masked, name)
    got = function(X.to_sparse(), dim, keepdim=keepdim, mask=mask_in(layout))
    expected = function(X, dim, keepdim=keepdim, mask=MASK)
    counts = masked.sum(torch.ones(3, 3), dim, keepdim=keepdim, mask=MASK) > 0
    assert (got.layout, got.shape, got.is_coalesced()) == (torch.sparse_coo, expected.shape, True)
    is_whole = dim in ((), (0, 1))
    assert got._nnz() == int((expected != 0).sum() if is_whole else counts.sum())
    torch.testing.assert_close(got.to_dense(), torch.where(counts, expected, 0.0))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dim", [0, 1, (0, 1)])
def test_compressed_rows_keep_their_layout(name: str, dim: Any) -> None:
    function = getattr(masked, name)
    got = function(X.to_sparse_csr(), dim, keepdim=True, mask=MASK.to_sparse_csr())
    assert got.layout is torch.sparse_csr
    expected = function(X.to_sparse(), dim, keepdim=True, mask=MASK)
    assert torch.equal(got.to_dense(), expected.to_dense())
    assert got._nnz() == expected._nnz()
    with pytest.raises(RuntimeError, match="CSR tensors with keepdim=False is unsupported"):
        function(X.to_sparse_csr(), dim, mask=MASK.to_sparse_csr())


@pytest.mark.parametrize("name", NAMES)
def test_nothing_that_counts_is_the_number_that_changes_nothing(name: str) -> None:
    function, nothing = getattr(masked, name), torch.zeros_like(MASK)
    got = function(X.to_sparse(), mask=nothing)
    torch.testing.assert_close(got.to_dense(), function(X, mask=nothing), equal_nan=True)
    assert function(X.to_sparse(), 0, mask=nothing)._nnz() == 0


def test_without_mask_what_is_specified_is_added() -> None:
    x = X.to_sparse()
    for dim in (0, 1, ()):
        got = masked.sum(x + x, dim)
        assert torch.equal(got.to_dense(), 2 * masked.sum(X, dim))
    empty = masked.sum(torch.zeros(2, 3).to_sparse(), 0)
    assert (empty._nnz(), empty.shape) == (0, (3,))
    with pytest.raises(ValueError, match="masked prod expects explicit mask for sparse_coo tensor"):
        masked.prod(x, 0)
    with pytest.raises(ValueError, match="masked mean expects explicit mask for sparse_csr tensor"):
        masked.mean(X.to_sparse_csr(), 0, keepdim=True)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int32, torch.complex64])
def test_dtypes_are_those_of_strided_reductions(dtype: Any) -> None:
    x = X.abs().to(dtype) if dtype is torch.uint8 else X.to(dtype)
    for name in ("sum", "prod"):
        function = getattr(masked, name)
        got, expected = function(x.to_sparse(), 1, mask=MASK), function(x, 1, mask=MASK)
        assert got.dtype is expected.dtype
        assert torch.equal(got.to_dense()[:2], expected[:2])
    assert masked.sum(x.to_sparse(), 0, dtype=torch.complex128).dtype is torch.complex128


@pytest.mark.parametrize("name", NAMES)
def test_gradients_go_to_specified_elements(name: str) -> None:
    x = X.to_sparse().requires_grad_()
    function = getattr(masked, name)
    mask = (X != 0) & MASK if name == "prod" else MASK

    def values(x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = function(x, 1, mask=mask).to_dense()
        return result

    assert gradcheck(values, (x,), masked=True)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(RuntimeError, match="expanded size"):
        masked.sum(X.to_sparse(), 0, mask=MASK[:2].to_sparse())
    with pytest.raises(IndexError, match="broadcastable mask"):
        masked.sum(X.to_sparse(), 0, mask=MASK[None])
    with pytest.raises(IndexError, match="Dimension out of range"):
        masked.sum(X.to_sparse(), 2)
    with pytest.raises(
        ValueError, match=r"sparse_coo or sparse_csr tensor \(got torch\.sparse_csc"
    ):
        masked.sum(X.to_sparse_csc(), 0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dim", [None, 0, 1, 2, (0, 2), (0, 1)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_dense_dimensions_are_reduced_too(name: str, dim: Any, keepdim: bool) -> None:
    torch.manual_seed(4)
    x, mask = torch.randn(3, 2, 4), torch.rand(3, 2, 4) < 0.5
    op = getattr(masked, name)
    found = op(x.to_sparse(2), dim, keepdim=keepdim, mask=mask).to_dense()
    expected = op(x, dim, keepdim=keepdim, mask=mask)
    some = mask
    dims = (0, 1, 2) if dim is None else (dim if isinstance(dim, tuple) else (dim,))
    for at in reversed(dims):
        some = some.any(at, keepdim=keepdim)
    assert found.shape == expected.shape
    torch.testing.assert_close(found[some], expected[some])


def test_the_sum_of_all_specified_values() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    for dim in (None, 0, 1):
        assert torch.equal(masked.sum(x.to_sparse(1), dim).to_dense(), x.sum(dim))


def test_a_sparse_mask_is_broadcast_and_fits_strided_tensors() -> None:
    row = torch.tensor([True, False, True])
    for layout in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc):
        assert torch.equal(
            masked.sum(X, 1, mask=MASK.to_sparse(layout=layout)),
            sums := masked.sum(X, 1, mask=MASK),
        )
    assert sums.tolist() == [16.0, -32.0, 0.0]
    found = masked.sum(X.to_sparse(), 1, mask=row.to_sparse())
    assert torch.equal(found.to_dense(), masked.sum(X, 1, mask=row))


CHOSEN = torch.tensor([[True, False, True], [False, True, True]])
GIVEN = torch.tensor([[1.0, 2.0, 0.0], [4.0, 5.0, 6.0]])


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_where_specifies_what_the_mask_chooses(layout: Any) -> None:
    mask, x = CHOSEN.to_sparse(layout=layout), GIVEN.to_sparse(layout=layout)
    mask.values()[-1] = False
    got = masked._where(mask, x, torch.tensor(7.0))
    assert (got.layout, got.shape) == (layout, (2, 3))
    # (The element of the first row that the input does not specify is zero.)
    assert got.values().tolist() == [1.0, 0.0, 5.0]
    assert got.to_dense().tolist() == [[1.0, 0.0, 0.0], [0.0, 5.0, 0.0]]


def test_where_fills_dense_dimensions() -> None:
    mask = torch.sparse_coo_tensor([[0, 2]], CHOSEN, (3, 3))
    x = torch.sparse_coo_tensor([[0, 1]], GIVEN, (3, 3))
    got = masked._where(mask, x, torch.tensor(7.0))
    assert got.indices().tolist() == [[0, 2]]
    assert got.values().tolist() == [[1.0, 7.0, 0.0], [7.0, 0.0, 0.0]]


def test_where_refuses_masks_of_other_layouts() -> None:
    with pytest.raises(ValueError, match=r"a mask of layout torch\.sparse_csr but got"):
        masked._where(CHOSEN.to_sparse(), GIVEN.to_sparse_csr(), torch.tensor(0.0))
    with pytest.raises(ValueError, match="_where expects strided or sparse COO or sparse CSR"):
        masked._where(CHOSEN.to_sparse_csc(), GIVEN.to_sparse_csc(), torch.tensor(0.0))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dim", [(), 0, -1])
@pytest.mark.parametrize("keepdim", [False, True])
def test_one_sparse_number_is_reduced_to_itself(name: str, dim: Any, keepdim: bool) -> None:
    number, mask = torch.tensor(3.0).to_sparse(), torch.tensor(True)
    for given in (mask, mask.to_sparse()):
        got = getattr(masked, name)(number, dim, keepdim=keepdim, mask=given)
        assert (got.layout, got.shape, got.to_dense().item()) == (torch.sparse_coo, (), 3.0)
