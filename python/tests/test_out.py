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
