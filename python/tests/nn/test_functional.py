"""``nn.functional`` and ``nn.utils``: what the functions add to the natives."""

import math
import warnings

import numpy as np
import pytest

import pullback
from pullback import nn
from pullback.nn import functional as F


def close(tensor, values, tol=1e-5):
    return tensor.reshape(-1).tolist() == pytest.approx(values, abs=tol)


X = [-2.0, -0.5, 0.0, 0.5, 2.0]


def x():
    return pullback.tensor(X)


@pytest.mark.parametrize(
    ("function", "formula"),
    [
        (F.relu, lambda v: max(v, 0.0)),
        (F.relu6, lambda v: min(max(v, 0.0), 6.0)),
        (F.silu, lambda v: v / (1 + math.exp(-v))),
        (F.mish, lambda v: v * math.tanh(math.log1p(math.exp(v)))),
        (F.hardsigmoid, lambda v: min(max(v + 3, 0), 6) / 6),
        (F.hardswish, lambda v: v * min(max(v + 3, 0), 6) / 6),
        (F.gelu, lambda v: v * (1 + math.erf(v / math.sqrt(2))) / 2),
        (F.logsigmoid, lambda v: -math.log1p(math.exp(-v))),
        (F.softsign, lambda v: v / (1 + abs(v))),
        (F.tanhshrink, lambda v: v - math.tanh(v)),
        (F.hardshrink, lambda v: v if abs(v) > 0.5 else 0.0),
        (F.softshrink, lambda v: math.copysign(max(abs(v) - 0.5, 0.0), v)),
        (F.elu, lambda v: v if v > 0 else math.expm1(v)),
        (F.celu, lambda v: v if v > 0 else math.expm1(v)),
        (F.leaky_relu, lambda v: v if v > 0 else 0.01 * v),
        (F.hardtanh, lambda v: min(max(v, -1.0), 1.0)),
    ],
)
def test_activation_follows_its_formula(function, formula):
    assert close(function(x()), [formula(v) for v in X])


@pytest.mark.parametrize(
    "function",
    [
        F.relu,
        F.relu6,
        F.silu,
        F.mish,
        F.hardsigmoid,
        F.hardswish,
        F.elu,
        F.celu,
        F.selu,
        F.leaky_relu,
        F.hardtanh,
    ],
)
def test_in_place_variant_changes_its_input(function):
    source = x()
    expected = function(x()).tolist()
    out = function(source, inplace=True)
    assert out.data_ptr() == source.data_ptr()
    assert source.tolist() == expected


def test_shrinking_keeps_nan():
    nan = pullback.tensor([math.nan])
    assert math.isnan(F.hardshrink(nan).item())
    assert math.isnan(F.softshrink(nan).item())
    with pytest.raises(RuntimeError, match=r"lambda must be in range"):
        F.softshrink(nan, -1.0)


def test_activations_refuse():
    with pytest.raises(ValueError, match=r"min_val cannot be greater than max_val"):
        F.hardtanh(x(), 1.0, -1.0)
    with pytest.raises(RuntimeError, match=r"glu does not support scalars"):
        F.glu(pullback.tensor(1.0))


def test_softmax_chooses_a_dimension_with_a_warning():
    two = pullback.zeros(2, 4)
    with pytest.warns(UserWarning, match=r"Implicit dimension choice for softmax"):
        assert close(F.softmax(two), [0.25] * 8)
    with pytest.warns(UserWarning, match=r"for log_softmax has been deprecated"):
        F.log_softmax(two)
    assert F.softmax(two, 0, dtype=pullback.float64).dtype == pullback.float64
    assert close(F.softmin(x(), -1), F.softmax(-x(), -1).tolist())


def test_gumbel_softmax_is_one_hot_when_hard():
    logits = pullback.zeros(3, 5, requires_grad=True)
    out = F.gumbel_softmax(logits, hard=True)
    assert sorted(out.detach().reshape(-1).round().tolist()) == [0.0] * 12 + [1.0] * 3
    (out * pullback.arange(5.0)).sum().backward()
    assert logits.grad.abs().sum().item() > 0


def test_layer_and_rms_norm_agree_with_their_formulas():
    v = pullback.tensor([[1.0, 2.0, 3.0, 6.0]])
    mean, var = 3.0, 3.5
    assert close(F.layer_norm(v, (4,)), [(a - mean) / math.sqrt(var + 1e-5) for a in (1, 2, 3, 6)])
    rms = math.sqrt(50 / 4)
    assert close(F.rms_norm(v, [4]), [a / rms for a in (1, 2, 3, 6)])
    assert F.rms_norm(v.half(), [4]).dtype == pullback.float16
    with pytest.raises(RuntimeError, match=r"Given normalized_shape=\[3\], expected input"):
        F.rms_norm(v, [3])
    with pytest.raises(RuntimeError, match=r"Expected normalized_shape to be at least 1-dim"):
        F.rms_norm(v, [])


def test_group_norm_refuses_one_value_per_group():
    with pytest.raises(ValueError, match=r"Expected more than 1 value per channel"):
        F.group_norm(pullback.ones(1, 2), 2)
    with pytest.raises(RuntimeError, match=r"Expected at least 2 dimensions"):
        F.group_norm(pullback.ones(2), 2)


def test_instance_norm_updates_running_statistics():
    mean, var = pullback.zeros(1), pullback.ones(1)
    v = pullback.tensor([[[0.0, 2.0]], [[4.0, 6.0]]])
    out = F.instance_norm(v, mean, var, momentum=0.5)
    assert close(out, [-1.0, 1.0, -1.0, 1.0], 1e-4)
    assert mean.item() == pytest.approx(1.5)
    assert var.item() == pytest.approx(1.5)
    with pytest.raises(ValueError, match=r"Expected more than 1 spatial element"):
        F.instance_norm(pullback.ones(2, 3, 1))


def test_normalize():
    assert close(F.normalize(pullback.tensor([[3.0, 4.0]])), [0.6, 0.8])
    assert close(F.normalize(pullback.zeros(1, 2)), [0.0, 0.0])


def test_bilinear():
    weight = pullback.arange(6.0).reshape(1, 2, 3)
    out = F.bilinear(pullback.ones(2), pullback.ones(3), weight, pullback.ones(1))
    assert out.tolist() == [16.0]
    with pytest.raises(RuntimeError, match=r"bilinear\(\): input2 size does not match"):
        F.bilinear(pullback.ones(2), pullback.ones(4), weight)


def test_pooling_in_one_dimension():
    v = pullback.tensor([[[1.0, 5.0, 2.0, 4.0, 3.0]]])
    out, where = F.max_pool1d(v, 2, return_indices=True)
    assert out.tolist() == [[[5.0, 4.0]]]
    assert where.tolist() == [[[1, 3]]]
    assert F.avg_pool1d(v, 2, stride=1).tolist() == [[[3.0, 3.5, 3.0, 3.5]]]
    assert F.max_pool1d(v[0], 5).tolist() == [[5.0]]
    assert close(F.adaptive_avg_pool1d(v, 1), [3.0])


def test_adaptive_pooling_keeps_sizes_for_none():
    assert F.adaptive_avg_pool2d(pullback.ones(1, 1, 4, 6), (2, None)).shape == (1, 1, 2, 6)
    with pytest.raises(ValueError, match=r"Input dimension should be at least 3"):
        F.adaptive_avg_pool2d(pullback.ones(4, 6), (2, None))


def test_pixel_shuffle_is_inverted():
    v = pullback.arange(16.0).reshape(1, 4, 2, 2)
    wide = F.pixel_shuffle(v, 2)
    assert wide.shape == (1, 1, 4, 4)
    assert wide[0, 0, 0].tolist() == [0.0, 4.0, 1.0, 5.0]
    assert F.pixel_unshuffle(wide, 2).tolist() == v.tolist()
    with pytest.raises(RuntimeError, match=r"divisible by the square"):
        F.pixel_shuffle(v, 3)


@pytest.mark.parametrize("function", [F.pixel_shuffle, F.pixel_unshuffle])
def test_pixels_of_no_batch_are_rearranged(function):
    assert function(pullback.zeros(0, 4, 6, 6), 2).shape[0] == 0
    assert function(pullback.zeros(1, 0, 6, 6), 1).shape == (1, 0, 6, 6)


@pytest.mark.parametrize("mode", ["circular", "replicate", "reflect"])
@pytest.mark.parametrize("pad", [(-1, 1), (1, -1), (-1, -1), (2, 1), (0, 0), (-1, 0)])
def test_padding_follows_numpy_in_memory_of_its_own(mode, pad):
    values = pullback.arange(24.0).reshape(2, 3, 4)
    result = F.pad(values.expand(2, 2, 3, 4)[0], pad, mode)
    before, after = pad
    if mode == "circular":
        # What is cropped away does not come back at the other side.
        values = values[..., max(-before, 0) : 4 + min(after, 0)]
        before, after = max(before, 0), max(after, 0)
    widths = [(0, 0), (0, 0), (max(before, 0), max(after, 0))]
    name = {"circular": "wrap", "replicate": "edge", "reflect": "reflect"}[mode]
    padded = np.pad(values.numpy(), widths, name)
    padded = padded[..., max(-before, 0) : padded.shape[-1] + min(after, 0)]
    assert result.tolist() == padded.tolist()
    assert result.is_contiguous()
    assert result.data_ptr() != values.data_ptr()


def test_wrapping_more_than_once_is_refused():
    for pad in ((5, 0), (3, -3)):
        with pytest.raises(RuntimeError, match="wrapping around more than once"):
            F.pad(pullback.zeros(1, 1, 4), pad, "circular")


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_integers_are_convolved_exactly(dtype):
    dtype = getattr(pullback, dtype)
    pullback.manual_seed(0)
    images = pullback.randint(0, 6, (2, 4, 7, 6), dtype=dtype)
    weight = pullback.randint(0, 4, (6, 2, 3, 2), dtype=dtype)
    bias = pullback.randint(0, 9, (6,), dtype=dtype)
    options = {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2), "groups": 2}
    result = F.conv2d(images, weight, bias, **options)
    assert result.dtype == dtype
    exact = F.conv2d(images.double(), weight.double(), bias.double(), **options)
    assert result.tolist() == exact.to(pullback.int64).to(dtype).tolist()
    lines = F.conv1d(images[:, :, 0], weight[:, :, 0], bias, padding=1, groups=2)
    exact = F.conv1d(*(t.double() for t in (images[:, :, 0], weight[:, :, 0], bias)), 1, 1, 1, 2)
    assert lines.tolist() == exact.to(pullback.int64).to(dtype).tolist()
    with pytest.raises(NotImplementedError, match="Bool"):
        F.conv2d(images > 0, weight > 0, groups=2)


def test_means_of_integers_lose_their_fraction():
    values = pullback.arange(-12, 24).reshape(1, 6, 6)
    for options in ((2,), (3, 2, 1), (3, 1, 1, False, False), (2, 2, 0, True, True, 3)):
        exact = F.avg_pool2d(values.double(), *options)
        assert F.avg_pool2d(values, *options).tolist() == exact.trunc().tolist()
    assert F.avg_pool1d(values, 4).tolist() == F.avg_pool1d(values.double(), 4).trunc().tolist()
    with pytest.raises(NotImplementedError, match="not implemented for 'Int'"):
        F.avg_pool2d(values.int(), 2)


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize(
    "function",
    [F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout, F.feature_alpha_dropout],
)
def test_complex_numbers_are_dropped_by_a_real_mask(function, inplace):
    dims = {F.dropout1d: 3, F.dropout3d: 5}.get(function, 4)
    real = pullback.ones((4, 8, 2, 2, 2)[:dims], dtype=pullback.float64)
    pullback.manual_seed(1)
    expected = function(real, 0.5, True)
    pullback.manual_seed(1)
    values = pullback.complex(real, real)
    dropped = function(values, 0.5, True, inplace)
    assert pullback.real(dropped).tolist() == expected.tolist()
    assert (dropped is values) == inplace
    if function not in (F.alpha_dropout, F.feature_alpha_dropout):
        assert pullback.imag(dropped).tolist() == expected.tolist()


@pytest.mark.parametrize("shape", [(6,), (6, 5), (6, 5, 2), (6, 5, 2, 3)])
def test_dropout3d_takes_what_has_no_batch_as_channels(shape):
    pullback.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept = F.dropout3d(pullback.ones(shape), 0.5, True).reshape(6, -1)
    assert kept.tolist() == kept[:, :1].expand_as(kept).tolist()
    assert 0 < kept[:, 0].count_nonzero().item() < 6


def test_rms_norm_squares_complex_numbers_as_they_are():
    values = pullback.tensor([1 + 2j, 3 - 1j], dtype=pullback.complex128)
    square = ((1 + 2j) ** 2 + (3 - 1j) ** 2) / 2 + 0.5
    expected = [v / square**0.5 for v in (1 + 2j, 3 - 1j)]
    result = F.rms_norm(values, [2], eps=0.5).tolist()
    assert result == pytest.approx(expected)


def test_attention_equals_its_formula():
    q = pullback.tensor([[1.0, 0.0]])
    k = pullback.tensor([[1.0, 0.0], [0.0, 1.0]])
    v = pullback.tensor([[1.0], [3.0]])
    a = math.exp(1 / math.sqrt(2))
    assert close(F.scaled_dot_product_attention(q, k, v), [(a + 3) / (a + 1)])
    mask = pullback.tensor([[False, True]])
    assert close(F.scaled_dot_product_attention(q, k, v, mask), [3.0])
    none = pullback.tensor([[False, False]])
    assert close(F.scaled_dot_product_attention(q, k, v, none), [0.0])
    assert close(F.scaled_dot_product_attention(k, k, v, is_causal=True)[:1], [1.0])
    assert close(F.scaled_dot_product_attention(q, k, v, scale=0.0), [2.0])
    with pytest.raises(RuntimeError, match=r"Explicit attn_mask should not be set when"):
        F.scaled_dot_product_attention(q, k, v, mask, is_causal=True)


# ---- losses ----


def test_reductions():
    a, b = pullback.tensor([1.0, 2.0]), pullback.tensor([3.0, 5.0])
    assert F.mse_loss(a, b).item() == 6.5
    assert F.mse_loss(a, b, reduction="sum").item() == 13.0
    assert F.mse_loss(a, b, reduction="none").tolist() == [4.0, 9.0]
    assert F.l1_loss(a, b, weight=pullback.tensor([1.0, 3.0])).item() == 2.75
    with pytest.raises(ValueError, match=r"median is not a valid value for reduction"):
        F.mse_loss(a, b, reduction="median")
    with pytest.raises(ValueError, match=r"Weights and input must have the same size"):
        F.mse_loss(a, b, weight=pullback.ones(1))


def test_sizes_that_differ_broadcast_with_a_warning():
    with pytest.warns(UserWarning, match=r"Using a target size"):
        assert F.mse_loss(pullback.ones(2, 1), pullback.zeros(2)).item() == 1.0
    with pytest.raises(ValueError, match=r"is deprecated. Please ensure they have the same size"):
        F.binary_cross_entropy(pullback.ones(2), pullback.ones(3))
    with pytest.raises(ValueError, match=r"must be the same as input size"):
        F.binary_cross_entropy_with_logits(pullback.ones(2), pullback.ones(3))


def test_cross_entropy_of_indices_and_probabilities():
    logits = pullback.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    first = math.log(math.exp(-2) + math.exp(-1) + 1)
    index = pullback.tensor([2, 0])
    assert F.cross_entropy(logits, index).item() == pytest.approx((first + math.log(3)) / 2)
    hot = F.one_hot(index, 3).float()
    assert F.cross_entropy(logits, hot).item() == pytest.approx((first + math.log(3)) / 2)
    kept = F.cross_entropy(logits, index, ignore_index=0)
    assert kept.item() == pytest.approx(first)
    weighted = F.cross_entropy(logits, index, weight=pullback.tensor([3.0, 1.0, 1.0]))
    assert weighted.item() == pytest.approx((first + 3 * math.log(3)) / 4)
    log = F.log_softmax(logits, 1)
    assert F.nll_loss(log, index, reduction="sum").item() == pytest.approx(first + math.log(3))


def test_divergence_by_batch():
    p = pullback.tensor([[0.5, 0.5], [0.9, 0.1]])
    q = pullback.tensor([[0.5, 0.5], [0.5, 0.5]])
    total = 0.9 * math.log(1.8) + 0.1 * math.log(0.2)
    assert F.kl_div(q.log(), p, reduction="batchmean").item() == pytest.approx(total / 2, abs=1e-6)
    with pytest.warns(UserWarning, match=r"'batchmean' divides only by the batch size"):
        F.kl_div(q.log(), p)


def test_losses_without_a_native():
    a = pullback.tensor([[1.0, 0.0], [0.0, 2.0]])
    b = pullback.tensor([[0.0, 1.0], [0.0, 1.0]])
    sign = pullback.tensor([-1.0, 1.0])
    assert close(F.cosine_embedding_loss(a, b, sign, reduction="none"), [0.0, 0.0])
    assert close(F.cosine_similarity(a, b), [0.0, 1.0])
    assert close(F.margin_ranking_loss(sign, -sign, sign, margin=0.5, reduction="none"), [0, 0])
    assert close(F.hinge_embedding_loss(sign, sign, reduction="none"), [2.0, 1.0])
    assert F.gaussian_nll_loss(a, a, pullback.ones(2, 2)).item() == 0.0
    assert F.triplet_margin_loss(a, a, b).item() == pytest.approx(0.0, abs=1e-4)
    with pytest.raises(ValueError, match=r"var has negative entry"):
        F.gaussian_nll_loss(a, b, -pullback.ones(2, 2))
    with pytest.raises(ValueError, match=r"margin must be greater than 0, got 0"):
        F.triplet_margin_loss(a, a, b, margin=0)
    with pytest.raises(RuntimeError, match=r"multi-target not supported"):
        F.cosine_embedding_loss(a, b, a)


# ---- utilities ----


def grads():
    params = [nn.Parameter(pullback.zeros(2)), nn.Parameter(pullback.zeros(1))]
    params[0].grad = pullback.tensor([3.0, 0.0])
    params[1].grad = pullback.tensor([4.0])
    return [*params, nn.Parameter(pullback.zeros(1))]


def test_gradients_are_clipped_by_their_norm():
    params = grads()
    assert nn.utils.clip_grad_norm_(params, 2.5).item() == pytest.approx(5.0)
    assert close(params[0].grad, [1.5, 0.0])
    assert close(params[1].grad, [2.0])
    assert nn.utils.clip_grad_norm_(params, 10.0).item() == pytest.approx(2.5)
    assert close(params[1].grad, [2.0])
    assert nn.utils.clip_grad_norm_(grads(), 1.0, math.inf).item() == 4.0
    assert nn.utils.clip_grad_norm_(grads(), 1.0, 1.0, foreach=False).item() == 7.0
    assert nn.utils.clip_grad_norm_([], 1.0).item() == 0.0
    params[0].grad[0] = math.nan
    with pytest.raises(RuntimeError, match=r"is non-finite, so it cannot be clipped"):
        nn.utils.clip_grad_norm_(params, 1.0, error_if_nonfinite=True)
    with pytest.warns(UserWarning, match=r"`parameters` is an empty generator"):
        nn.utils.clip_grad_norm_((p for p in []), 1.0)


def test_gradients_are_clipped_by_value():
    params = grads()
    nn.utils.clip_grad_value_(params, 3.5)
    assert params[0].grad.tolist() == [3.0, 0.0]
    assert params[1].grad.tolist() == [3.5]


def test_parameters_become_a_vector_and_come_back():
    model = nn.Linear(2, 1)
    vector = nn.utils.parameters_to_vector(model.parameters())
    assert vector.shape == (3,)
    nn.utils.vector_to_parameters(pullback.arange(3.0), model.parameters())
    assert model.weight.tolist() == [[0.0, 1.0]]
    assert model.bias.tolist() == [2.0]
    with pytest.raises(TypeError, match=r"expected torch.Tensor, but got"):
        nn.utils.vector_to_parameters([1.0], model.parameters())


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 3, 0)])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_of_nothing_is_nothing(shape, training):
    given = pullback.zeros(shape, requires_grad=True)
    weight = pullback.ones(3, requires_grad=True)
    mean, var = pullback.zeros(3), pullback.ones(3)
    result = pullback.batch_norm(given, weight, None, mean, var, training, 0.1, 1e-5, False)
    assert result.shape == given.shape
    result.sum().backward()
    assert weight.grad.tolist() == [0, 0, 0]
    assert mean.tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match=r"at least one element|2 or more dimensions"):
        pullback.native_batch_norm(given, weight, None, None, None, True, 0.1, 1e-5)


def ramp(*shape):
    return pullback.arange(1.0, 1 + math.prod(shape)).reshape(shape)


@pytest.mark.parametrize(
    ("error", "call", "text"),
    [
        (RuntimeError, lambda: F.conv1d(ramp(1, 2, 4), ramp(1, 2)), "at least three dimensions"),
        (
            RuntimeError,
            lambda: F.conv2d(ramp(1, 1, 4, 4), ramp(1, 1, 2, 2), dilation=0),
            r"dilation should be greater than zero, but got \[0, 0\]",
        ),
        (
            RuntimeError,
            lambda: F.conv2d(ramp(1, 2, 4, 4), ramp(2, 2, 1, 3), groups=3),
            "Given groups=3, expected weight to be at least 3 at dimension 0",
        ),
        (
            RuntimeError,
            lambda: F.conv2d(ramp(1, 1, 4, 4), ramp(1, 1, 2, 2).double()),
            "expected scalar type Float but found Double",
        ),
        (
            RuntimeError,
            lambda: F.conv2d(ramp(1, 1, 4, 4), ramp(1, 1, 2, 2), ramp(1).long()),
            r"Input type \(float\) and bias type \(long int\) should be the same",
        ),
        (
            RuntimeError,
            lambda: F.conv2d(ramp(1, 1, 4, 4), ramp(2, 1, 2, 2), ramp(3)),
            r"Given weight of size \[2, 1, 2, 2\], expected bias to be 1-dimensional with 2",
        ),
        (RuntimeError, lambda: F.max_pool2d(ramp(4, 4), 2), "non-empty 3D or 4D"),
        (RuntimeError, lambda: F.max_pool2d(ramp(1, 4, 4), 0), "stride should not be zero"),
        (RuntimeError, lambda: F.max_pool2d(ramp(1, 4, 4), -1), "but got kH: -1 kW: -1"),
        (
            RuntimeError,
            lambda: F.max_pool2d(ramp(1, 4, 4), 2, dilation=0),
            "but got dilationH: 0 dilationW: 0",
        ),
        (
            RuntimeError,
            lambda: F.max_pool2d(ramp(1, 4, 4), 2, (1, 1, 1)),
            "max_pool2d: stride must either be omitted, a single int, or a tuple of two ints",
        ),
        (
            RuntimeError,
            lambda: F.max_pool2d(ramp(2, 3, 4, 4), (5, 2)),
            r"input size: \(3x4x4\). Calculated output size: \(3x0x2\). Output size is too small",
        ),
        (RuntimeError, lambda: F.max_pool2d(pullback.ones(1, 0, 4), 2), r"but got:\[1, 0, 4\]"),
        (IndexError, lambda: F.avg_pool2d(ramp(4, 4), 2), r"range of \[-2, 1\], but got -3"),
        (RuntimeError, lambda: F.avg_pool1d(ramp(4), 2), "Expected 2 to 3 dimensions, but got 1"),
        (RuntimeError, lambda: F.max_pool1d(ramp(1, 4), 0), "kernel_size must be greater than"),
        (RuntimeError, lambda: F.max_pool1d(ramp(1, 4), 2, 0), r"\(\) stride must be greater"),
        (RuntimeError, lambda: F.max_pool1d(ramp(1, 4), 2, padding=2), "at most half of kernel"),
        (RuntimeError, lambda: F.max_pool1d(ramp(1, 4), 5), "Invalid computed output size: 0"),
        (
            RuntimeError,
            lambda: F.max_pool1d(ramp(1, 4), 2**62, dilation=4),
            "effective kernel size overflows",
        ),
        (RuntimeError, lambda: F.adaptive_avg_pool1d(ramp(1, 4), -1), r"received \{1, -1\}"),
        (
            RuntimeError,
            lambda: F.pad(ramp(1, 1, 3), (3, 3), mode="reflect"),
            r"Padding size should be less .* padding \(3, 3\) at dimension 2 of input \[1, 1, 3\]",
        ),
        (
            RuntimeError,
            lambda: F.pad(ramp(1, 1, 3), (-2, -2), mode="replicate"),
            r"input \(W: 3\) is too small. Calculated output W: -1",
        ),
        (
            RuntimeError,
            lambda: F.pad(ramp(1, 3, 3), (1, 1, -2, -2), mode="reflect"),
            "Calculated output H: -1 W: 5 must be >= 1 in every dimension",
        ),
        (
            RuntimeError,
            lambda: F.pad(ramp(1, 1, 3), (-2, -2), mode="circular"),
            "Negative padding value is resulting in an empty dimension",
        ),
        (
            RuntimeError,
            lambda: F.pad(pullback.ones(1, 0, 3), (1, 1), mode="reflect"),
            "with possibly 0 batch size and other non-zero dimensions",
        ),
        (
            NotImplementedError,
            lambda: F.pad(ramp(1, 3) > 0, (1, 1), mode="reflect"),
            "\"reflection_pad1d\" not implemented for 'Bool'",
        ),
        (
            NotImplementedError,
            lambda: F.pad(ramp(3), (1, 1), mode="replicate"),
            "Padding size 2 is not supported for 1D input tensor",
        ),
        (
            RuntimeError,
            lambda: F.multi_margin_loss(ramp(2, 3), pullback.tensor([0, 3])),
            "target out of range",
        ),
        (
            RuntimeError,
            lambda: F.soft_margin_loss(ramp(3).long(), ramp(3).long()),
            "result type Float can't be cast",
        ),
        (
            RuntimeError,
            lambda: F.l1_loss(ramp(3, 4), ramp(3, 5)),
            r"tensor a \(4\) must match the size of tensor b \(5\) at non-singleton dimension 1",
        ),
        (
            RuntimeError,
            lambda: F.hinge_embedding_loss(ramp(3), ramp(4)),
            r"tensor a \(4\) must match the size of tensor b \(3\)",
        ),
        (NotImplementedError, lambda: F.hardshrink(ramp(3).long()), '"hardshrink_cpu" not'),
        (RuntimeError, lambda: F.softshrink(ramp(3), -0.5), r"lambda must be in range \[0"),
    ],
)
def test_what_does_not_fit_is_said_in_the_known_words(error, call, text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(error, match=text):
            call()


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_that_crops_everything_off_the_middle(mode):
    expected = {"reflect": [5, 4, 3], "replicate": [5, 5, 5]}
    if mode in expected:
        assert F.pad(ramp(1, 1, 5), (-4, 2), mode=mode).tolist() == [[expected[mode]]]
    else:
        with pytest.raises(RuntimeError, match="wrapping around more than once"):
            F.pad(ramp(1, 1, 5), (-4, 2), mode=mode)
    kept = ramp(1, 1, 3).requires_grad_()
    F.pad(kept, (1, 2), mode=mode).sum().backward()
    assert (
        kept.grad.tolist()
        == {
            "reflect": [[[2.0, 3.0, 1.0]]],
            "replicate": [[[2.0, 1.0, 3.0]]],
            "circular": [[[2.0, 2.0, 2.0]]],
        }[mode]
    )


def test_multi_margin_loss_of_powers_weights_and_reductions():
    rows = pullback.tensor([[0.1, 0.2, 0.7], [0.5, 0.4, 0.3]], requires_grad=True)
    target, weight = pullback.tensor([2, 1]), pullback.tensor([1.0, 2.0, 3.0])
    expected = []
    for row, y in zip(rows.tolist(), target.tolist(), strict=True):
        gaps = [max(0.0, 0.75 - row[y] + v) for j, v in enumerate(row) if j != y]
        expected.append(weight[y].item() * sum(g * g for g in gaps) / 3)
    args = {"p": 2, "margin": 0.75, "weight": weight}
    none = F.multi_margin_loss(rows, target, reduction="none", **args)
    assert close(none, expected)
    assert close(F.multi_margin_loss(rows, target, **args), [sum(expected) / 2])
    assert close(F.multi_margin_loss(rows[0], target[0], reduction="sum", **args), expected[:1])
    none.sum().backward()
    assert close(rows.grad.sum(1), [0.0, 0.0])


NATIVE_NORMS = {
    "layer": lambda x, w: pullback.native_layer_norm(x, (4,), w, None, 1e-5),
    "group": lambda x, w: pullback.native_group_norm(x, w, None, 2, 4, 4, 2, 1e-5),
    "batch": lambda x, w: pullback.native_batch_norm(x, w, None, None, None, True, 0.1, 1e-5),
}


@pytest.mark.parametrize("kind", NATIVE_NORMS)
@pytest.mark.parametrize("dtype", [pullback.bfloat16, pullback.float16])
def test_statistics_are_of_the_inputs_dtype_unless_parameters_are_not(kind, dtype):
    call = NATIVE_NORMS[kind]
    given = pullback.arange(32.0).reshape(2, 4, 4).to(dtype)
    for weight, expected in (
        (None, dtype),
        (pullback.ones(4, dtype=dtype), dtype),
        (pullback.ones(4), pullback.float32),
    ):
        assert [t.dtype for t in call(given, weight)] == [dtype, expected, expected]


@pytest.mark.parametrize("kind", NATIVE_NORMS)
def test_only_the_statistics_of_groups_have_gradients(kind):
    given = pullback.arange(32.0).sin().reshape(2, 4, 4).requires_grad_()
    out, mean, rstd = NATIVE_NORMS[kind](given, None)
    assert type(out.grad_fn).__name__ == f"Native{kind.capitalize()}NormBackward0"
    assert mean.requires_grad == rstd.requires_grad == (kind == "group")
    if kind != "group":
        return
    (by_mean,) = pullback.autograd.grad(mean.sum(), given, retain_graph=True)
    assert close(by_mean, [1 / 8] * 32)
    (by_rstd,) = pullback.autograd.grad(rstd.sum(), given)
    rows = given.detach().reshape(2, 2, 8)
    gap = rows - rows.mean(2, keepdim=True)
    expected = -gap / 8 * rstd.detach()[..., None] ** 3
    assert close(by_rstd, expected.flatten().tolist())


def test_functions_of_the_main_namespace_are_those_of_functional():
    x, y = pullback.tensor([[1.0, 2.0], [3.0, 5.0]]), pullback.tensor([[2.0, 1.0], [0.5, 1.0]])
    sign = pullback.tensor([1.0, -1.0])
    for name, args, options in (
        ("cosine_similarity", (x, y), {}),
        ("pairwise_distance", (x, y), {"p": 1.0, "keepdim": True}),
        ("cosine_embedding_loss", (x, y, sign), {"margin": 0.5}),
        ("margin_ranking_loss", (x[0], y[0], sign), {}),
        ("hinge_embedding_loss", (x[0], sign), {}),
        ("triplet_margin_loss", (x, y, y + 1), {"swap": True}),
    ):
        found = getattr(pullback, name)(*args, **options)
        assert pullback.equal(found, getattr(F, name)(*args, **options))
    each = pullback.hinge_embedding_loss(x[0], sign, reduction=0)
    assert each.tolist() == [1.0, 0.0]
    total = pullback.poisson_nll_loss(x, y, False, False, 1e-8, 2)
    assert total.item() == F.poisson_nll_loss(x, y, False, reduction="sum").item()
    with pytest.raises(ValueError, match="3 is not a valid value for reduction"):
        pullback.hinge_embedding_loss(x[0], sign, 1.0, 3)
    norms = pullback.norm_except_dim(x, 2, 1)
    assert norms.tolist()[0] == pytest.approx([10.0**0.5, 29.0**0.5])


def test_aligned_corners_of_a_single_place_warn():
    theta = pullback.eye(2, 3).unsqueeze(0)
    with pytest.warns(UserWarning, match="See the documentation of affine_grid for details"):
        F.affine_grid(theta, (1, 1, 2, 1), align_corners=True)


def test_cosine_similarity_takes_the_common_dtype():
    x = pullback.tensor([3.0, 4.0])
    found = F.cosine_similarity(x.to(pullback.int8), x, dim=-1)
    assert found.dtype is pullback.float32
    assert found.item() == pytest.approx(1.0)
    with pytest.raises(RuntimeError, match="expected common dtype to be floating point"):
        F.cosine_similarity(x.long(), x.long(), dim=-1)
