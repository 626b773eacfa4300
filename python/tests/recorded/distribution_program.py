"""What is asked of each distribution: one program for both libraries.

`record_distributions.py` runs it with PyTorch and keeps the answers,
`test_distributions_values.py` runs it with pullback and compares. A case is an expression over `D`
(the package) and `t`, which makes a leaf of a dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_MATRIX = "t([[2.0, 0.5, 0.1], [0.5, 1.5, -0.2], [0.1, -0.2, 1.0]])"
_LOWER = "t([[1.5, 0.0], [0.3, 0.8]])"

CASES = {
    "bernoulli": "D.Bernoulli(t([0.1, 0.5, 0.8]))",
    "bernoulli_logits": "D.Bernoulli(logits=t([[-1.0], [2.0]]))",
    "beta": "D.Beta(t([0.5, 2.0, 30.0]), t([1.5, 3.0, 12.0]))",
    "binomial": "D.Binomial(5, t([0.1, 0.5, 0.9]))",
    "binomial_many": "D.Binomial(t([100.0, 1000.0, 40.0]), t([0.3, 0.7, 0.5]))",
    "binomial_logits": "D.Binomial(5, logits=t([0.1, -0.5, 0.9]))",
    "categorical": "D.Categorical(t([[1.0, 2.0, 3.0], [0.1, 0.1, 0.8]]))",
    "categorical_logits": "D.Categorical(logits=t([0.5, -1.0, 2.0]))",
    "cauchy": "D.Cauchy(t([0.0, 1.0]), t([1.0, 2.0]))",
    "chi2": "D.Chi2(t([1.0, 3.5]))",
    "continuous_bernoulli": "D.ContinuousBernoulli(t([0.1, 0.4995, 0.9]))",
    "continuous_bernoulli_logits": "D.ContinuousBernoulli(logits=t([0.0, -3.0, 0.9]))",
    "dirichlet": "D.Dirichlet(t([[0.5, 1.0, 2.0], [5.0, 0.3, 10.0]]))",
    "exponential": "D.Exponential(t([0.5, 3.0]))",
    "fisher_snedecor": "D.FisherSnedecor(t([1.0, 5.0]), t([3.0, 6.0]))",
    "gamma": "D.Gamma(t([0.3, 1.0, 20.0]), t([1.0, 2.0, 0.5]))",
    "generalized_pareto": "D.GeneralizedPareto(t([0.0, 1.0, 0.0]), t([1.0, 2.0, 1.0]),"
    " t([0.0, 0.3, -0.4]))",
    "geometric": "D.Geometric(t([0.1, 0.7, 1.0]))",
    "geometric_logits": "D.Geometric(logits=t([0.1, -0.7]))",
    "gumbel": "D.Gumbel(t([0.0, 1.0]), t([1.0, 2.0]))",
    "half_cauchy": "D.HalfCauchy(t([1.0, 2.0]))",
    "half_normal": "D.HalfNormal(t([1.0, 2.0]))",
    "independent": "D.Independent(D.Normal(t([[0.0, 1.0], [2.0, 3.0]]), t([1.0, 2.0])), 1)",
    "inverse_gamma": "D.InverseGamma(t([0.5, 3.0]), t([1.0, 2.0]))",
    "kumaraswamy": "D.Kumaraswamy(t([0.5, 2.0]), t([1.5, 0.4]))",
    "laplace": "D.Laplace(t([0.0, 1.0]), t([1.0, 2.0]))",
    "lkj_cholesky": "D.LKJCholesky(3, t([0.5, 2.0]))",
    "lkj_cholesky_one": "D.LKJCholesky(4, t(1.0))",
    "log_normal": "D.LogNormal(t([0.0, 1.0]), t([1.0, 0.2]))",
    "logistic_normal": "D.LogisticNormal(t([0.0, 1.0]), t([1.0, 0.2]))",
    "logistic_normal_one": "D.LogisticNormal(t(0.0), t(1.0))",
    "low_rank": "D.LowRankMultivariateNormal(t([1.0, -1.0, 0.5]),"
    " t([[1.0, 0.2], [0.3, -1.0], [0.5, 0.1]]), t([0.5, 1.0, 2.0]))",
    "mixture": "D.MixtureSameFamily(D.Categorical(t([[0.3, 0.7], [0.5, 0.5], [0.2, 0.8]])),"
    " D.Normal(t([[0.0, 1.0], [2.0, 3.0], [1.0, 1.0]]), t([1.0, 0.5])))",
    "mixture_of_vectors": "D.MixtureSameFamily(D.Categorical(t([0.3, 0.7])),"
    " D.Independent(D.Normal(t([[0.0, 1.0, 2.0], [2.0, 3.0, 4.0]]), t([1.0, 0.5, 1.0])), 1))",
    "multinomial": "D.Multinomial(7, t([[1.0, 2.0, 3.0], [0.1, 0.1, 0.8]]))",
    "multinomial_logits": "D.Multinomial(4, logits=t([0.0, -1.0, 1.0]))",
    "multivariate_normal": f"D.MultivariateNormal(t([1.0, 2.0, 3.0]), {_MATRIX})",
    "multivariate_normal_precision": "D.MultivariateNormal(t([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]),"
    f" precision_matrix={_MATRIX})",
    "multivariate_normal_factor": f"D.MultivariateNormal(t([[1.0, 2.0]]), scale_tril={_LOWER})",
    "negative_binomial": "D.NegativeBinomial(t([1.0, 5.5]), t([0.3, 0.8]))",
    "negative_binomial_logits": "D.NegativeBinomial(3, logits=t([0.3, -0.8]))",
    "normal": "D.Normal(t([0.0, 1.0]), t([1.0, 2.0]))",
    "one_hot": "D.OneHotCategorical(t([[1.0, 2.0, 3.0], [0.1, 0.1, 0.8]]))",
    "one_hot_straight": "D.OneHotCategoricalStraightThrough(logits=t([1.0, 2.0, 3.0]))",
    "pareto": "D.Pareto(t([1.0, 2.0]), t([0.5, 3.0]))",
    "poisson": "D.Poisson(t([0.5, 3.0, 40.0]))",
    "relaxed_bernoulli": "D.RelaxedBernoulli(t(0.5), t([0.2, 0.7]))",
    "relaxed_one_hot": "D.RelaxedOneHotCategorical(t(0.7), t([0.2, 0.7, 0.1]))",
    "relaxed_logit": "D.relaxed_bernoulli.LogitRelaxedBernoulli(t(0.5), logits=t([0.2, 0.7]))",
    "relaxed_log": "D.relaxed_categorical.ExpRelaxedCategorical(t(0.5), logits=t([0.2, 0.7]))",
    "student_t": "D.StudentT(t([0.5, 1.5, 3.0]), t([0.0, 1.0, 2.0]), t(2.0))",
    "transformed": "D.TransformedDistribution(D.Normal(t([0.0, 1.0]), t([1.0, 1.0])),"
    " [D.AffineTransform(t([[1.0], [2.0]]), -2.0), D.SigmoidTransform()])",
    "uniform": "D.Uniform(t([0.0, 1.0]), t([1.0, 3.0]))",
    "von_mises": "D.VonMises(t([0.0, 1.0]), t([1.0, 20.0]))",
    "weibull": "D.Weibull(t([1.0, 2.0]), t([0.5, 3.0]))",
    "wishart": f"D.Wishart(t(5.0), {_MATRIX})",
    "wishart_factor": f"D.Wishart(t([5.0, 6.0]), scale_tril={_LOWER})",
}

# The other distribution of each pair of families that a divergence is registered for.
OTHERS = {
    **{name: CASES[name] for name in ("normal", "laplace", "gumbel", "cauchy", "uniform")},
    "bernoulli": "D.Bernoulli(t([0.3, 0.6, 0.8]))",
    "beta": "D.Beta(t([1.5, 1.0, 20.0]), t([0.5, 2.0, 15.0]))",
    "beta_two": "D.Beta(t([1.5, 1.0]), t([0.5, 2.0]))",
    "binomial": "D.Binomial(5, t([0.3, 0.4, 0.5]))",
    "categorical": "D.Categorical(t([[1.0, 1.0, 3.0], [0.3, 0.1, 0.6]]))",
    "continuous_bernoulli": "D.ContinuousBernoulli(t([0.7, 0.3, 0.5]))",
    "dirichlet": "D.Dirichlet(t([[1.5, 1.0, 1.0], [2.0, 1.3, 4.0]]))",
    "exponential": "D.Exponential(t([1.5, 0.7]))",
    "gamma": "D.Gamma(t([0.7, 2.0]), t([3.0, 1.0]))",
    "geometric": "D.Geometric(t([0.4, 0.5]))",
    "half_normal": "D.HalfNormal(t([3.0, 1.0]))",
    "independent": "D.Independent(D.Normal(t([[1.0, 1.0], [0.0, 3.0]]), t([2.0, 1.0])), 1)",
    "inverse_gamma": "D.InverseGamma(t([1.5, 2.0]), t([2.0, 1.0]))",
    "log_normal": "D.LogNormal(t([1.0, 1.0]), t([2.0, 0.5]))",
    "low_rank": "D.LowRankMultivariateNormal(t([0.0, 1.0, 0.5]),"
    " t([[0.5], [-1.0], [0.2]]), t([1.0, 1.5, 0.5]))",
    "low_rank_batch": "D.LowRankMultivariateNormal(t([[0.0, 1.0, 0.5], [1.0, 1.0, 1.0]]),"
    " t([[0.5], [-1.0], [0.2]]), t([1.0, 1.5, 0.5]))",
    "multivariate_normal": "D.MultivariateNormal(t([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]),"
    f" {_MATRIX})",
    "one_hot": "D.OneHotCategorical(t([[1.0, 1.0, 3.0], [0.3, 0.1, 0.6]]))",
    "pareto": "D.Pareto(t([0.5, 0.5]), t([2.5, 3.5]))",
    "poisson": "D.Poisson(t([1.5, 2.0, 30.0]))",
    "uniform_inside": "D.Uniform(t([0.25, 0.5]), t([0.75, 1.0]))",
    "uniform_around": "D.Uniform(t([-1.0, -2.0]), t([3.0, 4.0]))",
}


class Leaves:
    """Makes leaves of a dtype, and remembers them."""

    def __init__(self, torch: Any, dtype: Any) -> None:
        self.torch, self.dtype, self.made = torch, dtype, list[Any]()

    def __call__(self, values: Any) -> Any:
        self.made.append(self.torch.tensor(values, dtype=self.dtype, requires_grad=True))
        return self.made[-1]


def make(torch: Any, expression: str, dtype: str) -> tuple[Any, list[Any]]:
    """A distribution, and the leaves that it is made from."""
    t = Leaves(torch, getattr(torch, dtype))
    scope = {"D": torch.distributions, "t": t}
    return eval(expression, scope), t.made


def numbers(value: Any) -> Any:
    """A tensor as its shape and elements."""
    return [list(value.shape), value.detach().reshape(-1).tolist()]


def answer(question: Callable[[], Any]) -> Any:
    """What a question gives, or the name of the error."""
    try:
        return numbers(question())
    except (NotImplementedError, RuntimeError) as error:
        return type(error).__name__


def draws(torch: Any, expression: str, dtype: str) -> dict[str, Any]:
    """Samples for a seed, one after the other, and where the stream is then."""
    distribution, _ = make(torch, expression, dtype)
    torch.manual_seed(7)
    found = {"one": numbers(distribution.sample()), "many": numbers(distribution.sample((2, 3)))}
    if distribution.has_rsample:
        found["rsample"] = numbers(distribution.rsample((3,)))
    expanded = distribution.expand((2, *distribution.batch_shape))
    found["expanded"] = numbers(expanded.sample((1,)))
    found["after"] = numbers(torch.rand(()))
    return found


def gradients(torch: Any, value: Any, leaves: list[Any]) -> Any:
    """Those of a sum by the leaves; None for leaves that it does not depend on."""
    if not value.requires_grad:
        return None
    try:
        found = torch.autograd.grad(value.sum(), leaves, retain_graph=True, allow_unused=True)
    except RuntimeError as error:
        # (PyTorch's `Wishart` writes into what the gradient of its samples needs.)
        return type(error).__name__
    return [None if gradient is None else numbers(gradient) for gradient in found]


def values(torch: Any, expression: str, points: Any) -> dict[str, Any]:
    """The distribution's answers in double precision, at samples that are given."""
    distribution, leaves = make(torch, expression, "float64")
    x = torch.tensor(points[1], dtype=torch.float64).reshape(points[0])
    u = torch.linspace(0.05, 0.95, 4, dtype=torch.float64)
    u = u.reshape(4, *(1 for _ in distribution.batch_shape))
    found: dict[str, Any] = {
        "repr": repr(distribution),
        "support": repr(distribution.support),
        "shapes": [list(distribution.batch_shape), list(distribution.event_shape)],
        "has": [bool(distribution.has_rsample), bool(distribution.has_enumerate_support)],
        "log_prob": answer(lambda: distribution.log_prob(x)),
        "cdf": answer(lambda: distribution.cdf(x)),
        "icdf": answer(lambda: distribution.icdf(u)),
    }
    # (PyTorch's density of `GeneralizedPareto` fails in double precision.)
    if found["log_prob"] != "RuntimeError":
        found["log_prob_grad"] = gradients(torch, distribution.log_prob(x), leaves)
    for name in ("mean", "mode", "variance", "stddev"):
        found[name] = answer(lambda name=name: getattr(distribution, name))
    for name in ("entropy", "perplexity", "enumerate_support"):
        found[name] = answer(getattr(distribution, name))
    if distribution.has_rsample:
        torch.manual_seed(11)
        found["rsample_grad"] = gradients(torch, distribution.rsample((2,)), leaves)
    return found


def divergences(torch: Any) -> dict[str, Any]:
    """The divergence of each pair of cases whose shapes fit and for which one is registered."""
    found = {}
    both = {**OTHERS, **{f"{name}_": CASES[name] for name in OTHERS if name in CASES}}
    for p_name, p_expression in both.items():
        for q_name, q_expression in both.items():
            p, _ = make(torch, p_expression, "float64")
            q, _ = make(torch, q_expression, "float64")
            try:
                value = torch.distributions.kl_divergence(p, q)
            except (NotImplementedError, RuntimeError, ValueError, IndexError):
                continue
            found[f"{p_name} {q_name}"] = numbers(value)
    return found
