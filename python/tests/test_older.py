"""Older and lesser functions of the main namespace, and what programs ask about the build."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import pullback as torch


def test_products_with_sparse_matrices_have_their_older_names() -> None:
    dense = torch.tensor([[0.0, 2.0], [0.0, 0.0], [3.0, 0.0]])
    right = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    sparse = dense.to_sparse()
    for product in (torch.spmm, torch.dsmm):
        torch.testing.assert_close(product(sparse, right), dense @ right)
    hybrid = torch.hsmm(sparse, right)
    assert (hybrid.sparse_dim(), hybrid.dense_dim(), hybrid._nnz()) == (1, 1, 2)
    torch.testing.assert_close(hybrid.to_dense(), dense @ right)
    with pytest.raises(RuntimeError, match="sparse_coo matrix and a strided one are expected"):
        torch.hsmm(dense, right)
    added = torch.saddmm(torch.ones(3, 3).to_sparse(), sparse, right, beta=2, alpha=0.5)
    torch.testing.assert_close(added.to_dense(), 2 + 0.5 * (dense @ right))


def test_parts_of_sparse_tensors_are_copied() -> None:
    coordinates = torch.eye(2).to_sparse()
    copied = torch.values_copy(coordinates)
    copied.zero_()
    assert coordinates.values().tolist() == [1.0, 1.0]
    assert torch.indices_copy(coordinates).tolist() == [[0, 1], [0, 1]]
    rows, columns = torch.eye(2).to_sparse_csr(), torch.eye(2).to_sparse_csc()
    assert torch.crow_indices_copy(rows).tolist() == torch.ccol_indices_copy(columns).tolist()
    assert torch.col_indices_copy(rows).tolist() == torch.row_indices_copy(columns).tolist()


def test_a_sparse_tensor_takes_the_size_of_another() -> None:
    small, large = torch.eye(2).to_sparse(), torch.eye(3).to_sparse()
    assert torch.resize_as_sparse_(small, large) is small
    assert small.shape == (3, 3)
    assert small._nnz() == 2
    for other in (torch.eye(2), torch.eye(2).to_sparse_csr()):
        with pytest.raises(RuntimeError, match="must have the same sparse layout"):
            torch.resize_as_sparse_(other, large)


@pytest.mark.parametrize("name", ["csr", "csc", "bsr", "bsc"])
def test_a_compressed_tensor_takes_the_places_of_another(name: str) -> None:
    def laid_out(dense: Any) -> Any:
        blocks = {"blocksize": (2, 2)} if name.startswith("b") else {}
        return dense.to_sparse(layout=getattr(torch, f"sparse_{name}"), **blocks)

    small, large = laid_out(torch.tensor([[1.0, 2], [3, 4]])), laid_out(torch.ones(4, 6))
    alias, version = small.detach(), small._version
    assert small.resize_as_sparse_(large) is small
    assert (small.shape, small._nnz(), alias.shape) == ((4, 6), large._nnz(), (2, 2))
    assert small.values().flatten()[:4].sum() == 10
    assert small.to_dense().sum() == 10
    assert small._version == version + 1
    leaf = laid_out(torch.eye(2)).requires_grad_()
    for refused, phrase in [(leaf, "leaf Variable"), (leaf * 2, "variables that require grad")]:
        with pytest.raises(RuntimeError, match=phrase):
            torch.resize_as_sparse_(refused, large)
        assert refused.shape == (2, 2)


def test_questions_are_functions_too() -> None:
    x = torch.ones(2, 3)
    assert torch.is_signed(x)
    assert not torch.is_signed(x.byte())
    assert torch.is_same_size(x, x.double())
    assert not torch.is_same_size(x, x.t())
    assert not torch.is_distributed(x)
    y = (x.requires_grad_() * 2).sum()
    assert torch.detach_(y) is y
    assert y.grad_fn is None


def test_functions_of_nn_are_in_the_main_namespace() -> None:
    x = torch.linspace(-1, 1, 5)
    torch.testing.assert_close(torch.rrelu(x, 0.1, 0.3), torch.where(x < 0, 0.2 * x, x))
    assert torch.rrelu_(x, 0.1, 0.1).tolist() == pytest.approx([-0.1, -0.05, 0.0, 0.5, 1.0])
    weight = torch.arange(6.0).reshape(1, 2, 3)
    found = torch.bilinear(torch.ones(1, 2), torch.ones(1, 3), weight, torch.ones(1))
    assert found.item() == weight.sum().item() + 1
    table = torch.tensor([[3.0, 4.0], [6.0, 8.0], [0.3, 0.4]])
    assert torch.embedding_renorm_(table, torch.tensor([1, 2]), 5.0) is table
    torch.testing.assert_close(table, torch.tensor([[3.0, 4.0], [3.0, 4.0], [0.3, 0.4]]))


def test_statistics_of_a_batch_move_the_running_ones() -> None:
    x = torch.tensor([[1.0, 0.0], [3.0, 4.0]])
    mean, var = torch.zeros(2), torch.ones(2)
    of_batch = torch.batch_norm_update_stats(x, mean, var, 0.5)
    assert [t.tolist() for t in of_batch] == [[2.0, 2.0], [1.0, 4.0]]
    assert mean.tolist() == [1.0, 1.0]
    # With Bessel's correction the variances are 2 and 8.
    assert var.tolist() == [1.5, 4.5]


def test_the_build_describes_itself() -> None:
    assert "CPU capability usage" in torch.__config__.show()
    assert str(torch.get_num_threads()) in torch.__config__.parallel_info()


def test_dtypes_of_parts_and_pairs() -> None:
    from pullback import _prims_common as common

    for real, pair in ((torch.float32, torch.complex64), (torch.float64, torch.complex128)):
        assert common.corresponding_complex_dtype(real) is pair
        assert common.corresponding_real_dtype(pair) is real
    with pytest.raises(KeyError):
        common.corresponding_real_dtype(torch.float32)
    assert common.is_integer_dtype(torch.int8)
    assert not common.is_integer_dtype(torch.bool)


def test_a_matrix_that_is_left_out_is_the_identity() -> None:
    from pullback._linalg_utils import bform, matmul, qform

    a, x, y = torch.randn(3, 3), torch.randn(3, 2), torch.randn(3, 4)
    assert matmul(None, x) is x
    torch.testing.assert_close(matmul(a, x), a @ x)
    torch.testing.assert_close(bform(x, a, y), x.T @ a @ y)
    torch.testing.assert_close(qform(None, x), x.T @ x)


def test_tensors_answer_for_what_they_are_not() -> None:
    x: Any = torch.ones(2, 3)
    assert not any((x.is_ipu, x.is_maia, x.is_mtia, x.is_xla))
    for call, error in (
        (x.int_repr, NotImplementedError),
        (x.q_scale, NotImplementedError),
        (x.xpu, AssertionError),
        (x.ipu, RuntimeError),
        (x.to_mkldnn, NotImplementedError),
    ):
        with pytest.raises(error, match=rf"Tensor\.{call.__name__} is not available: .*; "):
            call()
    assert x.const_data_ptr() == x.data_ptr()
    assert x.half().dequantize().dtype is torch.float32
    assert x.to_sparse_coo().layout is torch.sparse_coo
    assert x.to_sparse_csr().to_sparse_coo().layout is torch.sparse_coo
    with pytest.warns(UserWarning, match="non-inplace resize_as is deprecated"):
        assert x.resize_as(torch.ones(6)).shape == (6,)
    small = torch.eye(2).to_sparse()
    assert small.resize_as_sparse_(torch.eye(3).to_sparse()).shape == (3, 3)


def test_typed_storages_may_be_on_the_meta_device() -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "TypedStorage is deprecated")
        typed = torch.TypedStorage([1, 2, 3], dtype=torch.int16, device="meta")
        assert (typed.size(), typed.nbytes(), typed.device.type) == (3, 6, "meta")
        assert repr(typed).startswith("...\n[torch.storage.TypedStorage(dtype=torch.int16")
        for question in (lambda: typed[0], typed.tolist, lambda: typed.__setitem__(0, 1)):
            with pytest.raises(NotImplementedError, match="Not available for 'meta' device type"):
                question()
    names = torch.storage._dtype_to_storage_type_map()
    assert names[torch.complex64] == "ComplexFloatStorage"
    assert torch.storage._storage_type_to_dtype_map()["IntStorage"] is torch.int32


def test_native_norm_is_that_of_what_is_specified() -> None:
    twice = torch.sparse_coo_tensor(torch.tensor([[0, 0, 1]]), torch.tensor([3.0, 1.0, -3.0]), (3,))
    assert torch.native_norm(twice).item() == 5.0
    assert torch.native_norm(twice, 1).item() == 7.0
    assert torch.native_norm(twice, None, [0], True).tolist() == [5.0]
    with pytest.raises(RuntimeError, match="must either be empty or contain all dimensions"):
        torch.native_norm(torch.eye(2).to_sparse(), 2, [0])
    with pytest.raises(RuntimeError, match="does not support 'dtype' argument"):
        torch.native_norm(twice, 2, [], False, torch.float64)
    with pytest.raises(NotImplementedError, match="Could not run 'aten::native_norm'"):
        torch.native_norm(torch.ones(2))


def test_a_cast_is_a_function_with_a_warning() -> None:
    from pullback.autograd._functions import Type

    x = torch.ones(2, requires_grad=True)
    with pytest.warns(FutureWarning, match=r"use `torch.tensor.to\(dtype=dtype\)`"):
        y = Type.apply(x, torch.float64)
    assert y.dtype is torch.float64
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.dtype is torch.float32
