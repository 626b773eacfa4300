"""Constraints: the sets that parameters and samples lie in.

``constraint.check(value)`` says elementwise, or for the ``event_dim`` last dimensions together,
whether a value is in the set. Those without parameters are objects (``constraints.positive``), the
others classes (``constraints.interval(0, 2)``); :mod:`~.constraint_registry` finds transforms onto
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .. import bool as _bool
from .. import cat as _join
from .. import finfo, full, isclose, linalg
from .. import stack as _pile

__all__ = [
    "Constraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "independent",
    "integer_interval",
    "interval",
    "half_open_interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "MixtureSameFamilyConstraint",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_semidefinite",
    "positive_definite",
    "positive_integer",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A set of values.

    Attributes:
        is_discrete: whether its points are apart from each other.
        event_dim: how many dimensions on the right make one value.
    """

    # Either may depend on an object, which then has a property of this name.
    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Any) -> Any:
        """Whether each value is in the set.

        Args:
            value: of shape ``sample_shape + batch_shape + event_shape``.

        Returns:
            Booleans, of the shape without the last ``event_dim`` dimensions.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.__class__.__name__[1:] + "()"


def _require_constraints(**given: Any) -> None:
    """Refuses what is no constraint, by name."""
    for name, value in given.items():
        if not isinstance(value, Constraint):
            raise AssertionError(f"{name} must be a Constraint, got {type(value).__name__}")


class _Dependent(Constraint):
    """A set that depends on other parameters: only a distribution's object knows it."""

    def __init__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> None:
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    @property
    def is_discrete(self) -> bool:
        """Whether the set is discrete, if that is known without an object."""
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return bool(self._is_discrete)

    @property
    def event_dim(self) -> int:
        """The dimensions of a value, if these are known without an object."""
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return int(self._event_dim)

    def __call__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> _Dependent:
        """The same with more known of it."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, x: Any) -> Any:
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: object) -> bool:
    """Whether a constraint is only known to a distribution's object."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property of a class, and of the class itself a dependent constraint.

    As a decorator it may say what holds for all objects::

        @constraints.dependent_property(is_discrete=False, event_dim=0)
        def support(self):
            return constraints.interval(self.low, self.high)
    """

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:  # type: ignore[override]
        """The property of a function."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _Of(Constraint):
    """A set made from another one."""

    base_constraint: Constraint

    @property
    def is_discrete(self) -> bool:
        """Whether the other set is discrete."""
        return bool(self.base_constraint.is_discrete)


class _IndependentConstraint(_Of):
    """Values of which all of the last batch dimensions are in a set, taken as one value.

    Args:
        base_constraint: the set.
        reinterpreted_batch_ndims: how many dimensions are taken together.
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        _require_constraints(base_constraint=base_constraint)
        count = reinterpreted_batch_ndims
        if not isinstance(count, int):
            kind = type(count).__name__
            raise AssertionError(f"reinterpreted_batch_ndims must be an int, got {kind}")
        if count < 0:
            raise AssertionError(f"reinterpreted_batch_ndims must be >= 0, got {count}")
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = count

    @property
    def event_dim(self) -> int:
        """The dimensions of the base, and those taken together."""
        return int(self.base_constraint.event_dim) + self.reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        result = self.base_constraint.check(value)
        kept = result.dim() - self.reinterpreted_batch_ndims
        if kept < 0:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return result.reshape((*result.shape[:kept], -1)).all(-1)

    def __repr__(self) -> str:
        name = self.__class__.__name__[1:]
        return f"{name}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(_Of):
    """Values that are in the support of every component of a mixture.

    Args:
        base_constraint: the support of the component distribution, whose batch has one dimension
            more on the right.
    """

    def __init__(self, base_constraint: Constraint) -> None:
        _require_constraints(base_constraint=base_constraint)
        self.base_constraint = base_constraint

    @property
    def event_dim(self) -> int:
        """The dimensions of the base."""
        return int(self.base_constraint.event_dim)

    def check(self, value: Any) -> Any:
        result = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        kept = value.dim() - self.event_dim
        if kept < 0:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return result.reshape((*result.shape[:kept], -1)).all(-1)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.base_constraint!r})"


def _is_whole(value: Any) -> Any:
    return value % 1 == 0


class _Boolean(Constraint):
    """0 and 1."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    """Vectors of zeros with a single 1."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        return boolean.check(value).all(-1) & value.sum(-1).eq(1)


class _Bounded(Constraint):
    """Numbers within bounds, which may be tensors."""

    def __repr__(self) -> str:
        bounds = ", ".join(f"{name}={bound}" for name, bound in vars(self).items())
        return f"{self.__class__.__name__[1:]}({bounds})"


class _Above(_Bounded):
    """Numbers above a bound, or equal to it.

    Args:
        lower_bound: a number or a tensor that broadcasts.
    """

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class _Below(_Bounded):
    """Numbers below a bound, or equal to it.

    Args:
        upper_bound: a number or a tensor that broadcasts.
    """

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class _Between(_Bounded):
    """Numbers between two bounds.

    Args:
        lower_bound: a number or a tensor that broadcasts.
        upper_bound: likewise.
    """

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound

    def check(self, value: Any) -> Any:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerInterval(_Between):
    """Whole numbers from a lower to an upper bound, both included."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        return _is_whole(value) & super().check(value)


class _IntegerLessThan(_Below):
    """Whole numbers up to a bound."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        return _is_whole(value) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Above):
    """Whole numbers from a bound upwards."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        return _is_whole(value) & (value >= self.lower_bound)


class _Real(Constraint):
    """Everything but NaN."""

    def check(self, value: Any) -> Any:
        return value == value


class _GreaterThan(_Above):
    """Numbers above a bound."""

    def check(self, value: Any) -> Any:
        return self.lower_bound < value


class _GreaterThanEq(_Above):
    """Numbers from a bound upwards."""

    def check(self, value: Any) -> Any:
        return self.lower_bound <= value


class _LessThan(_Below):
    """Numbers below a bound."""

    def check(self, value: Any) -> Any:
        return value < self.upper_bound


class _Interval(_Between):
    """Numbers between two bounds, both included."""


class _HalfOpenInterval(_Between):
    """Numbers between two bounds, of which the upper one is not included."""

    def check(self, value: Any) -> Any:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Simplex(Constraint):
    """Vectors without negative elements whose sum is 1, to ``1e-6``."""

    event_dim = 1

    def check(self, value: Any) -> Any:
        return (value >= 0).all(dim=-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Vectors without negative elements whose sum is at most a number of trials.

    Args:
        upper_bound: the number of trials.
    """

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Any) -> Any:
        return (x >= 0).all(dim=-1) & (x.sum(dim=-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    """Matrices with zeros above the diagonal."""

    event_dim = 2

    def check(self, value: Any) -> Any:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    """Lower triangular matrices with positive diagonals."""

    def check(self, value: Any) -> Any:
        is_lower = super().check(value)
        return is_lower & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """Lower triangular matrices with positive diagonals and rows of length 1."""

    def check(self, value: Any) -> Any:
        tolerance = finfo(value.dtype).eps * value.size(-1) * 10
        lengths = linalg.vector_norm(value.detach(), dim=-1)
        return super().check(value) & ((lengths - 1).abs() <= tolerance).all(dim=-1)


class _Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value: Any) -> Any:
        is_square = value.shape[-2] == value.shape[-1]
        return full(value.shape[:-2], is_square, dtype=_bool, device=value.device)


class _Symmetric(_Square):
    """Matrices that equal their transposes, to ``1e-6``."""

    def check(self, value: Any) -> Any:
        result = super().check(value)
        if not result.all():
            return result
        return isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without negative eigenvalues."""

    def check(self, value: Any) -> Any:
        result = super().check(value)
        return linalg.eigvalsh(value).ge(0).all(-1) if result.all() else result


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices that have a Cholesky factor."""

    def check(self, value: Any) -> Any:
        result = super().check(value)
        return linalg.cholesky_ex(value).info.eq(0) if result.all() else result


class _Several(Constraint):
    """Sets side by side along a dimension."""

    def __init__(self, cseq: Iterable[Constraint], dim: int = 0) -> None:
        self.cseq = list(cseq)
        if not all(isinstance(constraint, Constraint) for constraint in self.cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.dim = dim

    @property
    def is_discrete(self) -> bool:
        """Whether one of the sets is discrete."""
        return any(constraint.is_discrete for constraint in self.cseq)

    @property
    def event_dim(self) -> int:
        """The most dimensions that a value of one of them has."""
        return max(int(constraint.event_dim) for constraint in self.cseq)

    def _check_dim(self, value: Any) -> None:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(
                f"dim {self.dim} out of range for value with {value.dim()} dimensions"
            )


class _Cat(_Several):
    """Sets for parts of a dimension, one after the other.

    Args:
        cseq: the sets.
        dim: the dimension.
        lengths: the sizes of the parts; 1 each unless given.
    """

    def __init__(
        self, cseq: Iterable[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})"
            )

    def check(self, value: Any) -> Any:
        self._check_dim(value)
        start, checks = 0, []
        for constraint, length in zip(self.cseq, self.lengths, strict=True):
            checks.append(constraint.check(value.narrow(self.dim, start, length)))
            start += length
        return _join(checks, self.dim)


class _Stack(_Several):
    """Sets for the slices of a dimension.

    Args:
        cseq: the sets.
        dim: the dimension.
    """

    @property
    def event_dim(self) -> int:
        """The number of a slice, and one more if the dimension is among these."""
        dim = max(int(constraint.event_dim) for constraint in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Any) -> Any:
        self._check_dim(value)
        slices = value.unbind(self.dim)
        checks = [c.check(v) for c, v in zip(self.cseq, slices, strict=False)]
        return _pile(checks, self.dim)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
