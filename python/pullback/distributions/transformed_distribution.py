"""Distributions of transformed samples."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from .. import Size, no_grad
from . import constraints
from ._parameter import forwarded
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import _sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of ``y = t_n(.. t_1(x))`` with ``x`` of a base distribution.

    ``log f(y) = log f(x) + log |det dx/dy|``. The base is expanded to what the parameters of the
    transforms need, and dimensions that a transform takes together become dimensions of the event.

    Args:
        base_distribution: the distribution of ``x``.
        transforms: a transform or a list of them, the first one first.
        validate_args: see :class:`Distribution`.

    Raises:
        ValueError: for what is no transform, and for a base of too few dimensions.
    """

    arg_constraints: Any = {}
    _batched: ClassVar[tuple[str, ...]] = ()
    has_rsample = forwarded("base_dist", "has_rsample")

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ) -> None:
        if isinstance(transforms, Transform):
            transforms = [transforms]
        if not isinstance(transforms, list):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        if not all(isinstance(transform, Transform) for transform in transforms):
            raise ValueError("transforms must be a Transform or a list of Transforms")
        self.transforms = transforms
        whole = ComposeTransform(transforms)
        self.base_dist: Any = _fitted(base_distribution, whole)
        shape = whole.forward_shape(self.base_dist.batch_shape + self.base_dist.event_shape)
        change = whole.codomain.event_dim - whole.domain.event_dim
        event_dim = max(whole.codomain.event_dim, len(base_distribution.event_shape) + change)
        cut = len(shape) - event_dim
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def _expand_into(self, new: Any, batch_shape: Size) -> None:
        super()._expand_into(new, batch_shape)
        shape = batch_shape + self.event_shape
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        cut = len(shape) - len(self.base_dist.event_shape)
        new.base_dist = self.base_dist.expand(shape[:cut])
        new.transforms = self.transforms

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self.event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    def _forward(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        event_dim = len(self.event_shape)
        result: Any = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            term = transform.log_abs_det_jacobian(x, y)
            result = result - _sum_rightmost(term, event_dim - transform.domain.event_dim)
            y = x
        log_prob = self.base_dist.log_prob(y)
        return result + _sum_rightmost(log_prob, event_dim - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value: Any) -> Any:
        """``value``, or ``1 - value`` where the transforms turn the order round."""
        sign = math.prod((transform.sign for transform in self.transforms), start=1)
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value: Any) -> Any:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> Any:
        return self._forward(self.base_dist.icdf(self._monotonize_cdf(value)))


def _fitted(base: Distribution, whole: ComposeTransform) -> Distribution:
    """The base for a batch, and with events, that a transform can take."""
    shape = base.batch_shape + base.event_shape
    if len(shape) < whole.domain.event_dim:
        raise ValueError(
            "base_distribution needs to have shape with size at least "
            f"{whole.domain.event_dim}, but got {shape}."
        )
    event_dim = len(base.event_shape)
    expanded = Size(whole.inverse_shape(whole.forward_shape(shape)))
    if shape != expanded:
        base = base.expand(expanded[: len(expanded) - event_dim])
    more = whole.domain.event_dim - event_dim
    return Independent(base, more) if more > 0 else base
