"""The base of all transforms, and composite ones: inverses, chains, more dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import Tensor, zeros_like
from . import constraints
from .utils import _sum_rightmost, lazy_property


class Transform:
    """A function of tensors that can be inverted, or has at least one inverse.

    A subclass has ``_call``, ``_inverse`` and ``log_abs_det_jacobian``. Transforms are called, also
    backwards: ``t.inv(t(x))``. One with a cache of size 1 gives, for the very tensor that it gave
    last, the tensor it was made from, which spares inverting it and keeps its gradient exact.

    Args:
        cache_size: 0 or 1.

    Attributes:
        domain: the constraint of inputs.
        codomain: the constraint of outputs.
        bijective: whether ``t.inv(t(x)) == x`` and ``t(t.inv(y)) == y``; if not, ``t.inv`` gives
            one of the inverses: ``t(t.inv(t(x))) == t(x)``.

    Raises:
        ValueError: for another ``cache_size``.
    """

    bijective: Any = False
    domain: Any
    codomain: Any
    # The arguments of the constructor by name, of which each is an attribute.
    _arguments: tuple[str, ...] = ()

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv: Transform | None = None
        if cache_size:
            self._cached_x_y: tuple[Tensor | None, Tensor | None] = (None, None)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None}

    @property
    def event_dim(self) -> int:
        """The dimensions of a value, if inputs and outputs have as many.

        Raises:
            ValueError: if they have not.
        """
        if self.domain.event_dim == self.codomain.event_dim:
            return int(self.domain.event_dim)
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Transform:
        """The transform from outputs to inputs; its own inverse is this one."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self) -> Any:
        """The sign of the derivative, of a monotonous function of single numbers."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same transform with a cache of another size.

        Raises:
            NotImplementedError: if a subclass has a constructor of its own, but not this method.
        """
        if self._cache_size == cache_size:
            return self
        kind = type(self)
        if kind.__init__ is Transform.__init__:
            return kind(cache_size=cache_size)
        owner: Any = next((c for c in kind.__mro__ if "_arguments" in vars(c)), Transform)
        if owner is Transform:
            raise NotImplementedError(f"{kind}.with_cache is not implemented")
        made: Transform = owner(
            *(getattr(self, name) for name in owner._arguments), cache_size=cache_size
        )
        return made

    def __eq__(self, other: object) -> bool:
        return self is other

    # Transforms with equal tensors are equal: there is nothing to hash them by.
    __hash__ = None  # type: ignore[assignment]

    def __call__(self, x: Any) -> Any:
        """The output for an input."""
        if self._cache_size == 0:
            return self._call(x)
        known, y = self._cached_x_y
        if x is not known:
            y = self._call(x)
            self._cached_x_y = (x, y)
        return y

    def _inv_call(self, y: Any) -> Any:
        """The input for an output."""
        if self._cache_size == 0:
            return self._inverse(y)
        x, known = self._cached_x_y
        if y is not known:
            x = self._inverse(y)
            self._cached_x_y = (x, y)
        return x

    def _call(self, x: Any) -> Any:
        raise NotImplementedError

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """``log |det dy/dx|`` of each value.

        Args:
            x: an input.
            y: the output for it.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.__class__.__name__ + "()"

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the output for an input of some shape."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of the input for an output of some shape."""
        return shape


class _InverseTransform(Transform):
    """A transform backwards. It has no cache of its own but uses the other's."""

    _inv: Transform

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    # What a transform of a copy inverts is kept, unlike what inverts it.
    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return self._inv.domain

    @property
    def bijective(self) -> Any:
        return self._inv.bijective

    @property
    def sign(self) -> Any:
        return self._inv.sign

    @property
    def inv(self) -> Transform:
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self._inv!r})"

    def __call__(self, x: Any) -> Any:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)


def widened(constraint: Any, event_dim: int) -> Any:
    """A constraint whose values have more dimensions."""
    more = event_dim - constraint.event_dim
    if more < 0:
        raise AssertionError(f"event_dim {event_dim} must be >= {constraint.event_dim}")
    return constraints.independent(constraint, more) if more else constraint


class ComposeTransform(Transform):
    """Transforms one after the other; the parts have the caches.

    Args:
        parts: the transforms, the first one first.
        cache_size: of the parts; 0 leaves theirs as they are.
    """

    _arguments = ("parts",)

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        super().__init__(cache_size=cache_size)
        self.parts = parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        if not self.parts:
            return constraints.real
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event_dim += part.domain.event_dim - part.codomain.event_dim
            event_dim = max(event_dim, part.domain.event_dim)
        return widened(self.parts[0].domain, event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        if not self.parts:
            return constraints.real
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            event_dim += part.codomain.event_dim - part.domain.event_dim
            event_dim = max(event_dim, part.codomain.event_dim)
        return widened(self.parts[-1].codomain, event_dim)

    @lazy_property
    def bijective(self) -> bool:
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self) -> Any:
        return math.prod((part.sign for part in self.parts), start=1)

    @property
    def inv(self) -> Transform:
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def __call__(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if not self.parts:
            return zeros_like(x)
        total: Any = None
        event_dim = self.domain.event_dim
        for number, part in enumerate(self.parts):
            after = y if number == len(self.parts) - 1 else part(x)
            term = part.log_abs_det_jacobian(x, after)
            term = _sum_rightmost(term, event_dim - part.domain.event_dim)
            total = term if total is None else total + term
            event_dim += part.codomain.event_dim - part.domain.event_dim
            x = after
        return total

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        parts = ",\n    ".join(repr(part) for part in self.parts)
        return f"{self.__class__.__name__}(\n    {parts}\n)"


identity_transform = ComposeTransform([])
"""The transform that gives its input."""


class IndependentTransform(Transform):
    """A transform some of whose batch dimensions belong to the value: Jacobians are summed.

    Args:
        base_transform: the transform.
        reinterpreted_batch_ndims: how many dimensions on the right.
        cache_size: 0 or 1.
    """

    _arguments = ("base_transform", "reinterpreted_batch_ndims")

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> Any:
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Any) -> Any:
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        terms = self.base_transform.log_abs_det_jacobian(x, y)
        return _sum_rightmost(terms, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        base, count = self.base_transform, self.reinterpreted_batch_ndims
        return f"{self.__class__.__name__}({base!r}, {count})"

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)


class Plain(Transform):
    """A transform without parameters: all of one class are equal."""

    def __eq__(self, other: object) -> bool:
        kind = next(c for c in type(self).__mro__ if Plain in c.__bases__)
        return isinstance(other, kind)
