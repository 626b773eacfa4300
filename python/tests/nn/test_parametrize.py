"""Parameters that are functions of others, by parametrizations and by the older hooks."""

import copy
import pickle

import numpy as np
import pytest

import pullback
from pullback import nn
from pullback.nn.utils import (
    parametrizations,
    parametrize,
    remove_spectral_norm,
    remove_weight_norm,
    spectral_norm,
    weight_norm,
)


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).mT

    def right_inverse(self, x):
        return x.triu()


class Double(nn.Module):
    def forward(self, x):
        return 2 * x


class Product(nn.Module):
    def forward(self, a, b):
        return a * b

    def right_inverse(self, x):
        return pullback.ones_like(x), x.clone()


def test_a_parametrized_weight_is_computed_from_its_original():
    layer = nn.Linear(3, 3)
    before = layer.weight.detach().clone()
    original = layer.weight
    assert parametrize.register_parametrization(layer, "weight", Symmetric()) is layer
    assert pullback.equal(layer.weight, layer.weight.T)
    assert layer.parametrizations.weight.original is original
    assert pullback.equal(original, before.triu())
    assert type(layer).__name__ == "ParametrizedLinear"
    assert isinstance(layer, nn.Linear)
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    layer(pullback.ones(1, 3)).sum().backward()
    assert original.grad is not None


def test_repr_of_a_parametrized_layer():
    layer = nn.Linear(2, 2)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert repr(layer) == (
        "ParametrizedLinear(\n  in_features=2, out_features=2, bias=True\n  (parametrizations): "
        "ModuleDict(\n    (weight): ParametrizationList(\n      (0): Symmetric()\n    )\n  )\n)"
    )


def test_assignment_goes_through_the_right_inverse():
    layer = nn.Linear(2, 2)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    layer.weight = pullback.tensor([[1.0, 2.0], [2.0, 3.0]])
    assert layer.weight.tolist() == [[1.0, 2.0], [2.0, 3.0]]
    assert layer.parametrizations.weight.original.tolist() == [[1.0, 2.0], [0.0, 3.0]]
    plain = nn.Linear(2, 2)
    parametrize.register_parametrization(plain, "weight", Double())
    with pytest.raises(RuntimeError, match="parametrization Double does not implement"):
        plain.weight = pullback.ones(2, 2)


def test_several_parametrizations_and_several_originals():
    layer = nn.Linear(2, 2, bias=False)
    weight = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Product())
    parametrize.register_parametrization(layer, "weight", Double())
    own = layer.parametrizations.weight
    assert own.original0.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert isinstance(own.original1, nn.Parameter)
    assert pullback.equal(layer.weight, 2 * weight)
    with pytest.raises(ValueError, match="Cannot leave unparametrized"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear
    assert pullback.equal(layer.weight, 2 * weight)
    assert not hasattr(layer, "parametrizations")


def test_removal_leaves_the_same_parameter():
    layer = nn.Linear(2, 2)
    original = layer.weight
    parametrize.register_parametrization(layer, "weight", Double())
    value = layer.weight.detach().clone()
    parametrize.remove_parametrizations(layer, "weight")
    assert layer.weight is original
    assert pullback.equal(layer.weight, value)
    parametrize.register_parametrization(layer, "weight", Double())
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    assert pullback.equal(layer.weight, value)


def test_buffers_can_be_parametrized():
    norm = nn.BatchNorm1d(2)
    parametrize.register_parametrization(norm, "running_var", Double())
    assert norm.running_var.tolist() == [2.0, 2.0]
    assert "parametrizations.running_var.original" in norm.state_dict()
    parametrize.remove_parametrizations(norm, "running_var")
    assert "running_var" in dict(norm.named_buffers())


def test_cached_computes_once():
    class Count(nn.Module):
        calls = 0

        def forward(self, x):
            Count.calls += 1
            return x * 1

    layer = nn.Linear(2, 2)
    parametrize.register_parametrization(layer, "weight", Count())
    Count.calls = 0
    with parametrize.cached():
        assert layer.weight is layer.weight
        layer(pullback.ones(1, 2))
    assert Count.calls == 1
    assert layer.weight is not layer.weight
    assert Count.calls == 3


def test_checks_of_shape_and_dtype():
    class Wide(nn.Module):
        def forward(self, x):
            return pullback.cat([x, x])

    class Long(nn.Module):
        def forward(self, x):
            return x.double()

    layer = nn.Linear(2, 2)
    for bad, text in ((Wide(), "may not change the shape"), (Long(), "may not change the dtype")):
        with pytest.raises(ValueError, match=text):
            parametrize.register_parametrization(layer, "weight", bad)
    with pytest.raises(ValueError, match="does not have a parameter, a buffer, or a parametrized"):
        parametrize.register_parametrization(layer, "none", Double())
    with pytest.raises(ValueError, match="does not have a parametrization on weight"):
        parametrize.remove_parametrizations(layer, "weight")
    with pytest.raises(ValueError, match="requires one or more modules"):
        parametrize.ParametrizationList([], pullback.ones(1))
    parametrize.register_parametrization(layer, "weight", Wide(), unsafe=True)
    assert layer.weight.shape == (4, 2)


def test_copies_but_no_pickles_of_parametrized_modules():
    layer = nn.Linear(2, 2)
    parametrize.register_parametrization(layer, "weight", Double())
    twin = copy.deepcopy(layer)
    assert type(twin) is type(layer)
    with pullback.no_grad():
        twin.parametrizations.weight.original.zero_()
    assert not pullback.equal(twin.weight, layer.weight)
    with pytest.raises(RuntimeError, match="Serialization of parametrized modules"):
        pickle.dumps(layer)


def test_parametrizations_move_from_module_to_module():
    one, other = nn.Linear(2, 2), nn.Linear(2, 2)
    parametrize.register_parametrization(one, "weight", Symmetric())
    parametrize.transfer_parametrizations_and_params(one, other)
    assert parametrize.is_parametrized(other, "weight")
    assert not parametrize.is_parametrized(other, "bias")
    assert pullback.equal(one.weight, other.weight)


# ---- weight norm ----


@pytest.mark.parametrize("dim", [0, 1, -2, None])
def test_weight_norm_keeps_the_weight_and_parts_it(dim):
    layer = nn.Conv1d(3, 4, 2)
    weight = layer.weight.detach().clone()
    parametrizations.weight_norm(layer, dim=dim)
    own = layer.parametrizations.weight
    axes = None if dim is None else tuple(d for d in range(3) if d != dim % 3)
    expected = np.sqrt((weight.numpy() ** 2).sum(axes, keepdims=dim is not None))
    np.testing.assert_allclose(own.original0.detach().numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(layer.weight.detach().numpy(), weight.numpy(), rtol=1e-5)
    with pullback.no_grad():
        own.original0.mul_(2)
    np.testing.assert_allclose(layer.weight.detach().numpy(), 2 * weight.numpy(), rtol=1e-5)


@pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm` is deprecated")
def test_weight_norm_by_hooks():
    layer = nn.Linear(3, 4)
    weight = layer.weight.detach().clone()
    assert weight_norm(layer) is layer
    assert list(layer.state_dict()) == ["bias", "weight_g", "weight_v"]
    assert type(layer.weight) is pullback.Tensor
    with pytest.raises(RuntimeError, match="Cannot register two weight_norm hooks"):
        weight_norm(layer)
    newer = parametrizations.weight_norm(nn.Linear(3, 4))
    newer.load_state_dict(layer.state_dict())
    np.testing.assert_allclose(newer.weight.detach().numpy(), weight.numpy(), rtol=1e-5)
    remove_weight_norm(layer)
    assert isinstance(layer.weight, nn.Parameter)
    assert len(layer._forward_pre_hooks) == 0
    np.testing.assert_allclose(layer.weight.detach().numpy(), weight.numpy(), rtol=1e-5)
    with pytest.raises(ValueError, match="weight_norm of 'weight' not found in Linear"):
        remove_weight_norm(layer)


def test_weight_norm_by_hooks_says_what_is_newer():
    with pytest.warns(FutureWarning, match="is deprecated in favor of"):
        weight_norm(nn.Linear(2, 2))


# ---- spectral norm ----


def greatest(weight, dim=0):
    matrix = np.moveaxis(weight.detach().numpy(), dim, 0).reshape(weight.shape[dim], -1)
    return np.linalg.svd(matrix, compute_uv=False)[0]


@pytest.mark.parametrize("apply", [parametrizations.spectral_norm, spectral_norm])
@pytest.mark.parametrize(
    ("make", "shape", "dim"),
    [
        (lambda: nn.Linear(4, 5), (2, 4), 0),
        (lambda: nn.Conv2d(2, 3, 2), (1, 2, 4, 4), 0),
        (lambda: nn.ConvTranspose1d(2, 3, 2), (1, 2, 4), 1),
    ],
)
def test_spectral_norm_makes_the_greatest_singular_value_one(apply, make, shape, dim):
    pullback.manual_seed(0)
    layer = apply(make(), n_power_iterations=30)
    for _ in range(5):
        layer(pullback.ones(shape))
    assert greatest(layer.weight, dim) == pytest.approx(1.0, rel=1e-3)
    layer.eval()
    one, other = layer(pullback.ones(shape)), layer(pullback.ones(shape))
    assert pullback.equal(one, other)
    one.sum().backward()
    assert all(param.grad is not None for param in layer.parameters())


def test_spectral_norm_by_hooks_and_its_checkpoints():
    layer = spectral_norm(nn.Linear(3, 4))
    state = layer.state_dict()
    assert list(state) == ["bias", "weight_orig", "weight_u", "weight_v"]
    assert state._metadata[""]["spectral_norm"] == {"weight.version": 1}
    other = spectral_norm(nn.Linear(3, 4))
    other.load_state_dict(state)
    layer.eval()
    other.eval()
    x = pullback.ones(1, 3)
    assert pullback.equal(layer(x), other(x))
    # A checkpoint of version 0 has the computed weight, and one vector.
    old = copy.copy(state)
    weight = layer.weight.detach()
    del old["weight_v"]
    old["weight"] = weight
    old._metadata = {"": {"version": 1}}
    third = spectral_norm(nn.Linear(3, 4)).eval()
    third.load_state_dict(old)
    np.testing.assert_allclose(third(x).detach().numpy(), layer(x).detach().numpy(), rtol=1e-4)
    remove_spectral_norm(layer)
    assert list(layer.state_dict()) == ["bias", "weight"]
    assert not layer._state_dict_hooks
    assert not layer._load_state_dict_pre_hooks


def test_what_spectral_norm_refuses():
    with pytest.raises(RuntimeError, match="Cannot register two spectral_norm hooks"):
        spectral_norm(spectral_norm(nn.Linear(2, 2)))
    with pytest.raises(ValueError, match="Expected n_power_iterations to be positive"):
        spectral_norm(nn.Linear(2, 2), n_power_iterations=0)
    with pytest.raises(ValueError, match="spectral_norm of 'weight' not found"):
        remove_spectral_norm(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="has no parameter or buffer with name 'none'"):
        parametrizations.spectral_norm(nn.Linear(2, 2), "none")
    with pytest.raises(IndexError, match="Dimension out of range"):
        parametrizations.spectral_norm(nn.Linear(2, 2), dim=2)


def test_spectral_norm_of_a_vector_is_its_direction():
    layer = nn.Linear(3, 4)
    bias = layer.bias.detach().numpy().copy()
    parametrizations.spectral_norm(layer, "bias")
    np.testing.assert_allclose(layer.bias.detach().numpy(), bias / np.linalg.norm(bias), rtol=1e-6)


# ---- orthogonal matrices ----


@pytest.mark.parametrize(
    "chosen",
    [
        "cayley",
        "matrix_exp",
        "householder",
    ],
)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3)])
def test_orthogonal_weights_stay_orthogonal(chosen, shape):
    pullback.manual_seed(1)
    module = nn.Module()
    module.weight = nn.Parameter(pullback.randn(shape, dtype=pullback.float64))
    parametrizations.orthogonal(module, orthogonal_map=chosen)
    optimiser = pullback.optim.SGD(module.parameters(), lr=0.1)
    for _ in range(3):
        weight = module.weight
        tall = weight if shape[-2] >= shape[-1] else weight.mT
        product = (tall.mT @ tall).detach().numpy()
        np.testing.assert_allclose(
            product, np.broadcast_to(np.eye(min(shape[-2:])), product.shape), atol=1e-10
        )
        optimiser.zero_grad()
        (weight**2 * pullback.arange(weight.numel()).reshape(shape)).sum().backward()
        optimiser.step()


@pytest.mark.parametrize(
    "chosen",
    ["cayley", "matrix_exp"],
)
def test_an_orthogonal_matrix_that_is_assigned_comes_out(chosen):
    layer = parametrizations.orthogonal(nn.Linear(3, 3), orthogonal_map=chosen)
    q, _ = np.linalg.qr(np.arange(9.0).reshape(3, 3) + 5 * np.eye(3))
    layer.weight = pullback.tensor(q, dtype=pullback.float32)
    np.testing.assert_allclose(layer.weight.detach().numpy(), q, atol=1e-5)


def test_what_orthogonal_refuses():
    with pytest.raises(ValueError, match="Expected a matrix or batch of matrices"):
        parametrizations.orthogonal(nn.Linear(2, 2), "bias")
    with pytest.raises(ValueError, match="orthogonal_map has to be one of"):
        parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map="other")
    with pytest.raises(ValueError, match="has no parameter or buffer with name"):
        parametrizations.orthogonal(nn.Linear(2, 2), "none")
