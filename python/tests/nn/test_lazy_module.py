"""Modules that find out their shapes at their first call."""

import copy
import pickle
import warnings

import pytest

import pullback
from pullback import nn
from pullback.nn.modules.lazy import LazyModuleMixin


def test_a_lazy_layer_is_made_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nn.LazyLinear(2)


def test_an_uninitialized_parameter_answers_what_regards_no_shape():
    param = nn.UninitializedParameter(dtype=pullback.float64)
    assert repr(param) == "<UninitializedParameter>"
    assert isinstance(param, nn.Parameter)
    assert param.dtype is pullback.float64
    assert param.requires_grad
    assert param.is_leaf
    assert param.device == pullback.device("cpu")
    assert param.float().dtype is pullback.float32
    assert nn.parameter.is_lazy(param)
    assert not nn.parameter.is_lazy(nn.Parameter(pullback.ones(2)))


@pytest.mark.parametrize(
    "use",
    [
        lambda p: p + 1,
        lambda p: p.sum(),
        lambda p: pullback.relu(p),
        lambda p: p.detach(),
        lambda p: p.numel(),
        lambda p: p.view(-1),
    ],
)
def test_an_uninitialized_parameter_refuses_to_compute(use):
    for tensor in (nn.UninitializedParameter(), nn.UninitializedBuffer()):
        with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
            use(tensor)


def test_an_uninitialized_parameter_has_no_shape_and_no_memory():
    param = nn.UninitializedParameter()
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized"):
        param.shape  # noqa: B018 (asking is the point)
    with pytest.raises(RuntimeError, match="Can't share memory on an uninitialized"):
        nn.LazyLinear(2).share_memory()


def test_materialize_makes_the_same_object_an_ordinary_one():
    param, buffer = nn.UninitializedParameter(), nn.UninitializedBuffer(dtype=pullback.float64)
    param.materialize((2, 3))
    buffer.materialize((4,), dtype=pullback.int64)
    assert type(param) is nn.Parameter
    assert param.shape == (2, 3)
    assert param.requires_grad
    assert type(buffer) is pullback.Tensor
    assert buffer.dtype is pullback.int64
    param.sum().backward()
    assert param.grad.tolist() == [[1.0] * 3] * 2


def test_copies_and_pickles_of_uninitialized_parameters():
    layer = nn.LazyLinear(3, dtype=pullback.float64)
    twin = copy.deepcopy(layer)
    assert isinstance(twin.weight, nn.UninitializedParameter)
    assert twin.weight is not layer.weight
    assert twin.weight.dtype is pullback.float64
    twin(pullback.ones(1, 2, dtype=pullback.float64))
    assert type(twin) is nn.Linear
    assert type(layer) is nn.LazyLinear
    again = pickle.loads(pickle.dumps(nn.UninitializedParameter(False)))
    assert isinstance(again, nn.UninitializedParameter)
    assert not again.requires_grad


def test_a_pickled_lazy_layer_can_be_called():
    layer = pickle.loads(pickle.dumps(nn.LazyConv1d(2, 1)))
    assert layer(pullback.ones(1, 3, 4)).shape == (1, 2, 4)
    assert type(layer) is nn.Conv1d


def test_the_same_seed_gives_the_same_weights_as_the_ordinary_layer():
    for lazy, plain, x in (
        (lambda: nn.LazyLinear(3), lambda: nn.Linear(5, 3), (2, 5)),
        (lambda: nn.LazyConv2d(4, 3), lambda: nn.Conv2d(2, 4, 3), (1, 2, 4, 4)),
        (
            lambda: nn.LazyConvTranspose1d(4, 3, groups=2),
            lambda: nn.ConvTranspose1d(2, 4, 3, groups=2),
            (1, 2, 4),
        ),
    ):
        pullback.manual_seed(3)
        layer = lazy()
        layer(pullback.ones(x))
        pullback.manual_seed(3)
        expected = plain()
        assert repr(layer) == repr(expected)
        for mine, other in zip(layer.parameters(), expected.parameters(), strict=True):
            assert pullback.equal(mine, other)


def test_conversions_come_before_shapes():
    layer = nn.LazyBatchNorm1d().double()
    layer(pullback.ones(2, 3, dtype=pullback.float64))
    assert layer.weight.dtype is pullback.float64
    assert layer.running_mean.dtype is pullback.float64
    assert layer.num_batches_tracked.item() == 1


def test_a_state_dict_gives_shapes():
    source = nn.Linear(4, 3)
    layer = nn.LazyLinear(3)
    assert str(layer.load_state_dict(source.state_dict())) == "<All keys matched successfully>"
    assert not layer.has_uninitialized_params()
    assert pullback.equal(layer.weight, source.weight)
    out = layer(pullback.ones(1, 4))
    assert type(layer) is nn.Linear
    assert layer.in_features == 4
    assert pullback.equal(out, source(pullback.ones(1, 4)))


def test_features_that_do_not_fit_a_loaded_weight():
    layer = nn.LazyLinear(3)
    layer.load_state_dict(nn.Linear(4, 3).state_dict())
    with pytest.raises(AssertionError, match="in_features inferred from input: 5"):
        layer(pullback.ones(1, 5))


def test_state_of_a_lazy_layer_can_be_loaded_into_a_lazy_layer_only():
    state = nn.LazyLinear(3).state_dict()
    assert [type(value).__name__ for value in state.values()] == ["UninitializedParameter"] * 2
    other = nn.LazyLinear(3)
    other.load_state_dict(state)
    assert other.has_uninitialized_params()
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized"):
        nn.Linear(4, 3).load_state_dict(state)


@pytest.mark.parametrize(
    ("layer", "shape", "error", "text"),
    [
        (lambda: nn.LazyConv1d(2, 1), (2,), RuntimeError, r"Expected 2D \(unbatched\) or 3D"),
        (lambda: nn.LazyConv2d(2, 1), (1, 2), RuntimeError, "input to LazyConv2d, but got input"),
        (lambda: nn.LazyConv2d(4, 1, groups=2), (1, 3, 4, 4), ValueError, "divisible by groups"),
        (lambda: nn.LazyBatchNorm1d(), (1, 2, 3, 4), ValueError, "expected 2D or 3D input"),
    ],
)
def test_inputs_that_do_not_fit(layer, shape, error, text):
    with pytest.raises(error, match=text):
        layer()(pullback.ones(shape))


def test_a_module_of_ones_own():
    class Scale(LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = nn.UninitializedParameter()

        def initialize_parameters(self, x, power=1):
            if self.has_uninitialized_params():
                self.factor.materialize(x.shape[-1:])
                with pullback.no_grad():
                    self.factor.fill_(3.0)

        def forward(self, x, power=1):
            return x * self.factor**power

    scale = Scale()
    assert scale(pullback.ones(2), power=2).tolist() == [9.0, 9.0]
    assert type(scale) is Scale
    assert not hasattr(scale, "_initialize_hook")
    assert len(scale._forward_pre_hooks) == 0
    assert len(scale._load_state_dict_pre_hooks) == 0


def test_modules_that_do_not_initialize():
    class Empty(LazyModuleMixin, nn.Module):
        pass

    class Forgetful(LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.UninitializedParameter()

        def initialize_parameters(self, x):
            pass

    with pytest.raises(NotImplementedError, match="initialize_parameters is not implemented for"):
        Empty()(1)
    with pytest.raises(RuntimeError, match="has not been fully initialized"):
        Forgetful()(1)


def test_optimisers_keep_parameters_that_get_their_shape_later():
    model = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(1))
    before = list(model.parameters())
    model(pullback.ones(1, 3))
    assert all(a is b for a, b in zip(before, model.parameters(), strict=True))
    optimiser = pullback.optim.SGD(model.parameters(), lr=0.1)
    model(pullback.ones(1, 3)).sum().backward()
    optimiser.step()


def test_no_warning_without_lazy_layers():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nn.Linear(2, 2)
