"""Sparse tensors: products, sums and constructors of ``torch.sparse``.

The layouts themselves are the library's: ``sparse_coo``, and the compressed ``sparse_csr``,
``sparse_csc``, ``sparse_bsr`` and ``sparse_bsc``. What an op cannot do with them it refuses;
nothing is made dense unasked.
"""

from __future__ import annotations

from .. import _C, _absent
from .._C import _sparse
from .._legacy import SPARSE_CLASSES as _SPARSE_CLASSES
from ._gradcheck import as_sparse_gradcheck
from ._invariants import check_sparse_tensor_invariants
from ._product import addmm, log_softmax, mm, softmax, spdiags, sum
from .semi_structured import (
    SparseSemiStructuredTensor,
    SparseSemiStructuredTensorCUSPARSELT,
    SparseSemiStructuredTensorCUTLASS,
    to_sparse_semi_structured,
)

__all__ = [
    "SparseSemiStructuredTensor",
    "SparseSemiStructuredTensorCUSPARSELT",
    "SparseSemiStructuredTensorCUTLASS",
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "sum",
    "to_sparse_semi_structured",
]

sampled_addmm = _sparse.sparse_sampled_addmm
del _C

globals().update(_SPARSE_CLASSES)

_absent.announce(globals())
