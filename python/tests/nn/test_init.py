"""``nn.init``: the numbers recorded from PyTorch 2.15 for seed 0, gains, and refusals."""

import math

import pytest

import pullback
from pullback import nn
from pullback.nn import init


def t(rows=5, cols=4):
    return pullback.empty(rows, cols)


# The call, the first four values, the sum of all.
DRAWS = [
    (lambda: init.uniform_(t(), -2, 3), [0.4812829, 1.841109, -1.5576129, -1.3398476], 2.98071),
    (lambda: init.normal_(t(), 1, 2), [-1.2516797, -1.3047204, 0.4988428, 0.1322424], 33.8814),
    (lambda: init.normal_(t(3), 1, 2), [4.0819921, 0.4131422, -3.3575788, 2.1368625], 5.71653),
    (lambda: init.trunc_normal_(t()), [-1.1258398, -1.1523602, -0.2505786, -0.4338788], 5.38123),
    (
        lambda: init.trunc_normal_(t(), 0, 1, -0.5, 0.5),
        [0.4396958, 0.1124112, -0.2505786, -0.4338788],
        -0.42341,
    ),
    (
        lambda: init.trunc_normal_(t(), 0, 1, 1.5, 2),
        [1.5170114, 1.6218292, 1.5442387, 1.5660152],
        33.72233,
    ),
    (
        lambda: init.xavier_uniform_(t(), 2),
        [-0.0122259, 0.8760087, -1.3440272, -1.2017834],
        -4.58498,
    ),
    (lambda: init.xavier_normal_(t()), [-0.530726, -0.5432278, -0.1181239, -0.2045324], 3.27188),
    (
        lambda: init.kaiming_uniform_(t()),
        [-0.0091694, 0.6570066, -1.0080204, -0.9013376],
        -3.43873,
    ),
    (
        lambda: init.kaiming_uniform_(t(), mode="fan_out", nonlinearity="relu"),
        [-0.0082014, 0.5876445, -0.9016008, -0.8061808],
        -3.0757,
    ),
    (
        lambda: init.kaiming_normal_(t(), 0.2),
        [-0.7806295, -0.799018, -0.173745, -0.3008408],
        4.81251,
    ),
    (lambda: init.orthogonal_(t()), [-0.5224398, -0.1178222, 0.4257606, -0.5377079], 0.6222),
    (
        lambda: init.orthogonal_(t(4, 5), 3),
        [-1.8865882, -1.9310288, -0.4198987, -0.7270579],
        3.01411,
    ),
    (
        lambda: init.sparse_(t(), 0.4, 1),
        [-1.1258398, -1.1523602, -0.2505786, -0.4338788],
        1.27335,
    ),
]

LAYERS = [
    (lambda: nn.Linear(4, 3), [-0.0037434, 0.2682218, -0.4115226, -0.3679695], -1.36336),
    (lambda: nn.Bilinear(2, 3, 4), [-0.005294, 0.3793229, -0.5819808, -0.5203875], -0.81258),
    (
        lambda: nn.Conv1d(2, 4, 3, groups=2),
        [-0.0043225, 0.3097158, -0.4751853, -0.4248946],
        -1.55288,
    ),
    (lambda: nn.Conv2d(2, 4, 3), [-0.0017647, 0.126441, -0.1939936, -0.1734625], 0.07158),
    (lambda: nn.Embedding(5, 4, padding_idx=0), [0.0, 0.0, 0.0, 0.0], 9.90336),
    (lambda: nn.RNN(2, 3), [-0.0043225, 0.3097158, -0.4751853, -0.4248946], -1.41133),
    (
        lambda: nn.LSTM(2, 3, num_layers=2, bidirectional=True),
        [-0.0043225, 0.3097158, -0.4751853, -0.4248946],
        -1.77396,
    ),
    (lambda: nn.GRU(2, 3, bias=False), [-0.0043225, 0.3097158, -0.4751853, -0.4248946], -2.91088),
    (lambda: nn.LSTMCell(2, 3), [-0.0043225, 0.3097158, -0.4751853, -0.4248946], -0.68191),
    (
        lambda: nn.MultiheadAttention(4, 2, add_bias_kv=True),
        [0.2224242, 0.5085067, -0.1260264, 0.4582455],
        -3.47598,
    ),
    (
        lambda: nn.MultiheadAttention(4, 2, kdim=3, vdim=2),
        [0.3145553, 0.7191371, -0.1782282, 0.648057],
        -0.90643,
    ),
    (lambda: nn.PReLU(3), [0.25, 0.25, 0.25], 0.75),
    (lambda: nn.LayerNorm(3), [1.0, 1.0, 1.0, 0.0], 3.0),
    (lambda: nn.BatchNorm2d(3), [1.0, 1.0, 1.0, 0.0], 3.0),
]


@pytest.mark.parametrize(("draw", "first", "total"), DRAWS)
def test_draws_equal_the_recorded_ones(draw, first, total):
    pullback.manual_seed(0)
    values = draw().reshape(-1)
    assert values[:4].tolist() == pytest.approx(first, abs=2e-6)
    assert values.sum().item() == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize(("make", "first", "total"), LAYERS)
def test_layers_start_from_the_recorded_values(make, first, total):
    pullback.manual_seed(0)
    values = pullback.cat([p.detach().reshape(-1) for p in make().parameters()])
    assert values[:4].tolist() == pytest.approx(first, abs=2e-6)
    assert values.sum().item() == pytest.approx(total, abs=1e-4)


def test_a_generator_of_ones_own_is_used():
    def draw():
        return init.normal_(t(), generator=pullback.Generator().manual_seed(3)).tolist()

    first = draw()
    pullback.rand(7)
    assert draw() == first


def test_constants():
    assert init.constant_(t(1, 2), 3.5).tolist() == [[3.5, 3.5]]
    assert init.ones_(t(1, 2)).tolist() == [[1.0, 1.0]]
    assert init.zeros_(t(1, 2)).tolist() == [[0.0, 0.0]]
    assert init.eye_(t(2, 3)).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


def test_initialisers_return_the_tensor_and_leave_no_history():
    p = nn.Parameter(pullback.ones(3, 3))
    for fill in (init.uniform_, init.normal_, init.eye_, init.orthogonal_, init.trunc_normal_):
        assert fill(p) is p
        assert p.requires_grad
        assert p.grad_fn is None


@pytest.mark.parametrize("groups", [1, 2])
def test_dirac_lets_channels_pass(groups):
    weight = init.dirac_(pullback.empty(4, 4 // groups, 3), groups)
    x = pullback.arange(20.0).reshape(1, 4, 5)
    out = nn.functional.conv1d(x, weight, padding=1, groups=groups)
    assert out.tolist() == x.tolist()


def test_orthogonal_columns_and_rows():
    tall = init.orthogonal_(t(6, 3), gain=2)
    assert ((tall.t() @ tall) - 4 * pullback.eye(3)).abs().max().item() < 1e-5
    wide = init.orthogonal_(t(3, 6))
    assert ((wide @ wide.t()) - pullback.eye(3)).abs().max().item() < 1e-5


def test_sparse_zeroes_a_share_of_each_column():
    out = init.sparse_(t(10, 6), 0.25)
    assert (out == 0).sum(0).tolist() == [3] * 6


def test_gains():
    assert init.calculate_gain("linear") == 1
    assert init.calculate_gain("sigmoid") == 1
    assert init.calculate_gain("tanh") == 5 / 3
    assert init.calculate_gain("relu") == math.sqrt(2)
    assert init.calculate_gain("leaky_relu") == math.sqrt(2 / (1 + 0.01**2))
    assert init.calculate_gain("leaky_relu", 1) == 1
    assert init.calculate_gain("selu") == 0.75
    with pytest.raises(ValueError, match=r"Unsupported nonlinearity other"):
        init.calculate_gain("other")
    with pytest.raises(ValueError, match=r"negative_slope True not a valid number"):
        init.calculate_gain("leaky_relu", True)


def test_refusals():
    vector = pullback.empty(3)
    with pytest.raises(ValueError, match=r"Fan in and fan out can not be computed"):
        init.xavier_uniform_(vector)
    with pytest.raises(ValueError, match=r"Only tensors with 2 dimensions are supported"):
        init.eye_(vector)
    with pytest.raises(ValueError, match=r"Only tensors with 2 dimensions are supported"):
        init.sparse_(vector, 0.1)
    with pytest.raises(ValueError, match=r"Only tensors with 2 or more dimensions"):
        init.orthogonal_(vector)
    with pytest.raises(ValueError, match=r"Only tensors with 3, 4, or 5 dimensions"):
        init.dirac_(t())
    with pytest.raises(ValueError, match=r"dim 0 must be divisible by groups"):
        init.dirac_(pullback.empty(3, 1, 1), 2)
    with pytest.raises(ValueError, match=r"Mode fan_up not supported"):
        init.kaiming_normal_(t(), mode="fan_up")


def test_warnings():
    with pytest.warns(UserWarning, match=r"Initializing zero-element tensors is a no-op"):
        init.kaiming_uniform_(pullback.empty(0, 3))
    with pytest.warns(UserWarning, match=r"mean is more than 2 std from"):
        init.trunc_normal_(t(), mean=5)
    with pytest.warns(FutureWarning, match=r"`nn.init.normal` is now deprecated"):
        init.normal(t())
