"""Constraints, transforms, and the registries that lead from the first to the second."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest

import pullback as torch
from pullback.distributions import biject_to, constraints, transform_to, transforms
from pullback.distributions.constraint_registry import ConstraintRegistry
from pullback.distributions.normal import Normal
from pullback.distributions.utils import (
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)

c = constraints
EYE = [[1.0, 0.0], [0.0, 1.0]]

# A constraint, a value, and what the check says of it.
CHECKS = [
    (c.boolean, [0.0, 1.0, 2.0], [True, True, False]),
    (c.one_hot, [[0.0, 1.0], [1.0, 1.0], [0.5, 0.5]], [True, False, False]),
    (c.integer_interval(-1, 2), [-1.0, 1.5, 3.0], [True, False, False]),
    (c.nonnegative_integer, [0.0, -1.0, 0.5], [True, False, False]),
    (c.positive_integer, [1.0, 0.0], [True, False]),
    (c.real, [1.0, math.inf, math.nan], [True, True, False]),
    (c.real_vector, [[1.0, 2.0], [1.0, math.nan]], [True, False]),
    (c.positive, [1.0, 0.0], [True, False]),
    (c.nonnegative, [0.0, -1.0], [True, False]),
    (c.greater_than(2), [3.0, 2.0], [True, False]),
    (c.greater_than_eq(2), [2.0, 1.0], [True, False]),
    (c.less_than(2), [1.0, 2.0], [True, False]),
    (c.unit_interval, [0.0, 1.0, 1.5], [True, True, False]),
    (c.interval(-1, 1), [-1.0, 1.0, 2.0], [True, True, False]),
    (c.half_open_interval(0, 1), [0.0, 1.0], [True, False]),
    (c.multinomial(3), [[1.0, 2.0], [2.0, 2.0], [-1.0, 1.0]], [True, False, False]),
    (c.simplex, [[0.25, 0.75], [0.5, 0.6], [-0.5, 1.5]], [True, False, False]),
    (c.lower_triangular, [EYE, [[1.0, 1.0], [0.0, 1.0]]], [True, False]),
    (c.lower_cholesky, [EYE, [[-1.0, 0.0], [0.0, 1.0]]], [True, False]),
    (c.corr_cholesky, [[[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [0.6, 0.9]]], [True, False]),
    (c.square, [EYE, EYE], [True, True]),
    (c.square, [[[1.0, 2.0]]], [False]),
    (c.symmetric, [EYE, [[1.0, 0.5], [0.0, 1.0]]], [True, False]),
    (c.positive_semidefinite, [EYE, [[1.0, 2.0], [2.0, 1.0]]], [True, False]),
    (c.positive_definite, [EYE, [[1.0, 2.0], [2.0, 1.0]]], [True, False]),
    (c.independent(c.positive, 1), [[1.0, 2.0], [1.0, -1.0]], [True, False]),
    (c.cat([c.positive, c.real], 0, [1, 2]), [1.0, -1.0, -2.0], [True, True, True]),
    (c.stack([c.positive, c.unit_interval], 0), [[1.0, -1.0], [0.5, 2.0]], [[True, False]] * 2),
    (c.MixtureSameFamilyConstraint(c.positive), [1.0, -1.0], [True, False]),
]


@pytest.mark.parametrize(("constraint", "value", "expected"), CHECKS, ids=lambda v: repr(v)[:40])
def test_a_check_says_which_values_are_in_the_set(
    constraint: Any, value: Any, expected: Any
) -> None:
    assert constraint.check(torch.tensor(value)).tolist() == expected


def test_constraints_say_what_they_are() -> None:
    assert repr(c.positive) == "GreaterThan(lower_bound=0.0)"
    assert repr(c.interval(0, 2.5)) == "Interval(lower_bound=0, upper_bound=2.5)"
    assert repr(c.real_vector) == "IndependentConstraint(Real(), 1)"
    assert repr(c.multinomial(3)) == "Multinomial()"
    assert repr(c.MixtureSameFamilyConstraint(c.real)) == "MixtureSameFamilyConstraint(Real())"
    assert (c.simplex.event_dim, c.positive_definite.event_dim, c.real.event_dim) == (1, 2, 0)
    assert c.independent(c.simplex, 2).event_dim == 3
    assert c.boolean.is_discrete
    assert not c.real.is_discrete
    assert c.cat([c.real, c.simplex]).event_dim == 1
    assert c.stack([c.real, c.boolean], dim=-1).event_dim == 1
    assert c.stack([c.real, c.boolean], dim=0).is_discrete


def test_a_dependent_constraint_is_known_to_objects_alone() -> None:
    assert c.is_dependent(c.dependent)
    assert c.is_dependent(torch.distributions.Uniform.support)
    assert not c.is_dependent(torch.distributions.Uniform(0.0, 1.0).support)
    assert torch.distributions.Uniform.support.event_dim == 0
    assert c.dependent(is_discrete=True).is_discrete
    with pytest.raises(ValueError, match="Cannot determine validity of dependent constraint"):
        c.dependent.check(torch.ones(1))
    with pytest.raises(NotImplementedError, match="event_dim cannot be determined statically"):
        _ = c.dependent.event_dim
    with pytest.raises(NotImplementedError, match="is_discrete cannot be determined statically"):
        _ = c.dependent.is_discrete


def test_constraints_of_what_are_no_constraints_are_refused() -> None:
    with pytest.raises(AssertionError, match="base_constraint must be a Constraint, got int"):
        c.independent(1, 1)
    with pytest.raises(AssertionError, match="must be >= 0, got -1"):
        c.independent(c.real, -1)
    with pytest.raises(AssertionError, match=r"lengths \(1\) must match cseq \(2\)"):
        c.cat([c.real, c.real], 0, [2])
    with pytest.raises(AssertionError, match="All elements of cseq must be Constraint instances"):
        c.stack([c.real, 2])
    with pytest.raises(ValueError, match=r"Expected value.dim\(\) >= 1 but got 0"):
        c.real_vector.check(torch.tensor(1.0))
    with pytest.raises(AssertionError, match="out of range for value with 1 dimensions"):
        c.cat([c.real], 1).check(torch.ones(2))


# A transform, and an input.
X = [[0.3, -1.2, 0.7], [1.1, 0.2, -0.4]]
SCALE = torch.tensor([2.0, -1.0, 0.5], dtype=torch.float64)
NORMAL = Normal(torch.zeros((), dtype=torch.float64), 1.0)
MATRIX = [[0.3, -1.2], [0.7, 0.5]]
t = transforms
TRANSFORMS = [
    (t.ExpTransform, X),
    (t.SigmoidTransform, X),
    (t.TanhTransform, X),
    (t.SoftplusTransform, X),
    (lambda **k: t.AffineTransform(1.0, -2.0, **k), X),
    (lambda **k: t.AffineTransform(torch.ones(3).double(), SCALE, 1, **k), X),
    (lambda **k: t.PowerTransform(torch.tensor(2.5).double(), **k), [0.3, 2.0]),
    (t.StickBreakingTransform, X),
    (t.CorrCholeskyTransform, X),
    (t.LowerCholeskyTransform, MATRIX),
    (lambda **k: t.ReshapeTransform((3,), (3, 1), **k), X),
    (lambda **k: t.IndependentTransform(t.ExpTransform(), 1, **k), X),
    (lambda **k: t.ComposeTransform([t.AffineTransform(1.0, 2.0), t.ExpTransform()], **k), X),
    (lambda **k: t.CatTransform([t.ExpTransform(), t.SigmoidTransform()], -1, [1, 2], **k), X),
    (lambda **k: t.StackTransform([t.ExpTransform(), t.SigmoidTransform()], 0, **k), X),
    (lambda **k: t.CumulativeDistributionTransform(NORMAL, **k), X),
    (lambda **k: t.ExpTransform(**k).inv, [0.3, 2.0]),
]  # fmt: skip


def made(maker: Any, value: Any, **kwargs: Any) -> tuple[Any, Any]:
    return maker(**kwargs), torch.tensor(value, dtype=torch.float64)


@pytest.mark.parametrize(("maker", "value"), TRANSFORMS)
def test_the_inverse_gives_the_input_and_shapes_are_as_announced(maker: Any, value: Any) -> None:
    transform, x = made(maker, value)
    y = transform(x)
    # (What is above the diagonal of a matrix is left out.)
    kept = x.tril() if value is MATRIX else x
    assert torch.allclose(transform.inv(y), kept, atol=1e-12)
    assert transform.inv.inv is transform
    assert tuple(transform.forward_shape(x.shape)) == tuple(y.shape)
    assert tuple(transform.inverse_shape(y.shape)) == tuple(x.shape)
    assert transform.codomain.check(y).all()


@pytest.mark.parametrize(("maker", "value"), [case for case in TRANSFORMS if case[1] is not MATRIX])
def test_the_log_of_the_jacobian_is_that_of_the_derivatives(maker: Any, value: Any) -> None:
    transform, x = made(maker, value)
    found = transform.log_abs_det_jacobian(x, transform(x))
    event_dim = transform.domain.event_dim
    shape = x.shape[: x.dim() - event_dim]
    assert found.shape == shape
    # The parts of an output that are free: each as many as the input has.
    for index in torch.cartesian_prod(*(torch.arange(n) for n in shape)).reshape(-1, len(shape)):
        place = tuple(index.tolist())

        def free(part: Any, place: Any = place) -> Any:
            inner = x.clone()
            inner[place] = part
            y = transform(inner)[place]
            if isinstance(transform, t.CorrCholeskyTransform):
                return tril_matrix_to_vec(y, -1)
            return y[..., :-1] if isinstance(transform, t.StickBreakingTransform) else y

        jacobian = torch.autograd.functional.jacobian(free, x[place])
        size = x[place].numel()
        expected = torch.linalg.slogdet(jacobian.reshape(size, size)).logabsdet
        assert found[place].item() == pytest.approx(expected.item(), abs=1e-10)


@pytest.mark.parametrize(("maker", "value"), TRANSFORMS)
def test_transforms_can_be_pickled(maker: Any, value: Any) -> None:
    transform, x = made(maker, value)
    copy = pickle.loads(pickle.dumps(transform))
    assert torch.equal(copy(x), transform(x))
    assert torch.equal(copy.inv(transform(x)), transform.inv(transform(x)))


@pytest.mark.parametrize(("maker", "value"), TRANSFORMS[:-1])
def test_a_cache_gives_the_very_tensor_back(maker: Any, value: Any) -> None:
    transform, x = made(maker, value, cache_size=1)
    y = transform(x)
    if not isinstance(transform, (t.CatTransform, t.StackTransform)):
        assert transform.inv(y) is x
        assert transform(x) is y
    assert transform.with_cache(1) is transform
    plain = transform.with_cache(0)
    assert type(plain) is type(transform)
    assert torch.equal(plain(x), y)


def test_transforms_that_lose_something_invert_what_they_give() -> None:
    x = torch.tensor(X, dtype=torch.float64)
    for transform in (t.AbsTransform(), t.SoftmaxTransform()):
        assert not transform.bijective
        y = transform(x)
        assert torch.allclose(transform(transform.inv(y)), y)
    matrix = torch.tensor(MATRIX, dtype=torch.float64)
    definite = t.PositiveDefiniteTransform()
    assert torch.allclose(definite.inv(definite(matrix)), t.LowerCholeskyTransform().inv(
        t.LowerCholeskyTransform()(matrix)
    ))  # fmt: skip


def test_signs_are_those_of_the_derivatives() -> None:
    assert t.ExpTransform().sign == 1
    assert t.AffineTransform(0.0, -2.0).sign == -1
    assert t.AffineTransform(0.0, torch.tensor([-2.0, 3.0])).sign.tolist() == [-1.0, 1.0]
    assert t.PowerTransform(-1.0).sign == -1
    chain = t.ComposeTransform([t.AffineTransform(0.0, -1.0), t.ExpTransform().inv])
    assert chain.sign == -1
    assert chain.inv.inv is chain
    with pytest.raises(NotImplementedError):
        _ = t.AbsTransform().sign


def test_equal_transforms_are_equal() -> None:
    for kind in (t.ExpTransform, t.SigmoidTransform, t.TanhTransform, t.SoftmaxTransform):
        assert kind() == kind()
        assert kind().inv == kind().inv
        assert kind() != t.AbsTransform()
    assert t.AffineTransform(0.0, torch.tensor(2.0)) == t.AffineTransform(0, torch.tensor(2.0))
    assert t.AffineTransform(0.0, 1.0) != t.AffineTransform(0.0, 2.0)
    assert t.PowerTransform(2.0) == t.PowerTransform(2.0)
    assert t.ComposeTransform([t.ExpTransform()]) == t.ComposeTransform([t.ExpTransform()])
    assert t.CorrCholeskyTransform() != t.CorrCholeskyTransform()
    assert t.identity_transform == t.ComposeTransform([])
    with pytest.raises(TypeError, match="unhashable"):
        hash(t.ExpTransform())


def test_transforms_say_what_they_are() -> None:
    assert repr(t.ExpTransform()) == "ExpTransform()"
    assert repr(t.ExpTransform().inv) == "_InverseTransform(ExpTransform())"
    assert (
        repr(t.IndependentTransform(t.ExpTransform(), 1))
        == "IndependentTransform(ExpTransform(), 1)"
    )
    assert (
        repr(t.ComposeTransform([t.ExpTransform()])) == "ComposeTransform(\n    ExpTransform()\n)"
    )


def test_impossible_transforms_and_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        t.ExpTransform(cache_size=2)
    with pytest.raises(ValueError, match="different numbers of elements"):
        t.ReshapeTransform((2,), (3,))
    with pytest.raises(ValueError, match="Shape mismatch"):
        t.ReshapeTransform((2,), (2, 1)).forward_shape((3,))
    with pytest.raises(ValueError, match="Too few dimensions on input"):
        t.StickBreakingTransform().forward_shape(())
    with pytest.raises(ValueError, match="Input is not a flattened lower-diagonal number"):
        t.CorrCholeskyTransform().forward_shape((4,))
    with pytest.raises(ValueError, match="Input is not square"):
        t.CorrCholeskyTransform().inverse_shape((2, 3))
    with pytest.raises(ValueError, match="Too few dimensions on input"):
        t.IndependentTransform(t.ExpTransform(), 1)(torch.tensor(1.0))
    with pytest.raises(ValueError, match=r"either .domain.event_dim or .codomain.event_dim"):
        _ = t.CorrCholeskyTransform().event_dim
    with pytest.raises(AssertionError, match=r"lengths \(1\) must match transforms \(2\)"):
        t.CatTransform([t.ExpTransform(), t.ExpTransform()], 0, [2])
    with pytest.raises(AssertionError, match="must equal length 2"):
        t.CatTransform([t.ExpTransform(), t.ExpTransform()])(torch.ones(3))

    class Own(t.Transform):
        def __init__(self) -> None:
            super().__init__()

    with pytest.raises(NotImplementedError, match="with_cache is not implemented"):
        Own().with_cache()


@pytest.mark.parametrize(
    "constraint",
    [
        c.real, c.real_vector, c.positive, c.nonnegative, c.greater_than(2.0),
        c.greater_than_eq(-1),
        c.less_than(1.0), c.unit_interval, c.interval(-1.0, 3.0), c.half_open_interval(0.0, 2.0),
        c.simplex, c.corr_cholesky, c.independent(c.positive, 1),
        c.cat([c.positive, c.real], -1, [1, 2]), c.stack([c.positive, c.less_than(0.0)], 0),
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("registry", [biject_to, transform_to])
def test_registered_transforms_end_in_the_set(registry: Any, constraint: Any) -> None:
    transform = registry(constraint)
    x = torch.tensor(X, dtype=torch.float64)
    y = transform(x)
    assert constraint.check(y).all()
    assert torch.allclose(transform(transform.inv(y)), y)
    if registry is biject_to:
        assert transform.bijective
        assert torch.allclose(transform.inv(y), x)


def test_matrices_have_transforms_that_need_not_be_inverted_exactly() -> None:
    matrix = torch.tensor(MATRIX)
    for constraint in (c.lower_cholesky, c.positive_definite, c.positive_semidefinite):
        assert constraint.check(transform_to(constraint)(matrix)).all()
    with pytest.raises(NotImplementedError, match="Cannot transform _LowerCholesky constraints"):
        biject_to(c.lower_cholesky)


def test_a_registry_takes_constraints_of_ones_own() -> None:
    registry = ConstraintRegistry()

    class Even(c.Constraint):
        pass

    @registry.register(Even)
    def make(constraint: Any) -> Any:
        return t.AffineTransform(0, 2)

    assert registry(Even()) == t.AffineTransform(0, 2)
    registry.register(Even(), lambda constraint: t.identity_transform)
    assert registry(Even()) is t.identity_transform
    with pytest.raises(TypeError, match="Expected constraint to be either a Constraint subclass"):
        registry.register(3, make)
    with pytest.raises(NotImplementedError, match="Cannot transform _Real constraints"):
        registry(c.real)


def test_numbers_become_tensors_of_the_first_tensors_dtype() -> None:
    a, b = broadcast_all(1, torch.zeros(2, dtype=torch.float64))
    assert (a.dtype, a.shape, b.shape) == (torch.float64, (2,), (2,))
    (a,) = broadcast_all(2)
    assert (a.dtype, a.shape) == (torch.float32, ())
    with pytest.raises(ValueError, match="Input arguments must all be instances of Number"):
        broadcast_all("1", 2)


def test_probabilities_and_logits_are_inverse() -> None:
    p = torch.tensor([0.2, 0.3, 0.5])
    assert torch.allclose(logits_to_probs(probs_to_logits(p)), p)
    assert torch.allclose(logits_to_probs(probs_to_logits(p, is_binary=True), is_binary=True), p)
    assert probs_to_logits(torch.tensor([0.0, 1.0]), is_binary=True).isfinite().all()


@pytest.mark.parametrize("diag", [-2, -1, 0, 1])
def test_triangles_become_vectors_and_back(diag: int) -> None:
    matrix = torch.arange(1.0, 17.0).reshape(4, 4)
    vector = tril_matrix_to_vec(matrix, diag)
    assert vector.tolist() == [v for v in matrix.tril(diag).reshape(-1).tolist() if v]
    assert torch.equal(vec_to_tril_matrix(vector, diag), matrix.tril(diag))


def test_impossible_triangles_are_refused() -> None:
    with pytest.raises(ValueError, match=r"diag \(2\) provided is outside \[-2, 1\]"):
        tril_matrix_to_vec(torch.ones(2, 2), 2)
    with pytest.raises(ValueError, match="cannot be expressed as the lower triangular part"):
        vec_to_tril_matrix(torch.ones(4))


def test_a_lazy_property_is_computed_once_and_with_gradients() -> None:
    class Holder:
        calls = 0

        @lazy_property
        def value(self) -> Any:
            """What it is."""
            self.calls += 1
            return torch.ones(1, requires_grad=True) * 2

    holder = Holder()
    with torch.no_grad():
        first = holder.value
    assert first.requires_grad
    assert holder.value is first
    assert holder.calls == 1
    assert isinstance(Holder.value, property)
    assert Holder.value.__doc__ == "What it is."
