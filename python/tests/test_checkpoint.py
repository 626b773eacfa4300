"""Checkpointing: memory and calls, randomness, nesting, both ways, and what goes wrong."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import pullback as torch
from pullback import nn
from pullback.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_early_stop,
)

BOTH = pytest.mark.parametrize("reentrant", [False, True])


class Counted:
    """A function that counts its calls."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.calls = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function."""
        self.calls += 1
        return self.function(*args, **kwargs)


def data() -> torch.Tensor:
    return torch.linspace(0.1, 1.0, 6, requires_grad=True)


@BOTH
def test_gives_the_same_gradients_with_one_more_call(reentrant: bool) -> None:
    region = Counted(lambda x: (x.exp() * x).sin())
    x = data()
    (wanted,) = torch.autograd.grad((x.exp() * x).sin().sum(), x)
    y = checkpoint(region, x, use_reentrant=reentrant)
    assert region.calls == 1
    y.sum().backward()
    assert region.calls == 2
    assert torch.equal(x.grad, wanted)


@BOTH
def test_draws_the_same_random_numbers_again(reentrant: bool) -> None:
    drawn = []

    def region(x: torch.Tensor) -> torch.Tensor:
        noise = torch.rand(6)
        drawn.append(noise)
        return x * noise

    x = data()
    torch.manual_seed(3)
    y = checkpoint(region, x, use_reentrant=reentrant)
    after = torch.rand(1)
    y.sum().backward()
    assert torch.equal(drawn[0], drawn[1])
    assert torch.equal(x.grad, drawn[0])
    torch.manual_seed(3)
    torch.rand(6)
    assert torch.equal(torch.rand(1), after)
    y = checkpoint(region, x, use_reentrant=reentrant, preserve_rng_state=False)
    y.sum().backward()
    assert not torch.equal(drawn[2], drawn[3])


@BOTH
def test_keeps_only_inputs(reentrant: bool) -> None:
    def region(x: torch.Tensor) -> torch.Tensor:
        for _ in range(8):
            x = x.sin()
        return x

    def held(run: Callable[[torch.Tensor], torch.Tensor]) -> int:
        x = torch.ones(100_000, requires_grad=True)
        before = torch.memory.live_bytes()
        y = run(x)
        after = torch.memory.live_bytes() - before
        y.sum().backward()
        return after

    size = 400_000
    assert held(region) >= 8 * size
    assert held(lambda x: checkpoint(region, x, use_reentrant=reentrant)) < 1.5 * size


def test_stops_early_and_can_be_told_not_to() -> None:
    def region(x: torch.Tensor) -> torch.Tensor:
        y = x.exp()
        ends.append(0)
        z = y.sin()
        ends.append(1)
        return z + 1

    for stops in (True, False):
        ends: list[int] = []
        x = data()
        with set_checkpoint_early_stop(stops):
            y = checkpoint(region, x, use_reentrant=False)
        y.sum().backward()
        assert ends == ([0, 1, 0] if stops else [0, 1, 0, 1])


def test_without_reentry_everything_of_autograd_works() -> None:
    def region(x: torch.Tensor, *, power: int) -> Any:
        return x.pow(power), {"sum": (x * x).sum()}

    x = data()
    y, more = checkpoint(region, x, use_reentrant=False, power=3)
    (grad,) = torch.autograd.grad(y.sum() + more["sum"], x, create_graph=True)
    assert torch.allclose(grad, 3 * x**2 + 2 * x)
    (second,) = torch.autograd.grad(grad.sum(), x)
    assert torch.allclose(second, 6 * x + 2)
    y, _ = checkpoint(region, x, use_reentrant=False, power=2)
    y.sum().backward(inputs=[x])
    assert torch.allclose(x.grad, 2 * x)


def test_parameters_get_gradients_though_no_input_requires_grad() -> None:
    layer = nn.Linear(3, 3)
    x = torch.ones(2, 3)
    y = checkpoint(layer, x, use_reentrant=False)
    y.sum().backward()
    assert torch.equal(layer.weight.grad, torch.full((3, 3), 2.0))
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        y = checkpoint(layer, x, use_reentrant=True)
    assert not y.requires_grad


def test_backward_twice_and_retained() -> None:
    region = Counted(lambda x: x.exp().sin())
    x = data()
    y = checkpoint(region, x, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    first = x.grad.clone()
    y.backward()
    assert torch.equal(x.grad, 2 * first)
    assert region.calls == 3


@BOTH
@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
def test_nested_regions(reentrant: bool) -> None:
    inner = Counted(lambda x: x.sin().exp())
    outer = Counted(lambda x: checkpoint(inner, x * 2, use_reentrant=reentrant).cos())
    x = data()
    (wanted,) = torch.autograd.grad((x * 2).sin().exp().cos().sum(), x)
    checkpoint(outer, x, use_reentrant=reentrant).sum().backward()
    assert torch.allclose(x.grad, wanted)
    assert outer.calls == 2
    assert inner.calls == 3


def test_backward_inside_of_the_region() -> None:
    x = data()

    def region(x: torch.Tensor) -> torch.Tensor:
        y = x.exp()
        (grad,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return grad.sin() * y

    (wanted,) = torch.autograd.grad(region(x).sum(), x)
    checkpoint(region, x, use_reentrant=False).sum().backward()
    assert torch.allclose(x.grad, wanted)


def test_contexts_of_the_forward_and_of_the_recomputation() -> None:
    seen: list[str] = []

    @contextmanager
    def note(what: str) -> Iterator[None]:
        seen.append(what)
        yield

    x = data()
    y = checkpoint(
        lambda x: x.exp(),
        x,
        use_reentrant=False,
        context_fn=lambda: (note("forward"), note("again")),
    )
    assert seen == ["forward"]
    y.sum().backward()
    assert seen == ["forward", "again"]


def test_a_region_that_does_something_else_the_second_time() -> None:
    calls = Counted(lambda: None)

    def fewer(x: torch.Tensor) -> torch.Tensor:
        calls()
        return x.exp().sin() if calls.calls == 1 else x.exp()

    def more(x: torch.Tensor) -> torch.Tensor:
        calls()
        return x.exp() if calls.calls == 1 else x.exp().sin().cos()

    def other(x: torch.Tensor) -> torch.Tensor:
        calls()
        return x.exp() if calls.calls == 1 else x[:2].exp()

    x = data()
    y = checkpoint(fewer, x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="A different number of tensors was saved"):
        y.sum().backward()
    calls.calls = 0
    with set_checkpoint_early_stop(False):
        y = checkpoint(more, x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="trying to save more tensors during recomputation"):
        y.sum().backward()
    calls.calls = 0
    y = checkpoint(other, x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="different metadata than during the forward"):
        y.sum().backward()
    calls.calls = 0
    y = checkpoint(other, x, use_reentrant=False, determinism_check="none")
    with pytest.raises(RuntimeError, match=r"shape|size"):
        y.sum().backward()


def test_a_value_is_handed_out_once() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x.exp())
            return x.exp()

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            _ = ctx.saved_tensors
            return ctx.saved_tensors[0] * grad

    y = checkpoint(Twice.apply, data(), use_reentrant=False)
    with pytest.raises(CheckpointError, match="already unpacked once"):
        y.sum().backward()


def test_what_the_reentrant_way_refuses() -> None:
    x = data()
    y = checkpoint(lambda x: x.exp(), x, use_reentrant=True)
    with pytest.raises(RuntimeError, match=r"incompatible with \.grad\(\) or passing an `inputs`"):
        torch.autograd.grad(y.sum(), x)
    y = checkpoint(lambda x: x.exp(), x, use_reentrant=True)
    with pytest.raises(RuntimeError, match=r"incompatible with \.grad\(\) or passing an `inputs`"):
        y.sum().backward(inputs=[x])
    with pytest.raises(ValueError, match="Unexpected keyword arguments: power"):
        checkpoint(lambda x: x, x, use_reentrant=True, power=2)
    with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
        checkpoint(lambda x: x, x, use_reentrant=True, debug=True)
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(lambda x: x.exp(), x)
    y = checkpoint(lambda x: x.detach(), x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="none of output has requires_grad=True"):
        y.sum().backward()


@BOTH
@pytest.mark.parametrize("segments", [1, 2, 3])
def test_sequences(reentrant: bool, segments: int) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*(m for _ in range(3) for m in (nn.Linear(4, 4), nn.Tanh())))
    x = torch.randn(2, 4, requires_grad=True)
    model(x).sum().backward()
    wanted = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    y = checkpoint_sequential(model, segments, x, use_reentrant=reentrant)
    y.sum().backward()
    for p, grad in zip(model.parameters(), wanted, strict=True):
        assert torch.allclose(p.grad, grad)
    y = checkpoint_sequential(list(model), segments, x, use_reentrant=reentrant)
    assert torch.equal(y, model(x))
    with pytest.raises(ValueError, match="Unexpected keyword arguments"):
        checkpoint_sequential(model, 2, x, use_reentrant=reentrant, more=1)
    with pytest.raises(ValueError, match="segments must be at least 1, got 0"):
        checkpoint_sequential(model, 0, x, use_reentrant=reentrant)


def test_nothing_is_kept_after_the_graph_is_gone() -> None:
    gc.disable()
    try:
        x = data()
        y = checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False)
        gone = weakref.ref(x)
        y.sum().backward()
        del x, y
        assert gone() is None
    finally:
        gc.enable()


def test_batched_functions_are_computed_again_at_the_same_levels() -> None:
    def loss(a: torch.Tensor) -> torch.Tensor:
        inner = torch.vmap(torch.vmap(lambda row: row.exp() * row.sin()))(a)
        return torch.vmap(lambda m: torch.linalg.qr(m)[0])(a).sum() + inner.sum()

    torch.manual_seed(0)
    a = torch.randn(3, 4, 4, dtype=torch.float64, requires_grad=True)
    (expected,) = torch.autograd.grad(loss(a), a)
    checkpoint(loss, a, use_reentrant=False).backward()
    assert a.grad is not None
    assert a.grad.tolist() == expected.tolist()
    a.grad = None

    def nested(a: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = checkpoint(loss, a.tanh(), use_reentrant=False)
        return result + torch.vmap(torch.sin)(a).sum()

    (expected,) = torch.autograd.grad(loss(a.tanh()) + a.sin().sum(), a)
    checkpoint(nested, a, use_reentrant=False).backward()
    torch.testing.assert_close(a.grad, expected)
