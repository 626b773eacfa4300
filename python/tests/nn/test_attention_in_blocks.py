"""`scaled_dot_product_attention` without a matrix of the scores gives what the formula gives."""

import math

import numpy as np
import pytest

import pullback
import pullback.nn.functional as F
from pullback.nn.attention import SDPBackend, sdpa_kernel
from pullback.utils._python_dispatch import TorchDispatchMode

attend = F.scaled_dot_product_attention


def made(*shapes, dtype=pullback.float64, seed=0, requires_grad=True):
    pullback.manual_seed(seed)
    return [pullback.randn(s).to(dtype).requires_grad_(requires_grad) for s in shapes]


def formula(q, k, v, mask=None, is_causal=False, scale=None, enable_gqa=False):
    """Written down, with ops that have derivatives of their own."""
    if enable_gqa:
        k, v = (x.repeat_interleave(q.size(-3) // x.size(-3), -3) for x in (k, v))
    scores = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.size(-1)) if scale is None else scale)
    if is_causal:
        mask = pullback.ones(scores.shape[-2:]).tril().bool()
    if mask is not None and mask.dtype is pullback.bool:
        scores = scores.masked_fill(~mask, -math.inf)
    elif mask is not None:
        scores = scores + mask
    none = (scores == -math.inf).all(-1, keepdim=True)
    return scores.masked_fill(none, 0).softmax(-1).masked_fill(none, 0) @ v


SHAPES = [
    [(2, 3, 4, 5)] * 3,
    [(2, 3, 70, 5), (2, 3, 300, 5), (2, 3, 300, 3)],
    [(1, 2, 300, 8), (1, 2, 40, 8), (1, 2, 40, 8)],
    [(3, 20, 6)] * 3,
    [(20, 6), (9, 6), (9, 6)],
]


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": -0.3}, {"scale": 0.0}])
def test_it_is_its_formula_with_its_gradients(shapes, options):
    inputs = made(*shapes)
    out, expected = attend(*inputs, **options), formula(*inputs, **options)
    pullback.testing.assert_close(out, expected)
    grad = pullback.randn_like(out)
    got, wanted = (pullback.autograd.grad(t, inputs, grad) for t in (out, expected))
    pullback.testing.assert_close(got, wanted)


MASKS = [
    (),
    (13,),
    (11, 13),
    (1, 13),
    (11, 1),
    (3, 11, 13),
    (1, 11, 13),
    (2, 1, 1, 13),
    (2, 3, 11, 13),
]


@pytest.mark.parametrize("shape", MASKS)
@pytest.mark.parametrize("kind", ["bool", "float64", "float32"])
def test_masks_of_all_shapes(shape, kind):
    inputs = made((2, 3, 11, 4), (2, 3, 13, 4), (2, 3, 13, 5))
    mask = pullback.rand(shape) > 0.3 if kind == "bool" else pullback.randn(shape)
    mask = mask.to(getattr(pullback, kind))
    out, expected = attend(*inputs, mask), formula(*inputs, mask)
    pullback.testing.assert_close(out, expected)
    got, wanted = (pullback.autograd.grad(t.square().sum(), inputs) for t in (out, expected))
    pullback.testing.assert_close(got, wanted)


def test_a_mask_has_a_gradient():
    inputs = [*made((2, 3, 11, 4), (2, 3, 13, 4), (2, 3, 13, 4)), *made((3, 1, 13), seed=1)]
    out, expected = attend(*inputs), formula(*inputs)
    got, wanted = (pullback.autograd.grad(t.square().sum(), inputs) for t in (out, expected))
    pullback.testing.assert_close(got, wanted)
    assert pullback.autograd.gradcheck(attend, made((1, 2, 3), (1, 2, 3), (1, 2, 3), (2, 2)))


@pytest.mark.parametrize("heads", [1, 2, 6])
@pytest.mark.parametrize("is_causal", [False, True])
def test_heads_of_the_query_share_those_of_keys(heads, is_causal):
    inputs = made((2, 6, 30, 4), (2, heads, 35, 4), (2, heads, 35, 4))
    options = {"is_causal": is_causal, "enable_gqa": True}
    out, expected = attend(*inputs, **options), formula(*inputs, **options)
    pullback.testing.assert_close(out, expected)
    got, wanted = (pullback.autograd.grad(t.square().sum(), inputs) for t in (out, expected))
    pullback.testing.assert_close(got, wanted)
    with pytest.raises(RuntimeError, match="must divide the number of heads in query"):
        attend(*made((2, 6, 3, 4), (2, 4, 3, 4), (2, 4, 3, 4)), enable_gqa=True)


@pytest.mark.parametrize("length", [3, 20])
def test_what_attends_to_nothing_gives_zeros_and_gets_zeros(length):
    inputs = made((1, 2, length, 4), (1, 2, 6, 4), (1, 2, 6, 4))
    allowed = pullback.ones(length, 6, dtype=pullback.bool)
    allowed[1] = False
    for mask in (allowed, pullback.zeros(length, 6).masked_fill(~allowed, -math.inf)):
        out = attend(*inputs, mask)
        assert (out[:, :, 1] == 0).all()
        by_query, *others = pullback.autograd.grad(out.square().sum(), inputs)
        assert (by_query[:, :, 1] == 0).all()
        assert all(bool(grad.isfinite().all()) for grad in others)
    nothing = pullback.autograd.grad(attend(*inputs, allowed & False).sum(), inputs)
    assert all(bool((grad == 0).all()) for grad in nothing)


def test_sizes_of_zero():
    for shapes in (
        [(2, 3, 0, 4), (2, 3, 5, 4), (2, 3, 5, 4)],
        [(2, 3, 9, 4), (2, 3, 0, 4), (2, 3, 0, 4)],
    ):
        inputs = made(*shapes)
        out = attend(*inputs)
        assert (out == 0).all()
        grads = pullback.autograd.grad(out.sum(), inputs)
        assert [g.shape for g in grads] == [x.shape for x in inputs]
        assert all(bool((g == 0).all()) for g in grads)
    q, k, v = made((1, 2, 9, 0), (1, 2, 5, 0), (1, 2, 5, 4))
    pullback.testing.assert_close(
        attend(q, k, v, scale=1.0), v.mean(2, keepdim=True).expand(1, 2, 9, 4)
    )


@pytest.mark.parametrize(
    ("dtype", "bound"),
    [(pullback.float32, 1e-5), (pullback.bfloat16, 2e-2), (pullback.float16, 3e-3)],
)
@pytest.mark.parametrize("is_causal", [False, True])
def test_dtypes(dtype, bound, is_causal):
    inputs = made((2, 2, 70, 16), (2, 2, 90, 16), (2, 2, 90, 16), dtype=dtype)
    wide = [x.detach().double().requires_grad_() for x in inputs]
    out, expected = attend(*inputs, is_causal=is_causal), formula(*wide, is_causal=is_causal)
    assert out.dtype is dtype
    assert float((out.double() - expected).abs().max()) < bound
    grad = pullback.randn(out.shape).to(dtype)
    got = pullback.autograd.grad(out, inputs, grad)
    wanted = pullback.autograd.grad(expected, wide, grad.double())
    for one, other in zip(got, wanted, strict=True):
        assert one.dtype is dtype
        assert float((one.double() - other).abs().max()) < 8 * bound


def test_heads_in_the_middle_are_not_copied():
    pullback.manual_seed(0)
    qkv = pullback.randn(2, 40, 3 * 4 * 8, requires_grad=True)
    q, k, v = (x.view(2, 40, 4, 8).transpose(1, 2) for x in qkv.split(32, -1))
    out = attend(q, k, v, is_causal=True)
    assert out.transpose(1, 2).is_contiguous()
    expected = formula(*(x.contiguous() for x in (q, k, v)), is_causal=True)
    pullback.testing.assert_close(out, expected)
    got, wanted = (pullback.autograd.grad(t.square().sum(), qkv)[0] for t in (out, expected))
    pullback.testing.assert_close(got, wanted)


def test_derivatives_of_second_order_and_forward_mode():
    for shapes in ([(1, 2, 3, 2)] * 3, [(1, 4, 9, 2), (1, 2, 10, 2), (1, 2, 10, 3)]):
        inputs = made(*shapes)

        def f(*args):
            return attend(*args, is_causal=True, enable_gqa=True)

        assert pullback.autograd.gradcheck(f, inputs, check_forward_ad=True)
        assert pullback.autograd.gradgradcheck(f, inputs, check_fwd_over_rev=True)


@pytest.mark.parametrize("in_dims", [(0, 0, 0), (0, None, None), (None, 1, 0)])
def test_a_batch_of_examples(in_dims):
    shape = (2, 9, 4)
    inputs = [
        made(shape if d is None else (*shape[:d], 3, *shape[d:]), seed=n)[0]
        for n, d in enumerate(in_dims)
    ]
    got = pullback.vmap(lambda *a: attend(*a, is_causal=True), in_dims)(*inputs)
    parts = [
        [x if d is None else x.select(d, i) for x, d in zip(inputs, in_dims, strict=True)]
        for i in range(3)
    ]
    pullback.testing.assert_close(got, pullback.stack([attend(*p, is_causal=True) for p in parts]))
    gradient = pullback.func.grad(lambda *a: attend(*a, is_causal=True).square().sum(), (0, 1, 2))
    got = pullback.vmap(gradient, in_dims)(*(x.detach() for x in inputs))
    wanted = [gradient(*(x.detach() for x in p)) for p in parts]
    pullback.testing.assert_close(
        got, tuple(pullback.stack(list(w)) for w in zip(*wanted, strict=True))
    )


def test_results_have_the_same_bits_for_any_number_of_threads():
    threads = pullback.get_num_threads()
    inputs = made((1, 2, 600, 16), (1, 2, 700, 16), (1, 2, 700, 16), dtype=pullback.float32)
    found = []
    try:
        for count in (1, 2, 3):
            pullback.set_num_threads(count)
            out = attend(*inputs, is_causal=True)
            found.append([out, *pullback.autograd.grad(out.square().sum(), inputs)])
    finally:
        pullback.set_num_threads(threads)
    for other in found[1:]:
        assert all(pullback.equal(a, b) for a, b in zip(found[0], other, strict=True))


@pytest.mark.parametrize("mask", [None, "bool", "float32"])
def test_the_graph_keeps_no_scores(mask):
    kept = []

    def pack(x):
        kept.append(x.numel())
        return x

    inputs = made((1, 4, 200, 8), (1, 4, 200, 8), (1, 4, 200, 8), dtype=pullback.float32)
    if mask is not None:
        mask = pullback.ones(200, 200).to(getattr(pullback, mask))
    with pullback.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        out = attend(*inputs, mask)
    assert max(kept) <= 200 * 200 if mask is not None else max(kept) <= 4 * 200 * 8
    pullback.autograd.grad(out.sum(), inputs)


class Watch(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def test_a_mode_sees_the_ops_that_pytorch_has():
    inputs = made((1, 2, 9, 4), (1, 2, 9, 4), (1, 2, 9, 4))
    with Watch() as watch:
        attend(*inputs).sum().backward()
    name = "aten._scaled_dot_product_flash_attention_for_cpu"
    assert f"{name}.default" in watch.seen
    assert f"{name}_backward.default" in watch.seen


def test_contexts_choose_the_algorithm():
    inputs = made((1, 2, 9, 4), (1, 2, 9, 4), (1, 2, 9, 4))
    with sdpa_kernel(SDPBackend.MATH), Watch() as watch:
        by_formula = attend(*inputs, is_causal=True)
    assert not any("flash" in name for name in watch.seen)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        pullback.testing.assert_close(attend(*inputs, is_causal=True), by_formula)
        with pytest.raises(RuntimeError, match="No available kernel"):
            attend(*inputs, dropout_p=0.3)


def test_dropout_draws_for_the_matrix_of_weights():
    q, k, v = made((2, 3, 9, 4), (2, 3, 10, 4), (2, 3, 10, 4))
    pullback.manual_seed(3)
    got = attend(q, k, v, dropout_p=0.4)
    weights = (q @ k.transpose(-1, -2) / 2).softmax(-1)
    pullback.manual_seed(3)
    pullback.testing.assert_close(got, F.dropout(weights, 0.4) @ v)


def test_what_is_refused():
    x = pullback.ones(1, 2, 3, 4)
    with pytest.raises(RuntimeError, match="same dtype"):
        attend(x, x.double(), x)
    with pytest.raises(RuntimeError, match="Expected attn_mask dtype to be bool or float"):
        attend(x, x, x, pullback.ones(3, 3, dtype=pullback.int64))
    with pytest.raises(RuntimeError, match="Expected attn_mask dtype to be bool or float"):
        attend(x, x, x, pullback.ones(3, 3, dtype=pullback.float64))
    with pytest.raises(RuntimeError, match="must match the size"):
        attend(x, x, x, pullback.ones(3, 4))
    with pytest.raises(RuntimeError):
        attend(x, x, x[:, :, :2])
    with pytest.raises(RuntimeError):
        attend(x.long(), x.long(), x.long())


def test_autocast_computes_in_its_dtype():
    x = pullback.ones(1, 2, 9, 4, requires_grad=True)
    with pullback.autocast("cpu", dtype=pullback.bfloat16):
        out = attend(x, x, x, pullback.zeros(9, 9))
    assert out.dtype is pullback.bfloat16
    out.sum().backward()
    assert x.grad.dtype is pullback.float32


def test_values_by_numpy():
    q, k, v = made((1, 2, 40, 8), (1, 2, 50, 8), (1, 2, 50, 8), requires_grad=False)
    scores = q.numpy() @ np.swapaxes(k.numpy(), -1, -2) / math.sqrt(8)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ v.numpy()
    np.testing.assert_allclose(attend(q, k, v).numpy(), expected, rtol=1e-12, atol=1e-13)
