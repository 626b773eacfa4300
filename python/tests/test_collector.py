"""The cycle collector may run at any allocation, also while an object is being made."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pullback as torch


class Storage(torch.UntypedStorage):
    """A subclass, whose objects have attributes."""


class Tensor(torch.Tensor):
    """The same of tensors."""


class Double(torch.autograd.Function):
    """A function with a context."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.factor = 2
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * ctx.factor


def graph() -> Any:
    x = torch.ones(2, requires_grad=True)
    y = Double.apply(x * x)
    y.sum().backward()
    return y.grad_fn.next_functions


def hooked() -> Any:
    x = torch.ones(2, requires_grad=True)
    return x, x.register_hook(lambda grad: grad), x.grad_fn


MAKERS: dict[str, Callable[[], Any]] = {
    "storage": lambda: torch.UntypedStorage(8),
    "storage of bytes": lambda: torch.UntypedStorage([1, 2, 3]),
    "storage of a class": lambda: Storage(8),
    "storage of a tensor": lambda: torch.ones(3).untyped_storage(),
    "typed storage": lambda: torch.FloatStorage([1.0, 2.0]),
    "tensor": lambda: torch.tensor([[1.0], [2.0]]),
    "tensor of a class": lambda: torch.ones(2).as_subclass(Tensor),
    "parameter": lambda: torch.nn.Parameter(torch.ones(2)),
    "generator": lambda: torch.Generator().manual_seed(1),
    "modes": lambda: [mode().__enter__() for mode in (torch.no_grad, torch.enable_grad)],
    "graph": graph,
    "hooks": hooked,
    "size": lambda: torch.ones(2, 3).size() + torch.Size([1]),
    "device and dtype": lambda: (torch.device("cpu"), torch.float32, torch.strided),
    "finfo": lambda: (torch.finfo(torch.float32), torch.iinfo(torch.int8)),
    "level": lambda: torch.func.vmap(torch.sin)(torch.ones(2)),
}


@pytest.fixture
def eager_collector() -> Iterator[None]:
    before, grad = gc.get_threshold(), torch.is_grad_enabled()
    gc.set_threshold(1, 1, 1)
    yield
    gc.set_threshold(*before)
    torch.set_grad_enabled(grad)


@pytest.mark.filterwarnings("ignore:TypedStorage")
@pytest.mark.parametrize("name", MAKERS)
def test_an_object_may_be_seen_before_it_is_made(name: str, eager_collector: None) -> None:
    kept = []
    for _ in range(50):
        made = MAKERS[name]()
        # (An object of Python that a full collection finds, and one that goes at once.)
        kept.append([made, kept])
        MAKERS[name]()
    del made
    assert len(kept) == 50
