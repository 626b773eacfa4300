# Written by `cargo xtask gen` from the op registry; edits are lost.
"""The named tuples that ops with several results return."""

from collections.abc import Iterable
from typing import Any, ClassVar, final

from typing_extensions import Self

from ._tensor import Tensor

all_return_types: list[type[tuple[Tensor, ...]]]

def pytree_register_structseq(cls: type[Any]) -> None: ...

@final
class _linalg_det(tuple[Tensor, Tensor, Tensor]):
    """What `_linalg_det` returns: `result`, `LU`, `pivots`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def result(self) -> Tensor: ...
    @property
    def LU(self) -> Tensor: ...
    @property
    def pivots(self) -> Tensor: ...

@final
class _linalg_eigh(tuple[Tensor, Tensor]):
    """What `_linalg_eigh` returns: `eigenvalues`, `eigenvectors`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def eigenvalues(self) -> Tensor: ...
    @property
    def eigenvectors(self) -> Tensor: ...

@final
class _linalg_lstsq(tuple[Tensor, Tensor, Tensor]):
    """What `_linalg_lstsq` returns: `solution`, `rank`, `singular_values`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def solution(self) -> Tensor: ...
    @property
    def rank(self) -> Tensor: ...
    @property
    def singular_values(self) -> Tensor: ...

@final
class _linalg_slogdet(tuple[Tensor, Tensor, Tensor, Tensor]):
    """What `_linalg_slogdet` returns: `sign`, `logabsdet`, `LU`, `pivots`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def sign(self) -> Tensor: ...
    @property
    def logabsdet(self) -> Tensor: ...
    @property
    def LU(self) -> Tensor: ...
    @property
    def pivots(self) -> Tensor: ...

@final
class _linalg_solve_ex(tuple[Tensor, Tensor, Tensor, Tensor]):
    """What `_linalg_solve_ex` returns: `result`, `LU`, `pivots`, `info`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def result(self) -> Tensor: ...
    @property
    def LU(self) -> Tensor: ...
    @property
    def pivots(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...

@final
class _linalg_svd(tuple[Tensor, Tensor, Tensor]):
    """What `_linalg_svd` returns: `U`, `S`, `Vh`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def U(self) -> Tensor: ...
    @property
    def S(self) -> Tensor: ...
    @property
    def Vh(self) -> Tensor: ...

@final
class _lu_with_info(tuple[Tensor, Tensor, Tensor]):
    """What `_lu_with_info` returns: `LU`, `pivots`, `info`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def LU(self) -> Tensor: ...
    @property
    def pivots(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...

@final
class _scaled_dot_product_flash_attention_for_cpu(tuple[Tensor, Tensor]):
    """What `_scaled_dot_product_flash_attention_for_cpu` returns: `output`, `logsumexp`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def output(self) -> Tensor: ...
    @property
    def logsumexp(self) -> Tensor: ...

@final
class _scaled_dot_product_flash_attention_for_cpu_backward(tuple[Tensor, Tensor, Tensor]):
    """What `_scaled_dot_product_flash_attention_for_cpu_backward` returns: `grad_query`, `grad_key`, `grad_value`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def grad_query(self) -> Tensor: ...
    @property
    def grad_key(self) -> Tensor: ...
    @property
    def grad_value(self) -> Tensor: ...

@final
class aminmax(tuple[Tensor, Tensor]):
    """What `aminmax` returns: `min`, `max`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def min(self) -> Tensor: ...
    @property
    def max(self) -> Tensor: ...

@final
class aminmax_out(tuple[Tensor, Tensor]):
    """What `aminmax(..., out=...)` returns: `min`, `max`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def min(self) -> Tensor: ...
    @property
    def max(self) -> Tensor: ...

@final
class cummax(tuple[Tensor, Tensor]):
    """What `cummax` returns: `values`, `indices`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

@final
class cummax_out(tuple[Tensor, Tensor]):
    """What `cummax(..., out=...)` returns: `values`, `indices`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

@final
class cummin(tuple[Tensor, Tensor]):
    """What `cummin` returns: `values`, `indices`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

@final
class cummin_out(tuple[Tensor, Tensor]):
    """What `cummin(..., out=...)` returns: `values`, `indices`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

@final
class frexp(tuple[Tensor, Tensor]):
    """What `frexp` returns: `mantissa`, `exponent`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def mantissa(self) -> Tensor: ...
    @property
    def exponent(self) -> Tensor: ...

@final
class frexp_out(tuple[Tensor, Tensor]):
    """What `frexp(..., out=...)` returns: `mantissa`, `exponent`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def mantissa(self) -> Tensor: ...
    @property
    def exponent(self) -> Tensor: ...

@final
class geqrf(tuple[Tensor, Tensor]):
    """What `geqrf` returns: `a`, `tau`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def a(self) -> Tensor: ...
    @property
    def tau(self) -> Tensor: ...

@final
class geqrf_out(tuple[Tensor, Tensor]):
    """What `geqrf(..., out=...)` returns: `a`, `tau`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def a(self) -> Tensor: ...
    @property
    def tau(self) -> Tensor: ...

@final
class histogram(tuple[Tensor, Tensor]):
    """What `histogram` returns: `hist`, `bin_edges`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def hist(self) -> Tensor: ...
    @property
    def bin_edges(self) -> Tensor: ...

@final
class histogram_out(tuple[Tensor, Tensor]):
    """What `histogram(..., out=...)` returns: `hist`, `bin_edges`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def hist(self) -> Tensor: ...
    @property
    def bin_edges(self) -> Tensor: ...

@final
class kthvalue(tuple[Tensor, Tensor]):
    """What `kthvalue` returns: `values`, `indices`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

@final
class kthvalue_out(tuple[Tensor, Tensor]):
    """What `kthvalue(..., out=...)` returns: `values`, `indices`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

@final
class linalg_cholesky_ex(tuple[Tensor, Tensor]):
    """What `linalg_cholesky_ex` returns: `L`, `info`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def L(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...

@final
class linalg_cholesky_ex_out(tuple[Tensor, Tensor]):
    """What `linalg_cholesky_ex(..., out=...)` returns: `L`, `info`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def L(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...

@final
class linalg_eig(tuple[Tensor, Tensor]):
    """What `linalg_eig` returns: `eigenvalues`, `eigenvectors`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def eigenvalues(self) -> Tensor: ...
    @property
    def eigenvectors(self) -> Tensor: ...

@final
class linalg_eig_out(tuple[Tensor, Tensor]):
    """What `linalg_eig(..., out=...)` returns: `eigenvalues`, `eigenvectors`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def eigenvalues(self) -> Tensor: ...
    @property
    def eigenvectors(self) -> Tensor: ...

@final
class linalg_eigh(tuple[Tensor, Tensor]):
    """What `linalg_eigh` returns: `eigenvalues`, `eigenvectors`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def eigenvalues(self) -> Tensor: ...
    @property
    def eigenvectors(self) -> Tensor: ...

@final
class linalg_eigh_out(tuple[Tensor, Tensor]):
    """What `linalg_eigh(..., out=...)` returns: `eigenvalues`, `eigenvectors`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def eigenvalues(self) -> Tensor: ...
    @property
    def eigenvectors(self) -> Tensor: ...

@final
class linalg_inv_ex(tuple[Tensor, Tensor]):
    """What `linalg_inv_ex` returns: `inverse`, `info`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def inverse(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...

@final
class linalg_inv_ex_out(tuple[Tensor, Tensor]):
    """What `linalg_inv_ex(..., out=...)` returns: `inverse`, `info`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def inverse(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...

@final
class linalg_ldl_factor(tuple[Tensor, Tensor]):
    """What `linalg_ldl_factor` returns: `LD`, `pivots`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def LD(self) -> Tensor: ...
    @property
    def pivots(self) -> Tensor: ...

@final
class linalg_ldl_factor_ex(tuple[Tensor, Tensor, Tensor]):
    """What `linalg_ldl_factor_ex` returns: `LD`, `pivots`, `info`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def LD(self) -> Tensor: ...
    @property
    def pivots(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...

@final
class linalg_ldl_factor_ex_out(tuple[Tensor, Tensor, Tensor]):
    """What `linalg_ldl_factor_ex(..., out=...)` returns: `LD`, `pivots`, `info`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def LD(self) -> Tensor: ...
    @property
    def pivots(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...

@final
class linalg_ldl_factor_out(tuple[Tensor, Tensor]):
    """What `linalg_ldl_factor(..., out=...)` returns: `LD`, `pivots`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def LD(self) -> Tensor: ...
    @property
    def pivots(self) -> Tensor: ...

@final
class linalg_lstsq(tuple[Tensor, Tensor, Tensor, Tensor]):
    """What `linalg_lstsq` returns: `solution`, `residuals`, `rank`, `singular_values`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def solution(self) -> Tensor: ...
    @property
    def residuals(self) -> Tensor: ...
    @property
    def rank(self) -> Tensor: ...
    @property
    def singular_values(self) -> Tensor: ...

@final
class linalg_lstsq_out(tuple[Tensor, Tensor, Tensor, Tensor]):
    """What `linalg_lstsq(..., out=...)` returns: `solution`, `residuals`, `rank`, `singular_values`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def solution(self) -> Tensor: ...
    @property
    def residuals(self) -> Tensor: ...
    @property
    def rank(self) -> Tensor: ...
    @property
    def singular_values(self) -> Tensor: ...

@final
class linalg_lu(tuple[Tensor, Tensor, Tensor]):
    """What `linalg_lu` returns: `P`, `L`, `U`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def P(self) -> Tensor: ...
    @property
    def L(self) -> Tensor: ...
    @property
    def U(self) -> Tensor: ...

@final
class linalg_lu_factor(tuple[Tensor, Tensor]):
    """What `linalg_lu_factor` returns: `LU`, `pivots`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def LU(self) -> Tensor: ...
    @property
    def pivots(self) -> Tensor: ...

@final
class linalg_lu_factor_ex(tuple[Tensor, Tensor, Tensor]):
    """What `linalg_lu_factor_ex` returns: `LU`, `pivots`, `info`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def LU(self) -> Tensor: ...
    @property
    def pivots(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...

@final
class linalg_lu_factor_ex_out(tuple[Tensor, Tensor, Tensor]):
    """What `linalg_lu_factor_ex(..., out=...)` returns: `LU`, `pivots`, `info`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def LU(self) -> Tensor: ...
    @property
    def pivots(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...

@final
class linalg_lu_factor_out(tuple[Tensor, Tensor]):
    """What `linalg_lu_factor(..., out=...)` returns: `LU`, `pivots`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def LU(self) -> Tensor: ...
    @property
    def pivots(self) -> Tensor: ...

@final
class linalg_lu_out(tuple[Tensor, Tensor, Tensor]):
    """What `linalg_lu(..., out=...)` returns: `P`, `L`, `U`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def P(self) -> Tensor: ...
    @property
    def L(self) -> Tensor: ...
    @property
    def U(self) -> Tensor: ...

@final
class linalg_polar(tuple[Tensor, Tensor]):
    """What `linalg_polar` returns: `U`, `H`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def U(self) -> Tensor: ...
    @property
    def H(self) -> Tensor: ...

@final
class linalg_polar_out(tuple[Tensor, Tensor]):
    """What `linalg_polar(..., out=...)` returns: `U`, `H`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def U(self) -> Tensor: ...
    @property
    def H(self) -> Tensor: ...

@final
class linalg_qr(tuple[Tensor, Tensor]):
    """What `linalg_qr` returns: `Q`, `R`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def Q(self) -> Tensor: ...
    @property
    def R(self) -> Tensor: ...

@final
class linalg_qr_out(tuple[Tensor, Tensor]):
    """What `linalg_qr(..., out=...)` returns: `Q`, `R`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def Q(self) -> Tensor: ...
    @property
    def R(self) -> Tensor: ...

@final
class linalg_slogdet(tuple[Tensor, Tensor]):
    """What `linalg_slogdet` returns: `sign`, `logabsdet`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def sign(self) -> Tensor: ...
    @property
    def logabsdet(self) -> Tensor: ...

@final
class linalg_slogdet_out(tuple[Tensor, Tensor]):
    """What `linalg_slogdet(..., out=...)` returns: `sign`, `logabsdet`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def sign(self) -> Tensor: ...
    @property
    def logabsdet(self) -> Tensor: ...

@final
class linalg_solve_ex(tuple[Tensor, Tensor]):
    """What `linalg_solve_ex` returns: `result`, `info`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def result(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...

@final
class linalg_solve_ex_out(tuple[Tensor, Tensor]):
    """What `linalg_solve_ex(..., out=...)` returns: `result`, `info`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def result(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...

@final
class linalg_svd(tuple[Tensor, Tensor, Tensor]):
    """What `linalg_svd` returns: `U`, `S`, `Vh`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def U(self) -> Tensor: ...
    @property
    def S(self) -> Tensor: ...
    @property
    def Vh(self) -> Tensor: ...

@final
class linalg_svd_out(tuple[Tensor, Tensor, Tensor]):
    """What `linalg_svd(..., out=...)` returns: `U`, `S`, `Vh`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def U(self) -> Tensor: ...
    @property
    def S(self) -> Tensor: ...
    @property
    def Vh(self) -> Tensor: ...

@final
class lu_unpack(tuple[Tensor, Tensor, Tensor]):
    """What `lu_unpack` returns: `P`, `L`, `U`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def P(self) -> Tensor: ...
    @property
    def L(self) -> Tensor: ...
    @property
    def U(self) -> Tensor: ...

@final
class lu_unpack_out(tuple[Tensor, Tensor, Tensor]):
    """What `lu_unpack(..., out=...)` returns: `P`, `L`, `U`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def P(self) -> Tensor: ...
    @property
    def L(self) -> Tensor: ...
    @property
    def U(self) -> Tensor: ...

@final
class max(tuple[Tensor, Tensor]):
    """What `max` returns: `values`, `indices`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

@final
class max_out(tuple[Tensor, Tensor]):
    """What `max(..., out=...)` returns: `values`, `indices`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

@final
class median(tuple[Tensor, Tensor]):
    """What `median` returns: `values`, `indices`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

@final
class median_out(tuple[Tensor, Tensor]):
    """What `median(..., out=...)` returns: `values`, `indices`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

@final
class min(tuple[Tensor, Tensor]):
    """What `min` returns: `values`, `indices`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

@final
class min_out(tuple[Tensor, Tensor]):
    """What `min(..., out=...)` returns: `values`, `indices`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

@final
class mode(tuple[Tensor, Tensor]):
    """What `mode` returns: `values`, `indices`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

@final
class mode_out(tuple[Tensor, Tensor]):
    """What `mode(..., out=...)` returns: `values`, `indices`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

@final
class nanmedian(tuple[Tensor, Tensor]):
    """What `nanmedian` returns: `values`, `indices`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

@final
class nanmedian_out(tuple[Tensor, Tensor]):
    """What `nanmedian(..., out=...)` returns: `values`, `indices`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

@final
class nll_loss2d_forward(tuple[Tensor, Tensor]):
    """What `nll_loss2d_forward` returns: `output`, `total_weight`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def output(self) -> Tensor: ...
    @property
    def total_weight(self) -> Tensor: ...

@final
class nll_loss2d_forward_out(tuple[Tensor, Tensor]):
    """What `nll_loss2d_forward(..., out=...)` returns: `output`, `total_weight`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def output(self) -> Tensor: ...
    @property
    def total_weight(self) -> Tensor: ...

@final
class nll_loss_forward(tuple[Tensor, Tensor]):
    """What `nll_loss_forward` returns: `output`, `total_weight`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def output(self) -> Tensor: ...
    @property
    def total_weight(self) -> Tensor: ...

@final
class nll_loss_forward_out(tuple[Tensor, Tensor]):
    """What `nll_loss_forward(..., out=...)` returns: `output`, `total_weight`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def output(self) -> Tensor: ...
    @property
    def total_weight(self) -> Tensor: ...

@final
class slogdet(tuple[Tensor, Tensor]):
    """What `slogdet` returns: `sign`, `logabsdet`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def sign(self) -> Tensor: ...
    @property
    def logabsdet(self) -> Tensor: ...

@final
class slogdet_out(tuple[Tensor, Tensor]):
    """What `slogdet(..., out=...)` returns: `sign`, `logabsdet`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def sign(self) -> Tensor: ...
    @property
    def logabsdet(self) -> Tensor: ...

@final
class sort(tuple[Tensor, Tensor]):
    """What `sort` returns: `values`, `indices`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

@final
class sort_out(tuple[Tensor, Tensor]):
    """What `sort(..., out=...)` returns: `values`, `indices`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

@final
class svd(tuple[Tensor, Tensor, Tensor]):
    """What `svd` returns: `U`, `S`, `V`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def U(self) -> Tensor: ...
    @property
    def S(self) -> Tensor: ...
    @property
    def V(self) -> Tensor: ...

@final
class svd_out(tuple[Tensor, Tensor, Tensor]):
    """What `svd(..., out=...)` returns: `U`, `S`, `V`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def U(self) -> Tensor: ...
    @property
    def S(self) -> Tensor: ...
    @property
    def V(self) -> Tensor: ...

@final
class topk(tuple[Tensor, Tensor]):
    """What `topk` returns: `values`, `indices`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

@final
class topk_out(tuple[Tensor, Tensor]):
    """What `topk(..., out=...)` returns: `values`, `indices`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

@final
class triangular_solve(tuple[Tensor, Tensor]):
    """What `triangular_solve` returns: `solution`, `cloned_coefficient`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def solution(self) -> Tensor: ...
    @property
    def cloned_coefficient(self) -> Tensor: ...

@final
class triangular_solve_out(tuple[Tensor, Tensor]):
    """What `triangular_solve(..., out=...)` returns: `solution`, `cloned_coefficient`."""
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def solution(self) -> Tensor: ...
    @property
    def cloned_coefficient(self) -> Tensor: ...
