"""Batch dimensions taken as dimensions of an event."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from . import constraints
from ._parameter import forwarded
from .distribution import Distribution
from .utils import _sum_rightmost

__all__ = ["Independent"]

D = TypeVar("D", bound=Distribution)


class Independent(Distribution, Generic[D]):
    """A distribution of which some batch dimensions belong to the event: densities are multiplied.

    Args:
        base_distribution: the distribution.
        reinterpreted_batch_ndims: how many batch dimensions on the right.
        validate_args: see :class:`Distribution`.

    Raises:
        ValueError: if there are fewer batch dimensions.

    Example:
        >>> import pullback as torch
        >>> from pullback.distributions import Independent, Normal
        >>> normal = Independent(Normal(torch.zeros(3), torch.ones(3)), 1)
        >>> normal.batch_shape, normal.event_shape
        (torch.Size([]), torch.Size([3]))
    """

    arg_constraints: Any = {}
    base_dist: D
    _batched = ("base_dist", "reinterpreted_batch_ndims")

    def __init__(
        self,
        base_distribution: D,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        count = len(base_distribution.batch_shape)
        if reinterpreted_batch_ndims > count:
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {reinterpreted_batch_ndims} vs {count}"
            )
        shape = base_distribution.batch_shape + base_distribution.event_shape
        cut = count - reinterpreted_batch_ndims
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    has_rsample = forwarded("base_dist", "has_rsample")
    mean = forwarded("base_dist", "mean")
    mode = forwarded("base_dist", "mode")
    variance = forwarded("base_dist", "variance")

    @property
    def has_enumerate_support(self) -> Any:
        """Whether the base has, and no dimensions are taken together."""
        return not self.reinterpreted_batch_ndims and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        support, count = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(support, count) if count else support

    def sample(self, sample_shape: Any = ()) -> Any:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Any) -> Any:
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Any:
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Any:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
