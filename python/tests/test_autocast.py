"""Autocast: the dtype that ops run in (groups recorded from PyTorch 2.15), and what is kept."""

from __future__ import annotations

import gc
import threading
import warnings
import weakref
from collections import namedtuple
from typing import Any, ClassVar

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.utils.checkpoint import checkpoint

LOWER = """
torch.mm(m, m)
m @ m
torch.matmul(m, v)
torch.bmm(b, b)
torch.addmm(m, m, m)
torch.baddbmm(b, b, b)
torch.addbmm(m, b, b)
torch.einsum('ij,jk->ik', m, m)
torch.tensordot(m, m, 1)
torch.inner(m, m)
F.linear(m, m, v)
F.prelu(m, v[:1])
F.conv1d(b, b)
F.conv1d(b, b, padding='same')
F.conv2d(i, i)
F.conv2d(i, i, padding='same')
torch.conv3d(i[None], i[None])
torch.conv_transpose1d(b, cube)
torch.conv_transpose2d(i, i)
torch.conv_transpose3d(i[None], i[None])
F.scaled_dot_product_attention(b, b, b)
F.scaled_dot_product_attention(b, b, b, attn_mask=b)
torch.rnn_tanh_cell(m, m, m, m)
torch.rnn_relu_cell(m, m, m, m)
torch.lstm(b, [b, b], [m4, m4], False, 1, 0.0, False, False, False)
torch.lstm(m, sizes, [b[:, :1], b[:, :1]], [m4, m4], False, 1, 0.0, False, False)
torch.rnn_tanh(b, b, [m, m], False, 1, 0.0, False, False, False)
"""
FP32 = """
torch.prod(m)
torch.prod(m, 0)
torch.linalg.svd(m)
torch.linalg.svdvals(m)
torch.linalg.qr(m)
torch.linalg.cholesky(pd)
torch.linalg.cholesky_ex(pd)[0]
torch.linalg.eigh(pd)
torch.linalg.eigvalsh(pd)
torch.linalg.inv(pd)
torch.linalg.inv_ex(pd)[0]
torch.inverse(pd)
torch.linalg.solve(pd, m)
F.mse_loss(m, m)
F.l1_loss(m, m)
F.smooth_l1_loss(m, m)
F.huber_loss(m, m)
F.kl_div(m, m, reduction='sum')
F.soft_margin_loss(m, m)
F.binary_cross_entropy(p, p)
F.binary_cross_entropy_with_logits(m, m)
F.cross_entropy(m, index)
F.nll_loss(m, index)
F.nll_loss(b, index[None])
F.multi_margin_loss(m, index)
F.poisson_nll_loss(m, m)
F.hinge_embedding_loss(m, m)
F.margin_ranking_loss(m, m, m)
F.cosine_embedding_loss(m, m, v)
F.triplet_margin_loss(m, m, m)
F.pad(b, (1, 1), mode='reflect')
F.pad(i, (1, 1, 1, 1), mode='reflect')
F.pad(b, (1, 1), mode='replicate')
F.pad(i, (1, 1, 1, 1), mode='replicate')
"""
OWN = """
torch.mv(m, v)
torch.dot(v, v)
torch.outer(v, v)
torch.inner(v, v)
torch.tensordot(m, m, 2)
torch.tensordot(m[:1], m[:, :1], 1)
F.bilinear(m, m, cube, v)
F.gaussian_nll_loss(m, m, p)
F.pad(b, (1, 1), mode='circular')
F.pad(b, (1, 1))
torch.softmax(m, 0)
F.log_softmax(m, 0)
F.layer_norm(m, (2,))
F.batch_norm(m, None, None, training=True)
F.group_norm(b, 1)
torch.sum(m)
torch.cumsum(m, 0)
torch.cumprod(m, 0)
torch.exp(m)
torch.pow(m, 2)
torch.norm(m)
torch.linalg.vector_norm(m)
torch.var(m)
F.relu(m)
F.gelu(m)
F.cosine_similarity(m, m)
F.embedding(index, m)
F.max_pool2d(i, 1)
F.avg_pool2d(i, 1)
torch.cat([m, m])
torch.stack([m, m])
torch.hstack([m, m])
torch.index_copy(m, 0, index, m)
torch.lstm_cell(m, [m, m], m4, m4)
torch.gru_cell(m, m, m3, m3)
torch.gru(b, b, [m3, m3], False, 1, 0.0, False, False, False)
torch.gru(m, sizes, b[:, :1], [m3, m3], False, 1, 0.0, False, False)
torch.mm(m, m, out=torch.empty_like(m))
torch.matmul(m, m, out=torch.empty_like(m))
m.clone().addmm_(m, m)
"""


def operands(dtype: Any) -> dict[str, Any]:
    """Small tensors of one dtype under the names that the calls use."""
    m = torch.tensor([[0.5, 0.25], [0.125, 1.0]], dtype=dtype)
    return {
        "torch": torch,
        "F": F,
        "m": m,
        "v": m[0] + 0.5,
        "b": m.reshape(1, 2, 2),
        "i": m.reshape(1, 1, 2, 2),
        "cube": torch.ones(2, 2, 2, dtype=dtype),
        "m3": torch.full((6, 2), 0.25, dtype=dtype),
        "m4": torch.full((8, 2), 0.25, dtype=dtype),
        "pd": torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=dtype),
        "p": torch.tensor([[0.5, 0.25], [0.125, 0.75]], dtype=dtype),
        "index": torch.tensor([0, 1]),
        "sizes": torch.tensor([1, 1]),
    }


def dtypes(call: str, dtype: Any, low: Any = torch.bfloat16) -> set[Any]:
    with torch.autocast("cpu", low):
        result = eval(call, operands(dtype))
    results = result if isinstance(result, tuple) else (result,)
    return {tensor.dtype for tensor in results}


@pytest.mark.parametrize("call", LOWER.strip().splitlines())
def test_ops_that_gain_by_a_low_dtype_run_in_it(call: str) -> None:
    assert dtypes(call, torch.float32) == {torch.bfloat16}
    assert dtypes(call, torch.float32, torch.float16) == {torch.float16}
    assert dtypes(call, torch.float16) == {torch.bfloat16}
    assert dtypes(call, torch.bfloat16) == {torch.bfloat16}
    assert dtypes(call, torch.float64) == {torch.float64}


@pytest.mark.parametrize("call", FP32.strip().splitlines())
def test_ops_that_suffer_from_a_low_dtype_run_in_float32(call: str) -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        assert dtypes(call, dtype) == {torch.float32}
    assert dtypes(call, torch.float64) == {torch.float64}


@pytest.mark.parametrize("call", OWN.strip().splitlines())
def test_other_ops_run_in_the_dtypes_of_their_inputs(call: str) -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        assert dtypes(call, dtype) == {dtype}


def test_complex_numbers_are_made_of_float32() -> None:
    low = torch.tensor([[0.5, 0.25]], dtype=torch.bfloat16)
    with torch.autocast("cpu"):
        assert torch.polar(low, low).dtype == torch.complex64
        assert torch.view_as_complex(low).dtype == torch.complex64


def test_joined_tensors_get_the_widest_dtype() -> None:
    wide, low, half, double = (
        torch.ones(2, dtype=dtype)
        for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64)
    )
    with torch.autocast("cpu"):
        assert torch.cat([wide, low]).dtype == torch.float32
        assert torch.stack([low, low]).dtype == torch.bfloat16
        assert torch.cat([double, wide]).dtype == torch.float64
        assert torch.index_copy(wide, 0, torch.tensor([0, 1]), low).dtype == torch.float32
        for pair in ([half, half], [half, wide]):
            with pytest.raises(RuntimeError, match="Unexpected floating ScalarType"):
                torch.cat(pair)


def test_operands_of_different_dtypes_meet_in_the_low_one() -> None:
    wide, low = torch.ones(2, 2), torch.ones(2, 2, dtype=torch.bfloat16)
    with pytest.raises(RuntimeError):
        torch.mm(wide, low)
    with torch.autocast("cpu"):
        assert torch.mm(wide, low).dtype == torch.bfloat16
        with pytest.raises(RuntimeError):
            torch.mm(wide.double(), low)


def test_results_are_those_of_cast_inputs() -> None:
    torch.manual_seed(0)
    x, w = torch.randn(5, 7), torch.randn(3, 7)
    with torch.autocast("cpu"):
        assert torch.equal(F.linear(x, w), F.linear(x.bfloat16(), w.bfloat16()))
        loss = F.mse_loss(x.bfloat16(), x.flip(0))
    assert torch.equal(loss, F.mse_loss(x.bfloat16().float(), x.flip(0)))


def test_gradients_come_back_in_the_dtypes_of_their_tensors() -> None:
    x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    w = torch.tensor([[3.0], [4.0]], dtype=torch.float16, requires_grad=True)
    with torch.autocast("cpu"):
        y = x @ w
    y.backward(torch.ones_like(y))
    assert (x.grad.dtype, x.grad.tolist()) == (torch.float32, [[3.0, 4.0]])
    assert (w.grad.dtype, w.grad.tolist()) == (torch.float16, [[1.0], [2.0]])


def test_second_derivatives_pass_the_casts() -> None:
    x = torch.tensor([[2.0]], requires_grad=True)
    with torch.autocast("cpu"):
        y = (x @ x) @ x
    (slope,) = torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)
    assert (slope.dtype, slope.item()) == (torch.float32, 12.0)
    slope.backward()
    assert x.grad.item() == 12.0


def test_backward_inside_of_the_region_gives_the_same_gradients() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    grads = []
    for inside in (False, True):
        x.grad = None
        with torch.autocast("cpu"):
            loss = (x @ x).sum()
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        grads.append(x.grad)
    assert torch.equal(*grads)
    assert grads[0].dtype == torch.float32


def casts_of(y: Any) -> Any:
    return y.grad_fn.next_functions[1][0]


def test_a_weight_used_twice_has_one_cast() -> None:
    x, w = torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu"):
        first, second = x @ w, x @ w
        assert casts_of(first) is casts_of(second)
        assert casts_of(first).name() == "ToCopyBackward0"
        assert torch._C._autocast_cached_count() == 1
        with torch.autocast("cpu"):
            assert casts_of(x @ w) is casts_of(first)
        assert torch._C._autocast_cached_count() == 1
        torch.clear_autocast_cache()
        assert casts_of(x @ w) is not casts_of(first)
    assert torch._C._autocast_cached_count() == 0
    (first + second).sum().backward()
    assert w.grad.tolist() == [[4.0, 4.0], [4.0, 4.0]]


def test_without_the_cache_each_use_has_its_cast() -> None:
    x, w = torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu", cache_enabled=False):
        assert not torch.is_autocast_cache_enabled()
        assert casts_of(x @ w) is not casts_of(x @ w)
    assert torch.is_autocast_cache_enabled()


def test_the_cache_keeps_no_weight_alive_and_is_empty_after_an_error() -> None:
    w = torch.ones(2, 2, requires_grad=True)
    gone = weakref.ref(w)

    @torch.autocast("cpu")
    def fail(w: Any) -> None:
        (w @ w).sum().backward()
        assert torch._C._autocast_cached_count() == 1
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail(w)
    assert torch._C._autocast_cached_count() == 0
    with torch.autocast("cpu"), torch.no_grad():
        _ = w @ w
        del w
        gc.collect()
        assert gone() is None


def test_training_under_autocast_leaves_nothing_behind() -> None:
    model = torch.nn.Linear(8, 8)
    x = torch.randn(4, 8)

    def step() -> None:
        with torch.autocast("cpu"):
            loss = F.mse_loss(model(x), x)
        loss.backward()
        for parameter in model.parameters():
            parameter.grad = None

    step()
    gc.collect()
    before = torch._C._memory_live()
    for _ in range(5):
        step()
    gc.collect()
    assert torch._C._memory_live() == before


def test_an_update_inside_of_the_region_is_seen() -> None:
    x, w = torch.eye(2), torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu"):
        _ = x @ w
        with torch.no_grad():
            w.mul_(3)
        assert (x @ w).tolist() == [[3.0, 3.0], [3.0, 3.0]]
        w.data = torch.zeros(2, 2)
        assert (x @ w).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_a_cast_without_history_does_not_take_the_gradient_away() -> None:
    x, w = torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu"):
        with torch.no_grad():
            assert not (x @ w).requires_grad
        with torch.inference_mode():
            _ = x @ w
        (x @ w).sum().backward()
    assert w.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def state() -> tuple[Any, ...]:
    return (
        torch.is_autocast_enabled("cpu"),
        torch.get_autocast_dtype("cpu"),
        torch.is_autocast_cache_enabled(),
    )


def test_regions_nest_and_put_back_what_was() -> None:
    outside = (False, torch.bfloat16, True)
    assert state() == outside
    with torch.autocast("cpu", dtype=torch.float16, cache_enabled=False):
        assert state() == (True, torch.float16, False)
        with torch.autocast("cpu", enabled=False):
            assert state() == (False, torch.float16, False)
            assert torch.mm(torch.ones(1, 1), torch.ones(1, 1)).dtype == torch.float32
        assert state() == (True, torch.float16, False)
    assert state() == outside


def test_a_context_can_be_entered_again() -> None:
    region = torch.autocast("cpu")
    with region, region:
        assert torch.is_autocast_enabled("cpu")
    assert not torch.is_autocast_enabled("cpu")


def test_a_decorated_function_runs_inside_also_when_it_calls_itself() -> None:
    @torch.autocast("cpu", dtype=torch.float16)
    def depth(n: int) -> int:
        """Counts."""
        assert state()[:2] == (True, torch.float16)
        return 0 if n == 0 else 1 + depth(n - 1)

    assert depth(3) == 3
    assert depth.__doc__ == "Counts."
    assert state()[0] is False
    with pytest.raises(TypeError, match="requires a callable, but got int"):
        torch.autocast("cpu")(3)  # type: ignore[type-var]


def test_other_threads_have_settings_of_their_own() -> None:
    seen: list[Any] = []
    with torch.autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append(torch.is_autocast_enabled("cpu")))
        thread.start()
        thread.join()
    assert seen == [False]


def test_grad_modes_leave_autocast_alone() -> None:
    region = torch.autocast("cpu")
    with torch.no_grad():
        region.__enter__()
    assert torch.is_autocast_enabled("cpu")
    with torch.inference_mode():
        region.__exit__(None, None, None)
    assert not torch.is_autocast_enabled("cpu")


def test_what_cannot_be_is_refused_or_turned_off_with_a_warning() -> None:
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`, got: "):
        torch.autocast(torch.device("cpu"))
    with pytest.raises(RuntimeError, match="Invalid device string: 'not a device'"):
        torch.autocast("not a device")
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'meta'"):
        torch.autocast("meta")
    with pytest.raises(RuntimeError, match="at start of device string: foo"):
        torch.amp.is_autocast_available("foo")
    with pytest.warns(UserWarning, match="In CPU autocast, but the target dtype is not supported"):
        region = torch.autocast("cpu", dtype=torch.float32)
    with region:
        assert not torch.is_autocast_enabled("cpu")
    with pytest.warns(UserWarning, match="CUDA is not available") as caught:
        region = torch.autocast("cuda")
    assert caught[0].filename == __file__
    with region:
        assert not torch.is_autocast_enabled("cuda")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.autocast("cpu", dtype=torch.float32, enabled=False)
        torch.autocast("cuda", enabled=False)


def test_settings_are_asked_and_set_by_device_type() -> None:
    assert torch.get_autocast_dtype("cuda") == torch.float16
    assert not torch.is_autocast_enabled()
    torch.set_autocast_enabled(True)
    try:
        assert torch.is_autocast_enabled()
        assert torch.is_autocast_enabled("cuda")
        assert not torch.is_autocast_enabled("cpu")
        # The casts of another device's autocast do not touch the CPU's tensors.
        x = torch.ones(2, 2)
        assert (x @ x).dtype == torch.float32
        assert torch.einsum("ij,jk->ik", x, x).dtype == torch.float32
    finally:
        torch.set_autocast_enabled("cuda", False)
    torch.set_autocast_dtype("cpu", torch.float16)
    try:
        assert torch.autocast("cpu").fast_dtype == torch.float16
    finally:
        torch.set_autocast_dtype("cpu", torch.bfloat16)
    assert torch.autocast_increment_nesting() == 1
    assert torch.autocast_decrement_nesting() == 0
    for call, phrase in [
        (lambda: torch.is_autocast_enabled(3), "argument 'device_type' .* must be str, not int"),
        (lambda: torch.set_autocast_enabled("cpu", 1), "'enabled' .* must be bool, not int"),
        (lambda: torch.set_autocast_dtype("cpu", 3), "'dtype' .* must be torch.dtype, not int"),
        (lambda: torch.set_autocast_cache_enabled(1), "enabled must be a bool"),
        (lambda: torch.set_autocast_enabled(), "missing 1 required"),
    ]:
        with pytest.raises(TypeError, match=phrase):
            call()


@pytest.mark.parametrize("kind", ["cpu", "ipu", "xla"])
def test_the_older_functions_warn_and_do_the_same(kind: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"torch.is_autocast_{kind}_enabled.. is deprec"):
        assert getattr(torch, f"is_autocast_{kind}_enabled")() is False
    with pytest.warns(DeprecationWarning, match=f"torch.set_autocast_enabled.'{kind}', enabled"):
        getattr(torch, f"set_autocast_{kind}_enabled")(True)
    assert torch.is_autocast_enabled(kind)
    torch.set_autocast_enabled(kind, False)
    before = torch.get_autocast_dtype(kind)
    with pytest.warns(DeprecationWarning, match=f"torch.set_autocast_{kind}_dtype"):
        getattr(torch, f"set_autocast_{kind}_dtype")(torch.float16)
    with pytest.warns(DeprecationWarning, match=f"torch.get_autocast_{kind}_dtype"):
        assert getattr(torch, f"get_autocast_{kind}_dtype")() == torch.float16
    torch.set_autocast_dtype(kind, before)


def test_the_older_contexts_warn_and_do_the_same() -> None:
    with pytest.warns(FutureWarning, match=r"`torch.cpu.amp.autocast\(args...\)` is deprecated"):
        region = torch.cpu.amp.autocast(dtype=torch.float16)
    with region:
        assert state() == (True, torch.float16, True)
    with pytest.warns() as caught:
        assert not torch.cuda.amp.autocast()._enabled
    assert [warning.category for warning in caught] == [FutureWarning, UserWarning]
    assert {warning.filename for warning in caught} == {__file__}
    with pytest.warns(FutureWarning, match="custom_fwd"):
        torch.cuda.amp.custom_fwd(lambda ctx: None)
    with pytest.warns(FutureWarning, match="custom_bwd"):
        torch.cuda.amp.custom_bwd(lambda ctx: None)
    assert torch.cuda.amp.common.amp_definitely_not_available()


class Product(torch.autograd.Function):
    """A matrix product that notes in which state its passes run."""

    seen: ClassVar[list[Any]] = []

    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu")
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        ctx.save_for_backward(a, b)
        Product.seen.append(state()[:2])
        return a @ b

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx: Any, grad: Any) -> Any:
        a, b = ctx.saved_tensors
        Product.seen.append(state()[:2])
        return grad @ b.t(), a.t() @ grad


def test_a_custom_backward_runs_in_the_state_of_its_forward() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    Product.seen.clear()
    with torch.autocast("cpu", torch.float16):
        y = Product.apply(x, x)
    assert y.dtype == torch.float16
    y.sum().backward()
    assert Product.seen == [(True, torch.float16), (True, torch.float16)]
    assert x.grad.dtype == torch.float32
    expected = torch.ones(2, 2) @ x.detach().t() + x.detach().t() @ torch.ones(2, 2)
    assert torch.equal(x.grad, expected)
    Product.seen.clear()
    y = Product.apply(x, x)
    with torch.autocast("cpu"):
        y.sum().backward()
    assert [enabled for enabled, _ in Product.seen] == [False, False]


def test_inputs_of_a_custom_forward_are_cast_where_autocast_is_on() -> None:
    Pair = namedtuple("Pair", "left right")
    seen: list[Any] = []

    class Own(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx: Any, x: Any, others: Any) -> Any:
            seen.append((x.dtype, *(t.dtype for t in others["pair"]), others["text"], state()[0]))
            return x.clone()

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, grad: Any) -> Any:
            seen.append(state()[0])
            return grad, None

    low, double = torch.ones(1, dtype=torch.bfloat16), torch.ones(1, dtype=torch.float64)
    x = low.clone().requires_grad_()
    others = {"pair": Pair(low, double), "text": "word"}
    with torch.autocast("cpu"):
        y = Own.apply(x, others)
    y.backward()
    assert seen == [(torch.float32, torch.float32, torch.float64, "word", False), False]
    assert x.grad.dtype == torch.bfloat16
    seen.clear()
    Own.apply(x, others)
    assert seen == [(torch.bfloat16, torch.bfloat16, torch.float64, "word", False)]
    for function in (torch.amp.custom_fwd, torch.amp.custom_bwd):
        with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
            function(device_type=torch.device("cpu"))


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_is_computed_again_in_the_same_state(reentrant: bool) -> None:
    seen = []

    def region(x: Any) -> Any:
        seen.append(state())
        return (x @ x).exp()

    x = torch.tensor([[0.5, 0.25], [0.125, 1.0]], requires_grad=True)
    with torch.autocast("cpu", torch.float16, cache_enabled=False):
        plain = (x @ x).exp()
        y = checkpoint(region, x, use_reentrant=reentrant)
    y.sum().backward()
    assert seen == [(True, torch.float16, False)] * 2
    (expected,) = torch.autograd.grad(plain.sum(), x)
    assert torch.equal(x.grad, expected)
    seen.clear()
    y = checkpoint(region, x, use_reentrant=reentrant)
    with torch.autocast("cpu"):
        y.sum().backward()
    assert [enabled for enabled, *_ in seen] == [False, False]


def test_layers_of_a_low_dtype_take_wide_inputs() -> None:
    layer = torch.nn.LSTM(1, 1, 2).to(torch.bfloat16)
    x, h = torch.ones(1, 2, 1), torch.ones(2, 2, 1)
    with pytest.raises(ValueError, match="does not match weight dtype"):
        layer(x, (h, h))
    with torch.autocast("cpu"):
        output, _ = layer(x, (h, h))
    assert output.dtype == torch.bfloat16


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers_agree_with_full_precision(kind: str) -> None:
    torch.manual_seed(0)
    layer = getattr(torch.nn, kind)(4, 6, num_layers=2, bidirectional=True)
    x = torch.randn(5, 3, 4)
    expected = layer(x)[0]
    expected.sum().backward()
    full = [parameter.grad for parameter in layer.parameters()]
    layer.zero_grad()
    with torch.autocast("cpu"):
        output = layer(x)[0]
    assert torch.allclose(output.float(), expected, atol=0.03)
    output.float().sum().backward()
    for parameter, grad in zip(layer.parameters(), full, strict=True):
        assert parameter.grad.dtype == torch.float32
        assert torch.allclose(parameter.grad, grad, atol=0.02 * grad.abs().max().item() + 0.02)


def test_a_class_that_answers_ops_sees_the_casts() -> None:
    seen = []

    class Noting(torch.Tensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append((str(func), torch.is_autocast_enabled("cpu")))
            return super().__torch_dispatch__(func, types, args, kwargs)

    x = torch.ones(2, 2).as_subclass(Noting)
    low = torch.ones(2, 2, dtype=torch.bfloat16).as_subclass(Noting)
    with torch.autocast("cpu"):
        y = torch.mm(x, low)
        _ = x + x
    assert y.dtype == torch.bfloat16
    # What is inside of an op runs with autocast off.
    assert [(name.split(".")[1], on) for name, on in seen] == [
        ("_to_copy", False),
        ("mm", False),
        ("add", False),
    ]


def scaler(**options: Any) -> Any:
    return torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2, **options)


def parameter_and_optimizer(**options: Any) -> Any:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    return w, torch.optim.SGD([w], lr=0.5, **options)


def test_a_scaler_scales_losses_and_unscales_gradients() -> None:
    scale = scaler()
    w, optimizer = parameter_and_optimizer()
    loss = scale.scale((w * w).sum())
    assert loss.item() == 20.0
    loss.backward()
    assert w.grad.tolist() == [8.0, 16.0]
    scale.unscale_(optimizer)
    assert w.grad.tolist() == [2.0, 4.0]
    scale.step(optimizer)
    assert w.tolist() == [0.0, 0.0]
    scale.update()
    Pair = namedtuple("Pair", "a b")
    pair = scale.scale(Pair(torch.ones(1), [torch.ones(1)]))
    assert isinstance(pair, Pair)
    assert pair.b[0].item() == 4.0


def test_a_scaler_leaves_out_steps_that_overflowed_and_finds_its_factor() -> None:
    scale = scaler()
    w, optimizer = parameter_and_optimizer()
    factors = []
    for value in (1.0, float("inf"), 1.0, 1.0, 1.0, 1.0):
        before = w.tolist()
        w.grad = None
        scale.scale((w * value).sum()).backward()
        result = scale.step(optimizer)
        assert result is None
        assert (w.tolist() == before) == (value != 1.0)
        scale.update()
        factors.append(scale.get_scale())
    assert factors == [4.0, 2.0, 2.0, 4.0, 4.0, 8.0]


def test_a_scaler_hands_its_factor_to_optimizers_that_unscale() -> None:
    w, optimizer = parameter_and_optimizer(fused=True)
    scale = scaler()
    for value in (1.0, float("nan")):
        before = w.tolist()
        w.grad = None
        scale.scale((w * value).sum()).backward()
        scale.step(optimizer)
        assert w.tolist() == (before if value != value else [0.5, 1.5])
        scale.update()
    assert scale.get_scale() == 2.0
    assert not hasattr(optimizer, "grad_scale")


def test_a_scaler_refuses_calls_out_of_order() -> None:
    w, optimizer = parameter_and_optimizer()
    scale = scaler()
    for call in (lambda: scale.unscale_(optimizer), lambda: scale.step(optimizer), scale.update):
        with pytest.raises(AssertionError, match="_scale is None"):
            call()
    scale.scale(w.sum()).backward()
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        scale.update()
    scale.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_.. has already been called"):
        scale.unscale_(optimizer)
    scale.step(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_.. is being called after step"):
        scale.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"step.. has already been called"):
        scale.step(optimizer)
    with pytest.raises(RuntimeError, match="Closure use is not currently supported"):
        scale.step(optimizer, closure=lambda: None)
    scale.update()
    with pytest.raises(ValueError, match="Tensor or an iterable of Tensors"):
        scale.scale(3)
    half = torch.ones(1, dtype=torch.float16, requires_grad=True)
    scale.scale(half.sum()).backward()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        scale.unscale_(torch.optim.SGD([half], lr=1.0))
    for options in ({"growth_factor": 1.0}, {"backoff_factor": 1.0}):
        with pytest.raises(AssertionError):
            scaler(**options)


def test_the_state_of_a_scaler_is_saved_and_put_back() -> None:
    scale = scaler()
    w, optimizer = parameter_and_optimizer()
    scale.scale(w.sum()).backward()
    scale.step(optimizer)
    scale.update(16.0)
    saved = scale.state_dict()
    assert saved == {
        "scale": 16.0,
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": 2,
        "_growth_tracker": 0,
    }
    other = torch.amp.GradScaler("cpu")
    other.load_state_dict(saved)
    assert other.scale(torch.ones(())).item() == 16.0
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        other.load_state_dict({})
    with pytest.raises(AssertionError, match="new_scale should be a float"):
        other.update(torch.ones(2))


def test_a_disabled_scaler_steps_aside() -> None:
    with pytest.warns(UserWarning, match="CUDA is not available"):
        scale = torch.GradScaler()
    assert not scale.is_enabled()
    assert scale.state_dict() == {}
    w, optimizer = parameter_and_optimizer()
    loss = w.sum()
    assert scale.scale(loss) is loss
    loss.backward()
    scale.unscale_(optimizer)
    scale.step(optimizer)
    scale.update()
    assert w.tolist() == [0.5, 1.5]
    with pytest.warns(FutureWarning, match=r"torch.cpu.amp.GradScaler\(args...\)` is deprecated"):
        assert torch.cpu.amp.GradScaler().is_enabled()


def test_gradients_are_unscaled_and_checked_by_functions() -> None:
    grads = [torch.tensor([2.0, 4.0]), torch.tensor([6.0], dtype=torch.float64)]
    found, inverse = torch.zeros(1), torch.tensor([0.5])
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, inverse)
    assert [g.tolist() for g in grads] == [[1.0, 2.0], [3.0]]
    assert found.item() == 0
    grads = [torch.ones(2), torch.tensor([float("nan"), 4.0])]
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, inverse)
    assert found.item() == 1
    assert grads[1][1].item() == 2
    for wrong, phrase in (
        ((grads, torch.zeros(2), inverse), "found_inf must be a 1-element tensor"),
        ((grads, found, inverse.double()), "inv_scale must be a float tensor"),
    ):
        with pytest.raises(RuntimeError, match=phrase):
            torch._amp_foreach_non_finite_check_and_unscale_(*wrong)
    with pytest.raises(NotImplementedError, match="not implemented for"):
        torch._amp_foreach_non_finite_check_and_unscale_([torch.ones(1).int()], found, inverse)


def test_the_scale_follows_what_was_found() -> None:
    scale, tracker = torch.tensor([4.0]), torch.tensor([0], dtype=torch.int32)
    seen = []
    for found in (0.0, 0.0, 1.0, 0.0):
        torch._amp_update_scale_(scale, tracker, torch.tensor([found]), 2.0, 0.25, 2)
        seen.append((scale.item(), tracker.item()))
    assert seen == [(4.0, 1), (8.0, 0), (2.0, 0), (2.0, 1)]
    scale.fill_(3e38)
    torch._amp_update_scale_(scale, tracker, torch.zeros(1), 2.0, 0.25, 2)
    assert scale.isfinite()
    with pytest.raises(RuntimeError, match="growth_tracker must be an int tensor"):
        torch._amp_update_scale_(scale, tracker.long(), torch.zeros(1), 2.0, 0.25, 2)
