"""Custom functions in transforms: with a rule for batches, without one, in both modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback.autograd import Function
from pullback.func import grad, jacfwd, jacrev, jvp, vjp, vmap


def numbers(*values: Any) -> Any:
    return torch.tensor(values, dtype=torch.float64)


def diagonal(values: Any) -> Any:
    """The matrix with these numbers on its diagonal."""
    return torch.eye(len(values), dtype=values.dtype) * values


def same(found: Any, expected: Any) -> None:
    assert found.shape == expected.shape
    assert torch.allclose(found, expected, rtol=1e-12, atol=1e-12)


class Old(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2


class Scale(Function):
    """``x y k`` and ``x + y``; its ops compute batches by themselves."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any, y: Any, k: float) -> Any:
        return x * y * k, x + y

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, y, ctx.k = inputs
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)

    @staticmethod
    def backward(ctx: Any, by_product: Any, by_sum: Any) -> Any:
        x, y = ctx.saved_tensors
        return by_product * y * ctx.k + by_sum, by_product * x * ctx.k + by_sum, None

    @staticmethod
    def jvp(ctx: Any, dx: Any, dy: Any, dk: Any) -> Any:
        x, y = ctx.saved_for_forward
        return dx * y * ctx.k + dy * x * ctx.k, dx + dy


class Cube(Function):
    """``x^3`` by NumPy, which sees no batches: its ``vmap`` passes the whole batch on."""

    seen: list[Any] = []  # noqa: RUF012

    @staticmethod
    def forward(x: Any) -> Any:
        return torch.from_numpy(np.power(x.detach().numpy(), 3))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        Cube.seen.append((info.batch_size, info.randomness, in_dims, tuple(x.shape)))
        return Cube.apply(x), in_dims[0]


class Opaque(Cube):
    """As that, but what its ``vmap`` does cannot be differentiated."""

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        return torch.from_numpy(np.power(x.detach().numpy(), 3)), in_dims[0]


class Plain(Function):
    """Without a rule."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2


X, Y = numbers([1.0, 2.0], [3.0, 4.0], [5.0, 6.0]), numbers(0.5, -1.0)


def test_without_batches_transforms_use_the_functions_derivative() -> None:
    same(grad(lambda x: Plain.apply(x).sum())(X), torch.full_like(X, 2.0))
    same(grad(lambda x: Cube.apply(x).sum())(X), 3 * X**2)
    same(grad(lambda x: grad(lambda x: Cube.apply(x).sum())(x).sum())(X), 6 * X)
    value, product = jvp(lambda x: Scale.apply(x, X, 2.0), (X,), (X,))
    same(value[0], 2 * X * X)
    same(product[0], 2 * X * X)


def test_a_generated_rule_runs_the_function_on_batches() -> None:
    product, total = vmap(lambda x: Scale.apply(x, Y, 2.0))(X)
    same(product, 2 * X * Y)
    same(total, X + Y)
    same(vmap(vmap(lambda x: Scale.apply(x, x, 2.0)[0]))(X), 2 * X * X)


def test_a_generated_rule_is_differentiated_in_every_order() -> None:
    def value(x: Any, y: Any) -> Any:
        return Scale.apply(x, y, 2.0)[0].sum()

    same(vmap(grad(value), in_dims=(0, None))(X, Y), (2 * Y).expand(3, 2))
    same(vmap(grad(value, argnums=1), in_dims=(0, None))(X, Y), 2 * X)
    same(grad(lambda y: vmap(value, in_dims=(0, None))(X, y).sum())(Y), 2 * X.sum(0))
    same(grad(lambda x: vmap(value, in_dims=(0, None))(x, Y).sum())(X), (2 * Y).expand(3, 2))
    product = jvp(lambda y: vmap(value, in_dims=(0, None))(X, y), (Y,), (Y,))[1]
    same(product, (2 * X * Y).sum(1))
    product = vmap(lambda x: jvp(lambda y: value(x, y), (Y,), (Y,))[1])(X)
    same(product, (2 * X * Y).sum(1))
    for jac in (jacrev, jacfwd):
        same(jac(lambda y: Scale.apply(X[0], y, 2.0)[0])(Y), diagonal(2 * X[0]))


def test_the_functions_own_rule_gets_whole_batches() -> None:
    Cube.seen.clear()
    same(vmap(Cube.apply)(X), X**3)
    assert Cube.seen == [(3, "error", (0,), (3, 2))]
    same(vmap(Cube.apply, in_dims=1, out_dims=1, randomness="same")(X), X**3)
    assert Cube.seen[1][:2] == (2, "same")
    same(vmap(vmap(Cube.apply))(X), X**3)


def test_the_own_rule_is_differentiated_in_every_order() -> None:
    same(grad(lambda x: vmap(Cube.apply)(x).sum())(X), 3 * X**2)
    same(vmap(grad(lambda x: Cube.apply(x).sum()))(X), 3 * X**2)
    same(vmap(vmap(grad(Cube.apply)))(X), 3 * X**2)
    same(vmap(grad(lambda x: vmap(Cube.apply)(x).sum()))(X), 3 * X**2)
    same(grad(lambda x: vmap(vmap(Cube.apply))(x).sum())(X), 3 * X**2)
    same(vmap(grad(grad(Cube.apply)))(X[0]), 6 * X[0])
    same(vmap(jacrev(Cube.apply))(X), torch.stack([diagonal(3 * x**2) for x in X]))
    same(vmap(lambda x: vjp(Cube.apply, x)[1](Y)[0])(X), 3 * X**2 * Y)
    leaf = X.clone().requires_grad_()
    vmap(Cube.apply)(leaf).sum().backward()
    same(leaf.grad, 3 * X**2)


def test_inside_of_the_level_the_functions_derivative_counts_not_the_rules() -> None:
    same(vmap(Opaque.apply)(X), X**3)
    same(vmap(grad(lambda x: Opaque.apply(x).sum()))(X), 3 * X**2)


def rule(result: Any, count: int = 1) -> Any:
    class Made(Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 2 if count == 1 else (x * 2,) * count

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any) -> Any:
            return result(x)

    return Made


def test_a_rule_says_where_the_batch_is_in_each_output() -> None:
    same(vmap(rule(lambda x: (x.mT * 2, 1)).apply)(X), X * 2)
    same(vmap(rule(lambda x: (x[0] * 2, None)).apply)(X), (X[0] * 2).expand(3, 2))
    first, second = vmap(rule(lambda x: ((x, x.mT), (0, 1)), 2).apply)(X)
    same(first, X)
    same(second, X)
    first, second = vmap(rule(lambda x: ((x, x), 0), 2).apply)(X)
    same(second, X)


def test_wrong_results_of_a_rule_are_named() -> None:
    two = "Expected the vmap staticmethod to have two returns"
    for function, message in (
        (rule(lambda x: x), f"{two}.* Got a <class .*Tensor'> instead"),
        (rule(lambda x: (x, 0, 0)), f"{two}.* Got 3 returns instead"),
        (rule(lambda x: (x, (0,))), r"incompatible \(output, out_dims\) tuple. Expected out_dims="),
        (rule(lambda x: ((x, x), (0, 0, 0)), 2), r"incompatible \(output, out_dims\) tuple"),
    ):
        with pytest.raises(RuntimeError, match=message):
            vmap(function.apply)(X)


def test_functions_that_transforms_cannot_work_with_are_refused() -> None:
    with pytest.raises(RuntimeError, match="You tried to vmap over Plain, but it does not have vm"):
        vmap(Plain.apply)(X)

    class Both(Cube):
        generate_vmap_rule = True

    with pytest.raises(RuntimeError, match="You tried to vmap over Both, but it has both generate"):
        vmap(Both.apply)(X)
    with pytest.raises(RuntimeError, match="it must override the setup_context staticmethod"):
        vmap(Old.apply)(X)


@pytest.mark.parametrize(
    "call",
    [
        lambda: grad(lambda x: Old.apply(x).sum())(X),
        lambda: jvp(Old.apply, (X,), (X,)),
        lambda: vmap(lambda y: Old.apply(X) + y)(Y),
    ],
)
def test_a_forward_with_ctx_is_refused_within_every_transform(call: Any) -> None:
    with pytest.raises(RuntimeError, match="it must override the setup_context staticmethod"):
        call()


def test_batched_gradients_reach_any_backward() -> None:
    x = Y.clone().requires_grad_()
    rows = torch.eye(2, dtype=torch.float64)
    (found,) = torch.autograd.grad(Old.apply(Old.apply(x)), x, rows, is_grads_batched=True)
    same(found, 4 * rows)

    class Inside(Old):
        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return Old.apply(grad)

    (found,) = torch.autograd.grad(Inside.apply(x), x, rows, is_grads_batched=True)
    same(found, 2 * rows)
