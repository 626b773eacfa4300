"""Triangular equations of sparse matrices, and products and draws beside them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import pullback as torch
from pullback.autograd import gradcheck, gradgradcheck

LAYOUTS = ["coo", "csr", "csc", "bsr", "bsc"]


def laid_out(dense: Any, name: str) -> Any:
    blocks = {"blocksize": (2, 2)} if name.startswith("b") else {}
    return dense.to_sparse(layout=getattr(torch, f"sparse_{name}"), **blocks)


def matrix(dtype: Any = torch.float64) -> Any:
    rows = [[2.0, 1, 0, 4], [0, 3, 5, 0], [7, 0, 4, 1], [1, 0, 6, 5]]
    x = torch.tensor(rows, dtype=dtype)
    return x * (1 + 0.5j) if dtype.is_complex else x


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex128])
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_triangle_of_a_sparse_matrix_is_solved_for(name: str, dtype: Any) -> None:
    a = matrix(dtype)
    b = torch.arange(8.0).to(dtype).view(4, 2) - 2
    for upper, transpose, unit in itertools.product([True, False], repeat=3):
        x, copy = torch.triangular_solve(b, laid_out(a, name), upper, transpose, unit)
        triangle = a.triu(1) if upper else a.tril(-1)
        triangle = triangle + (torch.eye(4, dtype=dtype) if unit else a.diag().diag())
        torch.testing.assert_close((triangle.T if transpose else triangle) @ x, b)
        assert (x.stride(), copy.shape) == ((2, 1), (0,))
    # Right-hand sides of a batch have one matrix.
    batch = torch.stack([b, 3 * b])
    x = batch.triangular_solve(laid_out(a, name))[0]
    torch.testing.assert_close(a.triu() @ x, batch)


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
def test_a_sparse_triangle_without_its_diagonal_has_no_solution() -> None:
    a, b = matrix().fill_diagonal_(0), torch.ones(4, 1, dtype=torch.float64)
    assert torch.triangular_solve(b, a.to_sparse_csr())[0].isnan().all()
    x = torch.triangular_solve(b, a.to_sparse_csr(), unitriangular=True)[0]
    torch.testing.assert_close((a.triu() + torch.eye(4, dtype=a.dtype)) @ x, b)
    empty = torch.zeros(0, 0).to_sparse_csr()
    assert torch.triangular_solve(torch.ones(0, 2), empty)[0].shape == (0, 2)
    rows = matrix().to_sparse_csr()
    for refused, error, phrase in [
        (lambda: torch.triangular_solve(b[:3], rows), RuntimeError, "Incompatible matrix sizes"),
        (lambda: torch.triangular_solve(b.float(), rows), RuntimeError, "same dtype"),
        (
            lambda: torch.triangular_solve(b.long(), a.long().to_sparse_csr()),
            RuntimeError,
            "floating point or complex",
        ),
        (
            lambda: torch.triangular_solve(b.half(), a.half().to_sparse_csr()),
            NotImplementedError,
            "not implemented for 'Half'",
        ),
        (lambda: torch.triangular_solve(rows, a), RuntimeError, "dense right-hand sides expected"),
        (
            lambda: torch.triangular_solve(b, torch.stack([a, a]).to_sparse_csr()),
            RuntimeError,
            "one sparse matrix",
        ),
    ]:
        with pytest.raises(error, match=phrase):
            refused()


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_sparse_triangles_have_derivatives_where_they_are_specified(
    dtype: Any, transpose: bool, unit: bool
) -> None:
    a = matrix(dtype).to_sparse_csr()
    b = (torch.arange(8.0).to(dtype).view(4, 2) / 4 - 1).requires_grad_()

    def solution(values: Any, b: Any) -> Any:
        rows = torch.sparse_csr_tensor(a.crow_indices(), a.col_indices(), values, (4, 4))
        return torch.triangular_solve(b, rows, True, transpose, unit)[0]

    inputs = (a.values().clone().requires_grad_(), b)
    assert gradcheck(solution, inputs, check_forward_ad=True)
    assert gradgradcheck(solution, inputs)
    leaf = a.clone().requires_grad_()
    torch.triangular_solve(b.detach(), leaf)[0].abs().sum().backward()
    dense = matrix(dtype).requires_grad_()
    torch.triangular_solve(b.detach(), dense)[0].abs().sum().backward()
    assert leaf.grad.layout is torch.sparse_csr
    torch.testing.assert_close(leaf.grad.to_dense(), dense.grad * (matrix(dtype) != 0))


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_vector_is_added_to_a_product_with_a_sparse_matrix(name: str) -> None:
    a, v = matrix(), torch.tensor([1.0, -2, 3, 0.5], dtype=torch.float64)
    expected = 0.5 * v + 2 * (a @ v)
    x = torch.addmv(v, laid_out(a, name), v, beta=0.5, alpha=2)
    torch.testing.assert_close(x, expected)
    torch.testing.assert_close(v.clone().addmv_(laid_out(a, name), v, beta=0.5, alpha=2), expected)
    unset = torch.full((4,), float("nan"), dtype=torch.float64)
    torch.testing.assert_close(torch.addmv(unset, laid_out(a, name), v, beta=0), a @ v)
    with pytest.raises(RuntimeError, match="a dense vector to add to"):
        torch.addmv(v.to_sparse(), laid_out(a, name), v)


@pytest.mark.parametrize(("left", "right"), list(itertools.product(LAYOUTS[1:], repeat=2)))
def test_products_of_compressed_matrices_have_compressed_rows(left: str, right: str) -> None:
    a = matrix()
    product = laid_out(a, left) @ laid_out(a, right)
    assert product.layout is torch.sparse_csr
    torch.testing.assert_close(product.to_dense(), a @ a)


def test_what_is_drawn_like_a_sparse_tensor_is_strided_where_that_is_asked_for() -> None:
    x = matrix().to_sparse()
    for draw in (
        torch.rand_like,
        torch.randn_like,
        lambda x, **kwargs: torch.randint_like(x, 5, **kwargs),
        lambda x, **kwargs: torch.randint_like(x, 2, 5, **kwargs),
    ):
        torch.manual_seed(3)
        drawn = draw(x, layout=torch.strided)
        torch.manual_seed(3)
        assert torch.equal(drawn, draw(x.to_dense()))
        assert draw(x, layout=torch.strided, dtype=torch.float32).dtype is torch.float32
        with pytest.raises(NotImplementedError, match=r"ask for layout=torch\.strided"):
            draw(x)
    with pytest.raises(RuntimeError, match="random_ expects 'from' to be less than 'to'"):
        torch.randint_like(x, 3, 2, layout=torch.strided)


@pytest.mark.parametrize("name", ["csr", "csc", "bsr", "bsc"])
def test_an_empty_tensor_like_a_compressed_one_specifies_the_same_places(name: str) -> None:
    x = laid_out(matrix(), name)
    empty = torch.empty_like(x, dtype=torch.float32)
    assert (empty.layout, empty._nnz(), empty.dtype) == (x.layout, x._nnz(), torch.float32)
    assert torch.empty_like(x, layout=torch.strided).layout is torch.strided


def test_a_sum_that_leaves_no_coordinate_is_dense() -> None:
    x = matrix().to_sparse()
    assert torch.equal(x.sum((0, 1), keepdim=True), matrix().sum((0, 1), keepdim=True))
    for dim, keepdim in itertools.product([0, 1], [False, True]):
        total = x.sum(dim, keepdim=keepdim)
        assert total.layout is torch.sparse_coo
        assert torch.equal(total.to_dense(), matrix().sum(dim, keepdim=keepdim))
    hybrid = matrix().to_sparse(1)
    assert torch.equal(hybrid.sum(0, keepdim=True), matrix().sum(0, keepdim=True))
    leaf = x.clone().requires_grad_()
    leaf.sum((0, 1), keepdim=True).mul(3).sum().backward()
    assert torch.equal(leaf.grad.to_dense(), torch.full((4, 4), 3.0, dtype=torch.float64))


@pytest.mark.parametrize("shape", [(2, 4, 4), (3, 1, 4, 1), (2, 1, 1)])
def test_a_dense_factor_of_more_dimensions_widens_a_sparse_one(shape: tuple[int, ...]) -> None:
    x, dense = matrix().to_sparse(), torch.rand(shape, dtype=torch.float64)
    for product in (x * dense, dense * x):
        assert product.layout is torch.sparse_coo
        torch.testing.assert_close(product.to_dense(), matrix() * dense)
    torch.testing.assert_close(
        dense.clone().expand(*shape[:-2], 4, 4).clone().mul_(x), dense * matrix()
    )
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x.clone().mul_(dense)

    def of_values(values: Any) -> Any:
        return (torch.sparse_coo_tensor(x.indices(), values, (4, 4)) * dense).to_dense()

    assert gradcheck(of_values, x.values().clone().requires_grad_(), check_forward_ad=True)
    leaf, factor = x.clone().requires_grad_(), dense.clone().requires_grad_()
    (leaf * factor).to_dense().square().sum().backward()
    whole, other = matrix().requires_grad_(), dense.clone().requires_grad_()
    (whole * other).square().sum().backward()
    torch.testing.assert_close(leaf.grad.to_dense(), whole.grad * (matrix() != 0))
    torch.testing.assert_close(factor.grad.to_dense(), other.grad)


def test_a_mask_gives_its_order_to_what_it_shows() -> None:
    dense = matrix()
    for is_coalesced in (True, False):
        mask = dense.to_sparse()._coalesced_(is_coalesced)
        for x in (dense, dense.to_sparse(), dense.to_sparse()._coalesced_(False)):
            found = x.sparse_mask(mask)
            assert found.is_coalesced() == is_coalesced
            assert torch.equal(found.to_dense(), dense)


def test_tensors_of_other_kinds_are_not_joined() -> None:
    with pytest.raises(
        RuntimeError, match=r"sparse_dim and dense_dim: 2, 0, but tensor at pos.* 1, 1"
    ):
        torch.cat([matrix().to_sparse(), matrix().to_sparse(1)])
    with pytest.raises(RuntimeError, match="must have the same shape"):
        torch.cat([matrix().to_sparse(), matrix()[:, :3].to_sparse()])
    with pytest.raises(RuntimeError, match="is not implemented for sparse layout"):
        torch.full((2, 2), 3.0, layout=torch.sparse_coo)


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
@pytest.mark.parametrize("name", LAYOUTS)
def test_ops_made_of_others_write_into_sparse_targets(name: str) -> None:
    for dtype in (torch.float64, torch.complex128):
        x = laid_out(matrix(dtype), name)
        target = torch.zeros_like(x)
        assert torch.conj_physical(x, out=target) is target
        assert torch.equal(target.to_dense(), matrix(dtype).conj_physical())
        # The target has memory of its own.
        target.values().zero_() if name != "coo" else target._values().zero_()
        assert torch.equal(x.to_dense(), matrix(dtype))
    b = torch.ones(4, 1, dtype=torch.float64)
    found, copy = torch.empty(4, 1, dtype=torch.float64), torch.empty(0, dtype=torch.float64)
    torch.triangular_solve(b, laid_out(matrix(), name), out=(found, copy))
    torch.testing.assert_close(matrix().triu() @ found, b)
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.conj_physical(laid_out(matrix(), name), out=laid_out(matrix().long(), name))
