"""How gradients get into ``.grad``: taken over, copied or added, in which layout and history."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import pytest

import pullback as torch
from pullback import _C
from pullback.autograd import Function


def leaf(*values: float) -> Any:
    return torch.tensor([float(v) for v in values or (1, 2)], requires_grad=True)


def giving(make: Any) -> Any:
    """A function whose backward gives what ``make(grad)`` does."""

    class Gives(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return make(grad)

    return Gives.apply


def test_a_gradient_that_nobody_else_has_is_taken_over() -> None:
    places: list[int] = []

    def make(grad: Any) -> Any:
        new = grad * 2
        places.append(new.data_ptr())
        return new

    x = leaf()
    y = giving(make)(x)
    # A hook on the node that accumulates sees the gradient too, and does not keep it.
    y.grad_fn.next_functions[0][0].register_hook(lambda given, taken: None)
    x.register_hook(lambda grad: None)
    y.sum().backward()
    assert x.grad.data_ptr() == places[0]


def test_a_gradient_that_the_user_holds_is_copied() -> None:
    held: list[Any] = []

    def make(grad: Any) -> Any:
        held.append(grad * 2)
        return held[0]

    x, given = leaf(), torch.ones(4)
    giving(make)(x).sum().backward()
    x.grad.zero_()
    assert held[0].tolist() == [2, 2]
    y, z = leaf(), leaf()
    (y + z).backward(given[:2])
    y.grad.zero_()
    z.grad.fill_(5)
    assert given.tolist() == [1, 1, 1, 1]
    assert y.grad.tolist() == [0, 0]


@pytest.mark.parametrize("kind", ["plain", "transposed", "expanded"])
@pytest.mark.parametrize(
    ("size", "stride", "expected"),
    [
        ((2, 3), (3, 1), (3, 1)),
        ((2, 3), (1, 2), (1, 2)),
        ((4, 2, 3), (1, 12, 4), (1, 12, 4)),
        ((2, 2), (4, 1), (2, 1)),  # Not dense: row-major.
    ],
)
def test_a_gradient_lies_as_its_leaf_does(size: Any, stride: Any, expected: Any, kind: str) -> None:
    x = torch.empty_strided(size, stride).fill_(1).requires_grad_()

    def make(grad: Any) -> Any:
        if kind == "plain":
            return torch.ones(size)
        if kind == "transposed":
            return torch.ones(size[::-1]).permute(*reversed(range(len(size))))
        return torch.ones(()).expand(size)

    giving(make)(x).sum().backward()
    assert x.grad.stride() == expected
    assert x.grad.eq(1).all()


def test_a_second_gradient_is_added_in_place() -> None:
    x = leaf()
    (x * 1).sum().backward()
    first = x.grad
    version = first._version
    (x * 2).sum().backward()
    assert x.grad is first
    assert first._version == version + 1
    assert first.tolist() == [3, 3]


def test_a_graph_that_needs_the_old_gradient_notices_the_addition() -> None:
    x = leaf()
    x.grad = torch.ones(2)
    y = x.grad * leaf()
    (x * 1).sum().backward()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.filterwarnings("ignore:Using backward")
def test_a_recorded_backward_makes_new_gradients_with_history() -> None:
    x = leaf()
    (x * 1).sum().backward()
    first = x.grad
    (x * x).sum().backward(create_graph=True)
    assert x.grad is not first
    assert first.tolist() == [1, 1]
    assert x.grad.grad_fn.name() == "AddBackward0"
    y = leaf()
    (y * y).sum().backward(create_graph=True)
    assert y.grad.grad_fn.name() == "torch::autograd::CopyBackwards"


def test_undefined_gradients_change_nothing() -> None:
    x, seen = leaf(), []
    nothing = giving(lambda grad: None)
    nothing(x).sum().backward()
    assert x.grad is None
    x.grad = torch.ones(2)
    x.register_post_accumulate_grad_hook(seen.append)
    nothing(x).sum().backward()
    assert x.grad.tolist() == [1, 1]
    assert seen == []


def test_a_leaf_that_no_longer_requires_grad_gets_none() -> None:
    x = leaf()
    y = (x * 2).sum()
    x.requires_grad_(False)
    y.backward()
    assert x.grad is None


def test_a_leaf_that_became_interior_is_refused() -> None:
    x = leaf()
    y = (x * 2).sum()
    x.requires_grad_(False)
    x.mul_(leaf(5, 6))
    with pytest.raises(RuntimeError, match="leaf variable has been moved into the graph interior"):
        y.backward()


def test_hooks_after_accumulation_see_the_sum_and_may_replace_it() -> None:
    x, seen = leaf(), []

    def take(parameter: Any) -> None:
        seen.append((parameter is x, parameter.grad.tolist()))
        parameter.grad = None

    x.register_post_accumulate_grad_hook(take)
    (x * 3).sum().backward()
    (x * 4).sum().backward()
    assert seen == [(True, [3, 3]), (True, [4, 4])]
    assert x.grad is None


def test_a_hook_after_accumulation_gives_nothing_or_its_argument() -> None:
    x = leaf()
    x.register_post_accumulate_grad_hook(lambda parameter: parameter)
    x.sum().backward()
    y = leaf()
    y.register_post_accumulate_grad_hook(lambda parameter: 1)
    with pytest.raises(RuntimeError, match=r"hooks should return None\."):
        y.sum().backward()
    assert y.grad.tolist() == [1, 1]


def test_all_hooks_of_a_leaf_run_in_their_order() -> None:
    x, seen = leaf(), []
    x.register_post_accumulate_grad_hook(lambda parameter: seen.append("first after"))
    x.register_post_accumulate_grad_hook(lambda parameter: seen.append("second after"))
    x.register_hook(lambda grad: seen.append("tensor"))
    y = x * 2
    node = y.grad_fn.next_functions[0][0]
    node.register_hook(lambda given, taken: seen.append(("node after", given, len(taken))))
    node.register_prehook(lambda taken: seen.append("node before"))
    y.sum().backward()
    after = ["first after", "second after", ("node after", (), 1)]
    assert seen == ["tensor", "node before", *after]


LAYOUT = """
import warnings
import pullback as torch

x = torch.rand(2, 3, requires_grad=True)
x.grad = torch.zeros(3, 2).t()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        (x * 1).sum().backward()
print(x.grad.stride(), [str(w.message)[:60] for w in caught])
"""


def test_a_gradient_that_was_put_there_in_another_layout_warns_once() -> None:
    run = [sys.executable, "-c", LAYOUT]
    said = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert said.startswith("(1, 2) ['grad and param do not obey the gradient layout contract")
    assert said.count("contract") == 1


def test_a_gradient_in_the_layout_of_its_leaf_does_not_warn() -> None:
    x = torch.rand(3, 2).t().requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            (x * 1).sum().backward()
    assert x.grad.stride() == x.stride() == (1, 2)


def test_the_same_leaf_as_root_twice_gets_the_sum() -> None:
    x, given = leaf(), torch.ones(2)
    torch.autograd.backward([x, x], [given, given])
    assert x.grad.tolist() == [2, 2]
    assert given.tolist() == [1, 1]


def test_outside_of_backward_no_task_is_named() -> None:
    assert _C._current_graph_task_id() == -1
    assert _C._current_autograd_node() is None


def test_the_layout_of_gradients_can_be_left_to_what_computes_them() -> None:
    assert torch._C._is_grad_layout_enforcement_enabled()
    incoming = torch.ones(3, 2).t()
    x = torch.ones(2, 3, requires_grad=True)
    with torch.autograd.enforce_grad_layout_policy(False):
        assert not torch._C._is_grad_layout_enforcement_enabled()
        (x * 1).backward(incoming)
    assert torch._C._is_grad_layout_enforcement_enabled()
    assert x.grad is not None
    assert x.grad.stride() == (1, 2)
    x.grad = None
    (x * 1).backward(incoming)
    assert x.grad.stride() == (3, 1)

    @torch.autograd.grad_mode.enforce_grad_layout_policy(enable=False)
    def inside() -> bool:
        return torch._C._is_grad_layout_enforcement_enabled()

    assert torch._C._is_grad_layout_enforcement_enabled()
    assert not inside()
    assert torch._C._is_grad_layout_enforcement_enabled()
    assert not torch.autograd.enforce_grad_layout_policy(False).clone().mode
    torch.autograd.enforce_grad_layout_policy(True)


def test_gradients_of_another_layout_raise_no_warning_where_none_is_asked_for() -> None:
    program = """
import warnings
import pullback as torch

x = torch.ones(2, 3, requires_grad=True)
free = torch.autograd.enforce_grad_layout_policy(False)
with warnings.catch_warnings(record=True) as given, free:
    warnings.simplefilter("always")
    for _ in range(2):
        (x * 1).backward(torch.ones(3, 2).t())
print(len(given), x.grad.stride(), x.grad.tolist() == [[2.0] * 3] * 2)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "0 (1, 2) True\n"
