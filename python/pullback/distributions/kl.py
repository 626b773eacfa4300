"""Kullback-Leibler divergences ``KL(p || q) = E_p log(p(x) / q(x))``, by the types of p and q.

Most are cross entropies: ``-H(p) - E_p log q(x)``, with the expected value of what ``log q`` is
made of. Where p can give what q cannot, the divergence is infinite; pairs of families for which
that always holds are listed in ``_INFINITE``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from .. import broadcast_shapes, diag_embed, erf, exp, full_like, lgamma, log1p, where
from ..nn.functional import softplus
from ._cholesky import half_log_det, mahalanobis, solve_lower
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import _sum_rightmost
from .utils import euler_constant as _euler_gamma

__all__ = ["register_kl", "kl_divergence"]

_Function = Callable[[Any, Any], Any]
_Pair = tuple[type, type]

_KL_REGISTRY: dict[_Pair, _Function] = {}
# The functions found for pairs of types, until another one is registered.
_KL_MEMOIZE: dict[_Pair, Any] = {}

_HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)


def register_kl(type_p: type, type_q: type) -> Callable[[_Function], _Function]:
    """Decorates a function of p and q that gives their divergence.

    Of several that fit a pair, the one for the most derived types is taken, p before q; if that
    would be another one with q before p, the choice is ambiguous, and a warning says which pair to
    register.

    Args:
        type_p: a class of distributions; the function also serves its subclasses.
        type_q: likewise.

    Raises:
        TypeError: for anything but classes. (As in PyTorch, not only of classes that derive from
            :class:`Distribution`: libraries have others.)
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def decorator(function: _Function) -> _Function:
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return decorator


def _is_below(a: _Pair, b: _Pair) -> bool:
    """Whether a pair of classes comes before another: by the first that differ, derived first."""
    for x, y in zip(a, b, strict=True):
        if not issubclass(x, y):
            return False
        if x is not y:
            return True
    return True


def _first(pairs: list[_Pair]) -> _Pair:
    best = pairs[0]
    for pair in pairs[1:]:
        if _is_below(pair, best):
            best = pair
    return best


def _dispatch_kl(type_p: type, type_q: type) -> Any:
    """The function for a pair of types, NotImplemented if there is none."""
    pairs = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not pairs:
        return NotImplemented
    left_p, left_q = _first(pairs)
    right_q, right_p = _first([(q, p) for p, q in pairs])
    found = _KL_REGISTRY[left_p, left_q]
    if found is not _KL_REGISTRY[right_p, right_q]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({left_p.__name__}, {right_q.__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return found


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """The divergence ``KL(p || q) = E_p log(p(x) / q(x))`` of each pair of the broadcast batches.

    Args:
        p: the distribution that the expected value is of.
        q: the other one.

    Raises:
        NotImplementedError: if no function is registered for the types.

    Example:
        >>> from pullback.distributions import Normal, kl_divergence
        >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
        tensor(0.5000)
    """
    types = (type(p), type(q))
    if types not in _KL_MEMOIZE:
        _KL_MEMOIZE[types] = _dispatch_kl(*types)
    function = _KL_MEMOIZE[types]
    if function is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {p.__class__.__name__} and q type "
            f"{q.__class__.__name__}"
        )
    return function(p, q)


def _x_log_x(x: Any) -> Any:
    return x.xlogy(x)


def _infinite_where(condition: Any, value: Any) -> Any:
    return where(condition, math.inf, value)


# Values that p can take and q cannot: (p, the parameter with the shape), and the q.
_UNBOUNDED = (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_POSITIVE = (Beta, ContinuousBernoulli, Pareto, Uniform)
_INFINITE: list[tuple[type, str, tuple[type, ...]]] = [
    (Beta, "concentration1", (Pareto,)),
    (ContinuousBernoulli, "probs", (Pareto,)),
    (Exponential, "rate", _POSITIVE),
    (Gamma, "concentration", _POSITIVE),
    (Gumbel, "loc", _UNBOUNDED),
    (Laplace, "loc", _UNBOUNDED),
    (Normal, "loc", _UNBOUNDED),
    (Pareto, "scale", (Beta, ContinuousBernoulli, Uniform)),
    (Poisson, "rate", (Bernoulli, Binomial)),
]


def _register_infinite(type_p: type, parameter: str, types: tuple[type, ...]) -> None:
    def infinite(p: Any, q: Any) -> Any:
        return full_like(getattr(p, parameter), math.inf)

    for type_q in types:
        register_kl(type_p, type_q)(infinite)


for _entry in _INFINITE:
    _register_infinite(*_entry)


# Pairs of one family.


@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(p: Any, q: Any) -> Any:
    of_1 = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    of_1 = _infinite_where(q.probs == 0, of_1).masked_fill(p.probs == 0, 0)
    of_0 = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    return of_1 + _infinite_where(q.probs == 1, of_0).masked_fill(p.probs == 1, 0)


@register_kl(Beta, Beta)
def _kl_beta_beta(p: Any, q: Any) -> Any:
    return _kl_dirichlet_dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p: Any, q: Any) -> Any:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    of_one = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return _infinite_where(p.total_count > q.total_count, p.total_count * of_one)


@register_kl(Categorical, Categorical)
def _kl_categorical_categorical(p: Any, q: Any) -> Any:
    terms = _infinite_where(q.probs == 0, p.probs * (p.logits - q.logits))
    return terms.masked_fill(p.probs == 0, 0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_onehotcategorical_onehotcategorical(p: Any, q: Any) -> Any:
    return _kl_categorical_categorical(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _kl_cauchy_cauchy(p: Any, q: Any) -> Any:
    # F. Chyzak, F. Nielsen, "A closed-form formula for the Kullback-Leibler divergence between
    # Cauchy distributions", 2019.
    distance = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return distance.log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl_continuous_bernoulli_continuous_bernoulli(p: Any, q: Any) -> Any:
    def normalizer(d: Any) -> Any:
        return d._cont_bern_log_norm() + log1p(-d.probs)

    return p.mean * (p.logits - q.logits) + normalizer(p) - normalizer(q)


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    normalizers = total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return normalizers + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Exponential, Exponential)
def _kl_exponential_exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: Any, q: Any) -> Any:
    # The Bregman divergence of the log normaliser F: F(b) - F(a) - <b - a, F'(a)>.
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed "
            "using Bregman divergences"
        )
    natural, normalizer, gradients = p._normalizer_and_gradients()
    others = q._natural_params
    result = q._log_normalizer(*others) - normalizer
    for mine, other, gradient in zip(natural, others, gradients, strict=True):
        # A parameter may have fewer dimensions than the event: a number beside a matrix.
        term = (other - mine) * gradient
        result = result - _sum_rightmost(term, max(0, term.dim() - result.dim()))
    return result


@register_kl(Gamma, Gamma)
def _kl_gamma_gamma(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    return (
        b * (p.rate / q.rate).log()
        + lgamma(b)
        - lgamma(a)
        + (a - b) * a.digamma()
        + (q.rate - p.rate) * (a / p.rate)
    )


@register_kl(Geometric, Geometric)
def _kl_geometric_geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - log1p(-q.probs) / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _kl_gumbel_gumbel(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    shift = (p.loc - q.loc) / q.scale
    power = exp((1 + ratio).lgamma() - shift)
    return -ratio.log() + shift + ratio * _euler_gamma + power - (1 + _euler_gamma)


@register_kl(HalfNormal, HalfNormal)
def _kl_halfnormal_halfnormal(p: Any, q: Any) -> Any:
    return _kl_normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _kl_laplace_laplace(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    distance = (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * exp(-distance / p.scale) - 1


@register_kl(Normal, Normal)
def _kl_normal_normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    distance = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + distance - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _kl_pareto_pareto(p: Any, q: Any) -> Any:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return _infinite_where(p.scale < q.scale, result)


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p: Any, q: Any) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _kl_uniform_uniform(p: Any, q: Any) -> Any:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return _infinite_where((q.low > p.low) | (q.high < p.high), result)


@register_kl(Independent, Independent)
def _kl_independent_independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            f"dimensions taken together: {p.reinterpreted_batch_ndims} and "
            f"{q.reinterpreted_batch_ndims}"
        )
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed_transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("the transforms or the shapes of events differ")
    return kl_divergence(p.base_dist, q.base_dist)


# Normal distributions of vectors. With C_q^-1 = B^T B the trace of C_q^-1 C_p is the squared length
# of B times a factor of C_p; low ranks have a difference of two such.


def _squared_length(matrix: Any) -> Any:
    return matrix.pow(2).sum((-2, -1))


def _kl_of_vectors(p: Any, q: Any, log_dets: Any, trace: Any, distance: Any) -> Any:
    return 0.5 * (log_dets + trace + distance - p.event_shape[0])


def _check_events(p: Any, q: Any, what: str) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between two {what} with different event shapes cannot be computed"
        )


def _batched_solve(factor: Any, right: Any) -> Any:
    """As ``solve_lower``, with batches that broadcast."""
    batch = broadcast_shapes(factor.shape[:-2], right.shape[:-2])
    return solve_lower(factor.expand((*batch, -1, -1)), right.expand((*batch, -1, -1)))


@register_kl(MultivariateNormal, MultivariateNormal)
def _kl_multivariatenormal_multivariatenormal(p: Any, q: Any) -> Any:
    _check_events(p, q, "Multivariate Normals")
    of_p, of_q = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    log_dets = 2 * (half_log_det(of_q) - half_log_det(of_p))
    trace = _squared_length(_batched_solve(of_q, of_p))
    return _kl_of_vectors(p, q, log_dets, trace, mahalanobis(of_q, _broadcast_gap(p, q)))


def _broadcast_gap(p: Any, q: Any) -> Any:
    """The difference of the means, for the batch of both."""
    batch = broadcast_shapes(p.batch_shape, q.batch_shape)
    return (q.loc - p.loc).expand((*batch, -1))


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _kl_lowrankmultivariatenormal_multivariatenormal(p: Any, q: Any) -> Any:
    _check_events(p, q, "(Low Rank) Multivariate Normals")
    of_p, of_q = p._covariance, q._unbroadcasted_scale_tril
    log_dets = 2 * half_log_det(of_q) - of_p.log_det()
    of_factor = _squared_length(_batched_solve(of_q, of_p.factor))
    of_diag = _squared_length(_batched_solve(of_q, diag_embed(of_p.diag.sqrt())))
    distance = mahalanobis(of_q, _broadcast_gap(p, q))
    return _kl_of_vectors(p, q, log_dets, of_factor + of_diag, distance)


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _kl_multivariatenormal_lowrankmultivariatenormal(p: Any, q: Any) -> Any:
    _check_events(p, q, "(Low Rank) Multivariate Normals")
    of_p, of_q = p._unbroadcasted_scale_tril, q._covariance
    log_dets = of_q.log_det() - 2 * half_log_det(of_p)
    of_diag = _squared_length(of_p * of_q.diag.rsqrt().unsqueeze(-1))
    of_rank = _squared_length(of_q.whitened() @ of_p)
    distance = of_q.mahalanobis(_broadcast_gap(p, q))
    return _kl_of_vectors(p, q, log_dets, of_diag - of_rank, distance)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _kl_lowrankmultivariatenormal_lowrankmultivariatenormal(p: Any, q: Any) -> Any:
    _check_events(p, q, "Low Rank Multivariate Normals")
    of_p, of_q = p._covariance, q._covariance
    whitened = of_q.whitened()
    of_diag = (of_p.diag / of_q.diag).sum(-1) + _squared_length(
        of_p.factor * of_q.diag.rsqrt().unsqueeze(-1)
    )
    of_rank = _squared_length(whitened * of_p.diag.sqrt().unsqueeze(-2))
    of_rank = of_rank + _squared_length(whitened @ of_p.factor)
    log_dets = of_q.log_det() - of_p.log_det()
    distance = of_q.mahalanobis(_broadcast_gap(p, q))
    return _kl_of_vectors(p, q, log_dets, of_diag - of_rank, distance)


# Pairs of different families: the expected value of each log q, from moments of p.


def _to_continuous_bernoulli(p: Any, q: Any, mean: Any) -> Any:
    return -p.entropy() - mean * q.logits - log1p(-q.probs) - q._cont_bern_log_norm()


def _to_exponential(p: Any, q: Any, mean: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * mean


def _to_gamma(p: Any, q: Any, mean: Any, mean_log: Any) -> Any:
    normalizer = q.concentration.lgamma() - q.concentration * q.rate.log()
    return -p.entropy() + normalizer - (q.concentration - 1) * mean_log + q.rate * mean


def _to_gumbel(p: Any, q: Any, mean: Any, mean_exp: Any) -> Any:
    """With ``mean_exp`` the expected value of ``exp(-x / scale)``."""
    shift = q.loc / q.scale
    return -p.entropy() + q.scale.log() + mean / q.scale - shift + exp(shift) * mean_exp


def _to_normal(p: Any, q: Any, mean: Any, variance: Any) -> Any:
    squares = variance + (mean - q.loc).pow(2)
    return -p.entropy() + _HALF_LOG_2_PI + q.scale.log() + squares / (2 * q.scale.pow(2))


def _to_uniform(p: Any, q: Any, low: Any, high: Any) -> Any:
    result = -p.entropy() + (q.high - q.low).log()
    return _infinite_where((q.low > low) | (q.high < high), result)


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
@register_kl(Uniform, ContinuousBernoulli)
def _kl_to_continuous_bernoulli(p: Any, q: Any) -> Any:
    result = _to_continuous_bernoulli(p, q, p.mean)
    if isinstance(p, Uniform):
        return _infinite_where((p.high > 1) | (p.low < 0), result)
    return result


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
def _kl_to_exponential(p: Any, q: Any) -> Any:
    return _to_exponential(p, q, p.mean)


@register_kl(Beta, Gamma)
def _kl_beta_gamma(p: Any, q: Any) -> Any:
    a, b = p.concentration1, p.concentration0
    return _to_gamma(p, q, p.mean, a.digamma() - (a + b).digamma())


@register_kl(Exponential, Gamma)
def _kl_exponential_gamma(p: Any, q: Any) -> Any:
    return _to_gamma(p, q, p.mean, -_euler_gamma - p.rate.log())


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
def _kl_to_normal(p: Any, q: Any) -> Any:
    return _to_normal(p, q, p.mean, p.variance)


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _kl_to_uniform(p: Any, q: Any) -> Any:
    return _to_uniform(p, q, 0.0, 1.0)


@register_kl(Exponential, Gumbel)
def _kl_exponential_gumbel(p: Any, q: Any) -> Any:
    product = p.rate * q.scale
    return _to_gumbel(p, q, p.mean, product / (product + 1))


@register_kl(Gamma, Gumbel)
def _kl_gamma_gumbel(p: Any, q: Any) -> Any:
    product = p.rate * q.scale
    return _to_gumbel(p, q, p.mean, (1 + product.reciprocal()).pow(-p.concentration))


@register_kl(Normal, Gumbel)
def _kl_normal_gumbel(p: Any, q: Any) -> Any:
    power = exp(0.5 * (p.scale / q.scale).pow(2) - p.loc / q.scale)
    return _to_gumbel(p, q, p.mean, power)


@register_kl(Uniform, Gumbel)
def _kl_uniform_gumbel(p: Any, q: Any) -> Any:
    powers = exp(-p.low / q.scale) - exp(-p.high / q.scale)
    return _to_gumbel(p, q, p.mean, powers * q.scale / (p.high - p.low))


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p: Any, q: Any) -> Any:
    # The mean distance of a normal number from q's centre.
    gap = p.loc - q.loc
    z = gap / p.scale
    distance = math.sqrt(2 / math.pi) * p.scale * exp(-0.5 * z.pow(2)) + gap * erf(
        math.sqrt(0.5) * z
    )
    return -p.entropy() + (2 * q.scale).log() + distance / q.scale


def _pareto_moments(p: Any, below: int) -> tuple[Any, Any]:
    """Where the moments up to ``below`` are finite, and exponents that are harmless elsewhere."""
    is_finite = p.alpha > below
    return is_finite, where(is_finite, p.alpha, below + 1.0)


@register_kl(Pareto, Exponential)
def _kl_pareto_exponential(p: Any, q: Any) -> Any:
    is_finite, alpha = _pareto_moments(p, 1)
    result = _to_exponential(p, q, alpha * p.scale / (alpha - 1))
    return where(is_finite, result, math.inf)


@register_kl(Pareto, Gamma)
def _kl_pareto_gamma(p: Any, q: Any) -> Any:
    is_finite, alpha = _pareto_moments(p, 1)
    mean_log = p.scale.log() + p.alpha.reciprocal()
    result = _to_gamma(p, q, alpha * p.scale / (alpha - 1), mean_log)
    return where(is_finite, result, math.inf)


@register_kl(Pareto, Normal)
def _kl_pareto_normal(p: Any, q: Any) -> Any:
    is_finite, alpha = _pareto_moments(p, 2)
    common = p.scale / (alpha - 1)
    result = _to_normal(p, q, alpha * common, alpha * common.pow(2) / (alpha - 2))
    return where(is_finite, result, math.inf)


def _mean_log(low: Any, high: Any) -> Any:
    """The expected value of ``log x`` of a uniform number between numbers that are not negative."""
    return (_x_log_x(high) - _x_log_x(low)) / (high - low) - 1


@register_kl(Uniform, Beta)
def _kl_uniform_beta(p: Any, q: Any) -> Any:
    a, b = q.concentration1, q.concentration0
    of_logs = (a - 1) * _mean_log(p.low, p.high) + (b - 1) * _mean_log(1 - p.high, 1 - p.low)
    normalizer = a.lgamma() + b.lgamma() - (a + b).lgamma()
    return _infinite_where((p.high > 1) | (p.low < 0), -p.entropy() + normalizer - of_logs)


@register_kl(Uniform, Exponential)
def _kl_uniform_exponential(p: Any, q: Any) -> Any:
    return _infinite_where(p.low < 0, _to_exponential(p, q, p.mean))


@register_kl(Uniform, Gamma)
def _kl_uniform_gamma(p: Any, q: Any) -> Any:
    return _infinite_where(p.low < 0, _to_gamma(p, q, p.mean, _mean_log(p.low, p.high)))


@register_kl(Uniform, Pareto)
def _kl_uniform_pareto(p: Any, q: Any) -> Any:
    log_density = q.alpha.log() + q.alpha * q.scale.log()
    result = (q.alpha + 1) * _mean_log(p.low, p.high) - p.entropy() - log_density
    return _infinite_where(p.low < q.scale, result)
