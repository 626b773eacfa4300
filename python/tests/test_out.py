"""`out=` tensors that share memory: refused as in PyTorch, or answered right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch

SHARED = "some elements of the input tensor and the written-to tensor refer to a single memory"
Call = Callable[..., Any]

# Calls of tensors of three rows and columns; the shared input comes first.
SEPARATE: dict[str, Call] = {
    "cat": lambda x, **k: torch.cat([x], **k),
    "stack": lambda x, **k: torch.stack([x], **k),
    "hstack": lambda x, **k: torch.hstack([x, x], **k),
    "gather": lambda x, **k: torch.gather(x, 0, torch.zeros(3, 3, dtype=torch.int64), **k),
    "take_along_dim": lambda x, **k: torch.take_along_dim(x, x.argsort(0), 0, **k),
    "take": lambda x, **k: torch.take(x, torch.tensor([[1, 0, 2]]), **k),
    "index_select": lambda x, **k: torch.index_select(x, 0, torch.tensor([1, 0, 2]), **k),
    "masked_select": lambda x, **k: torch.masked_select(x, x > 0, **k),
    "outer": lambda x, **k: torch.outer(x.view(-1), torch.ones(2), **k),
    "scatter": lambda x, **k: torch.scatter(
        torch.zeros(3, 3), 0, torch.zeros(3, 3, dtype=torch.int64), x, **k
    ),
    "index_add": lambda x, **k: torch.index_add(
        torch.zeros(3, 3), 0, torch.tensor([0, 1, 0]), x, **k
    ),
    "kthvalue": lambda x, **k: torch.kthvalue(x, 2, **k),
}
APART: dict[str, Call] = {
    "add": lambda x, **k: torch.add(x, 1, **k),
    "square": lambda x, **k: torch.square(x, **k),
    "deg2rad": lambda x, **k: torch.deg2rad(x, **k),
    "clamp": lambda x, **k: torch.clamp(x, torch.zeros(3, 3), **k),
    "where": lambda x, **k: torch.where(torch.eye(3) > 0, x, x.new_zeros(()), **k),
    "max": lambda x, **k: torch.max(x, torch.zeros(3, 3), **k),
    "bernoulli": lambda x, **k: torch.bernoulli((x > 0).float(), **k),
    "cumsum": lambda x, **k: torch.cumsum(x, 1, **k),
    "msort": lambda x, **k: torch.msort(x, **k),
    "sort": lambda x, **k: torch.sort(x, **k),
    "topk": lambda x, **k: torch.topk(x, 3, **k),
    "addmm": lambda x, **k: torch.addmm(x, torch.eye(3), torch.eye(3), **k),
    "scatter": lambda x, **k: torch.scatter(x, 0, torch.tensor([[0, 1, 0]]), 5.0, **k),
    "mse_loss": lambda x, **k: torch._C._nn.mse_loss(x, torch.zeros(3, 3), 0, **k),
    "max of rows": lambda x, **k: torch.max(x, 1, **k),
    "aminmax": lambda x, **k: torch.aminmax(x, dim=0, **k),
}


def memory() -> torch.Tensor:
    return (torch.arange(40) * 7 % 11).to(torch.float32) - 5


def targets(result: Any, first: torch.Tensor) -> Any:
    """What to give as `out=`: `first`, and fresh tensors for the other outputs."""
    if isinstance(result, torch.Tensor):
        return first
    return (first, *(torch.empty_like(other) for other in result[1:]))


def values(result: Any) -> Any:
    return result if isinstance(result, torch.Tensor) else result[0]


def place(buffer: torch.Tensor, start: int, like: torch.Tensor) -> torch.Tensor:
    return buffer[start : start + like.numel()].view(like.shape)


@pytest.mark.parametrize("name", [*SEPARATE, *(name for name in APART if name != "bernoulli")])
def test_a_target_that_overlaps_an_input_in_part_is_refused(name: str) -> None:
    call = SEPARATE.get(name) or APART[name]
    buffer = memory()
    before = buffer.clone()
    x = buffer[2:11].view(3, 3)
    result = call(x)
    for start in (0 if values(result).numel() > 2 else 3, 9):
        out = place(buffer, start, values(result))
        with pytest.raises(RuntimeError, match=SHARED):
            call(x, out=targets(result, out))
        assert buffer.tolist() == before.tolist()


@pytest.mark.parametrize("name", SEPARATE)
def test_an_input_is_no_target_where_its_elements_move(name: str) -> None:
    x = memory()[:9].view(3, 3)
    before = x.clone()
    with pytest.raises(RuntimeError, match=SHARED):
        SEPARATE[name](x, out=targets(SEPARATE[name](x), x))
    assert x.tolist() == before.tolist()


@pytest.mark.parametrize("name", APART)
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_an_input_may_be_the_target_where_its_elements_stay(name: str) -> None:
    x = memory()[:9].view(3, 3).clone()
    expected = APART[name](x)
    APART[name](x, out=targets(expected, x))
    assert x.tolist() == values(expected).tolist()


@pytest.mark.parametrize("name", [*SEPARATE, *APART, "sum", "inverse"])
def test_a_target_that_repeats_an_element_is_refused(name: str) -> None:
    more: dict[str, Call] = {
        "sum": lambda x, **k: torch.sum(x, 0, **k),
        "inverse": lambda x, **k: torch.inverse(x + 20 * torch.eye(3), **k),
    }
    call = SEPARATE.get(name) or APART.get(name) or more[name]
    result = call(memory()[:9].view(3, 3))
    out = torch.zeros(1).expand(values(result).shape)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        call(memory()[:9].view(3, 3), out=targets(result, out))


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_results_that_are_computed_aside_may_go_into_the_input() -> None:
    x = memory()[:9].view(3, 3)
    expected = x.sum(0)
    torch.sum(x, 0, out=x.view(-1)[1:4])
    assert x.view(-1)[1:4].tolist() == expected.tolist()
    # A target of another size is resized first: then its elements are those of the input.
    y = memory()[:9].view(3, 3)
    expected = y.cumsum(0)
    torch.cumsum(y, 0, out=y.view(-1)[:2])
    assert y.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("write", "text"),
    [
        (lambda x: x.addmm_(torch.ones(3, 2), torch.ones(2, 3)), r"input tensor size \[1\] and"),
        (lambda x: x.addmv_(torch.ones(3, 2), torch.ones(2)), r"output tensor size \[3\] should"),
        (
            lambda x: x.baddbmm_(torch.ones(2, 3, 2), torch.ones(2, 2, 3)),
            r"size \[2, 3, 3\] should",
        ),
        (lambda x: x.add_(torch.ones(3)), r"shape \[1\] doesn't match the broadcast shape \[3\]"),
        (lambda x: x.clamp_(torch.ones(3)), r"shape \[1\] doesn't match the broadcast shape \[3\]"),
        (lambda x: x.copy_(torch.ones(2, 3)), r"doesn't match the broadcast shape \[2, 3\]"),
        (lambda x: x.expand(2).copy_(torch.ones(3)), "more than one element of the written-to"),
        (
            lambda x: x.index_add_(0, torch.tensor([0]), torch.ones(1, 2)),
            r"Got self.shape = \[1\] source.shape = \[1, 2\]",
        ),
        (
            lambda x: x.view(1, 1).index_add_(0, torch.tensor([0]), torch.ones(1, 2)),
            r"Got self.shape = \[1, 1\] source.shape = \[1, 2\]",
        ),
        (
            lambda x: x.view(1, 1).index_copy_(0, torch.tensor([0]), torch.ones(1, 2)),
            "Destination slice shape: 1 at dimension 0 and source slice shape: 2",
        ),
    ],
)
def test_an_in_place_form_keeps_its_shape(write: Call, text: str) -> None:
    x = torch.zeros(1)
    with pytest.raises(RuntimeError, match=text):
        write(x)
    assert (x.tolist(), x._version) == ([0], 0)


def test_addbmm_in_place_takes_the_shape_of_the_product() -> None:
    weight = torch.tensor([2.0], requires_grad=True)
    x = weight * 1
    assert x.addbmm_(torch.ones(2, 3, 4), torch.ones(2, 4, 3)) is x
    assert x.tolist() == [[10] * 3] * 3
    x.sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [9]
    # A view would grow over what lies behind it.
    with pytest.raises(RuntimeError, match="should match"):
        torch.zeros(4)[:1].addbmm_(torch.ones(2, 3, 4), torch.ones(2, 4, 3))
    with pytest.raises(
        RuntimeError, match=r"expanded size of the tensor \(3\) must match .* \(2\)"
    ):
        torch.zeros(2, 2).addbmm_(torch.ones(2, 3, 4), torch.ones(2, 4, 3))


def test_one_value_may_be_written_where_elements_share_memory() -> None:
    weight = torch.ones(3, requires_grad=True)
    rows = weight * 2
    rows.expand(2, 3)[:, 1:].fill_(7)
    assert rows.tolist() == [2, 7, 7]
    rows.sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [2, 0, 0]
    assert torch.ones(1).expand(2, 2).zero_().tolist() == [[0, 0], [0, 0]]


def test_in_place_forms_refuse_inputs_that_overlap_them_in_part() -> None:
    x = torch.arange(6.0)
    with pytest.raises(RuntimeError, match=SHARED):
        x[:4].clamp_(x[1:5])
    mask = x > 2
    with pytest.raises(RuntimeError, match=SHARED):
        mask[:4].masked_fill_(mask[1:5], True)
    assert mask[:4].masked_fill_(mask[:4], False).tolist() == [False] * 4


def test_makers_compute_in_the_dtype_of_their_target() -> None:
    whole = torch.empty(3, dtype=torch.int64)
    torch.linspace(0, 5, 3, out=whole)
    assert whole.tolist() == [0, 2, 5]
    double = torch.empty(4, dtype=torch.float64)
    torch.manual_seed(3)
    torch.rand(4, out=double)
    torch.manual_seed(3)
    assert torch.equal(double, torch.rand(4, dtype=torch.float64))
    with pytest.raises(RuntimeError, match=r"float64 does not match dtype of out parameter"):
        torch.zeros(4, dtype=torch.float64, out=torch.empty(4))


def test_spaced_numbers_fill_a_target_of_their_size_in_its_shape() -> None:
    x = torch.zeros(2, 3)
    torch.arange(4.0, out=x[:, 1:])
    assert x.tolist() == [[0.0, 0.0, 1.0], [0.0, 2.0, 3.0]]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.bool])
def test_a_kernel_that_refuses_a_dtype_leaves_a_target_of_another_shape_as_it_was(
    dtype: torch.dtype,
) -> None:
    for call in [
        lambda x, **k: torch._C._nn.silu(x, **k),
        lambda x, **k: torch._C._nn.leaky_relu(x, **k),
        lambda x, **k: torch._C._nn.softplus(x, **k),
    ]:
        out = torch.empty(0, dtype=dtype)
        with pytest.raises(RuntimeError, match="not implemented"):
            call(torch.ones(2, 3, dtype=dtype), out=out)
        assert out.shape == (0,)
    filled = torch.tensor([3, 0, 1]).to(dtype)
    with (
        pytest.warns(UserWarning, match="was resized"),
        pytest.raises(RuntimeError, match="not implemented"),
    ):
        torch._C._nn.silu(torch.ones(2, 3, dtype=dtype), out=filled)
    assert filled.equal(torch.tensor([3, 0, 1]).to(dtype))
