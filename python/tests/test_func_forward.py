"""``jvp`` and ``linearize``: values, structures, levels within levels, what they refuse."""

from __future__ import annotations

import math
import threading
from typing import Any

import pytest

import pullback as torch
from pullback import Tensor
from pullback.func import functionalize, grad, jacfwd, jvp, linearize, vjp, vmap


def numbers(*values: Any, requires_grad: bool = False) -> Any:
    return torch.tensor(values, dtype=torch.float64, requires_grad=requires_grad)


def diagonal(values: Any) -> Any:
    """The matrix with these numbers on its diagonal."""
    return torch.eye(len(values), dtype=values.dtype) * values


def same(found: Any, expected: Any) -> None:
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert torch.allclose(found, expected, rtol=1e-12, atol=1e-12)


X, Y = numbers(1.0, 2.0), numbers(3.0, 5.0)


def test_jvp_multiplies_the_jacobian_with_a_vector() -> None:
    value, product = jvp(lambda x, y: {"p": x * y, "s": [x.sum()]}, (X, Y), (Y, X))
    same(value["p"], X * Y)
    same(product["p"], Y * Y + X * X)
    same(product["s"][0], Y.sum())
    value, product, aux = jvp(lambda x: (x**2, x + 1), (X,), (Y,), has_aux=True)
    same(product, 2 * X * Y)
    same(aux, X + 1)


def test_what_does_not_depend_on_inputs_has_tangents_of_zeros() -> None:
    _value, product = jvp(lambda x: (torch.ones(2), x.argmax()), (X,), (Y,))
    same(product[0], torch.zeros(2))
    same(product[1], torch.tensor(0))
    message = "The output of f is independent of the inputs. This is not allowed with strict=True"
    with pytest.raises(RuntimeError, match=message):
        jvp(lambda x: torch.ones(2), (X,), (Y,), strict=True)


def test_levels_of_forward_mode_nest() -> None:
    def once(function: Any) -> Any:
        return lambda x: jvp(function, (x,), (torch.ones_like(x),))[1]

    same(once(torch.sin)(X), X.cos())
    same(once(once(torch.sin))(X), -X.sin())
    same(once(once(once(torch.sin)))(X), -X.cos())
    # d/dx (x * d/dy (x + y)) = 1: perturbations are not confused.
    found = jvp(
        lambda x: x * jvp(lambda y: x + y, (torch.ones_like(x),), (torch.ones_like(x),))[1],
        (X,),
        (torch.ones_like(X),),
    )[1]
    same(found, torch.ones_like(X))


def test_a_level_of_forward_ad_may_be_open() -> None:
    from pullback.autograd import forward_ad

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(X, torch.ones_like(X))
        value, product = jvp(torch.sin, (dual,), (torch.ones_like(X),))
        same(forward_ad.unpack_dual(value).tangent, X.cos())
        same(forward_ad.unpack_dual(product).tangent, -X.sin())
    with forward_ad._set_fwd_grad_enabled(False):
        same(jvp(torch.sin, (X,), (Y,))[1], X.cos() * Y)


def test_modes_nest_in_both_orders() -> None:
    def cube(x: Any) -> Any:
        return (x**3).sum()

    forward_over_reverse = jvp(grad(cube), (X,), (Y,))[1]
    same(forward_over_reverse, 6 * X * Y)
    reverse_over_forward = grad(lambda x: jvp(cube, (x,), (Y,))[1])(X)
    same(reverse_over_forward, 6 * X * Y)
    out, pull = vjp(lambda x: jvp(lambda x: x**3, (x,), (Y,))[1], X)
    same(out, 3 * X**2 * Y)
    same(pull(Y)[0], 6 * X * Y * Y)
    with torch.no_grad():
        same(jvp(grad(cube), (X,), (Y,))[1], 6 * X * Y)
        same(grad(lambda x: jvp(cube, (x,), (Y,))[1])(X), 6 * X * Y)
        # The value and what comes beside it keep their tangents too.
        value = jvp(lambda x: torch.func.grad_and_value(cube)(x)[1], (X,), (Y,))[1]
        same(value, (3 * X**2 * Y).sum())


def test_histories_go_through_tangents() -> None:
    x = X.clone().requires_grad_()
    value, product = jvp(lambda x: x**3, (x,), (Y,))
    same(torch.autograd.grad(product.sum(), x)[0], 6 * X * Y)
    assert value.requires_grad


def test_wrong_arguments_of_jvp_are_named() -> None:
    for primals in (X, [X]):
        with pytest.raises(RuntimeError, match="Expected primals to be a tuple"):
            jvp(torch.sin, primals, (X,))
    for tangents in ((X, X), X):
        with pytest.raises(RuntimeError, match="tangents to have the same python structure"):
            jvp(torch.sin, (X,), tangents)
    with pytest.raises(RuntimeError, match="Expected primals to contain at least one Tensor"):
        jvp(torch.sin, (), ())
    with pytest.raises(RuntimeError, match="Expected primals to only contain Tensors, got <class"):
        jvp(torch.sin, (1.0,), (1.0,))
    with pytest.raises(RuntimeError, match="Expected tangents to only contain Tensors, got <clas"):
        jvp(torch.sin, (X,), (1.0,))
    with pytest.raises(RuntimeError, match="different size"):
        jvp(torch.sin, (X,), (X[:1],))
    with pytest.raises(ValueError, match="Expected primal to be floating point or complex"):
        jvp(torch.sin, (torch.ones(2, dtype=torch.int64),), (torch.ones(2),))


def test_wrong_outputs_of_jvp_are_named() -> None:
    for function in (lambda x: 3, lambda x: (x, 3)):
        with pytest.raises(RuntimeError, match=r"expected f\(\*primals\) to return only tensors"):
            jvp(function, (X,), (X,))
    with pytest.raises(RuntimeError, match="Expected f to be a function that has non-empty output"):
        jvp(lambda x: (), (X,), (X,))
    with pytest.raises(
        RuntimeError, match=r"should be a tuple: \(output, aux\) if has_aux is True"
    ):
        jvp(lambda x: x, (X,), (X,), has_aux=True)


# linearize.


def test_linearize_gives_products_without_running_the_function_again() -> None:
    calls = []

    def function(x: Any, y: Any) -> Any:
        calls.append(1)
        return {"p": x.sin() * y, "s": (y.sum(), 3, x.argmax())}

    value, push = linearize(function, X, Y)
    same(value["p"], X.sin() * Y)
    assert value["s"][1] == 3
    for factor in (1.0, 2.0):
        product = push(factor * Y, X)
        same(product["p"], X.cos() * Y * factor * Y + X.sin() * X)
        same(product["s"][0], X.sum())
        assert product["s"][1] == 3
    assert calls == [1]
    assert not value["p"].requires_grad
    assert not product["p"].requires_grad


def test_linearize_agrees_with_jvp_at_complex_points() -> None:
    z = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128)
    v = torch.tensor([1j, 2 + 1j], dtype=torch.complex128)
    for function in (lambda z: z**3, lambda z: z.conj() * z.abs()):
        same(linearize(function, z)[1](v), jvp(function, (z,), (v,))[1])


def test_linearize_nests() -> None:
    def product(x: Any) -> Any:
        return linearize(lambda x: x**3, x)[1](Y)

    same(grad(lambda x: product(x).sum())(X), 6 * X * Y)
    same(jvp(product, (X,), (Y,))[1], 6 * X * Y * Y)
    x = X.clone().requires_grad_()
    same(torch.autograd.grad(product(x).sum(), x)[0], 6 * X * Y)
    rows = torch.eye(2, dtype=torch.float64)
    same(torch.vmap(linearize(lambda x: x**3, X)[1])(rows), diagonal(3 * X**2))
    with torch.no_grad():
        found = product(x)
    same(found, 3 * X**2 * Y)
    assert not found.requires_grad


def test_wrong_tangents_of_linearize_are_named() -> None:
    push = linearize(torch.sin, X)[1]
    for tangents, message in (
        ((X, X), "to have the same argspec as the primals"),
        ((X[:1],), r"tangent:0 with shape torch.Size\(\[1\]\) in flattened pytree doesn't match"),
        ((X.float(),), "tangent:0 with dtype torch.float32 in flattened pytree doesn't match"),
    ):
        with pytest.raises(RuntimeError, match=message):
            push(*tangents)


# functionalize.


def test_functionalize_runs_the_function() -> None:
    x = numbers(1.0, 2.0)
    found = functionalize(lambda x: [x.add_(1), None, 3])(x)
    same(found[0], numbers(2.0, 3.0))
    same(x, numbers(2.0, 3.0))
    assert found[1:] == [None, 3]
    same(grad(functionalize(lambda x: (x * 2).mul_(x).sum()))(X), 4 * X)


def test_functionalize_without_views_copies_them() -> None:
    x = numbers(1.0, 2.0)
    for remove, is_view in (("mutations", True), ("mutations_and_views", False)):
        view = functionalize(lambda x: x.view(2, 1), remove=remove)(x)
        assert (view.data_ptr() == x.data_ptr()) is is_view
        assert functionalize(lambda x: x, remove=remove)(x) is x
    with pytest.raises(RuntimeError, match="received invalid argument for remove=x"):
        functionalize(torch.sin, remove="x")


def test_threads_have_levels_of_their_own() -> None:
    wrong: list[BaseException] = []
    barrier = threading.Barrier(4)

    def work() -> None:
        x = torch.linspace(0.1, 1.0, 5, dtype=torch.float64)
        try:
            barrier.wait()
            for _ in range(100):
                found = jacfwd(lambda x: jacfwd(lambda x: (x**3).sum())(x))(x)
                assert torch.allclose(found, 6 * x * torch.eye(5, dtype=torch.float64))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("primal", [0, 1, 2])
@pytest.mark.parametrize("tangent", [0, 1, 2])
@pytest.mark.parametrize("is_apart", [False, True])
def test_views_of_what_was_written_have_its_tangent_in_a_batch(
    primal: int, tangent: int, is_apart: bool
) -> None:
    def written(x: Any, y: Any) -> Any:
        x = x.clone()
        row = x[0]
        x.copy_(y)
        return row, x

    def push(x: Any, y: Any, change: Any) -> Any:
        return jvp(lambda y: written(x, y), (y,), (change,))

    torch.manual_seed(0)
    x, y, change = (torch.randn(3, 2, 6) for _ in range(3))
    given = (x, y.movedim(0, primal), change.movedim(0, tangent))
    if is_apart:
        # (The elements of one example lie apart, and those of x do not.)
        given = (x, given[1].contiguous(), given[2].contiguous())
    (row, whole), changes = torch.vmap(push, in_dims=(0, primal, tangent))(*given)
    same(row, y[:, 0])
    same(whole, y)
    same(changes[0], change[:, 0])
    same(changes[1], change)


ALIASES: dict[str, Any] = {
    "the primal": lambda x: x,
    "a view of it": lambda x: x.view(4),
    "a detached one": lambda x: x.detach(),
    "an expanded element": lambda x: x[:1].expand(4),
    "its elements by other strides": lambda x: x.as_strided((4,), (0,)),
}


@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize("around", ["nothing", "vmap", "jvp"])
def test_a_write_to_a_primal_leaves_a_tangent_in_its_memory_alone(alias: str, around: str) -> None:
    def push(x: Tensor) -> Any:
        return jvp(lambda y: y.mul_(2).sin_().sum(), (x,), (ALIASES[alias](x),))

    x = torch.full((4,), 0.5)
    value, slope = 4 * math.sin(1.0), 4 * math.cos(1.0)
    if around == "vmap":
        values, products = vmap(push)(torch.stack([x, x]))
        assert values.tolist() == pytest.approx([value, value])
        assert products.tolist() == pytest.approx([slope, slope])
    elif around == "jvp":
        (values, _), _ = jvp(push, (x,), (torch.zeros(4),))
        assert values.item() == pytest.approx(value)
    else:
        values, products = push(x)
        assert (values.item(), products.item()) == pytest.approx((value, slope))
        assert x.tolist() == pytest.approx([math.sin(1.0)] * 4)


def test_a_write_to_one_primal_leaves_the_tangents_of_others_alone() -> None:
    def function(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return a.mul_(3).sum(), b.sum()

    x, y, v = torch.ones(2), torch.full((2,), 5.0), torch.full((2,), 7.0)
    _, products = jvp(function, (x, y), (y, x))
    assert [p.item() for p in products] == [30, 2]
    _, products = jvp(function, (torch.ones(2), torch.ones(2)), (v, v))
    assert [p.item() for p in products] == [42, 14]
    both = torch.full((4,), 7.0)
    _, products = jvp(function, (torch.ones(2), torch.ones(2)), (both[:2], both[1:3]))
    assert [p.item() for p in products] == [42, 14]


def test_columns_and_second_derivatives_survive_writes() -> None:
    def cubes(x: Tensor) -> Tensor:
        return (x.clone().mul_(2) ** 3).sum()

    x = torch.tensor([1.0, 2.0])
    assert jvp(grad(cubes), (x,), (x,))[1].tolist() == [48, 192]
    assert jacfwd(lambda x: x.mul_(2))(torch.ones(2)).tolist() == [[2, 0], [0, 2]]
