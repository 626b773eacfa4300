"""Saved tensors: what nodes keep, hooks that pack it, and objects that stand for it."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import pytest

import pullback as torch
from pullback.autograd import graph


def leaf(*values: float) -> torch.Tensor:
    """A leaf that requires grad."""
    return torch.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


def test_without_hooks_a_saved_input_is_the_tensor_itself() -> None:
    x = leaf()
    y = x * x
    assert y.grad_fn._saved_self is x
    assert y.grad_fn._saved_other is x


def test_a_saved_output_has_its_history_and_makes_no_cycle() -> None:
    x = leaf()
    y = x.exp()
    result = y.grad_fn._saved_result
    assert result.grad_fn is y.grad_fn
    assert torch.equal(result, y)
    gc.disable()
    try:
        gone = weakref.ref(y)
        del y, result
        assert gone() is None
    finally:
        gc.enable()


def test_pack_is_called_once_and_unpack_whenever_wanted() -> None:
    packed: list[torch.Tensor] = []
    unpacked: list[torch.Tensor] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        packed.append(tensor)
        assert not torch.is_grad_enabled()
        return tensor * 2

    def unpack(tensor: torch.Tensor) -> torch.Tensor:
        unpacked.append(tensor)
        return tensor / 2

    x = leaf()
    with graph.saved_tensors_hooks(pack, unpack):
        y = x.pow(3)
    assert packed == [x] or packed[0] is x
    assert len(packed) == 1
    assert not unpacked
    assert torch.equal(y.grad_fn._saved_self, x)
    assert y.grad_fn._saved_self is not x
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert len(unpacked) == 4
    assert torch.equal(x.grad, 2 * 3 * x.detach() ** 2)


def test_pack_sees_outputs_with_their_history() -> None:
    seen: list[Any] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        seen.append((tensor.requires_grad, tensor.grad_fn))
        return tensor

    x = leaf()
    with graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = x.exp()
    assert seen == [(True, y.grad_fn)]
    (grad,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(grad, y)


@pytest.mark.parametrize("function", ["exp", "sigmoid", "tanh", "sqrt"])
def test_an_identity_on_an_output_makes_no_cycle(function: str) -> None:
    gc.disable()
    try:
        x = leaf()
        with graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
            y = getattr(x, function)()
        gone = weakref.ref(y)
        del y
        assert gone() is None
    finally:
        gc.enable()


def test_only_the_innermost_hooks_apply() -> None:
    def times(factor: float) -> graph.saved_tensors_hooks:
        return graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor * factor)

    x = leaf(1.0)
    with times(10.0):
        with times(3.0):
            inner = x.pow(2)
        outer = x.pow(2)
    plain = x.pow(2)
    for y, factor in ((inner, 3.0), (outer, 10.0), (plain, 1.0)):
        (grad,) = torch.autograd.grad(y, x)
        assert grad.item() == 2 * factor


def test_history_is_that_of_the_tensor_that_was_packed() -> None:
    x = leaf()
    a = x * 2
    with graph.saved_tensors_hooks(lambda tensor: tensor.numpy(), torch.from_numpy):
        y = a.pow(3)
    saved = y.grad_fn._saved_self
    assert saved.grad_fn is a.grad_fn
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert torch.allclose(first, 3 * (2 * x) ** 2 * 2)
    assert torch.allclose(second, 6 * (2 * x) * 4)


def test_the_gradient_of_a_packed_leaf_reaches_the_leaf() -> None:
    x = leaf()
    with graph.saved_tensors_hooks(lambda tensor: tensor.clone(), lambda tensor: tensor):
        y = x.pow(3)
    saved = y.grad_fn._saved_self
    assert saved.is_leaf
    assert saved.requires_grad
    (grad,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    grad.sum().backward()
    assert torch.allclose(x.grad, 6 * x.detach())
    saved.sum().backward()
    assert torch.allclose(x.grad, 6 * x.detach() + 1)
    assert saved.grad is None


def test_versions_of_packed_tensors_are_not_compared() -> None:
    x = leaf()
    a = x * 1
    with graph.saved_tensors_hooks(lambda tensor: tensor.clone(), lambda tensor: tensor):
        y = a.pow(2)
    a.zero_()
    (grad,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(grad, 2 * x.detach())


def test_lists_of_tensors_are_packed_one_by_one() -> None:
    shapes = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        shapes.append(tuple(tensor.shape))
        return tensor

    table = torch.randn(4, 5, requires_grad=True)
    rows, columns = torch.tensor([0, 2, 2]), torch.tensor([[1], [3]])
    with graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = table[rows, columns]
    assert shapes == [(3,), (2, 1)]
    first, _ = y.grad_fn._raw_saved_indices
    with pytest.raises(RuntimeError, match="whose hooks have already been set"):
        first.register_hooks(lambda tensor: tensor, lambda tensor: tensor)
    y.sum().backward()
    assert table.grad.sum() == 6
    with pytest.raises(RuntimeError, match="second time"):
        _ = y.grad_fn._raw_saved_indices


def test_a_hook_that_writes_to_its_input_is_refused() -> None:
    x = torch.ones(2)
    w = leaf(1.0, 2.0)
    with (
        graph.saved_tensors_hooks(lambda tensor: tensor.add_(1), lambda tensor: tensor),
        pytest.raises(RuntimeError, match="saved tensor pack hook is modifying its input in place"),
    ):
        _ = x * w


def test_what_unpack_gives_must_be_a_tensor() -> None:
    x = leaf()
    with graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: 3):
        y = x.pow(2)
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor but got result of"):
        y.sum().backward()
    with pytest.raises(TypeError, match="expected to be a Tensor"):
        _ = y.grad_fn._saved_self


def test_errors_of_hooks_come_through() -> None:
    class Special(Exception):
        pass

    def refuse(_: Any) -> Any:
        raise Special("here")

    x = leaf()
    with graph.saved_tensors_hooks(refuse, refuse), pytest.raises(Special, match="here"):
        _ = x * x
    with graph.saved_tensors_hooks(lambda tensor: tensor, refuse):
        y = x * x
    with pytest.raises(Special, match="here"):
        y.sum().backward()
    z = x * x
    z.sum().backward()
    assert torch.equal(x.grad, 2 * x.detach())


def test_hooks_belong_to_their_thread_and_to_its_backward() -> None:
    calls = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        calls.append(threading.current_thread().name)
        return tensor

    x = leaf()
    with graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        other = threading.Thread(target=lambda: x * x)
        other.start()
        other.join()
        assert not calls
    y = x.pow(3).sum()
    with graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        (grad,) = torch.autograd.grad(y, x, create_graph=True)
    assert calls
    assert torch.allclose(torch.autograd.grad(grad.sum(), x)[0], 6 * x.detach())


def test_hooks_can_be_disabled_with_a_reason() -> None:
    def nothing() -> graph.saved_tensors_hooks:
        return graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor)

    def refused(reason: str) -> bool:
        with pytest.raises(RuntimeError, match=reason), nothing():
            pass
        return True

    with graph.disable_saved_tensors_hooks("not in here"):
        assert refused("not in here")
        with graph.disable_saved_tensors_hooks("nor here"):
            assert refused("nor here")
        assert refused("not in here")
    late = graph.disable_saved_tensors_hooks("too late")
    with nothing(), pytest.raises(RuntimeError, match="too late"), late:
        pass
    with nothing():
        x = leaf()
        (x * x).sum().backward()


def test_objects_take_hooks_afterwards() -> None:
    x = leaf()
    y = x.pow(2)
    kept = y.grad_fn._raw_saved_self
    kept.register_hooks(lambda tensor: tensor * 2, lambda tensor: tensor)
    with pytest.raises(RuntimeError, match="whose hooks have already been set"):
        kept.register_hooks(lambda tensor: tensor, lambda tensor: tensor)
    y.sum().backward()
    assert torch.equal(x.grad, 4 * x.detach())
    with pytest.raises(RuntimeError, match="after it has been freed"):
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)


def test_objects_for_lists_none_and_bad_hooks() -> None:
    a, b = leaf(), leaf()
    y = torch.cat([a, b]).pow(2)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        y.grad_fn._raw_saved_self.register_hooks(lambda tensor: tensor, 3)
    with pytest.raises(RuntimeError, match="Trying to create a SavedTensor object from Python"):
        type(y.grad_fn._raw_saved_self)()
    with pytest.raises(AttributeError):
        _ = y.grad_fn._raw_saved_exponent


def test_contexts_of_custom_functions_give_objects_too() -> None:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x, None)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            x, nothing = ctx.saved_tensors
            assert nothing is None
            return 2 * x * grad

    x = leaf()
    y = Square.apply(x)
    first, second = y.grad_fn._raw_saved_tensors
    first.register_hooks(lambda tensor: tensor.tolist(), torch.tensor)
    with pytest.raises(RuntimeError, match="with value None is forbidden"):
        second.register_hooks(lambda tensor: tensor, lambda tensor: tensor)
    y.sum().backward()
    assert torch.equal(x.grad, 2 * x.detach())
    with pytest.raises(RuntimeError, match="after it has been freed"):
        first.register_hooks(lambda tensor: tensor, lambda tensor: tensor)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        _ = y.grad_fn._raw_saved_tensors


def test_save_for_backward_goes_through_hooks() -> None:
    seen = []

    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            result = x.exp()
            ctx.save_for_backward(x, result)
            return result

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            x, result = ctx.saved_tensors
            assert result.grad_fn is not None
            assert x.requires_grad
            return result * grad

    def pack(tensor: torch.Tensor) -> Any:
        seen.append(tensor.grad_fn)
        return tensor.detach().numpy()

    x = leaf()
    with graph.saved_tensors_hooks(pack, torch.from_numpy):
        y = Exp.apply(x)
    assert seen == [None, y.grad_fn]
    (grad,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert torch.allclose(grad, x.exp())
    (second,) = torch.autograd.grad(grad.sum(), x)
    assert torch.allclose(second, x.exp())


def test_save_on_cpu_gives_the_same_gradients() -> None:
    x = leaf()
    with graph.save_on_cpu(pin_memory=False):
        y = (x.exp() * x).sum()
    y.backward()
    assert torch.allclose(x.grad, (x.exp() * (x + 1)).detach())


def test_packed_tensors_of_a_long_chain_are_freed_without_recursion() -> None:
    x = torch.ones(1, requires_grad=True)
    y = x
    with graph.saved_tensors_hooks(lambda tensor: 0, lambda _: torch.ones(1)):
        for _ in range(200_000):
            y = y * y
    del y
    assert x.grad is None


def test_saved_tensors_may_be_written_to_where_that_is_allowed() -> None:
    with graph.allow_mutation_on_saved_tensors():
        x = leaf()
        a = x.clone()
        squares, view = a.pow(2), a[1:].pow(3)
        a.sin_()
        a[0] = 7.0
        torch.exp(torch.zeros(3), out=a.detach())
        (squares.sum() + view.sum()).backward()
        wanted = 2 * x.detach()
        wanted[1:] += 3 * x.detach()[1:] ** 2
        assert torch.allclose(x.grad, wanted)
        y = x.pow(2).sum()
        with (
            pytest.raises(RuntimeError, match="contexts cannot be nested"),
            graph.allow_mutation_on_saved_tensors(),
        ):
            pass
    with pytest.raises(AssertionError, match="Trying to backward outside of the 'allow_mutation"):
        y.backward()
    z = x.clone()
    w = z.pow(2).sum()
    z.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        w.backward()
