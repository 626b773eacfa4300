"""What all distributions are: shapes, validation, expansion, and the functions of all.

A distribution's parameters have the shape ``batch_shape`` together, followed for some by the shape
of an event; samples have ``sample_shape + batch_shape + event_shape``. A subclass names in
``_batched`` what it keeps that has the batch's shape on the left, which is all that :meth:`expand`
needs to know.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from .. import Size, Tensor, exp, full, no_grad
from . import constraints
from .utils import broadcast_all, lazy_property

__all__ = ["Distribution"]

_EMPTY = Size()


class Distribution:
    """A probability distribution, or a batch of independent ones.

    Args:
        batch_shape: the shape of the batch.
        event_shape: the shape of one sample of one distribution.
        validate_args: whether parameters and values are checked; by default what
            :meth:`set_default_validate_args` says, which is yes unless Python runs with ``-O``.

    Attributes:
        has_rsample: whether :meth:`rsample` gives samples with gradients.
        has_enumerate_support: whether :meth:`enumerate_support` gives all values.

    Raises:
        ValueError: if a parameter is checked and not in the set of ``arg_constraints``.
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args: bool = __debug__
    # Attributes with the batch's shape on the left: tensors, and distributions by their batches.
    # What is neither is taken over by `expand` as it is.
    _batched: ClassVar[tuple[str, ...]]
    # Attributes that broadcast to any batch, and are taken over.
    _kept: ClassVar[tuple[str, ...]] = ()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Says whether distributions check their parameters and values unless told otherwise.

        Raises:
            ValueError: for what is no boolean.
        """
        if value not in [True, False]:
            raise ValueError(f"validate_args must be True or False, not {value!r}")
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Any = _EMPTY,
        event_shape: Any = _EMPTY,
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        """Refuses parameters outside of their sets; what is derived from others is not checked."""
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            arg_constraints = {}
            warnings.warn(
                f"{self.__class__} does not define `arg_constraints`. Please set "
                "`arg_constraints = {}` or initialize the distribution with "
                "`validate_args=False` to turn off validation.",
                stacklevel=4,
            )
        for name, constraint in arg_constraints.items():
            is_derived = name not in self.__dict__ and isinstance(
                getattr(type(self), name), lazy_property
            )
            if constraints.is_dependent(constraint) or is_derived:
                continue
            value = getattr(self, name)
            if not bool(constraint.check(value).all()):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint "
                    f"{constraint!r}, but found invalid values:\n{value}"
                )

    def _broadcast(self, **parameters: Any) -> Size:
        """Keeps parameters as tensors of one shape, and gives the shape."""
        tensors = broadcast_all(*parameters.values())
        for name, value in zip(parameters, tensors, strict=True):
            setattr(self, name, value)
        return tensors[0].size()

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution for a larger batch, without copies of the parameters.

        Args:
            batch_shape: the shape that the batch is broadcast to.
            _instance: the new object, made by a subclass that has an ``expand`` of its own.

        Raises:
            NotImplementedError: if a subclass has a constructor of its own, but not this method.
        """
        owner = next((kind for kind in type(self).__mro__ if "_batched" in vars(kind)), None)
        if owner is None:
            raise NotImplementedError(f"{type(self)} does not implement expand")
        new = self._get_checked_instance(owner, _instance)
        batch_shape = Size(batch_shape)
        self._expand_into(new, batch_shape)
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expand_into(self, new: Any, batch_shape: Size) -> None:
        """Gives another object this one's attributes, for another batch."""
        count = len(self._batch_shape)
        for name in self._batched + self._kept:
            if name not in self.__dict__:
                continue
            value = self.__dict__[name]
            if name in self._batched and isinstance(value, Tensor):
                value = value.expand(batch_shape + value.shape[count:])
            elif name in self._batched and isinstance(value, Distribution):
                value = value.expand(batch_shape + value.batch_shape[count:])
            setattr(new, name, value)

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        if _instance is not None:
            return _instance
        if type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom "
                "__init__ method must also define a custom .expand() method."
            )
        return self.__new__(type(self))

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample of one distribution."""
        return self._event_shape

    @property
    def arg_constraints(self) -> Any:
        """The constraint of each parameter, by name."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint that samples satisfy."""
        raise NotImplementedError

    @property
    def mean(self) -> Any:
        """The expected value."""
        raise NotImplementedError

    @property
    def mode(self) -> Any:
        """A value of greatest density or probability."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Any:
        """The expected squared distance from the mean."""
        raise NotImplementedError

    @property
    def stddev(self) -> Any:
        """The root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Any:
        """Samples without gradients.

        Args:
            sample_shape: so many for each distribution of the batch.

        Returns:
            A tensor of shape ``sample_shape + batch_shape + event_shape``.
        """
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Samples through which gradients reach the parameters.

        Args:
            sample_shape: as for :meth:`sample`.
        """
        raise NotImplementedError

    def sample_n(self, n: int) -> Any:
        """``sample((n,))``, which is to be used instead."""
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return self.sample(Size((n,)))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or of the probability of a discrete value.

        Args:
            value: of a shape that broadcasts with ``batch_shape + event_shape``.

        Returns:
            A tensor of the broadcast shape without ``event_shape``.

        Raises:
            ValueError: if values are checked, and the shape or a value is not possible.
        """
        raise NotImplementedError

    def cdf(self, value: Any) -> Any:
        """The probability of values up to ``value``."""
        raise NotImplementedError

    def icdf(self, value: Any) -> Any:
        """The number up to which values have the probability ``value``."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values of a discrete distribution, along a new first dimension.

        Args:
            expand: whether they are given for each distribution of the batch; if not, the batch's
                dimensions have size 1.
        """
        raise NotImplementedError

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        raise NotImplementedError

    def perplexity(self) -> Any:
        """``exp`` of the entropy."""
        return exp(self.entropy())

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        """The shape of samples."""
        return Size(sample_shape) + self._batch_shape + self._event_shape

    def _constant(self, value: float, like: Tensor) -> Tensor:
        """A number for each element of a sample."""
        return full(self._extended_shape(), value, dtype=like.dtype, device=like.device)

    def _validate_sample(self, value: Any) -> None:
        """Refuses values of impossible shapes, and outside of the support."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        self._check_shape(value.size())
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `support` to enable sample validation. Please "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not bool(support.check(value).all()):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({support!r}) of the distribution {self!r}, but found "
                f"invalid values:\n{value}"
            )

    def _check_shape(self, actual: Size) -> None:
        start = len(actual) - len(self._event_shape)
        if actual[start:] != self._event_shape:
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{actual} vs {self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        pairs = zip(reversed(actual), reversed(expected), strict=False)
        if any(i != j and 1 not in (i, j) for i, j in pairs):
            raise ValueError(
                f"Value is not broadcastable with batch_shape+event_shape: {actual} vs {expected}."
            )

    def _enumerated(self, values: Tensor, expand: bool) -> Tensor:
        """Numbers along a new first dimension, for each distribution of the batch."""
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    def __repr__(self) -> str:
        given = {k: self.__dict__[k] for k in self.arg_constraints if k in self.__dict__}
        parts = (f"{k}: {v if v.numel() == 1 else v.size()}" for k, v in given.items())
        return f"{self.__class__.__name__}({', '.join(parts)})"
