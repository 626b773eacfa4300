"""Transforms of the parts of a tensor, side by side along a dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import cat as _join
from .. import stack as _pile
from . import constraints
from ._transform import Transform
from .utils import _sum_rightmost, lazy_property


class _Several(Transform):
    """Transforms side by side along a dimension."""

    transforms: list[Transform]
    dim: int

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        if not all(isinstance(transform, Transform) for transform in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        if cache_size:
            tseq = [transform.with_cache(cache_size) for transform in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms = list(tseq)
        self.dim = dim

    @property
    def bijective(self) -> Any:
        return all(transform.bijective for transform in self.transforms)

    def _slices(self, value: Any) -> Sequence[Any]:
        """The slice of the argument for each transform."""
        raise NotImplementedError

    def _check(self, value: Any, size: int, what: str) -> None:
        """Refuses a tensor whose dimension is not made of ``size`` slices."""
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(
                f"dim {self.dim} out of range for tensor with {value.dim()} dimensions"
            )
        if value.size(self.dim) != size:
            raise AssertionError(
                f"size({self.dim}) = {value.size(self.dim)} must equal {what} {size}"
            )

    def _each(self, function: Callable[..., Any], *values: Any) -> list[Any]:
        """The results of a function for each transform and its slice."""
        slices = (self._slices(value) for value in values)
        return [function(*given) for given in zip(self.transforms, *slices, strict=True)]


class CatTransform(_Several):
    """Transforms of parts of a dimension, one after the other.

    Args:
        tseq: the transforms.
        dim: the dimension.
        lengths: the sizes of the parts; 1 each unless given.
        cache_size: 0 or 1.
    """

    _arguments = ("transforms", "dim", "lengths")

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})"
            )

    @lazy_property
    def event_dim(self) -> int:
        return max(transform.event_dim for transform in self.transforms)

    @lazy_property
    def length(self) -> int:
        """The size of the dimension."""
        return sum(self.lengths)

    def _slices(self, value: Any) -> Sequence[Any]:
        self._check(value, self.length, "length")
        parts: Sequence[Any] = value.split(self.lengths, self.dim)
        return parts

    def _call(self, x: Any) -> Any:
        return _join(self._each(lambda transform, x: transform(x), x), dim=self.dim)

    def _inverse(self, y: Any) -> Any:
        return _join(self._each(lambda transform, y: transform.inv(y), y), dim=self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        def term(transform: Transform, x: Any, y: Any) -> Any:
            result = transform.log_abs_det_jacobian(x, y)
            return _sum_rightmost(result, self.event_dim - transform.event_dim)

        terms = self._each(term, x, y)
        # The dimension, counted from the right without those of a value.
        dim = self.dim - (x.dim() if self.dim >= 0 else 0) + self.event_dim
        return _join(terms, dim=dim) if dim < 0 else sum(terms)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_Several):
    """Transforms of the slices of a dimension.

    Args:
        tseq: the transforms, as many as the dimension has elements.
        dim: the dimension.
        cache_size: 0 or 1.
    """

    _arguments = ("transforms", "dim")

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    def _slices(self, value: Any) -> Sequence[Any]:
        self._check(value, len(self.transforms), "len(transforms)")
        slices: Sequence[Any] = value.unbind(self.dim)
        return slices

    def _call(self, x: Any) -> Any:
        return _pile(self._each(lambda transform, x: transform(x), x), dim=self.dim)

    def _inverse(self, y: Any) -> Any:
        return _pile(self._each(lambda transform, y: transform.inv(y), y), dim=self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        terms = self._each(lambda transform, x, y: transform.log_abs_det_jacobian(x, y), x, y)
        return _pile(terms, dim=self.dim)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
