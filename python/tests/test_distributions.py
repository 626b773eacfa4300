"""Distributions by mathematics: moments, integrals, gradients; refusals, copies and pickles."""

from __future__ import annotations

import importlib
import math
import pickle
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pullback as torch
from pullback import distributions as D

sys.path.insert(0, str(Path(__file__).with_name("recorded")))

import distribution_program as program

DISCRETE = "bernoulli binomial categorical geometric multinomial negative_binomial one_hot poisson"


def made(name: str) -> Any:
    return program.make(torch, program.CASES[name], "float64")[0]


def is_discrete(name: str) -> bool:
    return any(name.startswith(kind) for kind in DISCRETE.split())


def answers(distribution: Any, *questions: str) -> bool:
    """Whether properties, or functions of a probability, are known."""
    try:
        for question in questions:
            found = getattr(distribution, question)
            if callable(found):
                found(torch.full(distribution.batch_shape, 0.5).double())
    except NotImplementedError:
        return False
    return True


# (Categories have no distance, and the moments of angles are circular.)
WITH_MOMENTS = [
    name for name in program.CASES
    if answers(made(name), "mean", "variance") and name.split("_")[0] not in ("categorical", "von")
]  # fmt: skip


@pytest.mark.parametrize("name", WITH_MOMENTS)
def test_samples_have_the_mean_and_variance_that_are_said(name: str) -> None:
    distribution = made(name)
    mean, variance = distribution.mean.detach(), distribution.variance.detach()
    torch.manual_seed(0)
    count = 4000
    samples = distribution.sample((count,))
    # Where the fourth moment may be infinite, the mean of squares says little.
    is_known = mean.isfinite() & variance.isfinite()
    error = (samples.mean(0) - mean).abs() / (variance / count).sqrt()
    assert (error[is_known & (variance > 0)] < 5).all()
    if name not in ("fisher_snedecor", "inverse_gamma", "pareto", "student_t", "weibull"):
        ratio = samples.var(0)[is_known] / variance[is_known].clamp(min=1e-12)
        assert ((ratio - 1).abs() < 0.25)[variance[is_known] > 0].all()


INTEGRABLE = [
    name for name in program.CASES
    if not is_discrete(name) and made(name).event_shape == () and "relaxed" not in name
]  # fmt: skip


def nodes(distribution: Any, count: int = 40001) -> tuple[Any, Any]:
    """Points all over the support, and their weights, for the whole batch."""
    # x = sinh(sinh(u)) reaches far, and is dense around 0; likewise for bounded supports.
    u = torch.linspace(-4.0, 4.0, count, dtype=torch.float64)
    step = u[1] - u[0]
    lower = getattr(distribution.support, "lower_bound", -math.inf)
    upper = getattr(distribution.support, "upper_bound", math.inf)
    lower, upper = (torch.as_tensor(v, dtype=torch.float64).detach() for v in (lower, upper))
    shape = (count,) + (1,) * len(distribution.batch_shape)
    s = (math.pi / 2 * u.sinh()).reshape(shape)
    slope = (math.pi / 2 * u.cosh()).reshape(shape) * step
    both, above = lower.isfinite() & upper.isfinite(), lower.isfinite()
    width = torch.where(both, upper - lower, 1.0)
    inside = torch.where(both, lower, 0.0) + width * s.sigmoid()
    x = torch.where(both, inside, torch.where(above, lower + s.exp(), s.sinh()))
    of_x = torch.where(
        both, width * s.sigmoid() * (-s).sigmoid(), torch.where(above, s.exp(), s.cosh())
    )
    return x, of_x * slope


# (Angles have a density everywhere, and rows of another support are not covered by these nodes.)
@pytest.mark.parametrize("name", sorted({*INTEGRABLE} - {"von_mises", "transformed"}))
def test_densities_integrate_to_one_and_to_the_entropy(name: str) -> None:
    distribution = made(name)
    x, weight = nodes(distribution)
    # (Points that are rounded onto an end where the density is infinite or 0.)
    distribution._validate_args = False
    log_prob = distribution.log_prob(x).detach()
    mass = (log_prob.exp() * weight).nan_to_num(0.0, 0.0, 0.0)
    assert mass.sum(0).tolist() == pytest.approx([1.0] * distribution.batch_shape.numel(), abs=2e-5)
    try:
        entropy = distribution.entropy().detach()
    except NotImplementedError:
        return
    terms = -(mass * log_prob).nan_to_num(0.0, 0.0, 0.0)
    assert terms.sum(0).tolist() == pytest.approx(entropy.tolist(), abs=1e-3)


@pytest.mark.parametrize("name", [n for n in INTEGRABLE if answers(made(n), "icdf")])
def test_distribution_functions_are_inverse_to_quantiles_and_have_the_density(name: str) -> None:
    distribution = made(name)
    p = torch.tensor([0.1, 0.4, 0.8], dtype=torch.float64)
    p = p.reshape(3, *(1 for _ in distribution.batch_shape))
    x = distribution.icdf(p).detach()
    if name == "continuous_bernoulli":
        x = x[..., [0, 2]]
        distribution = D.ContinuousBernoulli(torch.tensor([0.1, 0.9], dtype=torch.float64))
    x.requires_grad_()
    cdf = distribution.cdf(x)
    assert torch.allclose(cdf, p.expand(x.shape), atol=1e-9)
    (density,) = torch.autograd.grad(cdf.sum(), x)
    assert torch.allclose(density, distribution.log_prob(x).exp(), rtol=1e-7)


# (The counts of `binomial_many` differ from each other.)
ENUMERABLE = [n for n in program.CASES if made(n).has_enumerate_support and n != "binomial_many"]


@pytest.mark.parametrize("name", ENUMERABLE)
def test_probabilities_of_all_values_add_up_to_one(name: str) -> None:
    distribution = made(name)
    support = distribution.enumerate_support()
    probabilities = distribution.log_prob(support).exp()
    assert torch.allclose(probabilities.sum(0), torch.ones(distribution.batch_shape).double())
    assert distribution.support.check(support).all()
    entropy = -(probabilities * distribution.log_prob(support)).nan_to_num().sum(0)
    assert torch.allclose(entropy, distribution.entropy(), atol=1e-10)
    assert torch.allclose(distribution.perplexity(), entropy.exp())


@pytest.mark.parametrize(
    "distribution",
    [
        D.Kumaraswamy(2.0, 3.0), D.Beta(2.0, 5.0), D.Gamma(3.0, 2.0), D.Weibull(2.0, 1.5),
        D.Gumbel(1.0, 2.0), D.FisherSnedecor(5.0, 7.0), D.LogNormal(0.5, 0.7), D.StudentT(3.0, 1.0),
        D.InverseGamma(2.0, 3.0), D.Pareto(1.0, 2.0), D.Laplace(0.3, 1.0), D.Chi2(5.0),
    ],
    ids=lambda d: type(d).__name__,
)  # fmt: skip
def test_modes_have_the_greatest_density(distribution: Any) -> None:
    mode = distribution.mode
    others = mode + torch.tensor([-0.05, -0.01, 0.01, 0.05])
    others = others[distribution.support.check(others)]
    assert (distribution.log_prob(others) <= distribution.log_prob(mode) + 1e-6).all()


# (The others have a carrier measure whose expected value is not said, or is not that of the class.)
FAMILIES = [
    "bernoulli",
    "continuous_bernoulli",
    "exponential",
    "normal",
    "gamma",
    "chi2",
    "wishart",
]


@pytest.mark.parametrize("name", FAMILIES)
def test_entropies_follow_from_the_log_normaliser(name: str) -> None:
    distribution = made(name)
    if name == "continuous_bernoulli":
        distribution = D.ContinuousBernoulli(torch.tensor([0.1, 0.3], dtype=torch.float64))
    found = D.ExponentialFamily.entropy(distribution)
    expected = distribution.entropy()
    assert torch.allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(
    "name", ["gamma", "normal", "exponential", "dirichlet", "beta", "bernoulli"]
)
def test_divergences_follow_from_the_log_normaliser(name: str) -> None:
    p, q = made(name), program.make(torch, program.OTHERS[name], "float64")[0]
    if name == "gamma":
        p = D.Gamma(torch.tensor([0.3, 20.0]).double(), torch.tensor([1.0, 0.5]).double())
    bregman = D.kl._kl_expfamily_expfamily(p, q)
    assert torch.allclose(bregman, D.kl_divergence(p, q), atol=1e-9)


PAIRS = [
    ("normal", "laplace"), ("normal", "gumbel"), ("gamma", "gumbel"), ("uniform", "gumbel"),
    ("exponential", "gumbel"), ("gumbel", "normal"), ("laplace", "normal"), ("pareto", "normal"),
    ("pareto", "gamma"), ("pareto", "exponential"), ("beta_two", "normal"), ("beta_two", "gamma"),
    ("uniform_inside", "beta_two"), ("uniform_inside", "continuous_bernoulli"), ("cauchy", "cauchy"),
    ("continuous_bernoulli", "normal"), ("gumbel", "gumbel"), ("log_normal", "log_normal"),
]  # fmt: skip


@pytest.mark.parametrize(("p_name", "q_name"), PAIRS)
def test_divergences_are_the_integrals_that_define_them(p_name: str, q_name: str) -> None:
    p = program.make(torch, program.OTHERS[p_name], "float64")[0]
    q = program.make(torch, program.OTHERS[q_name], "float64")[0]
    if q_name == "continuous_bernoulli":
        q = D.ContinuousBernoulli(torch.tensor([0.7, 0.3], dtype=torch.float64))
    if p_name == "continuous_bernoulli":
        p = D.ContinuousBernoulli(torch.tensor([0.7, 0.3], dtype=torch.float64))
    if p_name == q_name:
        q = type(p)(p.loc.detach() + 0.5, p.scale.detach() * 2)
    x, weight = nodes(p)
    p._validate_args = q._validate_args = False
    log_p, log_q = p.log_prob(x).detach(), q.log_prob(x).detach()
    terms = (log_p.exp() * (log_p - log_q) * weight).nan_to_num(0.0, 0.0, 0.0)
    found = D.kl_divergence(p, q).detach()
    assert terms.sum(0).tolist() == pytest.approx(found.tolist(), rel=2e-4, abs=2e-5)


def test_normal_vectors_diverge_as_many_normal_numbers_do() -> None:
    scale = torch.tensor([0.5, 2.0, 1.5])
    p = D.Independent(D.Normal(torch.zeros(3), scale), 1)
    q = D.Independent(D.Normal(torch.tensor([1.0, -1.0, 0.5]), torch.ones(3)), 1)
    vectors = D.MultivariateNormal(p.mean, torch.diag(scale**2))
    others = D.MultivariateNormal(q.mean, torch.eye(3))
    low = D.LowRankMultivariateNormal(p.mean, torch.zeros(3, 1), scale**2)
    for of_p in (vectors, low):
        assert torch.allclose(D.kl_divergence(of_p, others), D.kl_divergence(p, q))
        assert torch.allclose(of_p.log_prob(q.mean), p.log_prob(q.mean))
        assert torch.allclose(of_p.entropy(), p.entropy())


def test_matrices_of_a_covariance_are_the_same_whichever_is_given() -> None:
    matrix = torch.tensor([[2.0, 0.5], [0.5, 1.5]], dtype=torch.float64)
    loc = torch.zeros(2, dtype=torch.float64)
    given = {
        "covariance_matrix": matrix,
        "precision_matrix": torch.linalg.inv(matrix),
        "scale_tril": torch.linalg.cholesky(matrix),
    }
    for name, value in given.items():
        for distribution in (
            D.MultivariateNormal(loc, **{name: value}),
            D.Wishart(torch.tensor(3.0).double(), **{name: value}),
        ):
            for what, expected in given.items():
                assert torch.allclose(getattr(distribution, what), expected), (name, what)
    low = D.LowRankMultivariateNormal(loc, torch.ones(2, 1).double(), torch.ones(2).double())
    assert torch.allclose(low.scale_tril @ low.scale_tril.mT, low.covariance_matrix)
    assert torch.allclose(low.precision_matrix @ low.covariance_matrix, torch.eye(2).double())


SMOOTH = [n for n in WITH_MOMENTS if made(n).has_rsample and made(n).mean.requires_grad]


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_of_samples_are_those_of_the_expected_value(name: str) -> None:
    """The pathwise gradient of a mean is unbiased: compared with the gradient of the mean itself."""
    distribution, leaves = program.make(torch, program.CASES[name], "float64")
    if name == "continuous_bernoulli":
        # (Samples of parameters that count as 1/2 do not move.)
        leaves = [torch.tensor([0.1, 0.9], dtype=torch.float64, requires_grad=True)]
        distribution = D.ContinuousBernoulli(leaves[0])
    if name == "generalized_pareto":
        # (Nor do those of a shape of 0 move with the shape.)
        leaves = leaves[:2]
    # Pathwise gradients are as wild as the samples: only where these have a variance.
    mean, variance = distribution.mean, distribution.variance
    is_known = mean.isfinite() & variance.isfinite()
    torch.manual_seed(1)
    count = 3000
    samples = distribution.rsample((count,))
    whole, drawn = mean[is_known].sum(), samples[:, is_known].sum() / count
    expected = torch.autograd.grad(whole, leaves, retain_graph=True, allow_unused=True)
    for leaf, gradient in zip(leaves, expected, strict=True):
        if gradient is None:
            continue
        pathwise = torch.autograd.grad(drawn, leaf, retain_graph=True)[0]
        is_known = gradient.isfinite()
        assert torch.allclose(pathwise[is_known], gradient[is_known], rtol=0.2, atol=0.15)


def test_samples_of_wishart_matrices_have_gradients() -> None:
    factor = torch.tensor([[1.5, 0.0], [0.3, 0.8]], dtype=torch.float64, requires_grad=True)
    torch.manual_seed(4)
    sample = D.Wishart(torch.tensor(4.0).double(), scale_tril=factor).rsample()
    (found,) = torch.autograd.grad(sample[0, 1], factor)
    step = 1e-6
    for i, j in ((0, 0), (1, 0), (1, 1)):
        moved = factor.detach().clone()
        moved[i, j] += step
        torch.manual_seed(4)
        other = D.Wishart(torch.tensor(4.0).double(), scale_tril=moved).rsample()
        slope = (other - sample.detach())[0, 1] / step
        assert slope.item() == pytest.approx(found[i, j].item(), abs=1e-4)


@pytest.mark.parametrize("name", program.CASES)
def test_an_expanded_distribution_answers_for_the_larger_batch(name: str) -> None:
    distribution = made(name)
    expanded = distribution.expand((4, *distribution.batch_shape))
    assert expanded.batch_shape == (4, *distribution.batch_shape)
    assert expanded.event_shape == distribution.event_shape
    torch.manual_seed(0)
    value = distribution.sample((4,))
    assert torch.allclose(expanded.log_prob(value), distribution.log_prob(value))
    assert expanded.sample().shape == value.shape
    assert type(expanded) is type(distribution)
    assert expanded._validate_args == distribution._validate_args
    twice = expanded.expand((2, 4, *distribution.batch_shape))
    assert twice.sample().shape == (2, *value.shape)


@pytest.mark.parametrize("name", program.CASES)
def test_a_pickle_is_the_same_distribution(name: str) -> None:
    distribution = made(name)
    copy = pickle.loads(pickle.dumps(distribution))
    assert repr(copy) == repr(distribution)
    torch.manual_seed(0)
    value = distribution.sample((2,))
    torch.manual_seed(0)
    assert torch.equal(copy.sample((2,)), value)
    assert torch.allclose(copy.log_prob(value), distribution.log_prob(value))


@pytest.mark.parametrize("name", program.CASES)
def test_values_outside_of_the_support_are_refused(name: str) -> None:
    distribution = made(name)
    value = torch.full(distribution.batch_shape + distribution.event_shape, math.nan).double()
    with pytest.raises(ValueError, match="to be within the support"):
        distribution.log_prob(value)


def test_values_of_other_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="must be a Tensor"):
        D.Normal(0.0, 1.0).log_prob("1")
    with pytest.raises(ValueError, match="Value is not broadcastable with batch_shape"):
        D.Normal(torch.zeros(3), 1.0).log_prob(torch.zeros(2))
    with pytest.raises(ValueError, match="right-most size of value must match event_shape"):
        D.Dirichlet(torch.ones(3)).log_prob(torch.ones(2) / 2)


# ruff: noqa: E501 (one case, one line)
REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: D.Normal(0.0, -1.0), ValueError, r"Expected parameter scale .* of distribution Normal\(loc"),
    (lambda: D.Normal(torch.tensor([math.nan]), 1.0), ValueError, "constraint Real\\(\\)"),
    (lambda: D.Uniform(1.0, 0.0), ValueError, "Expected parameter low"),
    (lambda: D.Bernoulli(1.5), ValueError, "Interval\\(lower_bound=0.0, upper_bound=1.0\\)"),
    (lambda: D.Bernoulli(), ValueError, "Either `probs` or `logits` must be specified, but not both"),
    (lambda: D.Bernoulli(0.5, 0.5), ValueError, "Either `probs` or `logits`"),
    (lambda: D.Categorical(torch.tensor(1.0)), ValueError, "`probs` parameter must be at least one"),
    (lambda: D.Categorical(logits=torch.tensor(1.0)), ValueError, "`logits` parameter must be at least"),
    (lambda: D.Categorical(torch.tensor([-1.0, 2.0])), ValueError, "Simplex\\(\\)"),
    (lambda: D.Dirichlet(torch.tensor(1.0)), ValueError, "must be at least one-dimensional"),
    (lambda: D.Geometric(0.0), ValueError, "to be positive but found invalid values"),
    (lambda: D.ContinuousBernoulli(2.0, validate_args=True), ValueError, "probs has invalid values"),
    (lambda: D.Multinomial(torch.ones(2), torch.ones(2)), NotImplementedError, "inhomogeneous total_count"),
    (lambda: D.LKJCholesky(1), ValueError, "Found dim=1"),
    (lambda: D.Independent(D.Normal(0.0, 1.0), 1), ValueError, "actual 1 vs 0"),
    (lambda: D.Independent(D.Bernoulli(torch.ones(2)), 1).enumerate_support(), NotImplementedError, "cartesian"),
    (lambda: D.MultivariateNormal(torch.tensor(0.0), torch.eye(1)), ValueError, "loc must be at least one"),
    (lambda: D.MultivariateNormal(torch.zeros(2)), ValueError, "Exactly one of covariance_matrix or"),
    (lambda: D.MultivariateNormal(torch.zeros(2), torch.ones(2)), ValueError, "at least two-dimensional"),
    (lambda: D.MultivariateNormal(torch.zeros(2), -torch.eye(2)), ValueError, "PositiveDefinite"),
    (lambda: D.LowRankMultivariateNormal(torch.zeros(2), torch.ones(3, 1), torch.ones(2)), ValueError, "2 x m"),
    (lambda: D.LowRankMultivariateNormal(torch.zeros(2), torch.ones(2, 1), torch.ones(3)), ValueError, "vectors with"),
    (
        lambda: D.LowRankMultivariateNormal(torch.zeros(3, 2), torch.ones(4, 2, 1), torch.ones(2)),
        ValueError,
        "Incompatible batch shapes",
    ),
    (lambda: D.Wishart(1.0, torch.eye(2), torch.eye(2)), AssertionError, "Exactly one of"),
    (lambda: D.Wishart(0.5, torch.eye(2)), ValueError, "expected to be greater than ndim - 1 = 1"),
    (lambda: D.MixtureSameFamily(D.Normal(0.0, 1.0), D.Normal(0.0, 1.0)), ValueError, "Mixture distribution needs"),
    (
        lambda: D.MixtureSameFamily(D.Categorical(torch.ones(2)), D.Normal(torch.zeros(3), 1.0)),
        ValueError,
        r"\(2\) does not equal `component_distribution.batch_shape\[-1\]` \(3\)",
    ),
    (lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), [1]), ValueError, "must be a Transform or a list"),
    (lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), 1), ValueError, "transforms must be a Transform or list"),
    (
        lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), D.StickBreakingTransform()),
        ValueError,
        "shape with size at least 1",
    ),
    (lambda: D.Distribution.set_default_validate_args(3), ValueError, ""),
    (lambda: D.Binomial(torch.tensor([1, 2]), torch.ones(2) / 2).entropy(), NotImplementedError, "Inhomogeneous"),
    (lambda: D.Normal(0.0, 1.0).enumerate_support(), NotImplementedError, ""),
    (lambda: D.kl_divergence(D.Cauchy(0.0, 1.0), D.Normal(0.0, 1.0)), NotImplementedError, "type Cauchy and q type"),
    (lambda: D.kl_divergence(D.Normal(0.0, 1.0), D.Poisson(1.0)), NotImplementedError, "cross KL-divergence"),
    (lambda: D.kl_divergence(D.Binomial(2, torch.tensor(0.5)), D.Binomial(3, torch.tensor(0.5))), NotImplementedError, "q.total_count"),
    (lambda: D.register_kl(3, D.Normal), TypeError, "Expected type_p to be a Distribution subclass"),
    (lambda: D.constraint_registry.biject_to(D.constraints.boolean), NotImplementedError, "_Boolean"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "kind", "phrase"), REFUSED)
def test_what_makes_no_sense_is_refused(
    make: Callable[[], Any], kind: type[Exception], phrase: str
) -> None:
    with pytest.raises(kind, match=phrase or None):
        make()


def test_checks_can_be_left_out() -> None:
    assert D.Normal(0.0, -1.0, validate_args=False).scale == -1
    D.Distribution.set_default_validate_args(False)
    try:
        assert D.Normal(0.0, -1.0).scale == -1
        assert D.Uniform(0.0, 1.0).log_prob(torch.tensor(3.0)) == -math.inf
    finally:
        D.Distribution.set_default_validate_args(True)
    assert D.Uniform(0.0, 1.0, validate_args=False).cdf(torch.tensor(3.0)) == 1


def test_a_distribution_of_ones_own_need_only_say_what_is_asked() -> None:
    class Bare(D.Distribution):
        pass

    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        bare = Bare()
    with pytest.warns(UserWarning, match="does not define `support`"):
        bare._validate_sample(torch.zeros(()))
    for question in ("mean", "variance", "mode", "stddev", "support", "arg_constraints"):
        with pytest.raises(NotImplementedError):
            getattr(bare, question)
    for question in ("entropy", "perplexity", "rsample", "sample", "enumerate_support"):
        with pytest.raises(NotImplementedError):
            getattr(bare, question)()
    for question in ("log_prob", "cdf", "icdf", "expand"):
        with pytest.raises(NotImplementedError):
            getattr(bare, question)(torch.zeros(()))


def test_a_subclass_with_another_constructor_must_say_how_it_expands() -> None:
    class Standard(D.Normal):
        def __init__(self, size: int) -> None:
            super().__init__(torch.zeros(size), torch.ones(size))

    with pytest.raises(NotImplementedError, match=r"must also define a custom \.expand"):
        Standard(2).expand((3, 2))

    class Plain(D.Normal):
        pass

    assert type(Plain(0.0, 1.0).expand((3,))) is Plain


def test_sample_n_is_deprecated() -> None:
    with pytest.warns(FutureWarning, match=r"Use `sample\(\(n,\)\)` instead"):
        assert D.Normal(0.0, 1.0).sample_n(3).shape == (3,)


def test_divergences_are_found_by_the_nearest_classes() -> None:
    class Left(D.Normal):
        pass

    class Right(D.Normal):
        pass

    assert D.kl_divergence(Left(0.0, 1.0), Right(1.0, 1.0)) == 0.5
    D.register_kl(Left, D.Normal)(lambda p, q: "left")
    assert D.kl_divergence(Left(0.0, 1.0), Right(1.0, 1.0)) == "left"
    D.register_kl(D.Normal, Right)(lambda p, q: "right")
    assert D.kl_divergence(D.Normal(0.0, 1.0), Right(1.0, 1.0)) == "right"
    with pytest.warns(RuntimeWarning, match=r"Ambiguous kl_divergence\(Left, Right\)"):
        assert D.kl_divergence(Left(0.0, 1.0), Right(1.0, 1.0)) == "left"
    D.register_kl(Left, Right)(lambda p, q: "both")
    assert D.kl_divergence(Left(0.0, 1.0), Right(1.0, 1.0)) == "both"


def test_low_degrees_of_freedom_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="Low df values detected"):
        D.Wishart(1.5, torch.eye(2))


def test_parameters_that_follow_from_others_are_computed_once() -> None:
    distribution = D.Bernoulli(torch.tensor([0.2, 0.5]))
    assert "logits" not in vars(distribution)
    assert distribution.logits is distribution.logits
    assert "logits" in vars(distribution)
    assert distribution.param_shape == (2,)
    assert distribution._new(3).shape == (3,)


def test_each_class_has_a_module_of_its_own() -> None:
    for module, name in (
        ("bernoulli", "Bernoulli"), ("studentT", "StudentT"), ("fishersnedecor", "FisherSnedecor"),
        ("exp_family", "ExponentialFamily"), ("transforms", "StackTransform"), ("kl", "register_kl"),
        ("relaxed_bernoulli", "LogitRelaxedBernoulli"), ("utils", "clamp_probs"),
        ("relaxed_categorical", "ExpRelaxedCategorical"), ("constraint_registry", "biject_to"),
    ):  # fmt: skip
        assert hasattr(importlib.import_module(f"pullback.distributions.{module}"), name)
    assert set(D.transforms.__all__) <= set(D.__all__)


def test_impossible_values_of_a_relaxed_straight_through_sample_have_its_gradient() -> None:
    logits = torch.zeros(3, requires_grad=True)
    sample = D.OneHotCategoricalStraightThrough(logits=logits).rsample()
    assert sorted(sample.tolist()) == pytest.approx([0.0, 0.0, 1.0])
    (gradient,) = torch.autograd.grad(sample[0], logits)
    assert gradient.tolist() == pytest.approx([2 / 9, -1 / 9, -1 / 9])


def test_a_mixture_takes_fewer_probabilities_than_components_have_batches() -> None:
    mixture = D.MixtureSameFamily(
        D.Categorical(torch.tensor([0.0, 1.0])),
        D.Normal(torch.tensor([[0.0, 9.0], [0.0, -9.0]]), 0.1),
    )
    assert mixture.sample((5,)).sign().tolist() == [[1.0, -1.0]] * 5
    assert mixture.mean.tolist() == [9.0, -9.0]


def test_the_density_of_the_generalised_pareto_distribution_is_exact_for_each_shape() -> None:
    x = torch.tensor([1.5, 1.5, 1.5], dtype=torch.float64)
    k = torch.tensor([0.0, 0.5, -1.0], dtype=torch.float64)
    found = D.GeneralizedPareto(torch.ones(3).double(), 2.0, k).log_prob(x)
    expected = [-0.25, -3 * math.log1p(0.125), 0.0]
    assert found.tolist() == pytest.approx([v - math.log(2) for v in expected])


def test_nothing_warns_of_samples_that_are_not_singular() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        D.Wishart(5.0, torch.eye(2)).sample((3,))
