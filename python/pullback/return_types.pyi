# Written by `cargo xtask gen` from the op registry; edits are lost.
"""The named tuples that ops with several results return."""

from collections.abc import Iterable
from typing import Any, ClassVar

from typing_extensions import Self

from ._tensor import Tensor

class _linalg_eigh(tuple[Tensor, Tensor]):
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def eigenvalues(self) -> Tensor: ...
    @property
    def eigenvectors(self) -> Tensor: ...

class _linalg_svd(tuple[Tensor, Tensor, Tensor]):
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

class _scaled_dot_product_flash_attention_for_cpu(tuple[Tensor, Tensor]):
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def output(self) -> Tensor: ...
    @property
    def logsumexp(self) -> Tensor: ...

class aminmax(tuple[Tensor, Tensor]):
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def min(self) -> Tensor: ...
    @property
    def max(self) -> Tensor: ...

class cummax(tuple[Tensor, Tensor]):
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

class cummin(tuple[Tensor, Tensor]):
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

class frexp(tuple[Tensor, Tensor]):
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def mantissa(self) -> Tensor: ...
    @property
    def exponent(self) -> Tensor: ...

class histogram(tuple[Tensor, Tensor]):
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def hist(self) -> Tensor: ...
    @property
    def bin_edges(self) -> Tensor: ...

class kthvalue(tuple[Tensor, Tensor]):
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

class linalg_cholesky_ex(tuple[Tensor, Tensor]):
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def L(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...

class linalg_eigh(tuple[Tensor, Tensor]):
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def eigenvalues(self) -> Tensor: ...
    @property
    def eigenvectors(self) -> Tensor: ...

class linalg_inv_ex(tuple[Tensor, Tensor]):
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def inverse(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...

class linalg_qr(tuple[Tensor, Tensor]):
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def Q(self) -> Tensor: ...
    @property
    def R(self) -> Tensor: ...

class linalg_slogdet(tuple[Tensor, Tensor]):
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def sign(self) -> Tensor: ...
    @property
    def logabsdet(self) -> Tensor: ...

class linalg_solve_ex(tuple[Tensor, Tensor]):
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def result(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...

class linalg_svd(tuple[Tensor, Tensor, Tensor]):
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

class max(tuple[Tensor, Tensor]):
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

class max_pool2d_with_indices(tuple[Tensor, Tensor]):
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def result(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

class median(tuple[Tensor, Tensor]):
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

class min(tuple[Tensor, Tensor]):
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

class mode(tuple[Tensor, Tensor]):
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

class nanmedian(tuple[Tensor, Tensor]):
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

class nll_loss2d_forward(tuple[Tensor, Tensor]):
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def output(self) -> Tensor: ...
    @property
    def total_weight(self) -> Tensor: ...

class nll_loss_forward(tuple[Tensor, Tensor]):
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def output(self) -> Tensor: ...
    @property
    def total_weight(self) -> Tensor: ...

class slogdet(tuple[Tensor, Tensor]):
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def sign(self) -> Tensor: ...
    @property
    def logabsdet(self) -> Tensor: ...

class sort(tuple[Tensor, Tensor]):
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...

class topk(tuple[Tensor, Tensor]):
    n_fields: ClassVar[int]
    n_sequence_fields: ClassVar[int]
    n_unnamed_fields: ClassVar[int]
    def __new__(cls, sequence: Iterable[Tensor], dict: dict[str, Any] = ...) -> Self: ...
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...
