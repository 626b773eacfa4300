"""Semi-structured matrices: packed parts are held and shown; a CUDA device would do the rest."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import pullback as torch
from pullback import sparse
from pullback.sparse import (
    SparseSemiStructuredTensor,
    SparseSemiStructuredTensorCUSPARSELT,
    SparseSemiStructuredTensorCUTLASS,
)


def cutlass() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        packed, meta = torch.arange(64.0 * 32).view(64, 32), torch.ones(64, 4)
        return SparseSemiStructuredTensorCUTLASS((64, 64), packed, meta, None, None, None)


def test_packing_needs_a_device() -> None:
    dense = torch.ones(64, 64)
    with pytest.raises(RuntimeError, match="Only CUDA tensors are currently supported"):
        sparse.to_sparse_semi_structured(dense)
    for kind in (SparseSemiStructuredTensorCUTLASS, SparseSemiStructuredTensorCUSPARSELT):
        with pytest.raises(RuntimeError, match=r"original_tensor.device= cpu is not supported"):
            kind.from_dense(dense)
        with pytest.raises(NotImplementedError, match="'aten::_sparse_semi_structured_tile'"):
            kind.prune_dense_static_sort(dense)
    with pytest.raises(NotImplementedError, match="subclasses"):
        SparseSemiStructuredTensor.from_dense(dense)
    with pytest.warns(FutureWarning, match="only support contiguous"), pytest.raises(RuntimeError):
        sparse.to_sparse_semi_structured(dense, transposed=True)


def test_parts_are_shown_copied_and_transposed() -> None:
    a = cutlass()
    assert repr(a) == "SparseSemiStructuredTensorCUTLASS(shape=torch.Size([64, 64]))"
    assert (a.shape, a.is_sparse) == ((64, 64), False)
    assert torch.equal(a.values(), a.packed)
    assert torch.equal(a.indices(), a.meta)
    copied = a.clone()
    assert copied.packed is not a.packed
    assert torch.equal(copied.packed, a.packed)
    turned = a.t()
    assert (turned.packed, turned.packed_t) == (None, a.packed)
    assert type(a.detach()) is SparseSemiStructuredTensorCUTLASS
    names, context = a.__tensor_flatten__()
    assert names == ["packed", "meta"]
    again = type(a).__tensor_unflatten__({n: getattr(a, n) for n in names}, context, None, None)
    assert again.packed is a.packed
    with pytest.raises(ValueError, match="At least one of packed or packed_t"):
        SparseSemiStructuredTensorCUTLASS((4, 4), None, None, None, None, None)


@pytest.mark.filterwarnings("ignore:The PyTorch API of SparseSemiStructuredTensor:UserWarning")
def test_one_tensor_of_cusparselt_has_numbers_and_places() -> None:
    packed = torch.arange(16 * 9.0)
    a: Any = SparseSemiStructuredTensorCUSPARSELT((16, 16), packed, None, None, None, None)
    assert torch.equal(a.values(), packed[:128])
    assert torch.equal(a.indices(), packed[128:])


def test_products_and_other_ops_are_refused() -> None:
    a, dense = cutlass(), torch.ones(64, 64)
    for product in (
        lambda: a @ dense,
        lambda: torch.nn.functional.linear(dense, a),
    ):
        with pytest.raises(NotImplementedError, match="'aten::_sparse_semi_structured_mm'"):
            product()
    with pytest.raises(NotImplementedError, match="operation is not supported"):
        dense @ a
    with pytest.raises(ValueError, match="not supported by the hardware"):
        a @ a
    with pytest.raises(NotImplementedError, match="can't perform requested op"):
        a + 1
