"""Layers by mathematics and by what they refuse, beside `test_recorded_layer.py`."""

import copy
import io
import pickle

import numpy as np
import pytest

import pullback
import pullback.nn.functional as F
from pullback import nn

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")


# ---- convolutions ----


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_transposed_convolution_is_the_gradient_of_the_other(rank):
    make = getattr(nn, f"Conv{rank}d"), getattr(nn, f"ConvTranspose{rank}d")
    plain = make[0](2, 4, 3, stride=2, padding=1, bias=False).double()
    other = make[1](4, 2, 3, stride=2, padding=1, bias=False).double()
    other.weight = nn.Parameter(plain.weight.detach())
    x = pullback.randn((1, 2, *[7] * rank), dtype=pullback.float64, requires_grad=True)
    out = plain(x)
    grad = pullback.randn(out.shape, dtype=pullback.float64)
    out.backward(grad)
    np.testing.assert_allclose(other(grad).detach().numpy(), x.grad.numpy(), rtol=1e-10)


@pytest.mark.parametrize(
    ("rank", "shape", "size"), [(1, (2, 4), [10]), (2, (1, 2, 4, 3), [1, 2, 9, 8])]
)
def test_the_size_of_a_transposed_convolution_can_be_chosen(rank, shape, size):
    layer = getattr(nn, f"ConvTranspose{rank}d")(2, 2, 3, stride=2)
    assert list(layer(pullback.ones(shape), size).shape)[-rank:] == size[-rank:]


def test_what_transposed_convolutions_refuse():
    layer = nn.ConvTranspose1d(2, 2, 3, stride=2)
    x = pullback.ones(1, 2, 4)
    with pytest.raises(ValueError, match=r"requested an output size of \[20\], but valid sizes"):
        layer(x, output_size=[20])
    with pytest.raises(ValueError, match="must have 1 or 3 elements"):
        layer(x, output_size=[20, 1])
    with pytest.raises(ValueError, match='Only "zeros" padding mode is supported'):
        nn.ConvTranspose2d(2, 2, 3, padding_mode="reflect")


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_gradients_of_convolutions_as_functions(rank):
    x = pullback.randn((2, 4, *[5] * rank), dtype=pullback.float64, requires_grad=True)
    w = pullback.randn((6, 2, *[3] * rank), dtype=pullback.float64, requires_grad=True)
    options = {"stride": 2, "padding": 1, "groups": 2}
    out = getattr(F, f"conv{rank}d")(x, w, **options)
    grad = pullback.randn(out.shape, dtype=pullback.float64)
    out.backward(grad)
    assert nn.functional.grad is nn.grad
    by_input = getattr(nn.grad, f"conv{rank}d_input")(x.shape, w.detach(), grad, **options)
    by_weight = getattr(nn.grad, f"conv{rank}d_weight")(x.detach(), w.shape, grad, **options)
    np.testing.assert_allclose(by_input.numpy(), x.grad.numpy(), rtol=1e-10)
    np.testing.assert_allclose(by_weight.numpy(), w.grad.numpy(), rtol=1e-10)
    assert not by_input.requires_grad
    linked = getattr(nn.grad, f"conv{rank}d_input")(x.shape, w, grad, **options)
    assert linked.requires_grad


# ---- fusion ----


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("make", "norm", "shape", "transpose"),
    [
        (nn.Conv2d, nn.BatchNorm2d, (2, 3, 4, 4), False),
        (nn.ConvTranspose1d, nn.BatchNorm1d, (2, 3, 4), True),
    ],
)
def test_a_fused_convolution_computes_the_same(bias, make, norm, shape, transpose):
    conv, bn = make(3, 4, 2, bias=bias), norm(4)
    for _ in range(3):
        bn(conv(pullback.randn(shape)))
    conv, bn = conv.eval(), bn.eval()
    fused = nn.utils.fuse_conv_bn_eval(conv, bn, transpose)
    x = pullback.randn(shape)
    np.testing.assert_allclose(
        fused(x).detach().numpy(), bn(conv(x)).detach().numpy(), rtol=1e-4, atol=1e-5
    )
    assert type(fused) is make
    assert fused is not conv


def test_a_fused_linear_map_computes_the_same():
    linear, bn = nn.Linear(3, 4), nn.BatchNorm1d(4)
    bn(linear(pullback.randn(5, 3)))
    with pytest.raises(AssertionError, match="Fusion only for eval!"):
        nn.utils.fuse_linear_bn_eval(linear, bn)
    linear, bn = linear.eval(), bn.eval()
    x = pullback.randn(2, 3)
    fused = nn.utils.fuse_linear_bn_eval(linear, bn)
    np.testing.assert_allclose(
        fused(x).detach().numpy(), bn(linear(x)).detach().numpy(), rtol=1e-4, atol=1e-5
    )
    with pytest.raises(AssertionError, match=r"To fuse, linear\.out_features == bn\."):
        nn.utils.fuse_linear_bn_eval(linear, nn.BatchNorm1d(3).eval())


def test_memory_formats_of_weights():
    model = nn.Sequential(nn.Conv2d(2, 3, 2), nn.Linear(2, 2))
    weight = model[0].weight
    nn.utils.convert_conv2d_weight_memory_format(model, pullback.channels_last)
    assert model[0].weight is weight
    assert weight.is_contiguous(memory_format=pullback.channels_last)


# ---- normalisation ----


def test_local_response_norm_is_its_formula():
    x = np.random.default_rng(0).normal(size=(2, 6, 3))
    size, alpha, beta, k = 4, 0.5, 0.6, 1.5
    padded = np.pad(x**2, ((0, 0), (size // 2, (size - 1) // 2), (0, 0)))
    means = sum(padded[:, i : i + 6] for i in range(size)) / size
    expected = x / (k + alpha * means) ** beta
    layer = nn.LocalResponseNorm(size, alpha, beta, k)
    np.testing.assert_allclose(layer(pullback.tensor(x)).numpy(), expected, rtol=1e-10)
    with pytest.raises(ValueError, match="Expected 3D or higher dimensionality"):
        layer(pullback.ones(2, 3))


def test_the_older_response_norm_is_of_images():
    with pytest.raises(ValueError, match="CrossMapLRN2d: Expected input to be 4D, got 2D"):
        nn.CrossMapLRN2d(3)(pullback.ones(2, 3))


def test_the_older_response_norm_has_its_own_gradient():
    x = pullback.randn(1, 4, 2, 2, dtype=pullback.float64, requires_grad=True)
    assert pullback.autograd.gradcheck(nn.CrossMapLRN2d(3, 0.5), (x,))


def test_synchronised_norms_of_one_process():
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Sequential(nn.BatchNorm2d(2, affine=False)))
    weight = model[0].weight
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert converted is model
    assert type(model[0]) is nn.SyncBatchNorm
    assert type(model[1][0]) is nn.SyncBatchNorm
    assert model[0].weight is weight
    x = pullback.randn(5, 3)
    np.testing.assert_allclose(
        model[0](x).detach().numpy(), nn.BatchNorm1d(3)(x).detach().numpy(), rtol=1e-5
    )
    with pytest.raises(ValueError, match="expected at least 2D input"):
        model[0](pullback.ones(3))
    with pytest.raises(ValueError, match="number of input channels should be non-zero"):
        model[0](pullback.ones(3, 0))


# ---- losses ----


def test_multilabel_margin_loss_is_its_formula():
    x = np.random.default_rng(1).normal(size=(3, 5))
    y = np.array([[1, 4, -1, 0, 2], [0, -1, 0, 0, 0], [-1, 1, 2, 3, 4]])
    expected = []
    for row, classes in zip(x, y, strict=True):
        targets = classes[: list(classes).index(-1)]
        others = [i for i in range(5) if i not in targets]
        expected.append(sum(max(0, 1 - (row[j] - row[i])) for j in targets for i in others) / 5)
    inputs, targets = pullback.tensor(x, requires_grad=True), pullback.tensor(y)
    found = F.multilabel_margin_loss(inputs, targets, reduction="none")
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12)
    assert F.multilabel_margin_loss(inputs, targets).item() == pytest.approx(np.mean(expected))
    assert pullback.autograd.gradcheck(lambda t: F.multilabel_margin_loss(t, targets), (inputs,))


@pytest.mark.parametrize(
    ("shape", "target", "text"),
    [
        ((2, 3), [0, 1, -1], "inconsistent target size"),
        ((3,), [3, 0, 0], "argument #2 'target' is out of range"),
        ((1, 2, 3), [0, 1, 2], "Expected non-empty vector or matrix"),
        ((3,), [0.0, 1.0, 2.0], "expected scalar type Long but found Float"),
    ],
)
def test_what_multilabel_margin_loss_refuses(shape, target, text):
    with pytest.raises(RuntimeError, match=text):
        F.multilabel_margin_loss(pullback.ones(shape), pullback.tensor(target))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("kind", ["classes", "probabilities"])
def test_linear_cross_entropy_in_pieces_is_the_same(reduction, kind):
    x = pullback.randn(7, 3, dtype=pullback.float64, requires_grad=True)
    w = pullback.randn(5, 3, dtype=pullback.float64, requires_grad=True)
    b = pullback.randn(5, dtype=pullback.float64, requires_grad=True)
    y = pullback.tensor([0, 1, 4, -100, 2, 3, 3])
    if kind == "probabilities":
        y = pullback.rand(7, 5, dtype=pullback.float64).softmax(1)
    rest = {
        "linear_bias": b,
        "weight": pullback.arange(1.0, 6, dtype=pullback.float64),
        "reduction": reduction,
        "label_smoothing": 0.1,
    }
    results = []
    for options in (None, nn.LinearCrossEntropyOptions(batch_chunk_size=2)):
        loss = F.linear_cross_entropy(x, w, y, options=options, **rest)
        grads = pullback.autograd.grad(loss.sum(), (x, w, b))
        results.append([value.detach().numpy() for value in (loss, *grads)])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)
    logits = x @ w.T + b
    plain = F.cross_entropy(logits, y, rest["weight"], reduction=reduction, label_smoothing=0.1)
    np.testing.assert_allclose(results[0][0], plain.detach().numpy(), rtol=1e-10)


def test_options_of_linear_cross_entropy():
    options = nn.LinearCrossEntropyOptions()
    assert repr(options) == (
        "LinearCrossEntropyOptions(allow_retain_graph=False, batch_chunk_size=None, "
        "chunking_method='auto', acc_policy='auto', acc_dtype=None)"
    )
    assert options._rows(100, 10, 50) == 32
    with pytest.raises(ValueError, match="invalid acc_policy: 'x'"):
        nn.LinearCrossEntropyOptions(acc_policy="x")
    with pytest.raises(ValueError, match="batch_chunk_size must be positive"):
        nn.LinearCrossEntropyOptions(batch_chunk_size=0)


# ---- the adaptive softmax ----


def test_the_adaptive_softmax_is_a_distribution():
    pullback.manual_seed(0)
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], div_value=2.0)
    x = pullback.randn(20, 8)
    logs = layer.log_prob(x)
    np.testing.assert_allclose(logs.exp().sum(1).detach().numpy(), np.ones(20), rtol=1e-5)
    assert pullback.equal(layer.predict(x), logs.argmax(1))
    target = pullback.arange(20) % 12
    out, loss = layer(x, target)
    picked = logs.gather(1, target.unsqueeze(1)).squeeze(1)
    np.testing.assert_allclose(out.detach().numpy(), picked.detach().numpy(), rtol=1e-5)
    assert loss.item() == pytest.approx(-out.mean().item())
    one = layer(x[0], target[0])
    assert one.output.shape == ()
    before = layer.head.weight.detach().clone()
    layer.reset_parameters()
    assert not pullback.equal(before, layer.head.weight)


@pytest.mark.parametrize("cutoffs", [[5, 20], [5, 5], [0, 3], [3.5], [7, 3]])
def test_cutoffs_that_are_refused(cutoffs):
    with pytest.raises(ValueError, match="cutoffs should be a sequence of unique, positive"):
        nn.AdaptiveLogSoftmaxWithLoss(16, 20, cutoffs)
    with pytest.raises(ValueError, match="length larger than 0"):
        nn.AdaptiveLogSoftmaxWithLoss(16, 20, [])


@pytest.mark.parametrize(
    ("rows", "target", "text"),
    [
        ((3, 16), [1, 2], "same size in the batch dimension"),
        ((3, 16), [1, 2, 20], r"Target values should be in \[0, 19\], but values in range"),
        ((3, 16), [[1], [2], [3]], "0D or 1D target tensor expected"),
        ((2, 3, 16), [1, 2], "1D target tensor expects 2D input tensors"),
        ((2, 16), 3, "0D target tensor expects 1D input tensors"),
    ],
)
def test_targets_that_the_adaptive_softmax_refuses(rows, target, text):
    layer = nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10])
    with pytest.raises(RuntimeError, match=text):
        layer(pullback.ones(rows), pullback.tensor(target))


# ---- transformers ----


def test_a_causal_mask_hides_what_comes_later():
    pullback.manual_seed(0)
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0), 2).eval()
    x = pullback.randn(5, 1, 8)
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    assert mask.tolist()[0] == [0.0] + [-np.inf] * 4
    whole = model(x, mask=mask)
    part = model(x[:3], mask=nn.Transformer.generate_square_subsequent_mask(3))
    np.testing.assert_allclose(whole[:3].detach().numpy(), part.detach().numpy(), rtol=1e-5)


def test_padding_is_ignored_and_zero_in_evaluation_only():
    pullback.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).eval()
    x = pullback.randn(1, 4, 8)
    padding = pullback.tensor([[False, False, True, True]])
    with pullback.no_grad():
        padded = model(x, src_key_padding_mask=padding)
    wanted = model(x, src_key_padding_mask=padding)
    assert padded[0, 2:].abs().sum().item() == 0
    assert wanted[0, 2:].abs().sum().item() > 0
    short = model(x[:, :2])
    for found in (padded, wanted):
        np.testing.assert_allclose(
            found[:, :2].detach().numpy(), short.detach().numpy(), rtol=1e-4, atol=1e-6
        )


def test_batch_first_only_swaps_dimensions():
    pullback.manual_seed(0)
    model = nn.Transformer(8, 2, 1, 1, 16, 0.0)
    other = copy.deepcopy(model)
    for module in other.modules():
        if hasattr(module, "batch_first"):
            module.batch_first = True
    src, tgt = pullback.randn(3, 2, 8), pullback.randn(4, 2, 8)
    expected = model(src, tgt).transpose(0, 1)
    found = other(src.transpose(0, 1), tgt.transpose(0, 1))
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-5)


def test_copies_pickles_and_checkpoints_of_transformers():
    model = nn.Transformer(8, 2, 1, 1, 16, activation="gelu").eval()
    src, tgt = pullback.randn(3, 2, 8), pullback.randn(4, 2, 8)
    file = io.BytesIO()
    pullback.save(model.state_dict(), file)
    file.seek(0)
    third = nn.Transformer(8, 2, 1, 1, 16, activation="gelu").eval()
    third.load_state_dict(pullback.load(file))
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), third):
        assert pullback.equal(twin(src, tgt), model(src, tgt))


@pytest.mark.parametrize(
    ("run", "error", "text"),
    [
        (
            lambda m: m(pullback.ones(3, 2, 8), pullback.ones(3, 4, 8)),
            RuntimeError,
            "the batch number of src and tgt must be equal",
        ),
        (
            lambda m: m(pullback.ones(3, 2, 7), pullback.ones(3, 2, 7)),
            RuntimeError,
            "the feature number of src and tgt must be equal to d_model",
        ),
        (
            lambda m: m.encoder(pullback.ones(3, 2, 8), is_causal=True),
            RuntimeError,
            "Need attn_mask if specifying the is_causal hint",
        ),
        (
            lambda _: nn.TransformerEncoderLayer(8, 2, activation="tanh"),
            RuntimeError,
            "activation should be relu/gelu, not tanh",
        ),
        (
            lambda m: m.encoder(
                pullback.ones(3, 2, 8),
                src_key_padding_mask=pullback.zeros(2, 3, dtype=pullback.int32),
            ),
            AssertionError,
            "only bool and floating types of src_key_padding_mask are supported",
        ),
    ],
)
def test_what_transformers_refuse(run, error, text):
    with pytest.raises(error, match=text):
        run(nn.Transformer(8, 2, 1, 1, 16))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "batch_first was not True"),
        ({"batch_first": True, "norm_first": True}, "norm_first was True"),
        ({"batch_first": True, "bias": False}, "was passed bias=False"),
        ({"batch_first": True, "activation": pullback.tanh}, "activation_relu_or_gelu was not"),
    ],
)
def test_encoders_say_why_padding_is_not_left_out(options, reason):
    layer = nn.TransformerEncoderLayer(8, 2, 16, **options)
    with pytest.warns(UserWarning, match=reason):
        nn.TransformerEncoder(layer, 1)


def test_merged_masks_of_attention():
    attention = nn.MultiheadAttention(8, 2)
    query = pullback.ones(3, 4, 8)
    assert attention.merge_masks(None, None, query) == (None, None)
    padding = pullback.zeros(3, 4)
    assert attention.merge_masks(None, padding, query)[1] == 1
    merged, kind = attention.merge_masks(pullback.ones(4, 4), padding, query)
    assert merged.shape == (3, 2, 4, 4)
    assert kind == 2


# ---- other ----


def test_channel_shuffle_mixes_groups():
    x = pullback.arange(6.0).reshape(1, 6, 1)
    assert nn.ChannelShuffle(2)(x).reshape(-1).tolist() == [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]
    for groups, text in ((4, "must be divisible by groups"), (0, "must be positive")):
        with pytest.raises(RuntimeError, match=text):
            F.channel_shuffle(x, groups)
    with pytest.raises(RuntimeError, match="expects input with > 2 dims"):
        F.channel_shuffle(pullback.ones(2, 3), 1)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: nn.FractionalMaxPool2d(3), "requires specifying either an output size, or a"),
        (lambda: nn.FractionalMaxPool3d(3, 2, 0.5), "only one of output_size and output_ratio"),
        (lambda: nn.FractionalMaxPool2d(3, output_ratio=1.5), "output_ratio must be between 0"),
    ],
)
def test_fractional_pools_that_are_refused(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_former_names_of_interpolation():
    x = pullback.arange(4.0).reshape(1, 1, 2, 2)
    upsample = F.upsample
    with pytest.warns(UserWarning, match="`nn.functional.upsample` is deprecated"):
        assert upsample(x, 4).shape == (1, 1, 4, 4)
    with pytest.warns(UserWarning, match="upsample_nearest"):
        F.upsample_nearest(x, scale_factor=2)
    with pytest.warns(UserWarning, match="upsample_bilinear"):
        assert F.upsample_bilinear(x, 3)[0, 0, 1, 1].item() == 1.5


def test_containers_of_old_take_their_modules_by_name():
    with pytest.warns(FutureWarning, match="nn.Container is deprecated"):
        container = nn.Container(inner=nn.Linear(1, 1))
    assert isinstance(container.inner, nn.Linear)


def test_modules_without_initial_values():
    layer = nn.utils.skip_init(nn.Linear, 2, 3, dtype=pullback.float64)
    assert layer.weight.shape == (3, 2)
    assert layer.weight.dtype is pullback.float64
    assert layer.weight.device.type == "cpu"
    with pytest.raises(RuntimeError, match="Expected a Module; got"):
        nn.utils.skip_init(int)
    with pytest.raises(RuntimeError, match="must support a 'device' arg"):
        nn.utils.skip_init(nn.ReLU)


def test_options_for_parameters():
    assert nn.factory_kwargs(None) == {}
    assert nn.factory_kwargs({"device": 1, "factory_kwargs": {"dtype": 2}}) == {
        "device": 1,
        "dtype": 2,
    }
    with pytest.raises(TypeError, match="unexpected kwargs"):
        nn.factory_kwargs({"bias": True})
    with pytest.raises(TypeError, match="device specified twice"):
        nn.factory_kwargs({"device": 1, "factory_kwargs": {"device": 2}})


@pytest.mark.parametrize(
    "path",
    [
        "modules.transformer.Transformer",
        "modules.instancenorm.InstanceNorm2d",
        "modules.instancenorm._InstanceNorm",
        "modules.lazy.LazyModuleMixin",
        "modules.adaptive.AdaptiveLogSoftmaxWithLoss",
        "modules.channelshuffle.ChannelShuffle",
        "modules.fold.Unfold",
        "modules.upsampling.Upsample",
        "modules.conv._ConvTransposeNd",
        "modules.conv.LazyConv2d",
        "modules.batchnorm.SyncBatchNorm",
        "modules.batchnorm.LazyBatchNorm1d",
        "modules.pooling.LPPool2d",
        "modules.rnn.LSTM",
        "modules.activation.MultiheadAttention",
        "common_types._size_2_t",
        "parameter.UninitializedTensorMixin",
        "utils.parametrize.ParametrizationList",
        "utils.prune.L1Unstructured",
        "parallel.DataParallel",
    ],
)
def test_paths_of_pytorch_lead_here(path):
    value = nn
    for name in path.split("."):
        value = getattr(value, name)
    assert value is not None


@pytest.mark.parametrize("kind", ["xpu", "mtia", "ipu"])
def test_modules_do_not_move_to_what_is_not_there(kind):
    with pytest.raises((RuntimeError, AssertionError)):
        getattr(nn.Linear(1, 1), kind)()


def test_options_are_listed_as_constants():
    assert nn.Linear.__constants__ == ["in_features", "out_features"]
    assert nn.ConvTranspose3d(1, 1, 1).__constants__[0] == "stride"
    assert nn.ReflectionPad2d.__constants__ == ["padding"]
    assert nn.TransformerEncoder.__constants__ == ["norm"]
    assert not hasattr(nn.Module, "__constants__")
    for name in nn.modules.__all__:
        kind = getattr(nn, name)
        for option in getattr(kind, "__constants__", ()):
            assert isinstance(option, str)


def test_channels_that_an_instance_norm_does_not_expect():
    x = pullback.arange(12.0).reshape(2, 3, 2)
    with pytest.raises(ValueError, match=r"size at dim=1 to match num_features \(2\), but got: 3"):
        nn.InstanceNorm1d(2, affine=True)(x)
    with pytest.warns(UserWarning, match="input's size at dim=0 does not match num_features"):
        nn.InstanceNorm1d(2)(x[0])


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("layouts", ["cc", "ct", "tc", "tt"])
def test_batch_normalisation_has_its_gradient_in_every_layout(
    layouts: str, training: bool, count: int
) -> None:
    # (Channels last with other strides than those of `channels_last`, as of tokens transposed.)
    def laid(x: pullback.Tensor, layout: str) -> pullback.Tensor:
        moved = x.flatten(2).transpose(1, 2).contiguous().transpose(1, 2).unflatten(2, x.shape[2:])
        return moved if layout == "t" else x.contiguous()

    pullback.manual_seed(0)
    x, grad = pullback.randn(2, count, 3, 4, 5, dtype=pullback.float64)
    norm = pullback.nn.BatchNorm2d(3).double().train(training)
    pullback.nn.init.normal_(norm.weight)
    given = laid(x, layouts[0]).clone().requires_grad_()
    norm(given).backward(laid(grad, layouts[1]))
    plain = x.detach().clone().requires_grad_()
    mean = plain.mean((0, 2, 3), keepdim=True) if training else 0.0
    variance = plain.var((0, 2, 3), unbiased=False, keepdim=True) if training else 1.0
    scaled = (plain - mean) / (variance + norm.eps) ** 0.5
    (scaled * norm.weight.detach().view(1, 3, 1, 1)).backward(grad)
    assert given.grad is not None
    assert plain.grad is not None
    pullback.testing.assert_close(given.grad, plain.grad)
