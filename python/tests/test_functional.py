"""``autograd.functional``: values, structure of results, history, strict mode, what is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch
from pullback.autograd import functional
from pullback.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp

PRODUCTS = pytest.mark.parametrize("product", [vjp, jvp, vhp, hvp])
OF_SCALARS = pytest.mark.parametrize("product", [vhp, hvp])
VECTORIZE = pytest.mark.parametrize("vectorize", [False, True])
EVERY = pytest.mark.parametrize("derivative", [vjp, jvp, vhp, hvp, jacobian, hessian])


def numbers(*values: Any, requires_grad: bool = False) -> Any:
    return torch.tensor(values, dtype=torch.float64, requires_grad=requires_grad)


def same(found: Any, expected: Any) -> None:
    """Equal structures of tensors of equal shapes, dtypes and nearly equal elements."""
    assert type(found) is type(expected)
    if isinstance(found, tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    else:
        assert found.shape == expected.shape
        assert found.dtype == expected.dtype
        assert torch.allclose(found, expected, rtol=1e-12, atol=1e-12)


def cube(x: Any) -> Any:
    return (x**3).sum()


def unlinked(x: Any) -> Any:
    """Requires gradients, but none that lead to ``x``."""
    return x.long().double().requires_grad_().clone()


# Products.

# (x0^2 x1, x0 + 3 x1) at (2, 5): the Jacobian is [[20, 4], [1, 3]].
POINT = (2.0, 5.0)


def curve(x: Any) -> Any:
    return torch.stack([x[0] ** 2 * x[1], x[0] + 3 * x[1]])


def test_vjp_multiplies_from_the_left() -> None:
    result = vjp(curve, numbers(*POINT), numbers(1.0, 10.0))
    same(result, (numbers(20.0, 17.0), numbers(30.0, 34.0)))


def test_jvp_multiplies_from_the_right() -> None:
    result = jvp(curve, numbers(*POINT), numbers(1.0, 10.0))
    same(result, (numbers(20.0, 17.0), numbers(60.0, 31.0)))


@OF_SCALARS
def test_products_with_a_hessian(product: Callable[..., Any]) -> None:
    # x^2 y^3 at (2, 3): the Hessian is [[54, 108], [108, 72]].
    def func(x: Any, y: Any) -> Any:
        return x**2 * y**3

    at = (numbers(2.0).squeeze(), numbers(3.0).squeeze())
    v = (torch.tensor(1.0).double(), torch.tensor(10.0).double())
    value = torch.tensor(108.0).double()
    expected = (torch.tensor(1134.0).double(), torch.tensor(828.0).double())
    same(product(func, at, v), (value, expected))


def test_vhp_and_hvp_differ_where_the_matrix_is_not_symmetric() -> None:
    class Skew(torch.autograd.Function):
        """The sum, with a gradient that is wrong on purpose: A x for a triangular A."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.sum()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * (numbers([1.0, 2.0], [0.0, 3.0]) @ x)

    x, v = numbers(1.0, 1.0), numbers(1.0, 10.0)
    same(vhp(Skew.apply, x, v)[1], numbers(1.0, 32.0))
    same(hvp(Skew.apply, x, v)[1], numbers(21.0, 30.0))


def test_results_have_the_structure_of_what_they_belong_to() -> None:
    def func(x: Any, y: Any) -> Any:
        return x * 2, y * 3, (x * y).sum()

    x, y = numbers(1.0, 2.0), numbers(3.0, 4.0)
    ones = (numbers(1.0, 1.0), numbers(1.0, 1.0))
    one = torch.tensor(1.0, dtype=torch.float64)
    outputs = (x * 2, y * 3, (x * y).sum())
    same(vjp(func, (x, y), (*ones, one)), (outputs, (2 + y, 3 + x)))
    same(jvp(func, (x, y), ones), (outputs, (x * 0 + 2, y * 0 + 3, (x + y).sum())))
    same(vjp(lambda x: (x,), x, x), ((x,), x))
    same(jvp(lambda x: x, (x,), y), (x, y))
    same(vhp(cube, (x,), x), ((x**3).sum(), (6 * x * x,)))


@PRODUCTS
def test_the_vector_may_be_left_out_for_single_numbers(product: Callable[..., Any]) -> None:
    x = torch.tensor([[2.0]], dtype=torch.float64)
    # 3 x^2 and 6 x are both 12 here.
    same(product(lambda x: x**3, x), (x**3, torch.tensor([[12.0]], dtype=torch.float64)))


def test_a_missing_vector_is_refused_for_more_elements() -> None:
    x = numbers(1.0, 2.0)
    with pytest.raises(RuntimeError, match="v can only be None if the user-provided function ret"):
        vjp(lambda x: x * 2, x)
    with pytest.raises(RuntimeError, match="v can only be None if the user-provided function ret"):
        vjp(lambda x: (x.sum(), x.sum()), x)
    for product in (jvp, vhp, hvp):
        with pytest.raises(RuntimeError, match="v can only be None if the input to the user-prov"):
            product(cube, x)


@PRODUCTS
def test_a_vector_of_other_sizes_is_refused(product: Callable[..., Any]) -> None:
    x = numbers(1.0, 2.0)
    tuple_func: Any = (lambda x: (x.sum(),)) if product is vjp else cube
    inputs = x if product is vjp else (x,)
    with pytest.raises(RuntimeError, match=r"^v has invalid size: should be torch.Size"):
        product(cube, x, numbers(1.0, 2.0, 3.0))
    with pytest.raises(RuntimeError, match="The given v should contain a single Tensor"):
        product(cube, x, (x, x))
    with pytest.raises(RuntimeError, match=r"Entry 0 in v has invalid size: .* but got .*\[3\]"):
        product(tuple_func, inputs, numbers(1.0, 2.0, 3.0))
    with pytest.raises(RuntimeError, match="invalid length: should be 1 but got 2"):
        product(tuple_func, inputs, (x, x))


def test_gradients_that_do_not_exist_are_zeros() -> None:
    x, y = numbers(1.0, 2.0), numbers(3.0)
    zeros = (x * 0, y * 0)
    same(vjp(lambda x, y: x * 2, (x, y), x)[1], (2 * x, y * 0))
    same(vjp(lambda x, y: numbers(1.0), (x, y), y)[1], zeros)
    same(jvp(lambda x, y: (x * 2, numbers(1.0)), (x, y), (x, y))[1], (2 * x, y * 0))
    same(vhp(lambda x, y: cube(x), (x, y), (x, y))[1], (6 * x * x, y * 0))
    same(hvp(lambda x, y: cube(x) + y.sum(), (x, y), (x, y))[1], (6 * x * x, y * 0))
    same(hvp(lambda x, y: unlinked(x).sum(), (x, y), (x, y))[1], zeros)


# What all of them share.


def call(derivative: Callable[..., Any], func: Any, inputs: Any, **options: Any) -> Any:
    """Calls a product with ones for ``v``; gives the derivative alone."""
    if derivative in (jacobian, hessian):
        return derivative(func, inputs, **options)
    v = torch.ones((), dtype=inputs.dtype) if derivative is vjp else torch.ones_like(inputs)
    return derivative(func, inputs, v, **options)[1]


@EVERY
def test_results_have_no_history_and_inputs_are_left_alone(derivative: Callable[..., Any]) -> None:
    for x in (numbers(1.0, 2.0), numbers(1.0, 2.0, requires_grad=True)):
        wanted = x.requires_grad
        assert not call(derivative, cube, x).requires_grad
        assert (x.requires_grad, x.grad, x.is_leaf) == (wanted, None, True)
    weight = numbers(2.0, requires_grad=True)
    outcome = call(derivative, lambda x: weight.sum() * cube(x), numbers(1.0, 2.0))
    assert not outcome.requires_grad
    if derivative not in (jacobian, hessian):
        x = numbers(1.0, requires_grad=True)
        assert not derivative(cube, x, x.sum() if derivative is vjp else x)[0].requires_grad


@EVERY
def test_with_create_graph_the_results_can_be_differentiated(
    derivative: Callable[..., Any],
) -> None:
    x = numbers(1.0, 2.0, requires_grad=True)
    result = call(derivative, cube, x, create_graph=True)
    # The first derivatives are 3 x^2, the second ones 6 x, and so on.
    expected = 6.0 * torch.ones_like(x) if derivative in (vhp, hvp, hessian) else 6.0 * x.detach()
    same(torch.autograd.grad(result.sum(), x)[0], expected)


def test_with_create_graph_products_are_linear_in_the_vector() -> None:
    x = numbers(1.0, 2.0)
    for product, factor in ((jvp, 3 * x**2), (vhp, 6 * x), (hvp, 6 * x)):
        v = numbers(1.0, 1.0, requires_grad=True)
        result = product(cube, x, v, create_graph=True)[1]
        same(torch.autograd.grad(result.sum(), v)[0], factor)
    v = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    result = vjp(cube, x, v, create_graph=True)[1]
    same(torch.autograd.grad(result.sum(), v)[0], (3 * x**2).sum())


@EVERY
def test_records_although_recording_is_off(derivative: Callable[..., Any]) -> None:
    x = numbers(1.0, 2.0, requires_grad=True)
    with torch.no_grad():
        found = call(derivative, cube, x)
        recorded = call(derivative, cube, x, create_graph=True)
        assert not torch.is_grad_enabled()
    same(found, call(derivative, cube, x))
    assert found.abs().sum() > 0
    assert recorded.requires_grad


@EVERY
@pytest.mark.parametrize("create_graph", [False, True])
def test_a_captured_input_is_a_constant(derivative: Callable[..., Any], create_graph: bool) -> None:
    x = numbers(1.0, 2.0, requires_grad=True)
    found = call(derivative, lambda y: (x * y**2).sum(), x, create_graph=create_graph)
    frozen = numbers(1.0, 2.0)
    same(found.detach(), call(derivative, lambda y: (frozen * y**2).sum(), frozen))


@EVERY
def test_other_things_than_tensors_are_refused(derivative: Callable[..., Any]) -> None:
    x, name = numbers(1.0, 2.0), derivative.__name__
    either = "must be either a Tensor or a tuple of Tensors but the"
    with pytest.raises(TypeError, match=f"inputs given to {name} {either} given inputs has type"):
        derivative(cube, [x])
    with pytest.raises(TypeError, match=f"inputs given to {name} {either} value at index 1 has"):
        derivative(cube, (x, 2))
    outputs = f"The outputs of the user-provided function given to {name} {either}"
    with pytest.raises(TypeError, match=outputs):
        call(derivative, lambda x: (x, "text"), x)
    if derivative not in (jacobian, hessian):
        with pytest.raises(TypeError, match=f"The v given to {name} {either}"):
            derivative(cube, x, [x])


@EVERY
def test_integers_cannot_be_differentiated(derivative: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError, match=r"[Oo]nly Tensors of floating point"):
        call(derivative, torch.sum, torch.tensor([1, 2]))


@pytest.mark.parametrize("derivative", [vhp, hvp, hessian])
def test_second_derivatives_are_of_one_number(derivative: Callable[..., Any]) -> None:
    x, name = numbers(1.0, 2.0), derivative.__name__
    with pytest.raises(RuntimeError, match=f"given to {name} should return a single Tensor"):
        call(derivative, lambda x: (x.sum(),), x)
    with pytest.raises(RuntimeError, match=f"given to {name} should contain a single element"):
        call(derivative, lambda x: x * 2, x)
    found = call(derivative, lambda x: cube(x).view(1, 1, 1), x)
    same(found, call(derivative, cube, x))


# Strict mode.

FORBIDDEN = "This is not allowed in strict mode"


@EVERY
def test_strict_mode_leaves_dependent_functions_alone(derivative: Callable[..., Any]) -> None:
    x = numbers(1.0, 2.0)
    same(call(derivative, cube, x, strict=True), call(derivative, cube, x))


@EVERY
def test_strict_mode_refuses_outputs_without_history(derivative: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError, match="Output 0 of the user-provided function does not req"):
        call(derivative, lambda x: x.detach().sum(), numbers(1.0, 2.0), strict=True)


def test_strict_mode_names_the_output_without_history() -> None:
    x = numbers(1.0, 2.0)
    with pytest.raises(RuntimeError, match="Output 1 of the user-provided function does not req"):
        vjp(lambda x: (x * 2, x.detach()), x, (x, x), strict=True)


def test_strict_mode_names_the_input_without_influence() -> None:
    x, y = numbers(1.0, 2.0), numbers(3.0, 4.0)
    independent = f"output of the user-provided function is independent of input 1. {FORBIDDEN}"
    with pytest.raises(RuntimeError, match=independent):
        vjp(lambda x, y: x * 2, (x, y), x, strict=True)
    with pytest.raises(RuntimeError, match=independent):
        jvp(lambda x, y: x * 2, (x, y), (x, y), strict=True)
    for product in (vhp, hvp):
        with pytest.raises(RuntimeError, match=independent):
            product(lambda x, y: cube(x), (x, y), (x, y), strict=True)
    with pytest.raises(RuntimeError, match=f"Output 0 of .* independent of input 1. {FORBIDDEN}"):
        jacobian(lambda x, y: (x * 2, x * y), (x, y), strict=True)
    with pytest.raises(RuntimeError, match=f"Output 1 of .* independent of input 0. {FORBIDDEN}"):
        jacobian(lambda x, y: (x * y, y * 2), (x, y), strict=True)


def test_strict_jvp_names_the_output_that_no_direction_changes() -> None:
    x = numbers(1.0, 2.0)
    with pytest.raises(RuntimeError, match="independent of entry 1 in the grad_outputs"):
        jvp(lambda x: (x * 2, unlinked(x)), x, x, strict=True)


def test_strict_mode_refuses_gradients_that_are_constant() -> None:
    x, y = numbers(1.0, 2.0), numbers(3.0, 4.0)
    phrase = "the jacobian of the user-provided function with respect to input 1 is independent"
    for derivative in (vhp, hvp):
        with pytest.raises(RuntimeError, match=phrase):
            derivative(lambda x, y: cube(x) + y.sum(), (x, y), (x, y), strict=True)
    with pytest.raises(RuntimeError, match=phrase):
        hessian(lambda x, y: cube(x) + y.sum(), (x, y), strict=True)
    with pytest.raises(RuntimeError, match=phrase.replace("1", "0")):
        hessian(lambda x: unlinked(x).sum(), x, strict=True)


def test_strict_second_derivatives_name_what_has_no_influence() -> None:
    x, y = numbers(1.0, 2.0), numbers(3.0, 4.0)
    # The gradient with respect to y is linked to a tensor that is no input.
    linked = numbers(1.0, 1.0, requires_grad=True)

    def func(x: Any, y: Any) -> Any:
        return cube(x) + (y * linked).sum()

    with pytest.raises(
        RuntimeError, match=f"jacobian of .* is independent of input 1. {FORBIDDEN}"
    ):
        vhp(func, (x, y), (x, y), strict=True)
    with pytest.raises(
        RuntimeError, match=r"hessian of .* is independent of entry 1 in the grad_j"
    ):
        hvp(func, (x, y), (x, y), strict=True)
    with pytest.raises(RuntimeError, match=r"Output 0 of .* is independent of input 1"):
        hessian(func, (x, y), strict=True)


def test_strict_mode_with_create_graph_refuses_constant_results() -> None:
    x = numbers(1.0, 2.0, requires_grad=True)
    when = f"independent of input 0. {FORBIDDEN} when create_graph=True"
    jacobians = f"The jacobian of the user-provided function is {when}"
    with pytest.raises(RuntimeError, match=jacobians):
        vjp(lambda x: x.clone(), x, numbers(1.0, 1.0), create_graph=True, strict=True)
    with pytest.raises(RuntimeError, match=jacobians):
        jvp(lambda x: x.clone(), x, numbers(1.0, 1.0), create_graph=True, strict=True)
    with pytest.raises(RuntimeError, match=jacobians):
        jacobian(lambda x: x.clone(), x, create_graph=True, strict=True)
    for product in (vhp, hvp):
        with pytest.raises(
            RuntimeError, match=f"The hessian of the user-provided function is {when}"
        ):
            product(lambda x: (x * x).sum(), x, numbers(1.0, 1.0), create_graph=True, strict=True)


def test_strict_jacobian_names_the_input_of_a_constant_block() -> None:
    x, y = numbers(1.0, requires_grad=True), numbers(2.0, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"is independent of input 1. .* when create_graph=True"):
        jacobian(lambda x, y: x**2 + y, (x, y), create_graph=True, strict=True)


# Matrices.


@VECTORIZE
def test_jacobian_has_the_shapes_of_outputs_and_inputs(vectorize: bool) -> None:
    a, x = numbers([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]), numbers(1.0, -1.0, 2.0)
    found = jacobian(lambda a, x: (a @ x, x.prod()), (a, x), vectorize=vectorize)
    by_a = torch.zeros(2, 2, 3, dtype=torch.float64)
    by_a[0, 0] = by_a[1, 1] = x
    no_a, by_x = torch.zeros(2, 3, dtype=torch.float64), numbers(-2.0, 2.0, -1.0)
    same(found, ((by_a, a), (no_a, by_x)))


@VECTORIZE
def test_jacobian_unpacks_what_was_no_tuple(vectorize: bool) -> None:
    x = numbers(1.0, 2.0)
    matrix = numbers([2.0, 0.0], [0.0, 4.0])
    found = [
        jacobian(lambda x: x**2, x, vectorize=vectorize),
        jacobian(lambda x: (x**2,), x, vectorize=vectorize),
        jacobian(lambda x: x**2, (x,), vectorize=vectorize),
        jacobian(lambda x: (x**2,), (x,), vectorize=vectorize),
    ]
    for one, expected in zip(found, [matrix, (matrix,), (matrix,), ((matrix,),)], strict=True):
        same(one, expected)


@VECTORIZE
def test_jacobian_of_numbers_without_dimensions(vectorize: bool) -> None:
    x = torch.tensor(3.0, dtype=torch.float64)
    same(jacobian(lambda x: x**2, x, vectorize=vectorize), 2 * x)
    found = jacobian(lambda x: torch.stack([x, x**2]), x, vectorize=vectorize)
    same(found, numbers(1.0, 6.0))
    same(jacobian(torch.sum, numbers([1.0, 2.0]), vectorize=vectorize), numbers([1.0, 1.0]))


@VECTORIZE
def test_jacobian_without_elements_is_empty(vectorize: bool) -> None:
    x, nothing = numbers(1.0, 2.0), torch.zeros(0, dtype=torch.float64)
    same(jacobian(lambda x: x[:0], x, vectorize=vectorize), torch.zeros(0, 2).double())
    same(jacobian(torch.sum, nothing, vectorize=vectorize), nothing)
    same(jacobian(lambda x: (), x, vectorize=vectorize), ())
    found = jacobian(lambda x: (x[:0], x), x, vectorize=vectorize)
    same(found, (torch.zeros(0, 2).double(), torch.eye(2).double()))


@VECTORIZE
def test_jacobian_has_the_dtype_of_the_input(vectorize: bool) -> None:
    x = torch.tensor([1.0, 2.0])
    single, double, whole = jacobian(
        lambda x: (x * 2, x.double() * 3, x.long()), x, vectorize=vectorize
    )
    same((single, double, whole), (2 * torch.eye(2), 3 * torch.eye(2), torch.zeros(2, 2)))


def test_complex_outputs_need_a_batch_of_gradients() -> None:
    x = numbers(1.0, 2.0)
    with pytest.raises(RuntimeError, match="only for real scalar outputs"):
        jacobian(lambda x: torch.complex(x, x), x)
    found = jacobian(lambda x: torch.complex(x, x), x, vectorize=True)
    same(found, torch.eye(2, dtype=torch.float64))


@VECTORIZE
def test_differentiates_functions_that_are_called_once(vectorize: bool) -> None:
    calls = []

    def func(x: Any) -> Any:
        calls.append(x)
        return cube(x)

    jacobian(func, numbers(1.0, 2.0), vectorize=vectorize)
    assert len(calls) == 1
    hessian(func, numbers(1.0, 2.0), vectorize=vectorize)
    assert len(calls) == 2


@VECTORIZE
def test_blocks_of_one_matrix_can_be_written_to_apart(vectorize: bool) -> None:
    x, y = numbers(1.0, 2.0), numbers(3.0)
    (by_x, by_y), (other, _) = jacobian(lambda x, y: (x, x * 1), (x, y), vectorize=vectorize)
    by_x.zero_()
    by_y += 5
    same(by_y, numbers([5.0], [5.0]))
    same(other, torch.eye(2).double())


@VECTORIZE
def test_jacobian_with_create_graph_keeps_every_block(vectorize: bool) -> None:
    x, y = numbers(1.0, 2.0, requires_grad=True), numbers(3.0, 4.0, requires_grad=True)
    by_x, by_y = jacobian(lambda x, y: x**2 * y, (x, y), create_graph=True, vectorize=vectorize)
    # The blocks are diagonal: 2 x y and x^2.
    total = (by_x * by_y).sum()
    same(total.detach(), (2 * x**3 * y).sum().detach())
    found = torch.autograd.grad(total, (x, y))
    same(found, ((6 * x**2 * y).detach(), (2 * x**3).detach()))


@VECTORIZE
def test_hessian_has_blocks_for_pairs_of_inputs(vectorize: bool) -> None:
    x, y = numbers(1.0, 2.0), numbers(3.0, 4.0, 5.0)
    found = hessian(lambda x, y: (x**2).sum() * y.sum(), (x, y), vectorize=vectorize)
    mixed = (2 * x).unsqueeze(1).expand(2, 3)
    zeros = torch.zeros(3, 3, dtype=torch.float64)
    same(found, ((24 * torch.eye(2).double(), mixed), (mixed.t(), zeros)))
    same(hessian(cube, x, vectorize=vectorize), numbers([6.0, 0.0], [0.0, 12.0]))
    same(hessian(cube, (x,), vectorize=vectorize), ((numbers([6.0, 0.0], [0.0, 12.0]),),))


@VECTORIZE
def test_hessian_of_what_is_linear_or_constant_is_zero(vectorize: bool) -> None:
    x = numbers(1.0, 2.0)
    zeros = torch.zeros(2, 2, dtype=torch.float64)
    same(hessian(torch.sum, x, vectorize=vectorize), zeros)
    same(hessian(lambda x: numbers(1.0), x, vectorize=vectorize), zeros)
    same(hessian(lambda x: unlinked(x).sum(), x, vectorize=vectorize), zeros)


def test_matrices_agree_with_products() -> None:
    torch.manual_seed(0)
    x, v, u = (torch.randn(5, dtype=torch.float64) for _ in range(3))

    def func(x: Any) -> Any:
        return torch.outer(x.sin(), x).cumsum(0).diagonal()

    matrix = jacobian(func, x)
    same(jvp(func, x, v)[1], matrix @ v)
    same(vjp(func, x, u)[1], u @ matrix)
    second = hessian(lambda x: func(x).prod(), x)
    same(hvp(lambda x: func(x).prod(), x, v)[1], second @ v)
    same(vhp(lambda x: func(x).prod(), x, v)[1], v @ second)


def test_one_unit_matrix_is_shared_by_several_tensors() -> None:
    tensors = (torch.zeros(2), torch.zeros(0), torch.tensor(0.0), torch.zeros(1, 2).double())
    parts = functional._construct_standard_basis_for(tensors, (2, 0, 1, 2))
    assert [part.dtype for part in parts] == [tensor.dtype for tensor in tensors]
    same(torch.cat([part.float() for part in parts], dim=1), torch.eye(5))


# What is refused.


def test_unknown_strategies_are_refused() -> None:
    x = numbers(1.0)
    with pytest.raises(AssertionError, match='either "forward-mode" or "reverse-mode"'):
        jacobian(cube, x, strategy="backward")
    with pytest.raises(AssertionError, match='either "forward-mode" or "reverse-mode"'):
        hessian(cube, x, outer_jacobian_strategy="backward")


def test_combinations_that_are_not_supported_are_refused() -> None:
    x = numbers(1.0)
    for matrix in (
        lambda **options: jacobian(cube, x, **options),
        lambda strategy="reverse-mode", **options: hessian(
            cube, x, outer_jacobian_strategy=strategy, **options
        ),
    ):
        with pytest.raises(RuntimeError, match="not supported together"):
            matrix(strict=True, vectorize=True)
        with pytest.raises(RuntimeError, match=r"`strict=True` and .*together \(yet\)"):
            matrix(strict=True, vectorize=True, strategy="forward-mode")
        with pytest.raises(NotImplementedError, match=r"`create_graph=True` and .*forward-mode"):
            matrix(create_graph=True, vectorize=True, strategy="forward-mode")
        with pytest.raises(NotImplementedError, match="only implemented for `vectorize=True`"):
            matrix(strategy="forward-mode")


@pytest.mark.parametrize("recording", [False, True])
def test_forward_mode_agrees_with_reverse_mode(recording: bool) -> None:
    def func(x: Any, y: Any) -> Any:
        return x.sin() * y, numbers(1.0, 2.0), (x @ y).exp()

    at = (numbers(0.5, 1.0, requires_grad=True), numbers(-1.0, 2.0))
    options: dict[str, Any] = {"vectorize": True}
    with torch.set_grad_enabled(recording):
        found = jacobian(func, at, strategy="forward-mode", **options)
        same(found, jacobian(func, at))
        assert not any(block.requires_grad for row in found for block in row)
        curved = hessian(
            lambda x, y: func(x, y)[2], at, outer_jacobian_strategy="forward-mode", **options
        )
        same(curved, hessian(lambda x, y: func(x, y)[2], at))


def test_is_loaded_at_first_use() -> None:
    program = (
        "import sys, pullback\n"
        "loaded = lambda: 'pullback.autograd.functional.matrix' in sys.modules\n"
        "before = loaded(); pullback.autograd.functional.jacobian; print(before, loaded())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.stderr) == ("False True", "")
