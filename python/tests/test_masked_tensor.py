"""``MaskedTensor``: what its operations make of data and mask, and the gradients through them."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch
from pullback import masked
from pullback.autograd import forward_ad as fwAD
from pullback.autograd import gradcheck, gradgradcheck
from pullback.masked import MaskedTensor, as_masked_tensor, masked_tensor
from pullback.masked._name import BINARY, UNARY

pytestmark = pytest.mark.filterwarnings("ignore:.*prototype stage:UserWarning")

DATA = torch.tensor([[0.3, -0.8, 0.5, 0.9], [-0.2, 0.7, 0.4, -0.6], [0.1, 0.2, -0.9, 0.8]])
DATA = DATA.double()
MASK = torch.tensor([[True, False, True, True], [True, True, False, True], [False] * 4])


def leaf(data: torch.Tensor = DATA, mask: torch.Tensor = MASK) -> MaskedTensor:
    return masked_tensor(data, mask, requires_grad=True)


def check(found: Any, data: torch.Tensor, mask: torch.Tensor) -> None:
    """``found`` has this mask, and this data where it counts."""
    assert isinstance(found, MaskedTensor)
    assert found.dtype is data.dtype
    assert found.shape == data.shape
    assert torch.equal(found.get_mask(), mask)
    values, expected = found.get_data()[mask].double(), data[mask].double()
    assert torch.allclose(values, expected, rtol=1e-14, atol=0, equal_nan=True)


# --- what it is -------------------------------------------------------------------------------


def test_it_holds_copies_of_its_parts() -> None:
    data, mask = DATA.clone(), MASK.clone()
    x = masked_tensor(data, mask)
    data.zero_()
    mask.fill_(True)
    check(x, DATA, MASK)
    assert masked.is_masked_tensor(x)
    assert not masked.is_masked_tensor(data)
    assert not masked.is_masked_tensor(3)
    assert isinstance(x, torch.Tensor)
    assert (x.layout, x.device.type, x.ndim) == (torch.strided, "cpu", 2)
    assert (x.is_sparse, x.is_sparse_coo(), x.is_sparse_csr()) == (False, False, False)
    assert x.to_tensor(7).tolist() == torch.where(MASK, DATA, 7.0).tolist()
    assert MaskedTensor(DATA, MASK, True).requires_grad
    check(masked_tensor(DATA.t(), MASK.t()), DATA.t(), MASK.t())


def test_making_one_warns_that_the_interface_may_change() -> None:
    with pytest.warns(UserWarning, match="MaskedTensors is in prototype stage"):
        masked_tensor(DATA, MASK)
    with pytest.warns(UserWarning, match="It is not recommended to create a MaskedTensor"):
        made = masked_tensor(DATA.clone().requires_grad_(), MASK)
    assert not made.requires_grad


@pytest.mark.parametrize(
    ("data", "mask", "kind", "phrase"),
    [
        ([1.0], MASK, TypeError, "data must be a Tensor"),
        (DATA, [True], TypeError, "mask must be a Tensor"),
        (DATA, MASK.int(), TypeError, "mask must have dtype bool"),
        (DATA.bfloat16(), MASK, TypeError, r"torch\.bfloat16 is not supported in MaskedTensor"),
        (DATA * 1j, MASK, TypeError, r"torch\.complex128 is not supported in MaskedTensor"),
        (DATA, MASK[0], ValueError, r"data.dim\(\) must equal mask.dim\(\)"),
        (DATA, MASK[:, :2], ValueError, r"data.size\(\) must equal mask.size\(\)"),
    ],
)
def test_parts_that_do_not_fit_are_refused(data: Any, mask: Any, kind: Any, phrase: str) -> None:
    for make in (masked_tensor, as_masked_tensor):
        with pytest.raises(kind, match=phrase):
            make(data, mask)


def test_masked_tensors_are_no_parts() -> None:
    with pytest.raises(TypeError, match="data must be a Tensor"):
        masked_tensor(masked_tensor(DATA, MASK), MASK)
    with pytest.raises(TypeError, match="mask must be a Tensor"):
        as_masked_tensor(DATA, masked_tensor(MASK, MASK))


def test_it_is_printed_with_dashes() -> None:
    x = masked_tensor(
        torch.tensor([[1.0, -2.5], [3.25, 1000.0]]), torch.tensor([True, False])[None].expand(2, 2)
    )
    assert repr(x) == (
        "MaskedTensor(\n  [\n    [  1.0000,       --],\n    [  3.2500,       --]\n  ]\n)"
    )
    assert repr(x[0, 0]) == "MaskedTensor(  1.0000, True)"
    assert repr(x[0, 1]) == "MaskedTensor(--, False)"
    assert repr(x[0].to(torch.int64)) == "MaskedTensor(\n  [1,       --]\n)"
    assert repr(x[:, :0][0]) == "MaskedTensor(\n  []\n)"


def test_copies_and_pickles_have_data_mask_and_whether_they_require_grad() -> None:
    for x in (masked_tensor(DATA, MASK), leaf()):
        for new in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            check(new, DATA, MASK)
            assert new.requires_grad == x.requires_grad
            assert new.get_mask() is not x.get_mask()
    twice = copy.deepcopy([x, x])
    assert twice[0] is twice[1]
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x * 2)


def test_single_elements_are_read_if_they_count() -> None:
    x = masked_tensor(DATA, MASK)
    assert x[0, 0].item() == float(x[0, 0]) == DATA[0, 0].item()
    assert bool(x[0, 0])
    assert int(x[0, 0] * 10) == 3
    with pytest.raises(ValueError, match="expected a mask tensor"):
        x[0, 1].item()
    with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
        x.item()
    for read in (x.tolist, x.numpy):
        with pytest.raises(NotImplementedError):
            read()


# --- elementwise ------------------------------------------------------------------------------

# (`fill` has a value, `i0` and its like come with the special functions.)
PLAIN_UNARY = sorted(
    name for name in UNARY if name[0] != "_" and hasattr(torch, name) and name != "fill"
)
PLAIN_BINARY = sorted(
    name for name in BINARY if name[0] != "_" and hasattr(torch, name) and name != "nextafter"
)


def operands(name: str) -> tuple[torch.Tensor, torch.Tensor]:
    if name == "bitwise_not":
        return DATA > 0, DATA > 0
    if name.startswith("bitwise"):
        return (DATA * 10).to(torch.int32), torch.arange(12, dtype=torch.int32).reshape(3, 4) % 5
    if name in ("acosh", "arccosh"):
        return DATA + 2, DATA
    if name in ("log", "log2", "log10", "sqrt", "rsqrt", "logit", "pow", "lgamma", "digamma"):
        return DATA.abs(), DATA * 2
    return DATA, DATA.flip(1) + 0.05


def extra(name: str) -> dict[str, float]:
    return {"min": -0.5, "max": 0.55} if name in ("clamp", "clip") else {}


@pytest.mark.parametrize("name", PLAIN_UNARY)
def test_functions_of_one_tensor_keep_the_mask(name: str) -> None:
    data, _ = operands(name)
    function = getattr(torch, name)
    expected = function(data, **extra(name))
    check(function(masked_tensor(data, MASK), **extra(name)), expected, MASK)
    check(function(input=masked_tensor(data, MASK), **extra(name)), expected, MASK)
    if hasattr(torch.Tensor, name):
        check(getattr(masked_tensor(data, MASK), name)(**extra(name)), expected, MASK)
    if hasattr(torch.Tensor, f"{name}_") and expected.dtype is data.dtype:
        target = masked_tensor(data, MASK)
        assert getattr(target, f"{name}_")(**extra(name)) is target
        check(target, expected, MASK)


@pytest.mark.parametrize("name", PLAIN_BINARY)
def test_functions_of_two_tensors_want_equal_masks(name: str) -> None:
    left, right = operands(name)
    function = getattr(torch, name)
    expected = function(left, right)
    x, y = masked_tensor(left, MASK), masked_tensor(right, MASK)
    for found in (function(x, y), function(x, right), function(left, y)):
        check(found, expected, MASK)
    with pytest.raises(ValueError, match="Input masks must match"):
        function(x, masked_tensor(right, ~MASK))
    with pytest.raises(ValueError, match="Input masks must match"):
        function(x, masked_tensor(right[0], MASK[0]))
    with pytest.raises(ValueError, match="'out' is not supported"):
        function(x, y, out=torch.empty(3, 4, dtype=expected.dtype))
    if hasattr(torch.Tensor, f"{name}_") and expected.dtype is left.dtype:
        for other in (y, right):
            target = masked_tensor(left, MASK)
            assert getattr(target, f"{name}_")(other) is target
            check(target, expected, MASK)
        with pytest.raises(ValueError, match="Input masks must match"):
            getattr(masked_tensor(left, MASK), f"{name}_")(masked_tensor(right, ~MASK))
        with pytest.raises(TypeError, match="cannot be written into a plain tensor"):
            getattr(left.clone(), f"{name}_")(y)


def test_operators_and_numbers() -> None:
    x = masked_tensor(DATA, MASK)
    pairs: list[tuple[Any, torch.Tensor]] = [
        (x + 1, DATA + 1),
        (1 - x, 1 - DATA),
        (2 * x, 2 * DATA),
        (1 / x, 1 / DATA),
        (x / 2, DATA / 2),
        (x // 0.3, DATA // 0.3),
        (x % 0.3, DATA % 0.3),
        (2**x, 2**DATA),
        (x**2, DATA**2),
        (-x, -DATA),
        (+x, DATA),
        (abs(x), abs(DATA)),
        (x < 0.2, DATA < 0.2),
        (x >= x, DATA >= DATA),
        (x == 0.3, DATA == 0.3),
        (0.2 - x > 0, DATA < 0.2),
        (~(x > 0), DATA <= 0),
        ((x > 0) & (DATA > 0.4), DATA > 0.4),
        (torch.add(x, DATA, alpha=2), DATA + 2 * DATA),
        (x * torch.arange(4.0), DATA * torch.arange(4.0)),
        (x.to(torch.float32), DATA.float()),
        (x.half(), DATA.half()),
        (x.to(torch.int64), DATA.to(torch.int64)),
        (x.type(torch.float32), DATA.float()),
    ]
    for found, expected in pairs:
        check(found, expected, MASK)
    row = masked_tensor(torch.ones(1, 4), torch.tensor([[True, False, True, True]]))
    check(row + torch.zeros(3, 4), torch.ones(3, 4), row.get_mask().expand(3, 4))
    assert x.type() == "torch.DoubleTensor"
    with pytest.raises(TypeError, match="bfloat16 is not supported"):
        x.bfloat16()
    with pytest.raises(TypeError, match="do not support additional Tensor arguments"):
        torch.clamp(x, DATA)
    with pytest.raises(ValueError, match="'out' is not supported"):
        torch.exp(x, out=torch.empty(3, 4))


def test_where_chooses_data_and_mask() -> None:
    x, y = masked_tensor(DATA, MASK), masked_tensor(-DATA, ~MASK)
    condition = DATA > 0
    expected = torch.where(condition, DATA, -DATA)
    check(torch.where(condition, x, y), expected, torch.where(condition, MASK, ~MASK))
    check(torch.where(x > 0, x, y), expected, torch.where(condition, MASK, ~MASK))
    check(x.where(condition, y), expected, torch.where(condition, MASK, ~MASK))
    check(torch.where(condition, x, 0.0), DATA.clamp(min=0), MASK | ~condition)
    check(torch.where(condition, DATA, y), expected, condition | ~MASK)
    with pytest.raises(ValueError, match="must be 3"):
        torch.where(x > 0)


def test_like_functions_keep_the_mask() -> None:
    x = masked_tensor(DATA, MASK)
    check(torch.ones_like(x), torch.ones_like(DATA), MASK)
    check(torch.full_like(x, 3.0), torch.full_like(DATA, 3.0), MASK)
    made = torch.zeros_like(x, dtype=torch.float32, requires_grad=True)
    check(made, torch.zeros(3, 4), MASK)
    assert made.is_leaf
    assert made.requires_grad


# --- shapes -----------------------------------------------------------------------------------

SHAPES: dict[str, Callable[[Any], Any]] = {
    "select": lambda t: t[1],
    "slice": lambda t: t[:, 1:3],
    "step": lambda t: t[..., ::2],
    "none": lambda t: t[None, ..., 0],
    "list": lambda t: t[:, [0, 2, 0]],
    "tensor": lambda t: t[torch.tensor([2, 0])],
    "flags": lambda t: t[MASK],
    "t": lambda t: t.t(),
    "mT": lambda t: t.mT,
    "T": lambda t: t.T,
    "permute": lambda t: t.permute(1, 0),
    "transpose": lambda t: t.transpose(0, 1),
    "view": lambda t: t.view(2, 6),
    "reshape": lambda t: t.t().reshape(-1),
    "flatten": lambda t: t.flatten(),
    "expand": lambda t: t[None].expand(2, 3, 4),
    "broadcast_to": lambda t: torch.broadcast_to(t, (2, 3, 4)),
    "unsqueeze": lambda t: t.unsqueeze(1),
    "squeeze": lambda t: t.unsqueeze(1).squeeze(1),
    "split": lambda t: t.split(3, 1)[1],
    "chunk": lambda t: t.chunk(2, 1)[0],
    "unbind": lambda t: t.unbind(1)[2],
    "narrow": lambda t: t.narrow(1, 1, 2),
    "unfold": lambda t: t.unfold(1, 2, 1),
    "diagonal": lambda t: t.diagonal(),
    "movedim": lambda t: t.movedim(0, 1),
    "contiguous": lambda t: t.t().contiguous(),
    "clone": lambda t: t.clone(),
    "gather": lambda t: t.gather(1, torch.tensor([[0, 2], [3, 3], [1, 0]])),
    "index_select": lambda t: t.index_select(0, torch.tensor([2, 1, 1])),
    "take": lambda t: t.take(torch.tensor([0, 5])),
    "flip": lambda t: t.flip(0),
    "roll": lambda t: t.roll(1, 1),
    "repeat": lambda t: t.repeat(2, 1),
    "cat": lambda t: torch.cat([t, t[:1]]),
    "stack": lambda t: torch.stack([t, t], 1),
    "hstack": lambda t: torch.hstack((t, t)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_data_and_mask_change_their_shapes_alike(name: str) -> None:
    function = SHAPES[name]
    check(function(masked_tensor(DATA, MASK)), function(DATA), function(MASK))


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("is_leaf", [True, False])
def test_gradients_pass_through_shapes(name: str, is_leaf: bool) -> None:
    function = SHAPES[name]
    x = leaf()
    y = function(x if is_leaf else x * 3)
    (y * y).sum().backward()
    plain = DATA.clone().requires_grad_()
    z = function(plain if is_leaf else plain * 3)
    torch.where(function(MASK), z * z, z.new_zeros([])).sum().backward()
    assert plain.grad is not None
    assert torch.allclose(x.grad.to_tensor(0), plain.grad, rtol=1e-14)
    assert torch.equal(x.grad.get_mask(), MASK)


def test_plain_tensors_count_in_full_beside_masked_ones() -> None:
    x = masked_tensor(DATA, MASK)
    check(torch.cat([x, DATA]), torch.cat([DATA, DATA]), torch.cat([MASK, MASK | True]))
    for index in (x > 0, (x > 0, 0)):
        with pytest.raises(TypeError, match="must not be MaskedTensors"):
            x[index]


# --- reductions -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["sum", "mean", "prod", "amax", "amin", "argmax", "argmin", "var", "std", "norm"]
)
def test_reductions_are_those_of_masked(name: str) -> None:
    x = masked_tensor(DATA, MASK)
    function = getattr(masked, name)
    for dim in (None, 0, 1, (0, 1)):
        if isinstance(dim, tuple) and name.startswith("arg"):
            continue
        for keepdim in (False, True):
            if name == "norm":
                found = x.norm(3, dim, keepdim)
                expected = masked.norm(DATA, 3, dim, keepdim=keepdim, mask=MASK)
            else:
                found = getattr(torch, name)(x, dim=dim, keepdim=keepdim)
                expected = function(DATA, dim, keepdim=keepdim, mask=MASK)
            flags = masked._output_mask(masked.sum, DATA, dim, keepdim=keepdim, mask=MASK)
            check(found, expected, flags.reshape(expected.shape))
    whole = getattr(x, name)()
    check(whole, function(DATA, mask=MASK), torch.tensor(True))


def test_arguments_of_reductions() -> None:
    x = masked_tensor(DATA, MASK)
    rows = MASK.any(1)
    check(x.sum(1, dtype=torch.float32), masked.sum(DATA, 1, mask=MASK, dtype=torch.float32), rows)
    check(x.var(1, False), masked.var(DATA, 1, False, mask=MASK), rows)
    check(x.var(False), masked.var(DATA, None, False, mask=MASK), torch.tensor(True))
    check(x.std(1, correction=0), masked.std(DATA, 1, correction=0, mask=MASK), rows)
    check(x.norm(dim=1), masked.norm(DATA, 2, 1, mask=MASK), rows)
    check(x.norm("fro"), masked.norm(DATA, mask=MASK), torch.tensor(True))
    check(x.logsumexp(1), masked.logsumexp(DATA, 1, mask=MASK), rows)
    check((x > -0.5).all(1), (DATA > -0.5).masked_fill(~MASK, True).all(1), rows)
    check((x > -0.5).all(), torch.tensor(False), torch.tensor(True))
    for name in ("softmax", "log_softmax", "cumsum", "cumprod"):
        expected = getattr(masked, name)(DATA, 1, mask=MASK)
        check(getattr(torch, name)(x, 1), expected, MASK)
        check(getattr(x, name)(dim=1), expected, MASK)
    soft = masked.softmax(DATA, -1, mask=MASK)
    check(torch.nn.functional.softmax(x, -1), soft, MASK)
    for bad in (
        lambda: x.sum(1, False, None, 3),
        lambda: x.amax(1, dtype=torch.float32),
        lambda: x.sum(1, dim=1),
        lambda: torch.sum(DATA, x),
        lambda: torch.full_like(DATA, x),
        lambda: DATA[x > 0],
    ):
        with pytest.raises(TypeError):
            bad()


def test_functions_of_masked_take_masked_tensors() -> None:
    x = masked_tensor(DATA, MASK)
    for name in ("sum", "mean", "var", "amax", "logsumexp", "softmax", "cumsum", "argmax"):
        found = getattr(masked, name)(x, 1)
        expected = getattr(masked, name)(DATA, 1, mask=MASK)
        assert type(found) is torch.Tensor
        assert torch.equal(found.nan_to_num(7), expected.nan_to_num(7))
    few = torch.tensor([True, True, False, False])
    both = masked.sum(x, 1, mask=few)
    assert torch.equal(both, masked.sum(DATA, 1, mask=MASK & few))


# --- gradients --------------------------------------------------------------------------------


def test_gradients_are_masked_and_zero_where_masked_out() -> None:
    for filler in (1.0, math.nan, math.inf):
        x = leaf(DATA.masked_fill(~MASK, filler))
        (x.exp() * x).sum().backward()
        check(x.grad, DATA.exp() * (1 + DATA), MASK)
        assert (x.grad.get_data()[~MASK] == 0).all()
        (x * 1).sum().backward()
        check(x.grad, DATA.exp() * (1 + DATA) + 1, MASK)


def test_as_masked_tensor_passes_masked_gradients_on() -> None:
    x = DATA.clone().requires_grad_()
    y = as_masked_tensor(x, MASK)
    assert not y.is_leaf
    (y * y).sum().backward()
    check(x.grad, 2 * DATA, MASK)
    plain = torch.tensor([1.0, 2, 3, 4], dtype=torch.float64, requires_grad=True)
    (leaf() * plain).sum().backward()
    assert torch.equal(plain.grad, masked.sum(DATA, 0, mask=MASK))  # type: ignore[arg-type]


def test_what_is_masked_out_spoils_no_gradient_of_plain_tensors() -> None:
    plain = torch.ones(3, 4, dtype=torch.float64, requires_grad=True)
    x = masked_tensor(DATA.masked_fill(~MASK, math.nan), MASK)
    (x * plain).get_data().sum().backward()
    assert plain.grad is not None
    assert torch.equal(plain.grad, DATA.masked_fill(~MASK, 0))
    source = DATA.masked_fill(~MASK, math.nan).requires_grad_()
    y = as_masked_tensor(source, MASK)
    (y[0].exp().sum() + y.unbind(0)[1].sum() + (y * 2).sum()).backward()
    assert source.grad is not None
    check(source.grad, torch.stack([DATA[0].exp() + 2, DATA[1] * 0 + 3, DATA[2]]), MASK)
    assert (source.grad.get_data()[~MASK] == 0).all()


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda t: (t * t + t.sin()) / (t.exp() + 2),
    "both": lambda t: torch.maximum(t, t * 2) - torch.fmin(t, 1.1 - t),
    "clamp": lambda t: t.clamp(-0.5, 0.55).tanh() * t.sigmoid(),
    "mean": lambda t: t[:2].mean(1),
    "std": lambda t: t[:2].std(1) * t[:2].amax(1),
    "norm": lambda t: t[:2].norm(3, 1),
    "prod": lambda t: t.prod(0),
    "softmax": lambda t: torch.softmax(t, 0),
    "logsumexp": lambda t: t[:2].logsumexp(1),
    "cumsum": lambda t: t.cumsum(1).cumprod(0),
    "shape": lambda t: torch.cat([t[:2].t().reshape(-1), t[:, [0, 1]].flatten()]) ** 2,
    "where": lambda t: torch.where(DATA > 0, t * t, t**3),
    "to": lambda t: t.to(torch.float64).square(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_agree_with_differences(name: str) -> None:
    def function(plain: torch.Tensor) -> torch.Tensor:
        # What is masked out does not matter, whatever it is.
        source = torch.where(MASK, plain, math.nan)
        return FUNCTIONS[name](_Entry.apply(source)).to_tensor(0)

    x = DATA.clone().requires_grad_()
    assert gradcheck(function, (x,), check_forward_ad=True)
    assert gradgradcheck(function, (x,))


class _Entry(torch.autograd.Function):
    """Makes a masked tensor, and a plain gradient of what comes back."""

    @staticmethod
    def forward(data: torch.Tensor) -> Any:
        return MaskedTensor._made(data, MASK)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad: Any) -> torch.Tensor:
        return grad.to_tensor(0) if isinstance(grad, MaskedTensor) else grad * MASK

    @staticmethod
    def jvp(ctx: Any, tangent: torch.Tensor) -> Any:
        return masked._tensor.wrap(tangent, MASK)


def test_transforms_of_functions_that_make_masked_tensors() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return (as_masked_tensor(x, MASK) ** 2).to_tensor(0)

    _, tangent = torch.func.jvp(function, (DATA,), (DATA,))
    assert torch.allclose(tangent, (2 * DATA**2).masked_fill(~MASK, 0))
    slope = torch.func.grad(lambda x: function(x).sum())(DATA)
    check(slope, 2 * DATA, MASK)


def test_tangents_through_in_place_ops() -> None:
    with fwAD.dual_level():
        x = fwAD.make_dual(masked_tensor(DATA, MASK), masked_tensor(DATA, MASK))
        y = x * 2
        y.mul_(3).sin_()
        tangent = fwAD.unpack_dual(y).tangent
    check(tangent, (DATA * 2 * 3).cos() * (DATA * 2 * 3), MASK)


def test_in_place_ops_have_their_history() -> None:
    x = leaf()
    y = x * 2
    y.mul_(3).sin_().add_(x)
    y.sum().backward()
    check(x.grad, 6 * (6 * DATA).cos() + 1, MASK)
    x = leaf()
    y = x * 2
    y[0].mul_(3)
    y[1] = 5
    y.sum().backward()
    check(x.grad, torch.tensor([[6.0], [0], [2]]).double().expand(3, 4), MASK)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        x.exp_()


@pytest.mark.parametrize("name", ["select", "slice", "step", "T", "narrow", "diagonal", "unfold"])
def test_writes_into_views_have_their_history(name: str) -> None:
    if name == "unfold":
        view: Callable[[Any], Any] = lambda t: t.unfold(1, 2, 2)  # noqa: E731
    else:
        view = SHAPES[name]
    x, plain = leaf(), DATA.clone().requires_grad_()
    for source in (x, plain):
        whole: Any = source * 2
        part = view(whole)
        part.mul_(3)
        part.add_(1).sin_()
        whole = whole * whole
        weights = torch.arange(12.0, dtype=torch.float64).reshape(3, 4)
        total = whole * weights if source is x else torch.where(MASK, whole * weights, 0.0)
        total.sum().backward()
    assert plain.grad is not None
    check(x.grad, plain.grad, MASK)


def test_in_place_ops_that_save_their_result_have_their_history() -> None:
    x = leaf()
    y = x * 2
    y.exp_().sum().backward()
    check(x.grad, 2 * (2 * DATA).exp(), MASK)


def test_views_know_that_their_base_was_written() -> None:
    x = leaf()
    y = x * 2
    row = y[0]
    y.mul_(3)
    row.sum().backward()
    check(x.grad, torch.tensor([[6.0], [0], [0]]).double().expand(3, 4), MASK)


def test_views_show_the_memory_of_their_base() -> None:
    x = masked_tensor(DATA, MASK)
    x[0].fill_(4)
    x[1, :2] = masked_tensor(DATA[0, :2], MASK[1, :2])
    expected = DATA.clone()
    expected[0], expected[1, :2] = 4, DATA[0, :2]
    check(x, expected, MASK)
    with pytest.raises(ValueError, match="Input masks must match"):
        x[1] = masked_tensor(DATA[0], ~MASK[1])
    with pytest.raises(TypeError, match="into a plain tensor"):
        DATA.clone()[0] = x[0]
    with pytest.raises(TypeError, match="indices must not be MaskedTensors"):
        x[x > 0] = 1
    check(x.copy_(masked_tensor(DATA, MASK)), DATA, MASK)
    with pytest.raises(ValueError, match="masks must match"):
        x.copy_(masked_tensor(DATA, ~MASK))


def test_leaves_made_later_have_masked_gradients_too() -> None:
    x = masked_tensor(DATA, MASK).requires_grad_()
    x[0].sum().backward()
    check(x.grad, torch.tensor([[1.0], [0], [0]]).double().expand(3, 4), MASK)
    assert not x.requires_grad_(False).requires_grad
    assert not x.detach().requires_grad
    with torch.no_grad():
        assert not (leaf() * 2).requires_grad


def test_what_masked_tensors_do_not_have_is_refused_with_a_warning() -> None:
    x = masked_tensor(DATA, MASK)
    with (
        pytest.warns(UserWarning, match="mm is not implemented in __torch_dispatch__ for Masked"),
        pytest.raises(TypeError, match="returned NotImplemented"),
    ):
        torch.matmul(x, DATA.t())
    with (
        pytest.warns(UserWarning, match="relu is not implemented"),
        pytest.raises(TypeError, match="returned NotImplemented"),
    ):
        torch.relu(x)
