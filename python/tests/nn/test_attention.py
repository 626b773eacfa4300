"""`nn.attention`: which algorithms may be taken, causal biases, score functions, lengths."""

import math

import numpy as np
import pytest

import pullback
import pullback.nn.functional as F
from pullback import nn
from pullback.nn.attention import (
    SDPBackend,
    _cur_sdpa_kernel_backends,
    activate_flash_attention_impl,
    current_flash_attention_impl,
    list_flash_attention_impls,
    register_flash_attention_impl,
    restore_flash_attention_impl,
    sdpa_kernel,
)
from pullback.nn.attention.bias import CausalBias, causal_lower_right, causal_upper_left
from pullback.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    noop_mask,
    or_masks,
)
from pullback.nn.attention.varlen import AuxRequest as VarlenRequest
from pullback.nn.attention.varlen import varlen_attn, varlen_attn_out


def tensors(*shapes):
    pullback.manual_seed(0)
    return [pullback.randn(shape, dtype=pullback.float64, requires_grad=True) for shape in shapes]


def reference(q, k, v, allowed=None, scale=None, change=None):
    """The formula in NumPy, and the logarithms of the sums."""
    q, k, v = (x.detach().numpy() for x in (q, k, v))
    scores = q @ np.swapaxes(k, -1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if change is not None:
        scores = change(scores)
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    most = scores.max(-1, keepdims=True)
    most = np.where(np.isinf(most), 0, most)
    weights = np.exp(scores - most)
    total = weights.sum(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        lse = (np.log(total) + most)[..., 0]
        return np.where(total > 0, weights / total, 0) @ v, lse


# ---- algorithms ----


def test_backends_are_those_of_pytorch():
    assert [(each.name, each.value) for each in SDPBackend] == [
        ("ERROR", -1),
        ("MATH", 0),
        ("FLASH_ATTENTION", 1),
        ("EFFICIENT_ATTENTION", 2),
        ("CUDNN_ATTENTION", 3),
        ("OVERRIDEABLE", 4),
    ]
    assert repr(SDPBackend.MATH) == "<SDPBackend.MATH: 0>"


def test_a_context_allows_algorithms_until_it_is_left():
    everything = _cur_sdpa_kernel_backends()
    assert len(everything) == 5
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        assert _cur_sdpa_kernel_backends() == [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]
        assert pullback.backends.cuda.math_sdp_enabled()
        assert not pullback.backends.cuda.mem_efficient_sdp_enabled()
        with sdpa_kernel(SDPBackend.MATH):
            assert _cur_sdpa_kernel_backends() == [SDPBackend.MATH]
        assert len(_cur_sdpa_kernel_backends()) == 2
    assert _cur_sdpa_kernel_backends() == everything


def test_priority_is_kept():
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION], set_priority=True):
        order = _cur_sdpa_kernel_backends(with_priority=True)
        assert order == [SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]
    assert _cur_sdpa_kernel_backends(with_priority=True)[0] is SDPBackend.FLASH_ATTENTION


@pytest.mark.parametrize(
    "backends", [SDPBackend.EFFICIENT_ATTENTION, [SDPBackend.CUDNN_ATTENTION], []]
)
def test_algorithms_of_gpus_alone_cannot_be_taken(backends):
    q = pullback.ones(1, 1, 2, 4)
    with sdpa_kernel(backends), pytest.raises(RuntimeError, match="No viable backend"):
        F.scaled_dot_product_attention(q, q, q)
    F.scaled_dot_product_attention(q, q, q)


def test_what_is_no_backend():
    with (
        pytest.raises(AssertionError, match="Backend must be an instance of SDPBackend"),
        sdpa_kernel(3),
    ):
        pass


def test_implementations_of_flash_attention():
    removed = []

    class Handle:
        def remove(self):
            removed.append(True)

    register_flash_attention_impl("mine", register_fn=Handle)
    assert list_flash_attention_impls() == ["FA3", "FA4", "mine"]
    assert current_flash_attention_impl() is None
    activate_flash_attention_impl("mine")
    assert current_flash_attention_impl() == "mine"
    restore_flash_attention_impl()
    assert removed == [True]
    assert current_flash_attention_impl() is None
    with pytest.raises(ValueError, match="Unknown flash attention impl 'other'"):
        activate_flash_attention_impl("other")
    with pytest.raises(ModuleNotFoundError, match="FA3"):
        activate_flash_attention_impl("FA3")


# ---- causal biases ----


@pytest.mark.parametrize("make", [causal_upper_left, causal_lower_right])
@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (3, 5), (4, 6)])
def test_a_causal_bias_is_its_mask(make, rows, columns):
    bias = make(rows, columns)
    shift = columns - rows if make is causal_lower_right else 0
    mask = np.tri(rows, columns, shift, dtype=bool)
    assert bias._materialize().tolist() == mask.tolist()
    q, k, v = tensors((2, rows, 4), (2, columns, 4), (2, columns, 3))
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    np.testing.assert_allclose(out.detach().numpy(), reference(q, k, v, mask)[0], rtol=1e-12)
    out.sum().backward()
    assert q.grad is not None


def test_a_causal_bias_computes_as_a_mask_and_takes_no_memory():
    bias = causal_upper_left(1 << 20, 1 << 20)
    assert bias.shape == (1 << 20, 1 << 20)
    small = causal_lower_right(2, 3)
    assert (small & True).tolist() == [[True, True, False], [True, True, True]]
    assert repr(small) == repr(small._materialize())
    assert isinstance(small, CausalBias)


def test_what_causal_biases_refuse():
    q = pullback.ones(1, 2, 4)
    with pytest.raises(ValueError, match="CausalBias should not be used with causal=True"):
        F.scaled_dot_product_attention(q, q, q, attn_mask=causal_upper_left(2, 2), is_causal=True)
    with pytest.raises(AssertionError, match="causal_upper_left only supports 2D tensors"):
        causal_upper_left(3)
    with pytest.raises(AssertionError, match="variant must be a CausalVariant"):
        CausalBias(3, 2, 2)
    with pytest.warns(UserWarning, match="will produce NaNs"):
        causal_lower_right(3, 2)


# ---- score functions and masks ----


def causal(b, h, q, kv):
    return q >= kv


def test_flex_attention_without_more_is_attention():
    q, k, v = tensors((2, 3, 5, 4), (2, 3, 6, 4), (2, 3, 6, 2))
    out, lse = flex_attention(q, k, v, return_lse=True)
    expected, sums = reference(q, k, v)
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-12)
    np.testing.assert_allclose(lse.detach().numpy(), sums, rtol=1e-12)
    scaled = flex_attention(q, k, v, scale=0.1)
    np.testing.assert_allclose(
        scaled.detach().numpy(), reference(q, k, v, scale=0.1)[0], rtol=1e-12
    )


def test_score_functions_see_places_and_have_gradients():
    q, k, v = tensors((2, 3, 5, 4), (2, 3, 6, 4), (2, 3, 6, 2))
    table = pullback.linspace(0, 1, 3, dtype=pullback.float64, requires_grad=True)

    def change(score, b, h, i, j):
        return score * 0.5 + table[h] * (i - j) + b

    out, aux = flex_attention(
        q, k, v, score_mod=change, return_aux=AuxRequest(lse=True, max_scores=True)
    )
    b, h, i, j = np.ogrid[:2, :3, :5, :6]
    heads = table.detach().numpy()[h]
    expected, sums = reference(q, k, v, change=lambda s: s * 0.5 + heads * (i - j) + b)
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-12)
    np.testing.assert_allclose(aux.lse.detach().numpy(), sums, rtol=1e-12)
    assert aux.max_scores.shape == (2, 3, 5)
    out.sum().backward()
    assert table.grad.abs().sum().item() > 0
    assert q.grad is not None


def test_block_masks_mask():
    q, k, v = tensors((1, 2, 6, 4), (1, 2, 6, 4), (1, 2, 6, 3))
    for mask in (causal, and_masks(causal, lambda b, h, i, j: i > 1)):
        block = create_block_mask(mask, None, None, 6, 6, BLOCK_SIZE=4)
        i, j = np.ogrid[:6, :6]
        allowed = (i >= j) & ((i > 1) | (mask is causal))
        out, lse = flex_attention(q, k, v, block_mask=block, return_lse=True)
        expected, sums = reference(q, k, v, allowed)
        np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-12)
        np.testing.assert_allclose(lse.detach().numpy(), sums, rtol=1e-12)


def test_full_blocks_are_not_masked_and_missing_ones_are():
    num = pullback.tensor([[[1, 0]]], dtype=pullback.int32)
    where = pullback.tensor([[[[0, 1], [0, 1]]]], dtype=pullback.int32)
    full = pullback.tensor([[[0, 1]]], dtype=pullback.int32)
    mask = BlockMask.from_kv_blocks(num, where, full, where, BLOCK_SIZE=2, mask_mod=causal)
    q, k, v = tensors((1, 1, 4, 3), (1, 1, 4, 3), (1, 1, 4, 2))
    allowed = [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0]]
    out = flex_attention(q, k, v, block_mask=mask)
    expected = reference(q, k, v, np.array(allowed, dtype=bool))[0]
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-12)


def test_grouped_heads_and_single_batches():
    q, k, v = tensors((2, 4, 3, 4), (1, 2, 5, 4), (1, 2, 5, 3))
    out = flex_attention(q, k, v, enable_gqa=True)
    wide = [x.repeat_interleave(2, 1).expand(2, -1, -1, -1) for x in (k, v)]
    np.testing.assert_allclose(out.detach().numpy(), reference(q, *wide)[0], rtol=1e-12)


def test_a_block_mask_is_drawn_and_described():
    mask = create_block_mask(causal, None, None, 300, 256)
    assert mask.shape == (1, 1, 300, 256)
    assert mask.numel() == 300 * 256
    assert mask.sparsity() == pytest.approx(100 / 6)
    assert mask.kv_num_blocks.tolist() == [[[1, 1, 2]]]
    assert mask.kv_indices.tolist() == [[[[0, 1], [1, 0], [0, 1]]]]
    assert mask.full_kv_num_blocks.tolist() == [[[0, 1, 0]]]
    assert mask.q_num_blocks.tolist() == [[[2, 2]]]
    assert mask.q_indices.tolist() == [[[[0, 2, 1], [1, 2, 0]]]]
    assert mask.to_dense().tolist() == [[[[1, 0], [1, 1], [1, 1]]]]
    assert mask.to_string() == "(0, 0)\n██  \n████\n████\n"
    assert str(mask).startswith("BlockMask(shape=(1, 1, 300, 256), sparsity=16.67%")
    assert "mask_mod=causal" in repr(mask)
    assert len(mask.as_tuple()) == 17
    assert len(mask.as_tuple(flatten=False)) == 15


def test_parts_of_block_masks():
    mask = create_block_mask(lambda b, h, i, j: (i >= j) & (h == 0), 2, 3, 8, 8, BLOCK_SIZE=4)
    assert mask[1].shape == (1, 3, 8, 8)
    assert mask[:, 1:].shape == (2, 2, 8, 8)
    assert mask[:, 1].to_dense().sum().item() == 0
    rows = mask[:, :, :1]
    assert rows.seq_lengths == (4, 8)
    with pytest.raises(RuntimeError, match="Cannot use mask_mod from a sliced BlockMask"):
        rows.mask_mod(0, 0, 0, 0)
    cropped = mask._adjust(4, 8)
    assert cropped.shape == (2, 3, 4, 8)
    assert cropped.to_dense()[0, 0].tolist() == [[1, 0]]
    assert mask.to("cpu").shape == mask.shape


def test_masks_as_tensors_and_their_combinations():
    assert create_mask(causal, 1, 1, 2, 3)[0, 0].tolist() == [
        [True, False, False],
        [True, True, False],
    ]
    cut = create_mask(lambda s, b, h, i, j: pullback.where(i > j, s, -math.inf), 1, 1, 2, 2)
    assert cut[0, 0].tolist() == [[False, False], [True, False]]
    both = create_mask(and_masks(causal, noop_mask), 1, 1, 2, 2)
    assert both[0, 0].tolist() == [[True, False], [True, True]]
    either = create_mask(or_masks(causal, lambda b, h, i, j: j == 1), 1, 1, 2, 2)
    assert either[0, 0].tolist() == [[True, True], [True, True]]
    with pytest.raises(RuntimeError, match="All inputs should be callable mask_mods"):
        or_masks(3)
    with pytest.raises(AssertionError, match="Expected 4 or 5 positional args, got 1"):
        create_mask(lambda s: s, 1, 1, 2, 2)


@pytest.mark.parametrize(
    ("shapes", "error", "text"),
    [
        (((2, 3, 4),) * 3, NotImplementedError, "must be 4D tensors"),
        (((1, 2, 3, 4), (1, 1, 3, 4), (1, 1, 3, 4)), ValueError, "Try setting enable_gqa=True"),
        (((1, 2, 3, 4), (1, 2, 3, 5), (1, 2, 3, 4)), ValueError, "same embedding dimension"),
        (((1, 2, 3, 4), (2, 2, 3, 4), (2, 2, 3, 4)), ValueError, "same batch size"),
    ],
)
def test_what_flex_attention_refuses(shapes, error, text):
    with pytest.raises(error, match=text):
        flex_attention(*tensors(*shapes))


@pytest.mark.parametrize("own", ["float64", "float32", "bfloat16"])
def test_keys_and_values_of_other_dtypes_than_the_query(own):
    dtype, half = getattr(pullback, own), pullback.float16
    q, k, v = tensors((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 2))
    q, k, v = q.to(dtype), k.to(half), v.to(half)
    output, lse = flex_attention(q, k, v, return_lse=True)
    wide = pullback.float32 if own == "bfloat16" else dtype
    assert (output.dtype, lse.dtype) == (dtype, wide)
    expected = flex_attention(q.to(wide), k.to(wide), v.to(wide))
    assert pullback.allclose(output.to(wide), expected, atol=2e-2 if own == "bfloat16" else 1e-6)


def test_masks_for_other_lengths_are_refused():
    q = pullback.ones(1, 1, 6, 4)
    with pytest.raises(RuntimeError, match="created for a larger length"):
        flex_attention(q, q, q, block_mask=create_block_mask(causal, None, None, 200, 200))
    with pytest.raises(RuntimeError, match="created for a smaller length"):
        flex_attention(q, q, q, block_mask=create_block_mask(causal, None, None, 5, 7))


# ---- sequences of different lengths ----


@pytest.mark.parametrize("window", [(-1, -1), (-1, 0), (1, 0), (0, 1)])
def test_sequences_of_different_lengths(window):
    q, k, v = tensors((7, 4, 3), (9, 2, 3), (9, 2, 3))
    q_ends, k_ends = [0, 2, 7], [0, 4, 9]
    out, lse = varlen_attn(
        q,
        k,
        v,
        pullback.tensor(q_ends),
        pullback.tensor(k_ends),
        5,
        5,
        return_aux=VarlenRequest(lse=True),
        window_size=window,
        enable_gqa=True,
    )
    assert out.shape == (7, 4, 3)
    assert lse.shape == (4, 7)
    for (a, b), (c, d) in zip(((0, 2), (2, 7)), ((0, 4), (4, 9)), strict=True):
        i, j = np.ogrid[: b - a, : d - c]
        distance = j - (i + (d - c) - (b - a))
        allowed = (window[0] < 0) | (distance >= -window[0])
        allowed = allowed & ((window[1] < 0) | (distance <= window[1]))
        parts = [
            x[s].repeat_interleave(r, 1).transpose(0, 1)
            for x, s, r in ((q, slice(a, b), 1), (k, slice(c, d), 2), (v, slice(c, d), 2))
        ]
        expected, sums = reference(*parts, allowed)
        np.testing.assert_allclose(
            out[a:b].detach().numpy(), np.swapaxes(expected, 0, 1), rtol=1e-10
        )
        np.testing.assert_allclose(lse[:, a:b].detach().numpy(), sums, rtol=1e-10)
    out.sum().backward()
    assert k.grad is not None


def test_pages_of_keys_and_outputs_that_are_given():
    q, k, v = (x.detach() for x in tensors((2, 1, 3), (4, 1, 3), (4, 1, 3)))
    plain = varlen_attn(q, k, v, pullback.tensor([0, 1, 2]), pullback.tensor([0, 1, 4]), 1, 3)
    pages = [pullback.stack([x[3:], x[:1], x[1:2], x[2:3]]) for x in (k, v)]
    table = pullback.tensor([[1, 0, 0], [2, 3, 0]])
    out = pullback.empty_like(q)
    found = varlen_attn_out(
        out,
        q,
        *pages,
        pullback.tensor([0, 1, 2]),
        None,
        1,
        3,
        seqused_k=pullback.tensor([1, 3]),
        block_table=table,
    )
    assert found is out
    np.testing.assert_allclose(out.numpy(), plain.numpy(), rtol=1e-12)


def test_what_varlen_attention_refuses():
    q, k = pullback.ones(2, 2, 3), pullback.ones(2, 1, 3)
    ends = pullback.tensor([0, 2])
    with pytest.raises(ValueError, match="Try setting enable_gqa=True"):
        varlen_attn(q, k, k, ends, ends, 2, 2)
    with pytest.raises(ValueError, match="scale must be positive"):
        varlen_attn(q, q, q, ends, ends, 2, 2, scale=0.0)
    with pytest.raises(ValueError, match="max_q is 1"):
        varlen_attn(q, q, q, ends, ends, 1, 2)


def test_programs_find_attention_under_its_paths():
    assert nn.attention.SDPBackend is SDPBackend
    assert nn.modules.activation.MultiheadAttention is nn.MultiheadAttention
