"""Functions that are transformed may not write to tensors that they captured."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest

import pullback as torch
from pullback import Tensor
from pullback.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
    vmap,
)

CAPTURED = r"During a grad \(vjp, jvp, grad, etc\) transform.*aten::{}\).*mutate a captured Tensor"

Write = Callable[[Tensor, Tensor], Any]
TRANSFORMS: dict[str, Callable[[Callable[[Tensor], Tensor], Tensor], Any]] = {
    "grad": lambda f, x: grad(f)(x),
    "grad_and_value": lambda f, x: grad_and_value(f)(x),
    "vjp": lambda f, x: vjp(f, x)[0],
    "jvp": lambda f, x: jvp(f, (x,), (x,)),
    "linearize": lambda f, x: linearize(f, x)[0],
    "jacrev": lambda f, x: jacrev(f)(x),
    "jacfwd": lambda f, x: jacfwd(f)(x),
    "hessian": lambda f, x: hessian(f)(x),
    "vmap of grad": lambda f, x: vmap(grad(f))(torch.stack([x, x])),
    "grad of vmap": lambda f, x: grad(lambda xs: vmap(f)(xs).sum())(torch.stack([x, x])),
}
REFUSED: dict[str, tuple[str, Write]] = {
    "mul_.Tensor": ("mul_.Tensor", lambda c, x: c.mul_(x)),
    "a number": ("mul_.Tensor", lambda c, x: c.mul_(2)),
    "copy_": ("copy_", lambda c, x: c.copy_(x)),
    "zero_": ("zero_", lambda c, x: c.zero_()),
    "relu_": ("relu_", lambda c, x: torch.nn.functional.relu(c, inplace=True)),
    "uniform_": ("uniform_", lambda c, x: c.uniform_()),
    "t_": ("t_", lambda c, x: c.t_()),
    "resize_": ("resize_", lambda c, x: c.resize_(2)),
    "a view": ("add_.Tensor", lambda c, x: c[:2].add_(1)),
    "an item": ("copy_", lambda c, x: c.__setitem__(0, x[0])),
    "detached": ("mul_.Tensor", lambda c, x: c.detach().mul_(2)),
    "the data": ("mul_.Tensor", lambda c, x: c.data.mul_(2)),
    "a view of a detached one": ("mul_.Tensor", lambda c, x: c.detach().view(1, 3).mul_(2)),
}
TAKEN: dict[str, Write] = {
    "a new tensor": lambda c, x: torch.zeros(3).add_(x),
    "a tensor of numbers": lambda c, x: torch.tensor([1.0, 2.0, 3.0]).mul_(c),
    "a result": lambda c, x: (x * 2).mul_(c),
    "a result of what was captured": lambda c, x: (c * 2).mul_(3) * x,
    "a copy": lambda c, x: c.clone().mul_(x),
    "a view of a new tensor": lambda c, x: torch.zeros(3).view(1, 3).add_(c)[0] * x,
    "a list of tensors": lambda c, x: torch._foreach_add_([c], 0.0),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("write", REFUSED)
def test_a_write_to_a_captured_tensor_is_refused_and_changes_nothing(
    transform: str, write: str
) -> None:
    captured, x = torch.zeros(3), torch.ones(3)
    name, change = REFUSED[write]

    def function(x: Tensor) -> Tensor:
        change(captured, x)
        return (captured.sum() * x).sum()

    version = captured._version
    with pytest.raises(RuntimeError, match=CAPTURED.format(name.replace(".", r"\."))):
        TRANSFORMS[transform](function, x)
    assert (captured.tolist(), captured.shape, captured._version) == ([0, 0, 0], (3,), version)
    change(captured, x)  # (Outside of all transforms it may be written to.)


@pytest.mark.parametrize("transform", ["grad", "vjp", "jvp", "jacrev", "jacfwd", "hessian"])
@pytest.mark.parametrize("write", TAKEN)
def test_what_a_function_makes_itself_it_may_write_to(transform: str, write: str) -> None:
    captured, x = torch.ones(3), torch.ones(3)

    def function(x: Tensor) -> Tensor:
        made = TAKEN[write](captured, x)
        return (x * x).sum() + (made.sum() if isinstance(made, Tensor) else 0.0)

    TRANSFORMS[transform](function, x)
    assert captured.tolist() == [1, 1, 1]


def test_the_value_of_an_input_may_be_written_to() -> None:
    x = torch.ones(3)
    assert grad(lambda x: (x.detach().mul_(2) * x).sum())(x).tolist() == [2, 2, 2]
    assert x.tolist() == [2, 2, 2]
    value, tangent = jvp(lambda x: x.mul_(3).sum(), (torch.ones(3),), (torch.ones(3),))
    assert (value.item(), tangent.item()) == (9, 9)


def test_what_an_outer_function_made_is_captured_by_an_inner_one() -> None:
    def outer(x: Tensor) -> Tensor:
        made = x * 2

        def inner(z: Tensor) -> Tensor:
            return (made.mul_(2) * z).sum()

        return grad(inner)(x).sum()

    with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
        grad(outer)(torch.ones(3))

    def around(x: Tensor) -> Tensor:
        made = torch.zeros(3)
        inner = grad(lambda z: (z * z).sum())(x)
        return (made.add_(inner) * inner).sum()

    assert grad(around)(torch.ones(3)).tolist() == [8, 8, 8]


def test_what_is_given_to_an_inner_function_is_captured_by_the_outer_one() -> None:
    captured = torch.ones(3)

    def outer(x: Tensor) -> Tensor:
        return grad(lambda z: (z.detach().mul_(2) * z).sum())(captured).sum() * x.sum()

    with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
        grad(outer)(torch.ones(3))
    assert captured.tolist() == [1, 1, 1]


def test_results_of_a_transform_are_captured_by_the_next() -> None:
    slope = grad(lambda x: (x * x).sum())(torch.ones(3))
    with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
        grad(lambda x: (slope.add_(1) * x).sum())(torch.ones(3))
    slope.add_(1)
    assert slope.tolist() == [3, 3, 3]


def test_writes_are_allowed_again_after_a_function_that_failed() -> None:
    captured = torch.zeros(3)

    def fails(x: Tensor) -> Tensor:
        raise KeyError("no")

    for transform in ("grad", "jvp", "jacrev", "jacfwd"):
        with pytest.raises(KeyError):
            TRANSFORMS[transform](fails, torch.ones(3))
        captured.add_(1)
    assert captured.tolist() == [4, 4, 4]


def test_vmap_alone_and_other_threads_write_to_what_they_captured() -> None:
    captured = torch.zeros(3)
    vmap(lambda x: captured.add_(1).sum() + x)(torch.ones(2))
    assert captured.tolist() == [1, 1, 1]

    def function(x: Tensor) -> Tensor:
        thread = Thread(target=lambda: captured.add_(1))
        thread.start()
        thread.join()
        return (captured * x).sum()

    assert grad(function)(torch.ones(3)).tolist() == [2, 2, 2]


def test_buffers_of_a_module_are_captured() -> None:
    norm = torch.nn.BatchNorm1d(3)
    parameters = dict(norm.named_parameters())

    def loss(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        result: Tensor = functional_call(norm, parameters, (x,)).sum()
        return result

    with pytest.raises(RuntimeError, match=CAPTURED.format(r"add_\.Tensor")):
        grad(loss)(parameters, torch.randn(4, 3))
    norm.eval()
    grad(loss)(parameters, torch.randn(4, 3))


def test_other_arguments_are_written_to_and_keep_their_history() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        return y.copy_(x * x)

    x = torch.tensor([1.0, 2.0])
    for transform in (jacrev, jacfwd):
        y = torch.zeros(2)
        assert transform(function)(x, y).tolist() == [[2, 0], [0, 4]]
        assert y.tolist() == [1, 4]
        assert not y.requires_grad
        assert y.grad_fn is None
    y = torch.zeros(2)
    slope = grad(lambda x, out: function(x, out["y"]).sum())(x, out={"y": y})
    assert slope.tolist() == [2, 4]
    assert y.tolist() == [1, 4]
    assert y._version == 1


def test_other_arguments_that_require_grad_are_captured() -> None:
    y = torch.zeros(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=CAPTURED.format("copy_")):
        grad(lambda x, y: y.copy_(x).sum())(torch.ones(2), y)
    outer = grad(lambda y: grad(lambda x, y: (x * y).sum())(torch.ones(2), y).sum())
    assert outer(torch.ones(2)).tolist() == [1, 1]


def test_statistics_of_a_norm_are_written_to_as_arguments() -> None:
    norm = torch.nn.BatchNorm1d(3)
    parameters, buffers = dict(norm.named_parameters()), dict(norm.named_buffers())

    def loss(parameters: dict[str, Tensor], buffers: dict[str, Tensor], x: Tensor) -> Tensor:
        result: Tensor = functional_call(norm, (parameters, buffers), (x,)).sum()
        return result

    grad(loss)(parameters, buffers, torch.randn(4, 3))
    assert norm.num_batches_tracked.item() == 1


def test_captured_examples_are_refused_by_way_of_detach() -> None:
    def example(x: Tensor) -> Tensor:
        other = x * 1

        def function(y: Tensor) -> Tensor:
            other.detach().add_(1)
            return (y * y).sum()

        return grad(function)(x)

    with pytest.raises(RuntimeError, match=CAPTURED.format(r"add_\.Tensor")):
        vmap(example)(torch.ones(2, 3))


def test_data_is_not_replaced_within_transforms() -> None:
    def replaces(x: Tensor) -> Tensor:
        x.data = torch.zeros(2)
        return x.sum()

    x = torch.ones(2)
    for call in (
        lambda: grad(replaces)(x),
        lambda: vjp(replaces, x),
        lambda: jvp(replaces, (x,), (x,)),
    ):
        with pytest.raises(RuntimeError, match=r"directly with `\.data` inside functorch"):
            call()
    with pytest.raises(RuntimeError, match=r"mutating directly with `\.data` under vmap"):
        vmap(replaces)(torch.ones(3, 2))
    assert x.tolist() == [1, 1]

    def fresh(x: Tensor) -> Tensor:
        y = torch.zeros(2)
        y.data = torch.ones(2)
        return (x * y).sum()

    assert grad(fresh)(x).tolist() == [1, 1]
