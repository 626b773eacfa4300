"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any

from .. import Size, gather, log_softmax, logsumexp, no_grad
from . import constraints
from .categorical import Categorical
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture of ``K`` distributions of one family, ``f(x) = sum_k p_k f_k(x)``.

    Args:
        mixture_distribution: the probabilities ``p_k``; its batch broadcasts with that of the
        mixture. component_distribution: the ``f_k``, along the last batch dimension.
        validate_args: see :class:`Distribution`.

    Raises:
        ValueError: for what is no such distribution, and for batches that do not fit.
    """

    arg_constraints: Any = {}
    has_rsample = False
    _batched = (
        "_component_distribution",
        "_mixture_distribution",
        "_num_component",
        "_event_ndims",
    )

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                "The Mixture distribution needs to be an instance of "
                "torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of "
                "torch.distributions.Distribution"
            )
        self._num_component = self._check_batches()
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        batch_shape = component_distribution.batch_shape[:-1]
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    def _check_batches(self) -> int:
        """The number of components."""
        of_mixture = self._mixture_distribution.batch_shape
        components = self._component_distribution.batch_shape
        if not components:
            raise ValueError(
                "`component_distribution.batch_shape` must have a dimension for the components"
            )
        pairs = zip(reversed(of_mixture), reversed(components[:-1]), strict=False)
        if any(i != j and 1 not in (i, j) for i, j in pairs):
            raise ValueError(
                f"`mixture_distribution.batch_shape` ({of_mixture}) is not compatible with "
                f"`component_distribution.batch_shape`({components[:-1]})"
            )
        count: int = self._mixture_distribution.logits.shape[-1]
        if count != components[-1]:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({components[-1]})"
            )
        return count

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution of the components' numbers."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components, along the last batch dimension."""
        return self._component_distribution

    def _weighted(self, values: Any) -> Any:
        """The sum of values of the components by their probabilities."""
        probs = self._mixture_distribution.probs
        probs = probs.reshape(probs.shape + Size((1,) * self._event_ndims))
        return (probs * values).sum(dim=-1 - self._event_ndims)

    @property
    def mean(self) -> Any:
        return self._weighted(self._component_distribution.mean)

    @property
    def variance(self) -> Any:
        means = self._component_distribution.mean
        between = (means - self._pad(self.mean)).pow(2.0)
        return self._weighted(self._component_distribution.variance) + self._weighted(between)

    def cdf(self, x: Any) -> Any:
        values = self._component_distribution.cdf(self._pad(x))
        return (values * self._mixture_distribution.probs).sum(dim=-1)

    def log_prob(self, x: Any) -> Any:
        if self._validate_args:
            self._validate_sample(x)
        values = self._component_distribution.log_prob(self._pad(x))
        return logsumexp(values + log_softmax(self._mixture_distribution.logits, dim=-1), dim=-1)

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            sample_shape = Size(sample_shape)
            dim = len(sample_shape) + len(self.batch_shape)
            chosen = self._mixture_distribution.sample(sample_shape)
            samples = self._component_distribution.sample(sample_shape)
            # The mixture's batch may have fewer dimensions than the components'.
            missing = (1,) * (dim - chosen.dim())
            ones = (1,) * (len(self.event_shape) + 1)
            count = len(sample_shape)
            chosen = chosen.reshape(chosen.shape[:count] + missing + chosen.shape[count:] + ones)
            shape = (*samples.shape[:dim], 1, *samples.shape[dim + 1 :])
            return gather(samples, dim, chosen.expand(shape)).squeeze(dim)

    def _pad(self, x: Any) -> Any:
        """Values with a dimension for the components."""
        return x.unsqueeze(-1 - self._event_ndims)

    def __repr__(self) -> str:
        parts = f"\n  {self.mixture_distribution},\n  {self.component_distribution}"
        return f"MixtureSameFamily({parts})"
