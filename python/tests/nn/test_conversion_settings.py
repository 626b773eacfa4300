"""`torch.__future__`: whether conversions and checkpoints keep, replace or exchange parameters."""

import pytest

import pullback
from pullback import nn

future = pullback.__future__


@pytest.fixture
def swap():
    future.set_swap_module_params_on_conversion(True)
    yield
    future.set_swap_module_params_on_conversion(False)


@pytest.fixture
def overwrite():
    future.set_overwrite_module_params_on_conversion(True)
    yield
    future.set_overwrite_module_params_on_conversion(False)


def with_grad():
    layer = nn.Linear(2, 2)
    layer(pullback.ones(1, 2)).sum().backward()
    return layer


def test_both_settings_are_off():
    assert not future.get_swap_module_params_on_conversion()
    assert not future.get_overwrite_module_params_on_conversion()


def test_a_parameter_stays_the_same_object():
    layer = with_grad()
    weight, grad = layer.weight, layer.weight.grad
    layer.double()
    assert layer.weight is weight
    assert layer.weight.grad is grad
    assert weight.dtype is grad.dtype is pullback.float64


@pytest.mark.usefixtures("overwrite")
def test_overwriting_makes_new_parameters():
    layer = with_grad()
    weight = layer.weight
    layer.double()
    assert layer.weight is not weight
    assert weight.dtype is weight.grad.dtype is pullback.float32
    assert layer.weight.grad.dtype is pullback.float64
    assert layer.weight.requires_grad


@pytest.mark.usefixtures("swap")
def test_swapping_keeps_the_object_and_leaves_its_views():
    layer = with_grad()
    weight, grad = layer.weight, layer.weight.grad
    view = weight.detach()
    layer.double()
    assert layer.weight is weight
    assert weight.dtype is pullback.float64
    assert weight.grad is grad
    assert grad.dtype is pullback.float64
    assert view.dtype is pullback.float32


@pytest.mark.usefixtures("swap")
@pytest.mark.parametrize("assign", [False, True])
def test_checkpoints_are_swapped_in(assign):
    layer = nn.Linear(2, 2)
    weight, view = layer.weight, layer.weight.detach()
    given = {"weight": pullback.ones(2, 2, dtype=pullback.float64), "bias": pullback.ones(2)}
    layer.load_state_dict(given, assign=assign)
    assert layer.weight is weight
    assert weight.dtype is (pullback.float64 if assign else pullback.float32)
    assert weight.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert (view.tolist() == weight.tolist()) is not assign


@pytest.mark.usefixtures("swap")
def test_what_cannot_be_swapped():
    import weakref

    layer = nn.Linear(2, 2)
    watch = weakref.ref(layer.weight)
    with pytest.raises(RuntimeError, match=r"_apply\(\): Couldn't swap Linear.weight"):
        layer.double()
    assert watch() is layer.weight

    class Stubborn(pullback.Tensor):
        def module_load(self, other, assign=False):
            return other

    odd = nn.Module()
    odd.register_buffer("value", pullback.ones(2).as_subclass(Stubborn))
    with pytest.raises(RuntimeError, match="While swapping the parameter named"):
        odd.load_state_dict({"value": pullback.zeros(2)})


def test_prefixes_of_state_dicts():
    model = nn.DataParallel(nn.Sequential(nn.Linear(1, 1)))
    state = model.state_dict()
    assert list(state) == ["module.0.weight", "module.0.bias"]
    nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["0.weight", "0.bias"]
    assert sorted(state._metadata) == ["", "0"]


def test_parallel_modules_without_devices():
    layer = nn.Linear(2, 3)
    x = pullback.ones(4, 2)
    assert pullback.equal(nn.DataParallel(layer)(x), layer(x))
    assert pullback.equal(nn.parallel.data_parallel(layer, x), layer(x))
    outs = nn.parallel.parallel_apply([layer, layer.double()], [x.double(), (x.double(),)])
    assert len(outs) == 2
    with pytest.raises(AssertionError, match="not equal to the number of inputs"):
        nn.parallel.parallel_apply([layer], [x, x])
    with pytest.raises(RuntimeError, match="shape"):
        nn.parallel.parallel_apply([layer, layer], [pullback.ones(1, 5).double(), x.double()])


def test_vectors_of_tensors_and_exceptions_for_elsewhere():
    utils = pullback._utils
    tensors = [pullback.ones(2, 3), pullback.zeros(4)]
    flat = utils._flatten_dense_tensors(tensors)
    assert flat.tolist() == [1.0] * 6 + [0.0] * 4
    views = utils._unflatten_dense_tensors(flat, tensors)
    assert [tuple(view.shape) for view in views] == [(2, 3), (4,)]
    mixed = [*tensors, pullback.ones(3, dtype=pullback.int64)]
    assert [len(group) for group in utils._take_tensors(mixed, 24)] == [1, 1, 1]
    assert utils._get_device_index(3) == 3
    assert utils._get_device_index("cpu", allow_cpu=True) == -1
    with pytest.raises(ValueError, match="Expected a non cpu device"):
        utils._get_device_index("cpu")
    try:
        {}["none"]
    except KeyError:
        wrapped = utils.ExceptionWrapper(where="in worker 3")
    with pytest.raises(KeyError, match="Caught KeyError in worker 3"):
        wrapped.reraise()
