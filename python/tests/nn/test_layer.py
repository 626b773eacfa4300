"""The layers: recorded outputs and gradients, printed forms, options and refusals.

Each record: how the layer is made (under seed 0), the shape of its input (a sampled sine), the
shape of its output, and the output and the input's gradient projected on sampled sines, from
PyTorch 2.15.
"""

import math

import pytest

import pullback
from pullback import nn

# fmt: off
RECORDS = [
    ("nn.Linear(4, 3)", (2, 4), [2, 3], -1.35452, -0.14004),
    ("nn.Conv1d(4, 2, 3, padding=1)", (2, 4, 5), [2, 2, 5], -0.473017, -0.601768),
    ("nn.Conv2d(4, 2, 3, stride=2, padding_mode='reflect', padding=1)", (2, 4, 5, 5), [2, 2, 3, 3], -1.62475, -0.909235),  # noqa: E501
    ("nn.Conv2d(4, 4, 3, padding='same', groups=2, dilation=2)", (2, 4, 5, 5), [2, 4, 5, 5], 21.9374, 22.2549),  # noqa: E501
    ("nn.MaxPool2d(2)", (2, 4, 5, 5), [2, 4, 2, 2], -0.672683, -0.672683),
    ("nn.AvgPool2d(3, 2, 1, count_include_pad=False)", (2, 4, 5, 5), [2, 4, 3, 3], 5.95076, 5.95076),  # noqa: E501
    ("nn.AdaptiveAvgPool2d((2, None))", (2, 4, 5, 5), [2, 4, 2, 5], 1.02388, 1.02388),
    ("nn.MaxPool1d(3, 2, 1)", (2, 4, 5), [2, 4, 3], 0.312778, 0.312778),
    ("nn.AvgPool1d(2)", (2, 4, 5), [2, 4, 2], 0.131068, 0.131068),
    ("nn.AdaptiveAvgPool1d(2)", (2, 4, 5), [2, 4, 2], -0.111637, -0.111637),
    ("nn.LayerNorm(5)", (2, 4, 5), [2, 4, 5], 13.0827, 0.00142363),
    ("nn.RMSNorm((4, 5))", (2, 4, 5), [2, 4, 5], 28.4662, 7.18508e-06),
    ("nn.GroupNorm(2, 4)", (2, 4, 5), [2, 4, 5], 24.2022, 0.000704402),
    ("nn.BatchNorm1d(4)", (2, 4, 5), [2, 4, 5], 17.8735, 0.000983827),
    ("nn.BatchNorm2d(4, momentum=None)", (2, 4, 5, 5), [2, 4, 5, 5], 138.808, 0.00287963),
    ("nn.InstanceNorm1d(4, affine=True)", (2, 4, 5), [2, 4, 5], 13.0827, 0.00142362),
    ("nn.PReLU(4)", (2, 4, 5), [2, 4, 5], 13.9453, 13.9453),
    ("nn.GLU(1)", (2, 4, 5), [2, 2, 5], -0.524111, -0.900249),
    ("nn.Softmax(1)", (2, 4, 5), [2, 4, 5], 5.06748, 3.01824),
    ("nn.LogSoftmax(-1)", (2, 4, 5), [2, 4, 5], -1.57999, 4.72295),
    ("nn.Softmin(0)", (2, 4, 5), [2, 4, 5], -0.576672, -2.22759),
    ("nn.GELU()", (2, 4), [2, 4], 3.37222, 4.33937),
    ("nn.GELU('tanh')", (2, 4), [2, 4], 3.37172, 4.33806),
    ("nn.SiLU()", (2, 4), [2, 4], 2.95045, 3.69256),
    ("nn.Mish()", (2, 4), [2, 4], 3.51311, 4.25009),
    ("nn.SELU()", (2, 4), [2, 4], 4.42626, 4.42626),
    ("nn.CELU(0.5)", (2, 4), [2, 4], 4.21267, 4.21267),
    ("nn.ELU(0.5)", (2, 4), [2, 4], 4.21267, 4.21267),
    ("nn.Hardswish()", (2, 4), [2, 4], 2.70596, 3.30559),
    ("nn.Hardsigmoid()", (2, 4), [2, 4], 3.3068, 0.702112),
    ("nn.LeakyReLU(0.2)", (2, 4), [2, 4], 4.21267, 4.21267),
    ("nn.LogSigmoid()", (2, 4), [2, 4], -1.94003, 1.26223),
    ("nn.Softplus(2)", (2, 4), [2, 4], 4.71281, 3.54614),
    ("nn.Softshrink(0.3)", (2, 4), [2, 4], 2.64986, 4.21267),
    ("nn.Hardshrink(0.3)", (2, 4), [2, 4], 4.21267, 4.21267),
    ("nn.Tanhshrink()", (2, 4), [2, 4], 0.799163, 2.00897),
    ("nn.Softsign()", (2, 4), [2, 4], 2.29224, 1.25999),
    ("nn.Hardtanh(-0.3, 0.4)", (2, 4), [2, 4], 2.06987, 0.130766),
    ("nn.ReLU6()", (2, 4), [2, 4], 4.21267, 4.21267),
    ("nn.Threshold(0.1, 9.0)", (2, 4), [2, 4], 4.21267, 4.21267),
    ("nn.ConstantPad2d((1, 0, 2, -1), 0.5)", (1, 2, 3, 3), [1, 2, 4, 4], 4.30016, 0.057088),
    ("nn.ReflectionPad1d(2)", (1, 2, 4), [1, 2, 8], -1.26282, -1.26282),
    ("nn.ReplicationPad2d(1)", (1, 2, 3, 3), [1, 2, 5, 5], -1.02372, -1.02372),
    ("nn.CircularPad2d((1, 0, 0, 2))", (1, 2, 3, 3), [1, 2, 5, 4], -1.37142, -1.37142),
    ("nn.ZeroPad2d(1)", (1, 2, 3, 3), [1, 2, 5, 5], -4.58697, -4.58697),
    ("nn.PixelShuffle(2)", (1, 4, 2, 2), [1, 1, 4, 4], 1.68797, 1.68797),
    ("nn.PixelUnshuffle(2)", (1, 1, 4, 4), [1, 4, 2, 2], 1.68797, 1.68797),
    ("nn.Flatten()", (2, 4, 5), [2, 20], 20.3146, 20.3146),
    ("nn.Unflatten(1, (2, 2))", (2, 4), [2, 2, 2], 4.21267, 4.21267),
    ("nn.RNN(4, 3, nonlinearity='relu')", (5, 2, 4), [5, 2, 3], 0.516635, -0.232533),
    ("nn.LSTM(4, 3, 2, bidirectional=True)", (5, 2, 4), [5, 2, 6], 0.0780608, 0.0703593),
    ("nn.LSTM(4, 3, proj_size=2, batch_first=True)", (5, 2, 4), [5, 2, 2], -0.0147311, 0.0432424),
    ("nn.GRU(4, 3, bias=False)", (5, 4), [5, 3], -1.53667, -0.820617),
    ("nn.GRUCell(4, 3)", (2, 4), [2, 3], -0.632937, 0.284819),
    ("nn.LSTMCell(4, 3)", (2, 4), [2, 3], -0.133091, -0.0408133),
    ("nn.RNNCell(4, 3)", (4,), [3], 0.58182, 0.0791379),
]
# fmt: on


def ramp(*shape):
    return (pullback.arange(float(math.prod(shape))) * 0.37).sin().reshape(shape)


@pytest.mark.parametrize(("recipe", "size", "shape", "value", "slope"), RECORDS)
def test_layer_equals_its_record(recipe, size, shape, value, slope):
    pullback.manual_seed(0)
    layer = eval(recipe, {"nn": nn})
    x = ramp(*size).requires_grad_()
    out = layer(x)
    out = out[0] if isinstance(out, tuple) else out
    assert list(out.shape) == shape
    flat = out.reshape(-1)
    total = (flat * ramp(flat.numel())).sum()
    total.backward()
    assert total.item() == pytest.approx(value, rel=2e-4, abs=2e-5)
    grad = (x.grad.reshape(-1) * ramp(x.numel())).sum().item()
    assert grad == pytest.approx(slope, rel=2e-4, abs=2e-5)
    assert all(p.grad is not None for p in layer.parameters())


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (nn.Linear(2, 3, bias=False), "Linear(in_features=2, out_features=3, bias=False)"),
        (
            nn.Bilinear(2, 3, 4),
            "Bilinear(in1_features=2, in2_features=3, out_features=4, bias=True)",
        ),
        (nn.Conv1d(1, 2, 3), "Conv1d(1, 2, kernel_size=(3,), stride=(1,))"),
        (
            nn.Conv2d(2, 2, 3, 2, (1, 0), 2, 2, False, "reflect"),
            "Conv2d(2, 2, kernel_size=(3, 3), stride=(2, 2), padding=(1, 0), dilation=(2, 2), "
            "groups=2, bias=False, padding_mode=reflect)",
        ),
        (
            nn.Conv2d(1, 1, 3, padding="same"),
            "Conv2d(1, 1, kernel_size=(3, 3), stride=(1, 1), padding=same)",
        ),
        (
            nn.MaxPool2d(2),
            "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)",
        ),
        (nn.AvgPool1d(2), "AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))"),
        (nn.AdaptiveAvgPool2d((1, None)), "AdaptiveAvgPool2d(output_size=(1, None))"),
        (nn.LayerNorm(4), "LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True)"),
        (nn.RMSNorm(4), "RMSNorm((4,), eps=None, elementwise_affine=True)"),
        (nn.GroupNorm(2, 4), "GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)"),
        (
            nn.BatchNorm1d(4),
            "BatchNorm1d(4, eps=1e-05, momentum=0.1, affine=True, bias=True, "
            "track_running_stats=True)",
        ),
        (nn.Dropout(0.1), "Dropout(p=0.1, inplace=False)"),
        (nn.Embedding(3, 2, -1), "Embedding(3, 2, padding_idx=2)"),
        (nn.ReLU(inplace=True), "ReLU(inplace=True)"),
        (nn.ELU(inplace=True), "ELU(alpha=1.0, inplace=True)"),
        (nn.GELU(), "GELU(approximate='none')"),
        (nn.Softmax(), "Softmax(dim=None)"),
        (nn.Threshold(1, 2), "Threshold(threshold=1, value=2)"),
        (nn.ZeroPad2d(1), "ZeroPad2d((1, 1, 1, 1))"),
        (nn.ConstantPad1d(1, 2.0), "ConstantPad1d(padding=(1, 1), value=2.0)"),
        (nn.LSTM(2, 3, 2, bias=False), "LSTM(2, 3, num_layers=2, bias=False)"),
        (nn.RNNCell(2, 3, nonlinearity="relu"), "RNNCell(2, 3, nonlinearity=relu)"),
        (nn.CrossEntropyLoss(), "CrossEntropyLoss()"),
    ],
)
def test_printed_form(layer, text):
    assert repr(layer) == text


def test_every_exported_name_exists():
    for name in nn.__all__ if hasattr(nn, "__all__") else dir(nn):
        assert hasattr(nn, name)


# ---- linear ----


def test_linear_reads_replaced_parameters():
    layer = nn.Linear(2, 1)
    x = pullback.ones(1, 2)
    layer.weight = nn.Parameter(pullback.zeros(1, 2))
    layer.bias = nn.Parameter(pullback.ones(1))
    assert layer(x).item() == 1.0
    layer.bias = None
    assert layer(x).item() == 0.0
    del layer.weight
    layer.weight = pullback.full((1, 2), 2.0)
    assert layer(x).item() == 4.0

    class Tied(nn.Linear):
        @property
        def weight(self):
            return self._other

    del layer.weight
    layer.__class__ = Tied
    layer._other = pullback.full((1, 2), 3.0)
    assert layer(x).item() == 6.0


def test_dtype_and_bias_of_parameters():
    layer = nn.Linear(2, 1, bias=False, dtype=pullback.float64)
    assert layer.weight.dtype == pullback.float64
    assert layer.bias is None
    assert list(layer.state_dict()) == ["weight"]


# ---- convolution, padding ----


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": 0}, r"groups must be a positive integer"),
        ({"groups": 3}, r"in_channels must be divisible by groups"),
        ({"padding": "full"}, r"Invalid padding string 'full'"),
        ({"padding": "same", "stride": 2}, r"padding='same' is not supported for strided"),
        ({"padding_mode": "mirror"}, r"padding_mode must be one of"),
    ],
)
def test_convolution_refuses_options(options, message):
    with pytest.raises(ValueError, match=message):
        nn.Conv2d(4, 4, 3, **options)


def test_same_padding_keeps_the_size():
    for kernel in (1, 3, 5):
        assert nn.Conv1d(1, 1, kernel, padding="same")(pullback.ones(1, 1, 9)).shape[2] == 9


def test_unflatten_refuses_other_sizes():
    with pytest.raises(TypeError, match=r"must be a tuple of ints, but found type int"):
        nn.Unflatten(0, 3)
    with pytest.raises(TypeError, match=r"found element of type float at pos 1"):
        nn.Unflatten(0, (1, 2.0))


# ---- normalisation ----


def test_batch_norm_keeps_running_statistics():
    layer = nn.BatchNorm1d(2)
    x = pullback.tensor([[0.0, 2.0], [2.0, 6.0]])
    layer(x)
    assert layer.running_mean.tolist() == pytest.approx([0.1, 0.4])
    assert layer.running_var.tolist() == pytest.approx([0.9 + 0.2, 0.9 + 0.8])
    assert layer.num_batches_tracked.item() == 1
    layer.eval()
    layer(x)
    assert layer.num_batches_tracked.item() == 1
    layer.reset_running_stats()
    assert layer.running_var.tolist() == [1.0, 1.0]
    assert layer.num_batches_tracked.item() == 0


def test_batch_norm_with_cumulative_average():
    layer = nn.BatchNorm1d(1, momentum=None)
    layer(pullback.tensor([[0.0], [2.0]]))
    layer(pullback.tensor([[2.0], [4.0]]))
    assert layer.running_mean.item() == pytest.approx(2.0)


def test_batch_norm_without_statistics_uses_the_batch():
    layer = nn.BatchNorm1d(1, track_running_stats=False, affine=False).eval()
    assert list(layer.state_dict()) == []
    out = layer(pullback.tensor([[0.0], [2.0]]))
    assert out.reshape(-1).tolist() == pytest.approx([-1.0, 1.0], abs=1e-4)


def test_old_batch_norm_checkpoints_load():
    layer = nn.BatchNorm1d(2)
    state = layer.state_dict()
    del state["num_batches_tracked"]
    del state._metadata
    assert not layer.load_state_dict(state).missing_keys


def test_normalisation_refuses():
    with pytest.raises(ValueError, match=r"expected 4D input \(got 2D input\)"):
        nn.BatchNorm2d(2)(pullback.ones(2, 2))
    with pytest.raises(ValueError, match=r"Expected more than 1 value per channel"):
        nn.BatchNorm1d(2)(pullback.ones(1, 2))
    with pytest.raises(ValueError, match=r"num_channels \(3\) must be divisible by num_groups"):
        nn.GroupNorm(2, 3)
    with pytest.raises(ValueError, match=r"expected 2D or 3D input \(got 4D input\)"):
        nn.InstanceNorm1d(2)(pullback.ones(1, 2, 3, 3))


# ---- dropout ----


def test_dropout_is_the_identity_in_evaluation():
    x = pullback.ones(2, 3)
    for kind in (nn.Dropout, nn.AlphaDropout, nn.FeatureAlphaDropout):
        assert kind().eval()(x).tolist() == x.tolist()


def test_dropout_scales_what_it_keeps():
    pullback.manual_seed(0)
    out = nn.Dropout(0.5)(pullback.ones(1000))
    assert set(out.tolist()) == {0.0, 2.0}
    assert 400 < (out == 0).sum().item() < 600
    assert nn.Dropout(1.0)(pullback.ones(4)).tolist() == [0.0] * 4


def test_channel_dropout_drops_whole_channels():
    pullback.manual_seed(0)
    out = nn.Dropout2d(0.5)(pullback.ones(4, 8, 3, 3)).reshape(32, 9)
    assert all(len(set(row)) == 1 for row in out.tolist())
    assert 0 < (out[:, 0] == 0).sum().item() < 32


def test_dropout_in_place():
    x = pullback.ones(64)
    out = nn.Dropout(0.5, inplace=True)(x)
    assert out.data_ptr() == x.data_ptr()


def test_dropout_probability_is_checked():
    with pytest.raises(ValueError, match=r"dropout probability has to be between 0 and 1"):
        nn.Dropout(1.5)


# ---- embedding ----


def test_embedding_looks_up_rows():
    layer = nn.Embedding.from_pretrained(pullback.arange(6.0).reshape(3, 2))
    assert not layer.weight.requires_grad
    assert layer(pullback.tensor([[2, 0]])).tolist() == [[[4.0, 5.0], [0.0, 1.0]]]


def test_embedding_padding_has_no_gradient():
    layer = nn.Embedding(3, 2, padding_idx=1)
    assert layer.weight[1].tolist() == [0.0, 0.0]
    layer(pullback.tensor([0, 1])).sum().backward()
    assert layer.weight.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    with pytest.raises(AssertionError, match=r"Padding_idx must be within num_embeddings"):
        nn.Embedding(3, 2, padding_idx=3)


def test_embedding_renormalises_rows_that_are_used():
    layer = nn.Embedding(3, 2, max_norm=1.0)
    with pullback.no_grad():
        layer.weight.fill_(3.0)
    layer(pullback.tensor([0, 0]))
    assert layer.weight[0].norm().item() == pytest.approx(1.0, abs=1e-5)
    assert layer.weight[1].tolist() == [3.0, 3.0]


# ---- recurrence ----


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_packed_sequences_equal_single_runs(kind):
    layer = kind(2, 3, num_layers=2, bidirectional=True)
    items = [ramp(n, 2) for n in (3, 5, 1)]
    packed = nn.utils.rnn.pack_sequence(items, enforce_sorted=False)
    out, state = layer(packed)
    singles = [layer(item) for item in items]
    unpacked = nn.utils.rnn.unpack_sequence(out)
    for i, (single, last) in enumerate(singles):
        assert (unpacked[i] - single).abs().max().item() < 1e-6
        ours = state[0] if kind is nn.LSTM else state
        theirs = last[0] if kind is nn.LSTM else last
        assert (ours[:, i] - theirs).abs().max().item() < 1e-6


def test_layer_equals_its_cell():
    layer, cell = nn.GRU(2, 3), nn.GRUCell(2, 3)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        setattr(cell, name, getattr(layer, name + "_l0"))
    x = ramp(4, 1, 2)
    h = pullback.zeros(1, 3)
    for step in x:
        h = cell(step, h)
    assert (layer(x)[1][0] - h).abs().max().item() < 1e-6


def test_recurrent_layers_refuse():
    layer = nn.LSTM(2, 3)
    with pytest.raises(ValueError, match=r"LSTM: Expected input to be 2D or 3D, got 1D"):
        layer(pullback.ones(2))
    with pytest.raises(RuntimeError, match=r"must be equal to input_size. Expected 2, got 4"):
        layer(pullback.ones(5, 1, 4))
    with pytest.raises(ValueError, match=r"does not match weight dtype"):
        layer(pullback.ones(5, 1, 2, dtype=pullback.float64))
    with pytest.raises(
        RuntimeError, match=r"Expected hidden\[0\] size \(1, 1, 3\), got \[1, 1, 4\]"
    ):
        layer(pullback.ones(5, 1, 2), (pullback.ones(1, 1, 4), pullback.ones(1, 1, 3)))
    with pytest.raises(ValueError, match=r"hidden_size must be greater than zero"):
        nn.GRU(2, 0)
    with pytest.raises(ValueError, match=r"proj_size argument is only supported for LSTM"):
        nn.GRU(2, 3, proj_size=1)
    with pytest.raises(ValueError, match=r"Unknown nonlinearity 'sin'"):
        nn.RNN(2, 3, nonlinearity="sin")
    with pytest.warns(UserWarning, match=r"non-zero dropout expects num_layers greater than 1"):
        nn.GRU(2, 3, dropout=0.5)


def test_padding_and_packing_are_inverse():
    rnn = nn.utils.rnn
    items = [ramp(n, 2) for n in (2, 4)]
    padded = rnn.pad_sequence(items, batch_first=True, padding_value=-1.0)
    assert padded.shape == (2, 4, 2)
    assert padded[0, 2:].tolist() == [[-1.0, -1.0]] * 2
    left = rnn.pad_sequence(items, padding_side="left")
    assert left[:2, 0].abs().sum().item() == 0.0
    packed = rnn.pack_padded_sequence(padded, [2, 4], batch_first=True, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [2, 2, 1, 1]
    again, lengths = rnn.pad_packed_sequence(packed, batch_first=True, padding_value=-1.0)
    assert again.tolist() == padded.tolist()
    assert lengths.tolist() == [2, 4]
    assert rnn.pad_packed_sequence(packed, total_length=6)[0].shape == (6, 2, 2)
    with pytest.raises(RuntimeError, match=r"must be sorted in decreasing order"):
        rnn.pack_padded_sequence(padded, [2, 4], batch_first=True)
    with pytest.raises(ValueError, match=r"Expected total_length to be at least"):
        rnn.pad_packed_sequence(packed, total_length=1)


# ---- attention ----


def test_attention_weights_are_distributions():
    pullback.manual_seed(0)
    layer = nn.MultiheadAttention(4, 2, batch_first=True)
    x = ramp(2, 3, 4)
    out, weights = layer(x, x, x)
    assert out.shape == (2, 3, 4)
    assert weights.shape == (2, 3, 3)
    assert weights.sum(-1).reshape(-1).tolist() == pytest.approx([1.0] * 6, abs=1e-6)
    assert layer(x, x, x, need_weights=False)[1] is None
    assert layer(x, x, x, average_attn_weights=False)[1].shape == (2, 2, 3, 3)


def test_masked_positions_get_no_attention():
    layer = nn.MultiheadAttention(4, 2)
    x = ramp(3, 2, 4)
    hidden = pullback.tensor([[False, False, True], [False, False, False]])
    weights = layer(x, x, x, key_padding_mask=hidden)[1]
    assert weights[0, :, 2].tolist() == [0.0] * 3
    assert weights[1, :, 2].min().item() > 0
    causal = pullback.ones(3, 3).triu(1).bool()
    weights = layer(x, x, x, attn_mask=causal)[1]
    assert weights[0, 0].tolist() == [1.0, 0.0, 0.0]
    with pytest.raises(AssertionError, match=r"embed_dim must be divisible by num_heads"):
        nn.MultiheadAttention(5, 2)
    with pytest.raises(RuntimeError, match=r"Need attn_mask if specifying the is_causal hint"):
        nn.MultiheadAttention(4, 2)(x, x, x, is_causal=True)


# ---- losses as modules ----


def test_losses_keep_their_options():
    loss = nn.CrossEntropyLoss(weight=pullback.ones(3), ignore_index=2, label_smoothing=0.1)
    assert list(loss.state_dict()) == ["weight"]
    assert (loss.ignore_index, loss.label_smoothing, loss.reduction) == (2, 0.1, "mean")
    with pytest.warns(UserWarning, match=r"please use reduction='sum' instead"):
        assert nn.MSELoss(size_average=False).reduction == "sum"
    with pytest.raises(TypeError, match=r"delta must be a float or int"):
        nn.HuberLoss(delta="1")
    with pytest.raises(ValueError, match=r"expected margin to be greater than 0, got 0"):
        nn.TripletMarginLoss(margin=0)
    with pytest.raises(ValueError, match=r"only p == 1 and p == 2 supported"):
        nn.MultiMarginLoss(p=3)
    with pytest.raises(TypeError, match=r"dim must be an int or None"):
        nn.Softmax(dim=True)
