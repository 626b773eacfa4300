"""Matrices with two of four numbers in a row kept, as tensor cores of CUDA devices multiply them.

The classes hold matrices that were packed elsewhere: these can be shown, copied, transposed, taken
apart and put together. Packing and products are done by such a device alone, in PyTorch as here,
and there is none: they raise an error. :func:`torch.mm` takes a ``sparse_csr`` matrix anywhere.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn

from .. import _C
from .._tensor import Tensor

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "SparseSemiStructuredTensor",
    "SparseSemiStructuredTensorCUSPARSELT",
    "SparseSemiStructuredTensorCUTLASS",
    "to_sparse_semi_structured",
]

_PARTS = ("packed", "meta", "packed_t", "meta_t", "compressed_swizzled_bitmask")


class _Least(NamedTuple):
    """The sizes of a matrix and of its dense factor are multiples of these."""

    sparse_min_rows: int
    sparse_min_cols: int
    dense_min_rows: int
    dense_min_cols: int


def _refuse_product(name: str) -> NoReturn:
    raise NotImplementedError(
        f"Could not run '{name}' with arguments from the 'CPU' backend: what semi-structured "
        "matrices are for needs a CUDA device; torch.mm() takes a matrix of sparse_csr"
    )


class SparseSemiStructuredTensor(Tensor):
    """A packed matrix, with that of its transpose if both are needed; use one of its subclasses.

    Args:
        shape: the matrix's.
        packed: the numbers that are kept.
        meta: where they stand, unless ``packed`` has that too.
        packed_t: the same for the transpose.
        meta_t: the same for the transpose.
        compressed_swizzled_bitmask: where numbers are kept, for gradients.
        fuse_transpose_cusparselt: transposes products on the way.
        alg_id_cusparselt: which algorithm multiplies.
        requires_grad: whether gradients are wanted.

    Raises:
        ValueError: if there is neither ``packed`` nor ``packed_t``.
    """

    _DEFAULT_ALG_ID: ClassVar[int] = 0
    _DTYPE_SHAPE_CONSTRAINTS: ClassVar[dict[_C.dtype, _Least]] = {}
    _FORCE_CUTLASS: ClassVar[bool] = False
    _FUSE_TRANSPOSE: ClassVar[bool] = False
    _is_warned: ClassVar[bool] = False
    BACKEND: ClassVar[str] = ""

    packed: Tensor | None
    meta: Tensor | None
    packed_t: Tensor | None
    meta_t: Tensor | None
    compressed_swizzled_bitmask: Tensor | None
    fuse_transpose_cusparselt: bool
    alg_id_cusparselt: int

    __torch_function__: Any = _C._disabled_torch_function_impl

    @staticmethod
    def __new__(
        cls: Any,
        shape: Any,
        packed: Tensor | None,
        meta: Tensor | None,
        packed_t: Tensor | None,
        meta_t: Tensor | None,
        compressed_swizzled_bitmask: Tensor | None,
        fuse_transpose_cusparselt: bool = False,
        alg_id_cusparselt: int = 0,
        requires_grad: bool = False,
    ) -> Any:
        """A tensor around the parts, which the class defines."""
        source = packed_t if packed is None else packed
        if source is None:
            raise ValueError("At least one of packed or packed_t must be provided")
        if not SparseSemiStructuredTensor._is_warned:
            SparseSemiStructuredTensor._is_warned = True
            warnings.warn(
                "The PyTorch API of SparseSemiStructuredTensor is in prototype "
                "stage: it may change",
                UserWarning,
                stacklevel=2,
            )
        made = Tensor._make_wrapper_subclass(
            cls, shape, dtype=source.dtype, device=source.device, requires_grad=requires_grad
        )
        parts = (packed, meta, packed_t, meta_t, compressed_swizzled_bitmask)
        for name, part in zip(_PARTS, parts, strict=True):
            setattr(made, name, part)
        made.fuse_transpose_cusparselt = fuse_transpose_cusparselt
        made.alg_id_cusparselt = alg_id_cusparselt
        return made

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"{type(self).__name__}(shape={self.shape})"

    def __tensor_flatten__(self) -> tuple[list[str], tuple[Any, ...]]:
        names = [name for name in _PARTS if getattr(self, name) is not None]
        settings = (self.fuse_transpose_cusparselt, self.alg_id_cusparselt, self.requires_grad)
        return names, (self.shape, *settings)

    @classmethod
    def __tensor_unflatten__(
        cls, inner_tensors: dict[str, Tensor], tensor_meta: Any, outer_size: Any, outer_stride: Any
    ) -> Self:
        shape, *settings = tensor_meta
        parts: list[Any] = [inner_tensors.get(name) for name in _PARTS]
        return cls(shape, *parts, *settings)

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        answer = _ANSWERS.get(func._opname)
        if answer is None:
            raise NotImplementedError(
                f"{cls.__name__} only supports a specific set of operations, can't perform "
                f"requested op ({func.__name__})"
            )
        return answer(*args, **(kwargs or {}))

    @classmethod
    def from_dense(cls, original_tensor: Tensor, alg_id: int = 0) -> Self:
        """Would pack a matrix on its device.

        Raises:
            NotImplementedError: of this class, which packs in no way.
            RuntimeError: of its subclasses, for a tensor that is not on a CUDA device.
        """
        if not cls.BACKEND:
            raise NotImplementedError("from_dense() is for the subclasses, which pack in one way")
        cls._refuse(original_tensor)

    @classmethod
    def prune_dense_static_sort(cls, original_tensor: Tensor, algorithm: str = "") -> Self:
        """Would choose the largest two of four numbers, and pack them.

        Raises:
            NotImplementedError: always: a CUDA device does it.
        """
        _refuse_product("aten::_sparse_semi_structured_tile")

    @classmethod
    def _refuse(cls, tensor: Tensor) -> NoReturn:
        # (No tensor is on such a device, so that nothing else can be wrong with one.)
        raise RuntimeError(
            f"Error original_tensor.device= {tensor.device} is not supported! "
            "Only CUDA tensors are currently supported."
        )

    def _mm(self, B: Tensor, *, bias: Tensor | None = None, **kwargs: Any) -> Tensor:
        """The product with a dense matrix, which a CUDA device computes.

        Raises:
            ValueError: if the other matrix is semi-structured too.
            NotImplementedError: otherwise.
        """
        name = type(self).__name__
        if isinstance(B, SparseSemiStructuredTensor):
            raise ValueError(
                "`SparseSemiStructuredTensor @ SparseSemiStructuredTensor` is not supported by the "
                "hardware"
            )
        if self.ndim != 2 or B.ndim != 2:
            raise NotImplementedError(f"`{name}` matmul: Broadcasting is not implemented")
        if self.packed is None:
            raise NotImplementedError(f"`{name}` matmul: operation is not supported")
        _refuse_product("aten::_sparse_semi_structured_mm")

    def _numbers(self) -> Tensor | None:
        return self.packed

    def _places(self) -> Tensor | None:
        return self.meta


class SparseSemiStructuredTensorCUTLASS(SparseSemiStructuredTensor):
    """A matrix as CUTLASS packs it: what is kept in ``packed``, where it stands in ``meta``."""

    BACKEND = "cutlass"
    _DTYPE_SHAPE_CONSTRAINTS: ClassVar[dict[_C.dtype, _Least]] = {
        _C.int8: _Least(16, 128, 16, 16),
        _C.float16: _Least(32, 64, 8, 8),
        _C.bfloat16: _Least(32, 64, 8, 8),
        _C.float32: _Least(32, 32, 4, 4),
    }


class SparseSemiStructuredTensorCUSPARSELT(SparseSemiStructuredTensor):
    """A matrix as cuSPARSELt packs it: ``packed`` has what is kept, and then where it stands."""

    BACKEND = "cusparselt"
    _DTYPE_SHAPE_CONSTRAINTS: ClassVar[dict[_C.dtype, _Least]] = {
        _C.int8: _Least(32, 32, 16, 16),
        _C.float16: _Least(16, 16, 8, 8),
        _C.bfloat16: _Least(16, 16, 8, 8),
    }

    def _numbers(self) -> Tensor | None:
        rows, columns = self.shape
        return None if self.packed is None else self.packed.view(-1)[: rows * columns // 2]

    def _places(self) -> Tensor | None:
        rows, columns = self.shape
        return None if self.packed is None else self.packed.view(-1)[rows * columns // 2 :]


def to_sparse_semi_structured(
    original_tensor: Tensor, transposed: bool = False, alg_id: int = 0
) -> SparseSemiStructuredTensor:
    """Packs a matrix in which two of four numbers in a row are zero.

    Args:
        original_tensor: the matrix, on a CUDA device.
        transposed: has no effect, and is deprecated.
        alg_id: which algorithm of cuSPARSELt is to multiply.

    Raises:
        RuntimeError: for a tensor that is not on a CUDA device.
    """
    if transposed:
        warnings.warn(
            "to_sparse_semi_structured(transposed=True) is deprecated and has no effect: "
            "`SparseSemiStructuredTensor` only support contiguous input tensors",
            FutureWarning,
            stacklevel=2,
        )
    kind: type[SparseSemiStructuredTensor] = SparseSemiStructuredTensorCUSPARSELT
    if SparseSemiStructuredTensor._FORCE_CUTLASS:
        kind = SparseSemiStructuredTensorCUTLASS
    return kind.from_dense(original_tensor, alg_id)


# --- the ops that are overridden
# --------------------------------------------------------------------


def _made(
    of: SparseSemiStructuredTensor, shape: Any, parts: Any, requires_grad: bool = False
) -> SparseSemiStructuredTensor:
    settings = (of.fuse_transpose_cusparselt, of.alg_id_cusparselt, requires_grad)
    kind: Any = type(of)
    made: SparseSemiStructuredTensor = kind(shape, *parts, *settings)
    return made


def _same(self: SparseSemiStructuredTensor, *_: Any, **__: Any) -> SparseSemiStructuredTensor:
    return _made(self, self.shape, [getattr(self, name) for name in _PARTS])


def _transposed(self: SparseSemiStructuredTensor) -> SparseSemiStructuredTensor:
    rows, columns = self.shape
    # (The packed values stay, and the two tensors of each pair are exchanged.)
    names = ("packed_t", "meta_t", "packed", "meta")
    parts: list[Any] = [getattr(self, name) for name in names]
    bits = self.compressed_swizzled_bitmask
    parts.append(None if bits is None else bits.transpose(0, 1))
    return _made(self, (columns, rows), parts)


def _copied(self: SparseSemiStructuredTensor, **_: Any) -> SparseSemiStructuredTensor:
    parts = [getattr(self, name) for name in _PARTS]
    return _made(self, self.shape, [None if part is None else part.clone() for part in parts])


def _part(which: Callable[[Any], Tensor | None], name: str) -> Callable[[Any], Tensor]:
    def shown(self: SparseSemiStructuredTensor) -> Tensor:
        found = which(self)
        if found is None:
            raise NotImplementedError(f"`{type(self).__name__}` has no {name} to show")
        return found.detach()

    return shown


def _product(left: Any, right: Any) -> Tensor:
    if isinstance(left, SparseSemiStructuredTensor):
        return left._mm(right)
    transposed: Tensor = right.t()
    return transposed._mm(left.t()).t()  # type: ignore[attr-defined,no-any-return]


def _product_and_sum(bias: Any, left: Any, right: Any, **_: Any) -> Tensor:
    return _product(left, right)


_ANSWERS: dict[str, Callable[..., Any]] = {
    "addmm": _product_and_sum,
    "clone": _copied,
    "detach": _same,
    "detach_": lambda self: self,
    "indices": _part(lambda self: self._places(), "indices"),
    "mm": _product,
    "t": _transposed,
    "values": _part(lambda self: self._numbers(), "values"),
}
