"""Products of matrices in groups, as layers of several experts compute them.

An expert's rows (or columns, or terms of the sum) follow those of the one before it in one matrix;
``offs`` says where each expert's end. Each group is one product, so that derivatives are those of
``mm``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C
from ._native import VF as _VF

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["grouped_mm"]

_DTYPES = (_C.float32, _C.bfloat16, _C.float16)


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: Any = None,
) -> Tensor:
    """The products of the groups of two matrices, or of lists of matrices.

    ======================  ==================  ==============  ===================
    ``mat_a``               ``mat_b``           ``offs`` cuts   result
    ======================  ==================  ==============  ===================
    (m, k)                  (groups, k, n)      m               (m, n)
    (groups, m, k)          (k, n)              n               (m, n)
    (m, k)                  (k, n)              k               (groups, m, n)
    (groups, m, k)          (groups, k, n)      nothing         (groups, m, n)
    ======================  ==================  ==============  ===================

    Args:
        mat_a: the left factors.
        mat_b: the right factors.
        offs: (groups,), int32: where each group ends. What lies behind the last one is left out
            of sums, and zero in the result.
        bias: must be None.
        out_dtype: must be None or the factors' dtype.

    Raises:
        RuntimeError: for shapes, dtypes and ends that do not fit.
    """
    _check(mat_a, mat_b, offs, bias, out_dtype)
    if offs is None:
        return _VF.bmm(mat_a, mat_b)
    if mat_a.dim() == 2 and mat_b.dim() == 2:
        ends = _ends(offs, mat_a.shape[1])
        cut = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
        return _VF.stack([_VF.mm(mat_a[:, at], mat_b[at]) for at in cut])
    if mat_a.dim() == 2:
        ends = _ends(offs, mat_a.shape[0])
        parts = [
            _VF.mm(mat_a[start:end], group)
            for start, end, group in zip([0, *ends], ends, mat_b.unbind(), strict=False)
        ]
        rest = mat_a.new_zeros(mat_a.shape[0] - ends[-1], mat_b.shape[2])
        return _VF.cat([*parts, rest], 0)
    ends = _ends(offs, mat_b.shape[1])
    parts = [
        _VF.mm(group, mat_b[:, start:end])
        for start, end, group in zip([0, *ends], ends, mat_a.unbind(), strict=False)
    ]
    rest = mat_a.new_zeros(mat_a.shape[1], mat_b.shape[1] - ends[-1])
    return _VF.cat([*parts, rest], 1)


def _check(mat_a: Tensor, mat_b: Tensor, offs: Any, bias: Any, out_dtype: Any) -> None:
    for name, mat in (("mat_a", mat_a), ("mat_b", mat_b)):
        if mat.dtype not in _DTYPES:
            raise RuntimeError(
                f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got {mat.dtype}"
            )
        if mat.dim() not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d, got {mat.dim()} dimensions")
    if mat_a.dtype != mat_b.dtype:
        raise RuntimeError(
            f"Expected mat_a and mat_b to have the same dtype, got {mat_a.dtype} and {mat_b.dtype}"
        )
    if mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError(
            "contraction dimension of mat_a and mat_b must match, got shapes "
            f"{list(mat_a.shape)} and {list(mat_b.shape)}"
        )
    is_cut = 2 in (mat_a.dim(), mat_b.dim())
    if is_cut != (offs is not None):
        raise RuntimeError(
            "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d"
        )
    counts = [mat.shape[0] for mat in (mat_a, mat_b) if mat.dim() == 3]
    counts += [] if offs is None else [offs.numel()]
    if len(set(counts)) > 1:
        raise RuntimeError(f"matrix batch sizes have to match, got {counts}")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype not in (None, mat_a.dtype):
        raise RuntimeError(
            f"Grouped gemm output dtype must match mat_a dtype {mat_a.dtype}, got {out_dtype}"
        )


def _ends(offs: Tensor, size: int) -> list[int]:
    """Where groups end, in order and within the size that they cut."""
    if offs.dim() != 1 or offs.dtype is not _C.int32:
        raise RuntimeError(f"offs has to be 1d and int32, got {offs.dim()}d and {offs.dtype}")
    ends: list[int] = offs.tolist()
    if not ends or any(b < a for a, b in zip([0, *ends], [*ends, size], strict=True)):
        raise RuntimeError(
            f"offs has to list ends of groups in order, from 0 to {size} at most, got {ends}"
        )
    return ends
