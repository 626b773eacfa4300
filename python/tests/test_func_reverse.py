"""``grad``, ``grad_and_value``, ``vjp``: values, structures, histories, what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
from pullback.func import grad, grad_and_value, vjp


def numbers(*values: Any, requires_grad: bool = False) -> Any:
    return torch.tensor(values, dtype=torch.float64, requires_grad=requires_grad)


def same(found: Any, expected: Any) -> None:
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert torch.allclose(found, expected, rtol=1e-12, atol=1e-12)


def cube(x: Any) -> Any:
    return (x**3).sum()


# grad.


def test_the_gradient_has_the_shape_of_the_input() -> None:
    x = numbers([1.0, 2.0], [3.0, 4.0])
    found = grad(cube)(x)
    same(found, 3 * x**2)
    assert not found.requires_grad
    assert not x.requires_grad
    assert x.grad is None


def test_gradients_of_gradients() -> None:
    x = numbers(2.0).squeeze()
    assert grad(grad(cube))(x).item() == pytest.approx(12.0)
    assert grad(grad(grad(cube)))(x).item() == pytest.approx(6.0)
    assert grad(grad(grad(grad(cube))))(x).item() == pytest.approx(0.0)


def test_perturbations_are_not_confused() -> None:
    # d/dx (x * d/dy (x + y) at 1) = 1
    x = numbers(1.0).squeeze()
    found = grad(lambda x: x * grad(lambda y: x + y)(torch.ones_like(x)))(x)
    assert found.item() == pytest.approx(1.0)
    # d/dx (x^2 d/dy (x y^2) at 3) = d/dx 6 x^3
    found = grad(lambda x: x**2 * grad(lambda y: x * y**2)(torch.full_like(x, 3.0)))(x)
    assert found.item() == pytest.approx(18.0)


def test_argnums_choose_arguments() -> None:
    def function(x: Any, tree: Any, scale: float = 1.0) -> Any:
        return (x * tree["a"] * tree["b"][0]).sum() * scale

    x, a, b = numbers(1.0, 2.0), numbers(3.0, 4.0), numbers(5.0, 6.0)
    tree = {"a": a, "b": [b]}
    same(grad(function)(x, tree, scale=2.0), 2 * a * b)
    found = grad(function, argnums=1)(x, tree)
    same(found["a"], x * b)
    same(found["b"][0], x * a)
    assert type(found["b"]) is list
    second, first = grad(function, argnums=(-1, 0))(x, tree)
    same(first, a * b)
    same(second["a"], x * b)
    assert type(grad(function, argnums=(0,))(x, tree)) is tuple


def test_what_does_not_matter_has_a_gradient_of_zeros() -> None:
    x = numbers(1.0, 2.0)
    same(grad(lambda x: torch.ones(()))(x), torch.zeros_like(x))
    same(grad(lambda x: torch.ones((), requires_grad=True))(x), torch.zeros_like(x))
    same(grad(lambda x: x.long().sum())(x), torch.zeros_like(x))
    same(grad(lambda x, y: y.sum())(x, x), torch.zeros_like(x))


def test_the_value_and_others_come_along_without_history() -> None:
    x = numbers(1.0, 2.0)

    def function(x: Any) -> Any:
        return cube(x), {"double": x * 2, "input": x}

    slope, (value, aux) = grad_and_value(function, has_aux=True)(x)
    same(slope, 3 * x**2)
    assert value.item() == 9.0
    same(aux["double"], x * 2)
    same(aux["input"], x)
    slope, aux = grad(function, has_aux=True)(x)
    same(slope, 3 * x**2)
    slope, value = grad_and_value(cube)(x)
    assert value.shape == ()
    for tensor in (slope, value, aux["double"], aux["input"]):
        assert not tensor.requires_grad


def test_results_have_the_history_that_inputs_and_captured_tensors_have() -> None:
    x, y = numbers(1.0, 2.0, requires_grad=True), numbers(3.0, 4.0, requires_grad=True)
    found = grad(lambda x: cube(x * y))(x)
    # d/dx of sum(3 x^2 y^3) is 6 x y^3, by y it is 9 x^2 y^2.
    by_x, by_y = torch.autograd.grad(found.sum(), (x, y))
    with torch.no_grad():
        same(by_x, 6 * x * y**3)
        same(by_y, 9 * x**2 * y**2)
    slope, aux = grad(lambda x: (cube(x), (x * 2, y * 2)), has_aux=True)(numbers(1.0))
    assert not slope.requires_grad
    assert not aux[0].requires_grad
    assert aux[1].requires_grad


def test_the_mode_outside_matters_to_results_only() -> None:
    x = numbers(1.0, 2.0, requires_grad=True)
    with torch.no_grad():
        slope, value = grad_and_value(cube)(x)
        second = grad(lambda x: grad(cube)(x).sum())(x)
        assert not torch.is_grad_enabled()
    same(slope, 3 * x.detach() ** 2)
    same(second, 6 * x.detach())
    for tensor in (slope, value, second):
        assert not tensor.requires_grad
        tensor.add_(1)


def test_no_grad_inside_makes_constants() -> None:
    def function(x: Any) -> Any:
        with torch.no_grad():
            constant = x**2
        return (x**3 - constant).sum()

    x = numbers(2.0)
    same(grad(function)(x), 3 * x**2)
    same(grad(lambda x: grad(function)(x).sum())(x), 6 * x)

    def hidden(x: Any) -> Any:
        with torch.no_grad():
            slope = grad(cube)(x)
        return (slope * x).sum()

    same(grad(hidden)(x), 3 * x**2)


def test_transforms_that_are_over_leave_no_history() -> None:
    x, c = numbers(1.0, 2.0), numbers(3.0, 5.0)

    def function(x: Any) -> Any:
        slope = grad(lambda y: (y**2 * x).sum())(c)
        return slope.sum(), slope

    # The inner input was a constant: nobody can ask for a derivative by it any more.
    found, aux = grad(function, has_aux=True)(x)
    same(found, 2 * c)
    assert not found.requires_grad
    assert not aux.requires_grad


def test_an_input_may_be_captured_too() -> None:
    x = numbers(1.0, 2.0)
    # What is captured is a constant, even if it is the very tensor that comes in.
    same(grad(lambda y: (x * y).sum())(x), x)


ARGNUMS = [
    (1, "Got argnum=1, but only 1 positional inputs"),
    (-2, "Got argnum=-2, but only 1 positional inputs"),
    ((0, 5), "Got argnum=5, but only 1 positional inputs"),
    ((), "argnums must be non-empty"),
    ((0, -1), r"argnums elements must be unique, got \(0, 0\)"),
    ("a", r"argnums must be int or Tuple\[int, ...\], got: <class 'str'>"),
    ([0], r"argnums must be int or Tuple\[int, ...\], got: <class 'list'>"),
    (("a",), "argnum must be int, got: <class 'str'>"),
]


@pytest.mark.parametrize(("argnums", "message"), ARGNUMS)
@pytest.mark.parametrize("transform", [grad, torch.func.jacrev, torch.func.jacfwd])
def test_argnums_are_checked(transform: Any, argnums: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        transform(cube, argnums)(torch.ones(2))


def test_outputs_that_have_no_gradient_are_refused() -> None:
    x = torch.ones(2, 3)
    for function, message in (
        (lambda x: x, "to return a scalar Tensor, got tensor with 2 dims. Maybe you wanted to use"),
        (lambda x: x.sum().reshape(1), "to return a scalar Tensor, got tensor with 1 dims"),
        (lambda x: 3.0, r"Expected f\(\*args\) to return a Tensor, got <class 'float'>"),
        (lambda x: (x.sum(),), "to return a Tensor, got <class 'tuple'>"),
    ):
        with pytest.raises(RuntimeError, match=message):
            grad(function)(x)
    for function in (cube, lambda x: (x.sum(), 1, 2), lambda x: [x.sum(), x]):
        with pytest.raises(RuntimeError, match=r"should be a tuple: \(output, aux\) if has_aux is"):
            grad(function, has_aux=True)(x)
    with pytest.raises(RuntimeError, match="Expected tensors, got unsupported type <class 'int'>"):
        grad(lambda x: (x.sum(), 1), has_aux=True)(x)
    with pytest.raises(RuntimeError, match=r"only for real scalar outputs but got torch.complex64"):
        grad(torch.sum)(torch.ones(2, dtype=torch.complex64))


def test_inputs_that_have_no_gradient_are_refused() -> None:
    with pytest.raises(ValueError, match="must be Tensor, got <class 'float'>"):
        grad(lambda x: torch.ones(()))(2.0)
    with pytest.raises(ValueError, match="must be Tensor, got <class 'float'>"):
        grad(lambda d: d["a"].sum() * d["b"])({"a": torch.ones(2), "b": 2.0})
    with pytest.raises(RuntimeError, match="only Tensors of floating point dtype can require grad"):
        grad(torch.sum)(torch.ones(2, dtype=torch.int64))


def test_the_input_itself_cannot_be_written_to() -> None:
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        grad(lambda x: x.mul_(2).sum())(torch.ones(2))


# vjp.


def test_vjp_multiplies_a_vector_with_the_jacobian() -> None:
    x, y = numbers(1.0, 2.0), numbers(3.0, 4.0)
    out, pull = vjp(lambda x, y: {"p": x * y, "s": (x.sum(), y)}, x, y)
    same(out["p"], x * y)
    for _ in range(2):
        v, w, u = numbers(1.0, 10.0), numbers(5.0).squeeze(), numbers(0.5, 0.25)
        by_x, by_y = pull({"p": v, "s": (w, u)})
        same(by_x, v * y + w)
        same(by_y, v * x + u)
    assert not out["p"].requires_grad
    assert not by_x.requires_grad


def test_vjp_gives_a_tuple_and_others() -> None:
    x = {"a": numbers(1.0, 2.0)}
    out, pull, aux = vjp(lambda x: (x["a"] ** 2, x["a"] + 1), x, has_aux=True)
    same(out, numbers(1.0, 4.0))
    same(aux, numbers(2.0, 3.0))
    (slopes,) = pull(numbers(1.0, 1.0))
    same(slopes["a"], numbers(2.0, 4.0))
    same(vjp(lambda x: numbers(1.0), x["a"])[1](numbers(1.0))[0], numbers(0.0, 0.0))


def test_vjp_can_be_differentiated_by_primals_and_vectors() -> None:
    x = numbers(1.0, 2.0)

    def product(x: Any, v: Any) -> Any:
        return vjp(lambda x: x**3, x)[1](v)[0].sum()

    v = numbers(3.0, 5.0)
    by_x, by_v = grad(product, argnums=(0, 1))(x, v)
    same(by_x, 6 * x * v)
    same(by_v, 3 * x**2)
    # The function of the vector alone, made outside of the transform.
    pull = vjp(lambda x: x**3, x)[1]
    same(grad(lambda v: pull(v)[0].sum())(v), 3 * x**2)
    leaf = x.clone().requires_grad_()
    out, pull = vjp(lambda x: x**3, leaf)
    assert out.requires_grad
    same(torch.autograd.grad(pull(v)[0].sum(), leaf)[0], 6 * x * v)


def test_the_mode_counts_when_the_vector_comes() -> None:
    x = numbers(1.0, 2.0, requires_grad=True)
    v = numbers(3.0, 5.0)
    with torch.no_grad():
        out, pull = vjp(lambda x: x**3, x)
        assert not pull(v)[0].requires_grad
    assert not out.requires_grad
    (by_x,) = torch.autograd.grad(pull(v)[0].sum(), x)
    with torch.no_grad():
        same(by_x, 6 * x * v)


def test_vjp_of_complex_functions_is_conjugate_as_backward_is() -> None:
    z = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128)
    v = torch.tensor([1j, 2 + 0j], dtype=torch.complex128)
    same(vjp(lambda z: z * z, z)[1](v)[0], v * (2 * z).conj())


def test_wrong_vectors_and_outputs_of_vjp_are_named() -> None:
    x = torch.ones(3)
    with pytest.raises(RuntimeError, match=r"cotangents: \*, primal output: {'a': \*}"):
        vjp(lambda x: {"a": x}, x)[1](x)
    with pytest.raises(RuntimeError, match="Mismatch in shape: grad_output"):
        vjp(lambda x: x * 2, x)[1](torch.ones(2))
    for function in (lambda x: 3, lambda x: [x, 3]):
        with pytest.raises(RuntimeError, match=r"expected f\(\*primals\) to return only tensors"):
            vjp(function, x)
    for function in (lambda x: None, lambda x: ()):
        with pytest.raises(RuntimeError, match="Expected f to be a function that has non-empty ou"):
            vjp(function, x)
    with pytest.raises(
        RuntimeError, match=r"vjp\(f, \*primals\): output of function f should be a"
    ):
        vjp(lambda x: x, x, has_aux=True)


@pytest.mark.parametrize(
    "transformed",
    [
        lambda f: torch.func.grad(f)(numbers(1.0, 2.0, 3.0)),
        lambda f: torch.func.jvp(f, (numbers(1.0, 2.0, 3.0),), (numbers(1.0, 0.0, 0.0),)),
        lambda f: torch.vmap(f)(numbers(1.0, 2.0, 3.0)),
    ],
)
def test_what_is_differentiated_is_not_changed_within_a_transform(transformed: Any) -> None:
    def marks(x: Any) -> Any:
        return (torch.ones(3).requires_grad_() * x).sum()

    def keeps(x: Any) -> Any:
        (x * torch.ones(3, requires_grad=True)).retain_grad()
        return x.sum()

    def asks(x: Any) -> Any:
        return torch.autograd.functional.jacobian(lambda y: y * x, x).sum()

    for function, method in ((marks, "requires_grad_"), (keeps, "retain_grad")):
        with pytest.raises(RuntimeError, match=rf"call Tensor\.{method}\(\)"):
            transformed(function)
    with pytest.raises(RuntimeError, match=r"perhaps using torch\.autograd\.functional\.\* APIs"):
        transformed(asks)

    def makes(x: Any) -> Any:
        parameter = torch.nn.Parameter(torch.ones(()))
        other = torch.ones(())
        other.requires_grad = True
        return (parameter * other * x).sum()

    transformed(makes)
    # Outside again.
    assert torch.ones(3).requires_grad_().requires_grad
