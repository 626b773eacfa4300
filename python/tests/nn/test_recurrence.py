"""Recurrent layers and cells against the same computation step by step in plain ops."""

import itertools

import pytest

import pullback
from pullback import nn

KINDS = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
TOLERANCE = {pullback.float32: 1e-5, pullback.float64: 1e-12}


def step(mode, x, state, weights):
    """One step: the new state, a tuple that begins with the output."""
    w_ih, w_hh, *rest = weights
    b_ih, b_hh = rest[:2] if len(rest) > 1 else (0, 0)
    a, p = x @ w_ih.t() + b_ih, state[0] @ w_hh.t() + b_hh
    if mode == "LSTM":
        i, f, g, o = (a + p).chunk(4, -1)
        c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        if len(rest) % 2:
            h = h @ rest[-1].t()
        return h, c
    if mode == "GRU":
        (a_r, a_z, a_n), (p_r, p_z, p_n) = a.chunk(3, -1), p.chunk(3, -1)
        z = (a_z + p_z).sigmoid()
        return ((1 - z) * (a_n + (a_r + p_r).sigmoid() * p_n).tanh() + z * state[0],)
    return ((a + p).tanh() if mode == "RNN_TANH" else (a + p).relu(),)


def reference(layer, x, state):
    """``layer`` over ``x`` of shape (T, N, F), from ``state``, a tuple of (L * D, N, H)."""
    finals = []
    directions = 2 if layer.bidirectional else 1
    for number in range(layer.num_layers):
        if number and layer.dropout:
            x = nn.functional.dropout(x, layer.dropout, layer.training)
        outputs = []
        for direction in range(directions):
            index = number * directions + direction
            weights = layer.all_weights[index]
            now = tuple(part[index] for part in state)
            out = []
            for row in reversed(range(len(x))) if direction else range(len(x)):
                now = step(layer.mode, x[row], now, weights)
                out.append(now[0])
            outputs.append(pullback.stack(out[::-1] if direction else out))
            finals.append(now)
        x = pullback.cat(outputs, -1)
    return x, tuple(pullback.stack(parts) for parts in zip(*finals, strict=True))


def make(mode, *args, **kwargs):
    if mode.startswith("RNN"):
        return nn.RNN(*args, nonlinearity=mode[4:].lower(), **kwargs)
    return getattr(nn, mode)(*args, **kwargs)


def states(layer, batch, dtype):
    count = layer.num_layers * (2 if layer.bidirectional else 1)
    h = pullback.randn(count, batch, layer.proj_size or layer.hidden_size, dtype=dtype)
    if layer.mode != "LSTM":
        return (h.requires_grad_(),)
    c = pullback.randn(count, batch, layer.hidden_size, dtype=dtype)
    return h.requires_grad_(), c.requires_grad_()


def as_hidden(layer, state):
    return state if layer.mode == "LSTM" else state[0]


def as_state(layer, hidden):
    return tuple(hidden) if layer.mode == "LSTM" else (hidden,)


def assert_close(got, expected, dtype):
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        if b is None:
            assert a is None or not a.any()
            continue
        assert a.shape == b.shape
        if a.numel():
            assert (a - b).abs().max().item() <= TOLERANCE[dtype] * (1 + b.abs().max().item())


def loss(output, state):
    """A sum in which every element has another weight."""
    total = 0
    for part in (output, *state):
        weights = pullback.arange(1, part.numel() + 1, dtype=part.dtype).reshape(part.shape)
        total = total + (part * weights.sin()).sum()
    return total


def assert_equal_results(layer, x, state, dtype, run=None):
    """Values and gradients of ``layer`` against the reference."""
    inputs = [x, *state, *layer.parameters()]
    results = []
    for function in (run or (lambda x, s: layer(x, as_hidden(layer, s))), None):
        pullback.manual_seed(3)
        if function is None:
            output, last = reference(layer, x, state)
        else:
            output, last = function(x, state)
            last = as_state(layer, last)
        grads = pullback.autograd.grad(loss(output, last), inputs)
        results.append((output, *last, *grads))
    assert_close(*results, dtype)


OPTIONS = list(itertools.product(KINDS, (1, 2), (False, True), (True, False)))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("mode", "layers", "both", "bias"), OPTIONS)
def test_a_layer_equals_its_steps(mode, layers, both, bias, dtype):
    pullback.manual_seed(1)
    layer = make(mode, 3, 5, layers, bias=bias, bidirectional=both, dtype=dtype)
    x = pullback.randn(7, 2, 3, dtype=dtype, requires_grad=True)
    assert_equal_results(layer, x, states(layer, 2, dtype), dtype)


@pytest.mark.parametrize("mode", KINDS)
@pytest.mark.parametrize(
    "shape", [(40, 33, 17, 20), (2, 1, 64, 48), (1, 20, 3, 32), (3, 4, 40, 100)]
)
def test_a_layer_equals_its_steps_at_sizes_that_other_loops_take(mode, shape):
    steps, batch, features, hidden = shape
    pullback.manual_seed(1)
    layer = make(mode, features, hidden, dtype=pullback.float64)
    x = pullback.randn(steps, batch, features, dtype=pullback.float64, requires_grad=True)
    assert_equal_results(layer, x, states(layer, batch, pullback.float64), pullback.float64)


@pytest.mark.parametrize("mode", KINDS)
def test_batch_first_turns_the_first_two_dimensions(mode):
    pullback.manual_seed(1)
    layer = make(mode, 3, 4, 2, batch_first=True, bidirectional=True, dtype=pullback.float64)
    x = pullback.randn(5, 2, 3, dtype=pullback.float64, requires_grad=True)

    def run(x, state):
        output, last = layer(x.transpose(0, 1), as_hidden(layer, state))
        assert output.shape == (2, 5, 8)
        return output.transpose(0, 1), last

    assert_equal_results(layer, x, states(layer, 2, pullback.float64), pullback.float64, run)


@pytest.mark.parametrize("mode", KINDS)
def test_one_sequence_needs_no_batch(mode):
    pullback.manual_seed(1)
    layer = make(mode, 3, 4, dtype=pullback.float64)
    x = pullback.randn(5, 1, 3, dtype=pullback.float64, requires_grad=True)

    def run(x, state):
        flat = tuple(part[:, 0] for part in state)
        output, last = layer(x[:, 0], as_hidden(layer, flat))
        assert output.shape == (5, 4)
        last = tuple(part[:, None] for part in as_state(layer, last))
        return output[:, None], as_hidden(layer, last)

    assert_equal_results(layer, x, states(layer, 1, pullback.float64), pullback.float64, run)


@pytest.mark.parametrize("both", [False, True])
def test_projections(both):
    pullback.manual_seed(1)
    layer = nn.LSTM(3, 5, 2, proj_size=2, bidirectional=both, dtype=pullback.float64)
    x = pullback.randn(4, 3, 3, dtype=pullback.float64, requires_grad=True)
    assert_equal_results(layer, x, states(layer, 3, pullback.float64), pullback.float64)


@pytest.mark.parametrize("mode", KINDS)
def test_dropout_between_layers_draws_as_the_op_does(mode):
    pullback.manual_seed(1)
    layer = make(mode, 3, 4, 3, dropout=0.4, bidirectional=True, dtype=pullback.float64)
    x = pullback.randn(4, 2, 3, dtype=pullback.float64, requires_grad=True)
    state = states(layer, 2, pullback.float64)
    assert_equal_results(layer, x, state, pullback.float64)
    layer.eval()
    assert_equal_results(layer, x, state, pullback.float64)


@pytest.mark.parametrize("mode", KINDS)
@pytest.mark.parametrize("both", [False, True])
def test_packed_sequences_equal_each_alone(mode, both):
    dtype = pullback.float64
    pullback.manual_seed(1)
    layer = make(mode, 3, 4, 2, bidirectional=both, dtype=dtype)
    lengths = [3, 5, 1, 5]
    items = [pullback.randn(n, 3, dtype=dtype, requires_grad=True) for n in lengths]
    state = states(layer, len(items), dtype)
    inputs = [*items, *state, *layer.parameters()]
    packed = nn.utils.rnn.pack_sequence(items, enforce_sorted=False)
    output, last = layer(packed, as_hidden(layer, state))
    outputs = nn.utils.rnn.unpack_sequence(output)
    results = [(pullback.cat(outputs), as_state(layer, last))]
    alone = [
        reference(layer, item[:, None], tuple(part[:, n : n + 1] for part in state))
        for n, item in enumerate(items)
    ]
    results.append(
        (
            pullback.cat([output[:, 0] for output, _ in alone]),
            tuple(pullback.cat(parts, 1) for parts in zip(*(s for _, s in alone), strict=True)),
        )
    )
    found = [(o, *s, *pullback.autograd.grad(loss(o, s), inputs)) for o, s in results]
    assert_close(*found, dtype)


def penalty(output, last, inputs):
    """The gradients of the squared length of the gradients."""
    first = pullback.autograd.grad(loss(output, last), inputs, create_graph=True)
    return pullback.autograd.grad(sum((g * g).sum() for g in first), inputs, allow_unused=True)


@pytest.mark.parametrize("mode", KINDS)
def test_double_backward_equals_that_of_the_steps(mode):
    dtype = pullback.float64
    pullback.manual_seed(1)
    layer = make(mode, 3, 4, 2, bidirectional=True, dtype=dtype)
    x = pullback.randn(4, 2, 3, dtype=dtype, requires_grad=True)
    state = states(layer, 2, dtype)
    inputs = [x, *state, *layer.parameters()]
    output, last = layer(x, as_hidden(layer, state))
    got = penalty(output, as_state(layer, last), inputs)
    expected = penalty(*reference(layer, x, state), inputs)
    assert_close(got, expected, dtype)


@pytest.mark.parametrize("mode", KINDS)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("bias", [True, False])
def test_a_cell_equals_its_step(mode, dtype, bias):
    pullback.manual_seed(1)
    kwargs = {"nonlinearity": mode[4:].lower()} if mode.startswith("RNN") else {}
    cell = getattr(nn, mode[:4].rstrip("_") + "Cell")(3, 20, bias=bias, dtype=dtype, **kwargs)
    x = pullback.randn(6, 3, dtype=dtype, requires_grad=True)
    state = (pullback.randn(6, 20, dtype=dtype, requires_grad=True),)
    if mode == "LSTM":
        state = (*state, pullback.randn(6, 20, dtype=dtype, requires_grad=True))
    inputs = [x, *state, *cell.parameters()]
    got = cell(x, state if mode == "LSTM" else state[0])
    got = got if mode == "LSTM" else (got,)
    expected = step(mode, x, state, list(cell.parameters()))
    assert_close(got, expected, dtype)
    results = (
        pullback.autograd.grad(loss(s[0], s[1:]), inputs, retain_graph=True)
        for s in (got, expected)
    )
    assert_close(*results, dtype)
    assert_close(
        penalty(got[0], got[1:], inputs),
        penalty(expected[0], expected[1:], inputs),
        dtype,
    )
    assert cell(x[0]) is not None
    one = cell(x[0], tuple(s[0] for s in state) if mode == "LSTM" else state[0][0])
    assert_close(one if mode == "LSTM" else (one,), [s[0] for s in got], dtype)


def test_a_cell_without_state_starts_from_zero():
    cell = nn.LSTMCell(2, 3)
    x = pullback.ones(4, 2)
    zeros = pullback.zeros(4, 3)
    assert_close(cell(x), cell(x, (zeros, zeros)), pullback.float32)


def test_states_may_be_changed_in_place_after_a_step():
    cell = nn.LSTMCell(2, 3, dtype=pullback.float64)
    x = pullback.ones(4, 2, dtype=pullback.float64)
    grads = []
    for in_place in (True, False):
        h, c = cell(x)
        if in_place:
            h.mul_(2)
            c[0] = 0
        else:
            h, c = h * 2, c * pullback.tensor([[0.0], [1.0], [1.0], [1.0]], dtype=c.dtype)
        h, c = cell(x, (h, c))
        grads.append(pullback.autograd.grad((h * c).sum(), list(cell.parameters())))
    assert_close(*grads, pullback.float64)


@pytest.mark.parametrize("create_graph", [False, True])
def test_one_tensor_as_both_states_gets_both_gradients(create_graph):
    dtype = pullback.float64
    layer = nn.LSTM(2, 3, dtype=dtype)
    x = pullback.ones(4, 1, 2, dtype=dtype)
    both = pullback.ones(1, 1, 3, dtype=dtype, requires_grad=True)
    h, c = (both.detach().clone().requires_grad_() for _ in range(2))
    total = layer(x, (both, both))[0].sum()
    (got,) = pullback.autograd.grad(total, both, create_graph=create_graph)
    by_h, by_c = pullback.autograd.grad(layer(x, (h, c))[0].sum(), (h, c))
    assert_close([got], [by_h + by_c], dtype)


def test_only_what_is_asked_for_gets_a_gradient():
    layer = nn.GRU(2, 3)
    layer.weight_hh_l0.requires_grad_(False)
    x = pullback.randn(4, 1, 2)
    layer(x)[0].sum().backward()
    assert layer.weight_hh_l0.grad is None
    assert x.grad is None
    assert layer.weight_ih_l0.grad.shape == (9, 2)


@pytest.mark.parametrize("mode", KINDS)
@pytest.mark.parametrize("dtype", [pullback.bfloat16, pullback.float16])
def test_half_precision_is_close_to_single(mode, dtype):
    pullback.manual_seed(1)
    layer = make(mode, 3, 4, dtype=dtype)
    x = pullback.randn(5, 2, 3, dtype=dtype, requires_grad=True)
    output, _ = layer(x)
    output.sum().backward()
    assert output.dtype == x.grad.dtype == layer.weight_hh_l0.grad.dtype == dtype
    twin = make(mode, 3, 4)
    twin.load_state_dict(layer.state_dict())
    wide = x.detach().float().requires_grad_()
    expected, _ = twin(wide)
    expected.sum().backward()
    assert (output.float() - expected).abs().max().item() < 0.02
    assert (x.grad.float() - wide.grad).abs().max().item() < 0.05


def test_a_write_to_a_weight_between_forward_and_backward_is_noticed():
    layer = nn.LSTM(2, 3)
    output, _ = layer(pullback.ones(4, 1, 2))
    with pullback.no_grad():
        layer.weight_hh_l0.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation"):
        output.sum().backward()


def test_cells_refuse():
    cell = nn.LSTMCell(3, 2)
    x, h = pullback.ones(4, 3), pullback.ones(4, 2)
    with pytest.raises(ValueError, match=r"LSTMCell: Expected input to be 1D or 2D, got 3D inst"):
        cell(pullback.ones(1, 4, 3))
    with pytest.raises(ValueError, match=r"LSTMCell: Expected hx\[0\] to be 1D or 2D, got 3D"):
        cell(x, (pullback.ones(1, 4, 2), h))
    with pytest.raises(RuntimeError, match=r"Expected 2D hidden0 \(batch x hidden_size\), but"):
        cell(x, (pullback.ones(2), h))
    with pytest.raises(RuntimeError, match=r"Input batch size 4 doesn't match hidden0 batch size"):
        cell(x, (pullback.ones(3, 2), h))
    with pytest.raises(RuntimeError, match=r"hidden1 has inconsistent hidden_size: got 3, exp"):
        cell(x, (h, pullback.ones(4, 3)))
    with pytest.raises(RuntimeError, match=r"lstm_cell expects two hidden states"):
        cell(x, (h,))
    with pytest.raises(TypeError, match=r"argument 'hx' \(position 2\) must be tuple of Tensors"):
        cell(x, h)
    with pytest.raises(RuntimeError, match=r"must have the same dtype"):
        cell(x.double(), (h, h))
    with pytest.raises(RuntimeError, match=r"hidden0 has inconsistent hidden_size: got 3, exp"):
        cell(x.double(), (pullback.ones(4, 3).double(), h))
    with pytest.raises(RuntimeError, match=r"weight_ih first dim must be 3 \* hidden_size = 6"):
        pullback.gru_cell(x, h, pullback.ones(8, 3), pullback.ones(8, 2))


def test_packed_steps_never_grow():
    layer = nn.GRU(2, 3)
    data, hx = pullback.ones(5, 2), pullback.zeros(1, 3, 3)
    options = (layer._flat_weights, True, 1, 0.0, False, False)
    for sizes, message in (([2, 3], "never grow"), ([3, 1], "add up to 4"), ([], "larger than 0")):
        sizes = pullback.tensor(sizes, dtype=pullback.int64)
        with pytest.raises(RuntimeError, match=message):
            pullback.gru(data, sizes, hx, *options)
    with pytest.raises(RuntimeError, match=r"expected scalar type Long but found Int"):
        pullback.gru(data, pullback.tensor([3, 2], dtype=pullback.int32), hx, *options)


@pytest.mark.parametrize("name", ["double", "half", "long", "int", "short", "char", "byte"])
def test_packed_sequences_are_cast_as_their_data(name):
    packed = nn.utils.rnn.pack_sequence([pullback.ones(3), pullback.ones(2)])
    cast = getattr(packed, name)()
    assert cast.data.dtype is getattr(packed.data, name)().dtype
    assert pullback.equal(cast.batch_sizes, packed.batch_sizes)


def test_nothing_can_be_packed_of_nothing():
    for lengths in ([], [0], pullback.ones(2, 2)):
        with pytest.raises(RuntimeError, match="Cannot pack empty tensors"):
            nn.utils.rnn.pack_padded_sequence(pullback.zeros(0, 1), lengths)
