"""The common parts of distributions: broadcasting, probabilities and logits, lazy properties.

Nothing here knows a distribution.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Final, Generic, TypeVar, overload

from .. import (
    Tensor,
    arange,
    broadcast_tensors,
    empty,
    enable_grad,
    finfo,
    get_default_dtype,
    log1p,
    sigmoid,
    softmax,
    tensor,
)
from ..overrides import is_tensor_like

__all__ = [
    "broadcast_all",
    "logits_to_probs",
    "clamp_probs",
    "probs_to_logits",
    "lazy_property",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant: Final[float] = 0.5772156649015329
"""What digamma lacks of 0 at 1, Euler and Mascheroni's constant."""

_NUMBER = (int, float)

T = TypeVar("T", contravariant=True)
R = TypeVar("R", covariant=True)


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Tensors of one shape from tensors and numbers.

    Args:
        values: numbers become tensors of the dtype of the first tensor, or of the default dtype if
            there is none.

    Raises:
        ValueError: for anything else.
    """
    are_tensors = [is_tensor_like(value) for value in values]
    if not all(
        is_like or isinstance(value, _NUMBER)
        for is_like, value in zip(are_tensors, values, strict=True)
    ):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects "
            "implementing __torch_function__."
        )
    if all(are_tensors):
        return tuple(broadcast_tensors(*values))
    first = next((value for value in values if isinstance(value, Tensor)), None)
    dtype = get_default_dtype() if first is None else first.dtype
    device = None if first is None else first.device
    made = (
        value if is_like else tensor(value, dtype=dtype, device=device)
        for is_like, value in zip(are_tensors, values, strict=True)
    )
    return tuple(broadcast_tensors(*made))


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Any:
    """Normal numbers of mean 0 and standard deviation 1."""
    return empty(shape, dtype=dtype, device=device).normal_()


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last ``dim`` dimensions."""
    if dim == 0:
        return value
    return value.reshape((*value.shape[:-dim], -1)).sum(-1)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of log odds, or of unnormalised log probabilities along the last dimension.

    Args:
        logits: real numbers.
        is_binary: whether each number stands for itself: ``1 / (1 + exp(-logits))``.
    """
    return sigmoid(logits) if is_binary else softmax(logits, dim=-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept off 0 and 1 by the dtype's ``eps``."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Finite log probabilities, or log odds ``log(p / (1 - p))``.

    Args:
        probs: numbers from 0 to 1; those at the ends are moved inwards by the dtype's ``eps``.
        is_binary: whether each number stands for itself.
    """
    kept = clamp_probs(probs)
    return kept.log() - log1p(-kept) if is_binary else kept.log()


class lazy_property(Generic[T, R]):
    """A property that is computed when first asked for, with gradients, and then is an attribute.

    Of the class it is a property, so that documentation tools see one.
    """

    def __init__(self, wrapped: Callable[[T], R]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    @overload
    def __get__(
        self, instance: None, obj_type: Any = None
    ) -> _lazy_property_and_property[T, R]: ...
    @overload
    def __get__(self, instance: T, obj_type: Any = None) -> R: ...
    def __get__(self, instance: T | None, obj_type: Any = None) -> Any:
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property[T, R], property):
    """The class attribute of a lazy property."""

    def __init__(self, wrapped: Callable[[T], R]) -> None:
        property.__init__(self, wrapped)


def _is_in_triangle(size: int, diag: int, device: Any) -> Tensor:
    """The mask of the elements of a square matrix that are not above the diagonal ``diag``."""
    columns = arange(size, device=device)
    return columns < columns.view(-1, 1) + (diag + 1)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The lower triangle of square matrices, row by row.

    Args:
        mat: of shape ``(..., n, n)``.
        diag: the last diagonal that belongs to it, 0 is the main one.

    Raises:
        ValueError: for a diagonal outside of the matrix.
    """
    size = mat.shape[-1]
    if diag < -size or diag >= size:
        raise ValueError(f"diag ({diag}) provided is outside [{-size}, {size - 1}].")
    return mat[..., _is_in_triangle(size, diag, mat.device)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Square matrices from their lower triangles, row by row; zeros elsewhere.

    Args:
        vec: of shape ``(..., m)``.
        diag: the last diagonal that belongs to the triangle, 0 is the main one.

    Raises:
        ValueError: if no square matrix has a lower triangle of ``m`` elements.
    """
    # The size n of a matrix whose triangle has n (n + 1 + 2 diag) / 2 elements, less what the
    # corner beyond a diagonal above the main one lacks.
    half = 1 + 2 * diag
    size = (-half + (half**2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if abs(round(size) - size) > finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as "
            "the lower triangular part of a square D x D matrix."
        )
    count = round(size)
    mat = vec.new_zeros((*vec.shape[:-1], count, count))
    mat[..., _is_in_triangle(count, diag, vec.device)] = vec
    return mat
