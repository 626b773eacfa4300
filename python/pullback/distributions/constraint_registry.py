"""Transforms from unconstrained numbers onto the set of a constraint.

:data:`biject_to` gives one that can be inverted, as Hamiltonian Monte Carlo and variational
inference need; :data:`transform_to` one that may have more parameters than the set has dimensions,
which optimizers prefer. Both are open: ``register`` adds a constraint of one's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

_Factory = Callable[[Any], transforms.Transform]


class ConstraintRegistry:
    """Makes transforms by the class of the constraint whose set they end in.

    Example:
        >>> from pullback.distributions import biject_to, constraints
        >>> biject_to(constraints.unit_interval)
        SigmoidTransform()
    """

    def __init__(self) -> None:
        self._registry: dict[type[constraints.Constraint], _Factory] = {}

    def register(self, constraint: Any, factory: _Factory | None = None) -> Any:
        """Adds the maker of transforms for a class of constraints.

        Args:
            constraint: the class, or an object of it.
            factory: takes a constraint, gives a transform; without it, a decorator is returned.

        Raises:
            TypeError: for what is no constraint.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, constraints.Constraint):
            raise TypeError(
                "Expected constraint to be either a Constraint subclass or instance, "
                f"but got {constraint}"
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: constraints.Constraint) -> transforms.Transform:
        """A transform onto the set of a constraint.

        Raises:
            NotImplementedError: if none is registered.
        """
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(
                f"Cannot transform {type(constraint).__name__} constraints"
            ) from None
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _register(
    *kinds: Any, registries: tuple[ConstraintRegistry, ...]
) -> Callable[[_Factory], _Factory]:
    """Adds a maker for each of some constraints to each of some registries."""

    def add(factory: _Factory) -> _Factory:
        for registry in registries:
            for kind in kinds:
                registry.register(kind, factory)
        return factory

    return add


_BOTH = (biject_to, transform_to)


@_register(constraints.real, registries=_BOTH)
def _to_real(constraint: Any) -> transforms.Transform:
    return transforms.identity_transform


def _affine(first: transforms.Transform, loc: Any, scale: Any) -> transforms.Transform:
    return transforms.ComposeTransform([first, transforms.AffineTransform(loc, scale)])


# (Among these are `positive` and `nonnegative`.)
@_register(constraints.greater_than, constraints.greater_than_eq, registries=_BOTH)
def _to_above(constraint: Any) -> transforms.Transform:
    return _affine(transforms.ExpTransform(), constraint.lower_bound, 1)


@_register(constraints.less_than, registries=_BOTH)
def _to_below(constraint: Any) -> transforms.Transform:
    return _affine(transforms.ExpTransform(), constraint.upper_bound, -1)


@_register(constraints.interval, constraints.half_open_interval, registries=_BOTH)
def _to_interval(constraint: Any) -> transforms.Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return _affine(transforms.SigmoidTransform(), low, high - low)


@_register(constraints.corr_cholesky, registries=_BOTH)
def _to_corr_cholesky(constraint: Any) -> transforms.Transform:
    return transforms.CorrCholeskyTransform()


@_register(constraints.simplex, registries=(biject_to,))
def _onto_simplex(constraint: Any) -> transforms.Transform:
    return transforms.StickBreakingTransform()


@_register(constraints.simplex, registries=(transform_to,))
def _to_simplex(constraint: Any) -> transforms.Transform:
    return transforms.SoftmaxTransform()


@_register(constraints.lower_cholesky, registries=(transform_to,))
def _to_lower_cholesky(constraint: Any) -> transforms.Transform:
    return transforms.LowerCholeskyTransform()


@_register(
    constraints.positive_definite, constraints.positive_semidefinite, registries=(transform_to,)
)
def _to_positive_definite(constraint: Any) -> transforms.Transform:
    return transforms.PositiveDefiniteTransform()


def _register_composed(registry: ConstraintRegistry) -> None:
    """Adds the constraints made of others, whose transforms come from the same registry."""

    def independent(constraint: Any) -> transforms.Transform:
        count = constraint.reinterpreted_batch_ndims
        return transforms.IndependentTransform(registry(constraint.base_constraint), count)

    def cat(constraint: Any) -> transforms.Transform:
        parts = [registry(part) for part in constraint.cseq]
        return transforms.CatTransform(parts, constraint.dim, constraint.lengths)

    def stack(constraint: Any) -> transforms.Transform:
        return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)

    registry.register(constraints.independent, independent)
    registry.register(constraints.cat, cat)
    registry.register(constraints.stack, stack)


for _registry in _BOTH:
    _register_composed(_registry)
