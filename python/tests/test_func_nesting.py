"""Transforms within transforms, beside loops and formulas."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
from pullback.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap


def spread(*shape: int, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def same(found: Any, expected: Any) -> None:
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert torch.allclose(found, expected, rtol=1e-10, atol=1e-12)


X, W = spread(4, 3), spread(3, seed=1)


def loss(x: Any, w: Any) -> Any:
    return ((x * w).sin().sum()) ** 2


def loss_by_w(x: Any, w: Any) -> Any:
    return 2 * (x * w).sin().sum() * (x * w).cos() * x


def test_a_gradient_for_each_example() -> None:
    expected = torch.stack([loss_by_w(x, W) for x in X])
    same(vmap(grad(loss, argnums=1), in_dims=(0, None))(X, W), expected)
    same(vmap(lambda x: grad(lambda w: loss(x, w))(W))(X), expected)
    repeated = W.expand(4, 3)
    same(vmap(grad(loss, argnums=1))(X, repeated), expected)
    by_x, by_w = vmap(grad(loss, argnums=(0, 1)), in_dims=(0, None))(X, W)
    same(by_w, expected)
    same(by_x, torch.stack([loss_by_w(W, x) for x in X]))


def test_the_gradient_of_a_batch() -> None:
    expected = torch.stack([loss_by_w(x, W) for x in X]).sum(0)
    same(grad(lambda w: vmap(loss, in_dims=(0, None))(X, w).sum())(W), expected)
    same(grad(lambda w: vmap(lambda x: loss(x, w))(X).sum())(W), expected)
    same(grad(lambda x: vmap(loss, in_dims=(0, None))(x, W).sum())(X),
         torch.stack([loss_by_w(W, x) for x in X]))  # fmt: skip


def test_gradients_inside_and_outside_of_a_batch() -> None:
    # sum over examples of |d loss / d x|^2, by w.
    def inner(w: Any) -> Any:
        return (vmap(grad(loss), in_dims=(0, None))(X, w) ** 2).sum()

    def looped(w: Any) -> Any:
        return sum((grad(loss)(x, w) ** 2).sum() for x in X)

    same(grad(inner)(W), grad(looped)(W))
    leaf = W.clone().requires_grad_()
    inner(leaf).backward()
    same(leaf.grad, grad(looped)(W))


def test_a_batch_of_batches_of_gradients() -> None:
    weights = spread(2, 3, seed=2)
    found = vmap(vmap(grad(loss, argnums=1), in_dims=(0, None)), in_dims=(None, 0))(X, weights)
    same(found, torch.stack([torch.stack([loss_by_w(x, w) for x in X]) for w in weights]))
    found = vmap(lambda w: grad(lambda w: vmap(loss, in_dims=(0, None))(X, w).sum())(w))(weights)
    same(found, torch.stack([sum(loss_by_w(x, w) for x in X) for w in weights]))
    # One gradient between two levels, of what only the inner one has.
    found = vmap(lambda x: grad(lambda w: vmap(lambda v: loss(x, w * v))(weights).sum())(W))(X)
    expected = [sum(loss_by_w(x, W * v) * v for v in weights) for x in X]
    same(found, torch.stack(expected))


def test_products_in_a_batch() -> None:
    def function(x: Any) -> Any:
        return (x * W).sin().cumsum(0)

    v = spread(4, 3, seed=3)
    jacobians = torch.stack([torch.autograd.functional.jacobian(function, x) for x in X])
    same(vmap(lambda x, v: jvp(function, (x,), (v,))[1])(X, v), (jacobians @ v[..., None])[..., 0])
    same(vmap(lambda x, v: vjp(function, x)[1](v)[0])(X, v), (v[:, None] @ jacobians)[:, 0])
    same(jvp(vmap(function), (X,), (v,))[1], (jacobians @ v[..., None])[..., 0])
    same(vjp(vmap(function), X)[1](v)[0], (v[:, None] @ jacobians)[:, 0])
    same(vmap(jacrev(function))(X), jacobians)
    same(vmap(jacfwd(function))(X), jacobians)
    # Tangents that are batched where the point is not, and the other way round.
    same(vmap(lambda v: jvp(function, (X[0],), (v,))[1])(v), v @ jacobians[0].mT)
    same(vmap(lambda x: jvp(function, (x,), (v[0],))[1])(X), jacobians @ v[0])
    same(vmap(vjp(function, X[0])[1])(v)[0], v @ jacobians[0])


def test_the_jacobian_of_a_batch_is_block_diagonal() -> None:
    found = jacrev(vmap(lambda x: (x * W).sum()))(X)
    expected = torch.zeros(4, 4, 3, dtype=torch.float64)
    for index in range(4):
        expected[index, index] = W
    same(found, expected)
    same(jacfwd(vmap(lambda x: (x * W).sum()))(X), expected)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_every_order_of_three_transforms(depth: int) -> None:
    """Derivatives of sin in mixed modes, with ``vmap`` anywhere between them."""

    def by_reverse(f: Any) -> Any:
        return lambda x: vjp(f, x)[1](torch.ones_like(x))[0]

    def by_forward(f: Any) -> Any:
        return lambda x: jvp(f, (x,), (torch.ones_like(x),))[1]

    derivatives = [torch.sin, torch.cos, lambda x: -x.sin(), lambda x: -x.cos()]
    words: list[list[Any]] = [[]]
    for _ in range(depth):
        words = [[*word, step] for word in words for step in (by_reverse, by_forward, vmap)]
    x = spread(2, 2, 2, 2)
    for word in words:
        function: Any = torch.sin
        for step in word:
            function = step(function)
        expected = derivatives[sum(step is not vmap for step in word)](x)
        same(function(x), expected)


def test_a_hessian_for_each_example_of_a_network() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1)
    ).double()
    parameters = dict(model.named_parameters())

    def output(x: Any) -> Any:
        return functional_call(model, parameters, x).squeeze()

    found = vmap(hessian(output))(X)
    for x, matrix in zip(X, found, strict=True):
        same(matrix, torch.autograd.functional.hessian(output, x))
    # By the parameters: the Gauss-Newton matrix of an ensemble would start like this.
    rows = vmap(jacrev(lambda p, x: functional_call(model, p, x)), in_dims=(None, 0))(parameters, X)
    assert rows["0.weight"].shape == (4, 1, 5, 3)
    for index, x in enumerate(X):
        model.zero_grad()
        model(x).backward()
        same(rows["0.weight"][index, 0], model[0].weight.grad)


def test_gradients_for_each_example_of_a_network_agree_with_a_loop() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten(0), torch.nn.Linear(8, 3)
    ).double()
    images, labels = spread(5, 1, 4, 4), torch.tensor([0, 2, 1, 1, 0])
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def example_loss(p: Any, image: Any, label: Any) -> Any:
        return torch.nn.functional.cross_entropy(functional_call(model, p, image), label)

    found = vmap(grad(example_loss), in_dims=(None, 0, 0))(parameters, images, labels)
    for index in range(5):
        expected = grad(example_loss)(parameters, images[index], labels[index])
        for name in parameters:
            same(found[name][index], expected[name])


def test_checkpointed_regions_run_in_transforms() -> None:
    from pullback.utils.checkpoint import checkpoint

    def kept(x: Any) -> Any:
        return (x.sin() * x).sum()

    def thrown(x: Any) -> Any:
        return checkpoint(kept, x, use_reentrant=False)

    same(grad(thrown)(X), grad(kept)(X))
    same(vmap(grad(thrown))(X), grad(kept)(X))
    same(grad(lambda x: vmap(thrown)(x).sum())(X), grad(kept)(X))
    same(vmap(hessian(thrown))(X), vmap(hessian(kept))(X))


def test_derivatives_of_parts_of_a_batch_are_batched_themselves() -> None:
    # Each part's gradient is written into zeros; the second derivative goes through that write.
    weights, start = spread(4, 3), torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    x = spread(3, seed=2).requires_grad_()
    results = vmap(lambda w: w * x)(weights)
    loss = (results[0] ** 2).sum() + (results[1] ** 2).sum() + (results[2] * results[3]).sum()
    (slope,) = torch.autograd.grad(loss, x, start, create_graph=True)
    rows = torch.eye(3, dtype=torch.float64)
    (at_once,) = torch.autograd.grad(slope, x, rows, retain_graph=True, is_grads_batched=True)
    for row, found in zip(rows, at_once, strict=True):
        same(found, torch.autograd.grad(slope, x, row, retain_graph=True)[0])
