"""Hooks: who runs when, what they may give, where they are after writes in place."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any, ClassVar

import pytest

import pullback as torch
from pullback import _C
from pullback.autograd import Function
from pullback.utils.hooks import unserializable_hook


def leaf(*values: float) -> Any:
    return torch.tensor([float(v) for v in values or (1, 2)], requires_grad=True)


def test_the_hooks_of_one_node_run_in_a_fixed_order() -> None:
    x, seen = leaf(), []
    y = x * 2
    node = y.grad_fn

    def says(name: str, change: Any = None) -> Any:
        def hook(*grads: Any) -> Any:
            first = grads[0][0] if isinstance(grads[0], tuple) else grads[0]
            seen.append((name, first.tolist()[0]))
            return None if change is None else change(first)

        return hook

    y.retain_grad()
    node.register_hook(says("after"))
    node.register_prehook(says("before", lambda grad: (grad + 1,)))
    y.register_hook(says("tensor", lambda grad: grad * 2))
    y.register_hook(says("tensor again"))
    y.sum().backward()
    assert seen == [("tensor", 1), ("tensor again", 2), ("before", 2), ("after", 6)]
    # Retained after all hooks of the tensor, before those of the node.
    assert y.grad.tolist() == [2, 2]
    assert x.grad.tolist() == [6, 6]


def test_a_retained_gradient_is_that_between_tensor_and_node_hooks() -> None:
    a = leaf()
    b = a.clone()
    b.register_hook(lambda grad: grad * 3)
    for _ in range(2):
        b.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
    b.sum().backward(inputs=[b])
    assert b.grad.tolist() == [3, 3]


class Registers(Function):
    """Registers a hook on its node while that runs."""

    seen: ClassVar[list[Any]] = []

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        ctx.register_hook(
            lambda given, taken: Registers.seen.append((given[0].tolist(), len(taken)))
        )
        return grad * 2


def test_a_hook_registered_while_its_node_runs_sees_what_that_gives_only() -> None:
    Registers.seen = seen = []
    Registers.apply(leaf()).sum().backward()
    assert seen == [([2, 2], 0)]


def test_a_hook_registered_while_its_node_runs_sees_all_if_there_was_another() -> None:
    Registers.seen = seen = []
    y = Registers.apply(leaf())
    y.grad_fn.register_hook(lambda given, taken: seen.append(len(taken)))
    y.sum().backward()
    assert seen == [1, ([2, 2], 1)]


def test_a_hook_registered_by_a_hook_on_a_saved_tensor_runs() -> None:
    x, seen = leaf(), []

    def unpack(tensor: Any) -> Any:
        node = _C._current_autograd_node()
        node.register_hook(lambda given, taken: seen.append((len(given), taken)))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        y = x.exp()
    y.sum().backward()
    assert seen == [(1, ())]


@pytest.mark.parametrize("first", ["tensor", "before"])
def test_a_hook_registered_before_its_node_runs_sees_all(first: str) -> None:
    x, seen = leaf(), []
    y = x * 3
    node = y.grad_fn

    def register(_: Any) -> None:
        node.register_hook(lambda given, taken: seen.append((given[0].tolist(), taken[0].tolist())))

    (y.register_hook if first == "tensor" else node.register_prehook)(register)
    y.sum().backward()
    assert seen == [([3, 3], [1, 1])]


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (1, TypeError, "expected Variable, but hook returned 'int'"),
        (torch.ones(3), RuntimeError, "hook 'given' has changed the size of value"),
        (torch.ones(1, 2), RuntimeError, "hook 'given' has changed the size of value"),
        (torch.ones(2, dtype=torch.float64), RuntimeError, "has changed the type of value"),
    ],
)
def test_a_tensor_hook_gives_a_gradient_of_the_same_kind(
    value: Any, kind: type[Exception], message: str
) -> None:
    x = leaf()

    def given(grad: Any) -> Any:
        return value

    x.register_hook(given)
    with pytest.raises(kind, match=message):
        x.sum().backward()
    assert x.grad is None


def test_a_hook_without_name_is_called_unknown() -> None:
    class Hook:
        def __call__(self, grad: Any) -> Any:
            return torch.ones(3)

    x = leaf()
    x.register_hook(Hook())
    with pytest.raises(RuntimeError, match="hook '<unknown>' has changed the size"):
        x.sum().backward()


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (1, TypeError, "expected tuple, but hook returned 'int'"),
        (torch.ones(2), TypeError, "expected tuple, but hook returned 'Tensor'"),
        ([torch.ones(2)], TypeError, "expected tuple, but hook returned 'list'"),
        ((), RuntimeError, "hook 'given' has returned an incorrect number of values"),
        ((torch.ones(2),) * 3, RuntimeError, "has returned an incorrect number of values"),
        ((1, None), TypeError, "expected Variable, but hook returned 'int'"),
        ((torch.ones(3), None), RuntimeError, "has changed the size of value"),
        ((torch.ones(2), torch.ones(2)), RuntimeError, "can't replace a None gradient with a non-"),
    ],
)
def test_a_node_hook_gives_a_tuple_of_gradients(
    value: Any, kind: type[Exception], message: str
) -> None:
    x = leaf()
    y = x * 2

    def given(*grads: Any) -> Any:
        return value

    y.grad_fn.register_hook(given)
    with pytest.raises(kind, match=message):
        y.sum().backward()
    assert x.grad is None
    z = leaf() * 2
    z.grad_fn.register_prehook(lambda grads: value)
    with pytest.raises((TypeError, RuntimeError), match="hook"):
        z.sum().backward()


def test_a_node_hook_may_take_a_gradient_away() -> None:
    x = leaf()
    y = x * 2
    y.grad_fn.register_hook(lambda given, taken: (None, None))
    y.sum().backward()
    assert x.grad is None


def test_handles_have_numbers_and_remove_once() -> None:
    x, seen = leaf(), []
    first = x.register_hook(lambda grad: seen.append(1))
    with x.register_hook(lambda grad: seen.append(2)) as second:
        assert second.id == first.id + 1
        x.sum().backward()
    first.remove()
    first.remove()
    x.sum().backward()
    assert seen == [1, 2]


def test_hooks_that_remove_hooks_let_this_run_finish() -> None:
    x, seen, handles = leaf(), [], []

    def removes(grad: Any) -> None:
        seen.append("removes")
        for handle in handles:
            handle.remove()

    handles.append(x.register_hook(removes))
    handles.append(x.register_hook(lambda grad: seen.append("other")))
    x.sum().backward()
    x.sum().backward()
    assert seen == ["removes", "other"]


def test_after_a_write_old_hooks_see_the_old_value() -> None:
    x, seen = leaf(), []
    y = x * 2
    handle = y.register_hook(lambda grad: seen.append(("old", grad.tolist())))
    y.mul_(3)
    assert y._backward_hooks is None
    y.register_hook(lambda grad: seen.append(("new", grad.tolist())))
    y.sum().backward(retain_graph=True)
    assert seen == [("new", [1, 1]), ("old", [3, 3])]
    handle.remove()
    y.sum().backward()
    assert len(seen) == 3


def test_a_retained_gradient_is_that_of_the_last_value() -> None:
    y = leaf() * 2
    y.retain_grad()
    y.mul_(3)
    y.mul_(5)
    y.sum().backward()
    assert y.grad.tolist() == [1, 1]


def test_a_stale_view_has_no_hooks_and_its_base_new_ones() -> None:
    x, seen = leaf(), []
    base = x * 2
    view = base[:1]
    view.register_hook(lambda grad: seen.append("stale"))
    base.mul_(2)
    view.sum().backward(retain_graph=True)
    assert seen == []
    view.mul_(2)
    view.register_hook(lambda grad: seen.append("view"))
    base.register_hook(lambda grad: seen.append("base"))
    base.sum().backward()
    assert seen == ["base"]


def test_pickles_and_copies_warn_of_each_hook_that_they_leave_out() -> None:
    x = leaf()
    x.register_hook(print)
    for make in (pickle.dumps, copy.copy):
        with pytest.warns(UserWarning, match=r"backward hook .* on tensor will not be serialized"):
            make(x)


def test_hooks_may_be_marked_as_left_out() -> None:
    @unserializable_hook
    def hook(grad: Any) -> None:
        pass

    x = leaf()
    x.register_hook(hook)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pickle.loads(pickle.dumps(x))._backward_hooks is None


def test_the_explanation_of_an_error_does_not_replace_it(capfd: Any) -> None:
    class Fails(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            raise RuntimeError("the error itself")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly():
            y = Fails.apply(leaf()).sum()
            warnings.simplefilter("error")
            with pytest.raises(RuntimeError, match="the error itself"):
                y.backward()
    assert "Error detected in FailsBackward" in capfd.readouterr().err
