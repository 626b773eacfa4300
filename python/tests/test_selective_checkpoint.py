"""Selective checkpointing, and the logs of ``checkpoint(debug=True)``."""

from __future__ import annotations

import functools
import gc
import warnings
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch
from pullback.autograd.graph import saved_tensors_hooks
from pullback.utils._python_dispatch import TorchDispatchMode
from pullback.utils.checkpoint import (
    CheckpointError,
    CheckpointPolicy,
    GraphExecGroup,
    checkpoint,
    create_selective_checkpoint_contexts,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)

aten = torch.ops.aten


class Count(TorchDispatchMode):
    """Counts ops that are run."""

    def __init__(self) -> None:
        super().__init__()
        self.of: Counter[Any] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.of[func] += 1
        return func(*args, **(kwargs or {}))


def keeping(*ops: Any, **options: Any) -> Any:
    return functools.partial(create_selective_checkpoint_contexts, list(ops), **options)


def always(policy: Any) -> Any:
    return functools.partial(create_selective_checkpoint_contexts, lambda *args, **kwargs: policy)


def region(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.mm(x.cos(), y).sin().sum()


def inputs() -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(4, 4, requires_grad=True) for _ in range(2)]


def runs_in_backward(context_fn: Callable[[], Any]) -> tuple[Counter[Any], list[torch.Tensor]]:
    given = inputs()
    out = checkpoint(region, *given, use_reentrant=False, context_fn=context_fn)
    with Count() as count:
        grads = torch.autograd.grad(out, given)
    return count.of, list(grads)


@pytest.mark.parametrize(
    ("context_fn", "products", "cosines"),
    [
        # The two products of the backward pass, and that of the recomputation; `cos` is the
        # recomputation's and the derivative of `sin`.
        (keeping(), 3, 2),
        (keeping(aten.mm.default), 2, 2),
        (keeping(aten.mm.default, aten.cos.default), 2, 1),
        (always(CheckpointPolicy.MUST_SAVE), 2, 1),
        (always(CheckpointPolicy.PREFER_SAVE), 2, 1),
        (always(CheckpointPolicy.MUST_RECOMPUTE), 3, 2),
        (always(CheckpointPolicy.MUST_CPU_OFFLOAD), 3, 2),
        (always(True), 2, 1),
        (always(False), 3, 2),
    ],
)
def test_kept_results_are_not_computed_again_and_gradients_are_the_same(
    context_fn: Any, products: int, cosines: int
) -> None:
    ran, grads = runs_in_backward(context_fn)
    assert ran[aten.mm.default] == products
    assert ran[aten.cos.default] == cosines
    given = inputs()
    for ours, wanted in zip(grads, torch.autograd.grad(region(*given), given), strict=True):
        assert torch.equal(ours, wanted)


def test_a_policy_sees_ops_arguments_and_results_in_the_forward_alone() -> None:
    seen = []

    def policy(context: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        seen.append((op, len(args), context.is_recompute, tuple(context.op_output.shape)))
        return CheckpointPolicy.PREFER_RECOMPUTE

    context_fn = functools.partial(create_selective_checkpoint_contexts, policy)
    runs_in_backward(context_fn)
    assert seen == [
        (aten.cos.default, 1, False, (4, 4)),
        (aten.mm.default, 2, False, (4, 4)),
        (aten.sin.default, 1, False, (4, 4)),
        (aten.sum.default, 1, False, ()),
    ]


def test_ops_with_several_results_and_views_are_kept() -> None:
    def several(x: torch.Tensor) -> torch.Tensor:
        variance, mean = torch.var_mean(x, 1)
        return (x.view(-1)[:4] * variance * mean).exp()

    x = torch.randn(4, 3, requires_grad=True)
    context_fn = keeping(aten.var_mean.correction, aten.view.default, aten.slice.Tensor)
    out = checkpoint(several, x, use_reentrant=False, context_fn=context_fn)
    (ours,) = torch.autograd.grad(out.sum(), x)
    (wanted,) = torch.autograd.grad(several(x).sum(), x)
    assert torch.equal(ours, wanted)


def test_a_kept_result_that_was_written_to_is_an_error_unless_it_is_allowed() -> None:
    def writing(x: torch.Tensor) -> torch.Tensor:
        return x.sin().mul_(2).cos().exp()

    x = torch.randn(3, requires_grad=True)
    context_fn = keeping(aten.sin.default)
    out = checkpoint(writing, x, use_reentrant=False, context_fn=context_fn)
    with pytest.raises(RuntimeError, match="has been mutated"):
        out.sum().backward()
    context_fn = keeping(aten.sin.default, allow_cache_entry_mutation=True)
    out = checkpoint(writing, x, use_reentrant=False, context_fn=context_fn)
    out.sum().backward()
    assert x.grad is not None


def test_a_second_backward_through_a_region_is_an_error() -> None:
    x = torch.randn(3, requires_grad=True)
    out = checkpoint(
        lambda x: x.sin().cos().exp(), x, use_reentrant=False, context_fn=keeping(aten.sin.default)
    )
    out.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        out.sum().backward(retain_graph=True)


def test_a_region_that_does_something_else_is_an_error() -> None:
    calls = []

    def changing(x: torch.Tensor) -> torch.Tensor:
        calls.append(None)
        y = x.sin() if len(calls) == 1 else x.sin().tan().sin()
        return y.exp().exp()

    x = torch.randn(3, requires_grad=True)
    out = checkpoint(changing, x, use_reentrant=False, context_fn=keeping(aten.exp.default))
    with pytest.raises(RuntimeError, match=r"aten\.tan\.default encountered.*not found in storage"):
        out.sum().backward()


def test_kept_results_go_with_the_graph_and_when_they_were_given_out() -> None:
    kept = []

    def noting(x: torch.Tensor) -> torch.Tensor:
        from pullback.utils._python_dispatch import _get_current_dispatch_mode
        from pullback.utils.checkpoint import _CachingTorchDispatchMode

        y = x.cos().exp()
        mode = _get_current_dispatch_mode()
        if isinstance(mode, _CachingTorchDispatchMode):
            value = mode.storage[aten.exp.default][0].val
            assert not value.requires_grad
            kept.append(weakref.ref(value))
        return y.sin()

    x = torch.randn(3, requires_grad=True)
    gc.disable()
    try:
        context_fn = always(CheckpointPolicy.MUST_SAVE)
        out = checkpoint(noting, x, use_reentrant=False, context_fn=context_fn)
        assert kept[0]() is not None
        del out
        assert kept[0]() is None
        out = checkpoint(noting, x, use_reentrant=False, context_fn=context_fn)
        assert kept[1]() is not None
        out.sum().backward(retain_graph=True)
        assert kept[1]() is None
    finally:
        gc.enable()


def test_what_is_no_list_of_overloads_and_no_function_is_refused() -> None:
    with pytest.raises(ValueError, match="Expected op in `op_list` to be an OpOverload"):
        create_selective_checkpoint_contexts([2])
    with pytest.raises(ValueError, match=r"specific OpOverload, such as torch\.ops\.aten\.sin\."):
        create_selective_checkpoint_contexts([aten.sin])
    with pytest.raises(TypeError, match=r"either a function or a list of ops\."):
        create_selective_checkpoint_contexts(2)  # type: ignore[arg-type]


@pytest.mark.parametrize("respects", [None, True, False])
def test_hooks_on_saved_tensors_see_what_is_kept_if_they_are_to(respects: bool | None) -> None:
    packed, unpacked = [], []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        packed.append(tensor)
        return tensor.clone()

    def unpack(tensor: torch.Tensor) -> torch.Tensor:
        unpacked.append(tensor)
        return tensor

    x = torch.randn(3, requires_grad=True)
    with warnings.catch_warnings(record=True) as given, saved_tensors_hooks(pack, unpack):
        warnings.simplefilter("always")
        out = checkpoint(
            lambda x: x.sin().exp().cos(),
            x,
            use_reentrant=False,
            context_fn=keeping(aten.exp.default),
            respect_saved_tensors_hooks=respects,
        )
    assert [w.category for w in given] == ([FutureWarning] if respects is None else [])
    before = len(unpacked)
    out.sum().backward()
    # (Two more are what keeps the region's input.)
    assert (before, len(packed)) == (0, 3 if respects else 2)
    assert len(unpacked) == (3 if respects else 2)
    assert torch.allclose(x.grad, -x.detach().sin().exp().sin() * x.sin().exp() * x.cos())


def test_recomputation_ends_before_an_op_that_only_its_input_is_wanted_of() -> None:
    calls = []

    def sine(x: torch.Tensor) -> torch.Tensor:
        calls.append(None)
        return x.sin()

    for early_stop, sines in ((True, 1), (False, 2)):
        x = torch.tensor(1.0, requires_grad=True)
        with Count() as count, set_checkpoint_early_stop(early_stop):
            checkpoint(sine, x, use_reentrant=False).backward()
        assert count.of[aten.sin.default] == sines
        assert x.grad.item() == pytest.approx(0.5403023)
    assert len(calls) == 4
    with Count() as count:
        checkpoint(sine, x, use_reentrant=False, early_stop=False).backward()
    assert count.of[aten.sin.default] == 2


class Changing:
    """A region that does something else when it runs again."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Calls one or the other."""
        self.calls += 1
        return x.sin().exp() if self.calls == 1 else x.sin() * torch.tensor([1.0, 2.0])


def test_debug_shows_the_ops_of_both_runs_and_where_they_were_called() -> None:
    x = torch.randn(1, requires_grad=True)
    out = checkpoint(Changing(), x, use_reentrant=False, debug=True)
    with pytest.raises(CheckpointError, match="because you passed `debug=True`") as error:
        out.backward()
    text = str(error.value)
    assert "$1: float32[1] = aten.sin.default($0)" in text
    assert "(2 of 2 in original)" in text
    assert "in recompute)" in text
    assert "test_selective_checkpoint.py:" in text
    assert ":__call__" in text
    assert isinstance(error.value.__cause__, CheckpointError)
    assert "different metadata" in str(error.value.__cause__)


def test_debug_can_be_said_for_all_regions() -> None:
    x = torch.randn(1, requires_grad=True)
    with set_checkpoint_debug_enabled(True):
        out = checkpoint(Changing(), x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="debug=True"):
        out.backward()
    with set_checkpoint_debug_enabled(False):
        out = checkpoint(Changing(), x, use_reentrant=False, debug=True)
    with pytest.raises(CheckpointError, match=r"^torch\.utils\.checkpoint: Recomputed"):
        out.backward()
    with pytest.raises(ValueError, match="incompatible with non-default context_fn"):
        checkpoint(Changing(), x, use_reentrant=False, debug=True, context_fn=keeping())


def test_checkpoint_without_a_function_is_a_decorator_also_of_methods() -> None:
    calls = []

    @checkpoint(use_reentrant=False)
    def square(x: torch.Tensor, *, factor: float = 1.0) -> torch.Tensor:
        calls.append(None)
        return x * x * factor

    class Model:
        @checkpoint(use_reentrant=False)
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            calls.append(None)
            return x.exp().sin()

    x = torch.tensor(2.0, requires_grad=True)
    assert square.__name__ == "square"
    square(x, factor=3.0).backward()
    assert x.grad.item() == 12.0
    Model().forward(x).backward()
    assert len(calls) == 4
    with pytest.raises(ValueError, match="Unexpected keyword arguments"):
        checkpoint(use_reentrant=False, factor=1)


def test_an_exception_that_the_forward_context_swallows_is_an_error() -> None:
    import contextlib

    def broken(x: torch.Tensor) -> torch.Tensor:
        raise KeyError("mine")

    def context_fn() -> tuple[Any, Any]:
        return contextlib.suppress(KeyError), contextlib.nullcontext()

    x = torch.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="suppressed an exception"):
        checkpoint(broken, x, use_reentrant=False, context_fn=context_fn)


def test_backwards_of_one_group_share_a_recomputation() -> None:
    calls = []

    def both(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        calls.append(None)
        y = x.exp()
        return y.sin(), x.cos()

    x = torch.tensor(1.0, requires_grad=True)
    a, b = checkpoint(both, x, use_reentrant=False)
    with GraphExecGroup():
        (first,) = torch.autograd.grad(b, x)
        (second,) = torch.autograd.grad(a, x)
        with pytest.raises(RuntimeError, match="cannot be nested"), GraphExecGroup():
            pass
    assert len(calls) == 2
    assert first.item() == pytest.approx(-x.sin().item())
    assert second.item() == pytest.approx((x.exp().cos() * x.exp()).item())
