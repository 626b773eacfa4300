"""``jacrev``, ``jacfwd``, ``hessian``: values, structures, chunks, what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
from pullback.func import hessian, jacfwd, jacrev, vmap

JACOBIANS = pytest.mark.parametrize("jac", [jacrev, jacfwd])


def numbers(*values: Any) -> Any:
    return torch.tensor(values, dtype=torch.float64)


def diagonal(values: Any) -> Any:
    """The matrix with these numbers on its diagonal."""
    return torch.eye(len(values), dtype=values.dtype) * values


def same(found: Any, expected: Any) -> None:
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert torch.allclose(found, expected, rtol=1e-12, atol=1e-12)


def curve(x: Any) -> Any:
    """Its Jacobian at (2, 5) is [[20, 4], [1, 3]]."""
    return torch.stack([x[0] ** 2 * x[1], x[0] + 3 * x[1]])


@JACOBIANS
def test_the_jacobian_has_a_row_for_each_output(jac: Any) -> None:
    same(jac(curve)(numbers(2.0, 5.0)), numbers([20.0, 4.0], [1.0, 3.0]))
    x = torch.arange(6.0).reshape(2, 3)
    found = jac(lambda x: x.sum(0) * 2)(x)
    assert found.shape == (3, 2, 3)
    same(found, 2 * torch.eye(3)[:, None].expand(3, 2, 3))
    same(jac(lambda x: x.sin())(x.double()).reshape(6, 6), diagonal(x.double().cos().reshape(6)))


@JACOBIANS
def test_outputs_and_inputs_are_trees(jac: Any) -> None:
    def function(d: Any, y: Any) -> Any:
        return {"o": d["a"] * d["b"] * y, "p": (d["a"],)}

    a, b, y = numbers(1.0, 2.0), numbers(3.0, 4.0), numbers(5.0, 6.0)
    found = jac(function)({"a": a, "b": b}, y)
    same(found["o"]["a"], diagonal(b * y))
    same(found["o"]["b"], diagonal(a * y))
    same(found["p"][0]["b"], torch.zeros(2, 2, dtype=torch.float64))
    by_y, by_d = jac(function, argnums=(1, 0))({"a": a, "b": b}, y)["o"]
    same(by_y, diagonal(a * b))
    same(by_d["a"], diagonal(b * y))
    assert type(jac(function, argnums=(1,))({"a": a, "b": b}, y)["o"]) is tuple


@JACOBIANS
def test_others_come_along(jac: Any) -> None:
    x = numbers(1.0, 2.0)
    found, aux = jac(lambda x: (x**2, {"twice": x * 2, "free": torch.ones(3)}), has_aux=True)(x)
    same(found, diagonal(2 * x))
    same(aux["twice"], x * 2)
    same(aux["free"], torch.ones(3))


@JACOBIANS
def test_without_elements_there_is_nothing_in_it(jac: Any) -> None:
    assert jac(lambda x: x)(torch.ones(0)).shape == (0, 0)
    assert jac(lambda x: x[:0])(torch.ones(2)).shape == (0, 2)
    assert jac(lambda x: x.sum())(torch.ones(0)).shape == (0,)
    assert jac(lambda x: torch.ones(3))(torch.ones(2)).tolist() == [[0.0, 0.0]] * 3


def test_the_dtype_is_the_input_s_in_reverse_mode_and_the_output_s_in_forward_mode() -> None:
    single, double = torch.ones(1), torch.ones(1).double()

    def function(x: Any, y: Any) -> Any:
        return x.double() * 2, y.float()

    for jac, expected in (
        (jacrev, [[torch.float32, torch.float64]] * 2),
        (jacfwd, [[torch.float64] * 2, [torch.float32] * 2]),
    ):
        blocks = jac(function, argnums=(0, 1))(single, double)
        assert [[block.dtype for block in row] for row in blocks] == expected
        assert blocks[0][0].tolist() == [[2.0]]
        assert blocks[1][1].tolist() == [[1.0]]


@pytest.mark.parametrize("preallocates", [False, True])
@pytest.mark.parametrize("chunk_size", [None, 1, 2, 3, 100])
def test_chunks_of_rows_give_the_same(chunk_size: int | None, preallocates: bool) -> None:
    def function(x: Any, y: Any) -> Any:
        return (x * y).sin(), x.sum() * y.sum()

    x, y = numbers(1.0, 2.0, 3.0), numbers(0.5, -1.0, 2.0)
    found = jacrev(
        function,
        argnums=(0, 1),
        chunk_size=chunk_size,
        _preallocate_and_copy=preallocates,
    )(x, y)
    expected = jacfwd(function, argnums=(0, 1))(x, y)
    for row, other in zip(found, expected, strict=True):
        for block, wanted in zip(row, other, strict=True):
            same(block, wanted)


@JACOBIANS
def test_results_have_the_history_of_inputs(jac: Any) -> None:
    x = numbers(1.0, 2.0).requires_grad_()
    found = jac(lambda x: x**3)(x)
    same(torch.autograd.grad(found.sum(), x)[0], 6 * x.detach())
    with torch.no_grad():
        assert not jac(lambda x: x**3)(x).requires_grad
    assert not jac(lambda x: x**3)(x.detach()).requires_grad


def test_random_numbers_in_forward_mode() -> None:
    def function(x: Any) -> Any:
        return x * torch.rand(3)

    with pytest.raises(RuntimeError, match="called random operation while in randomness error"):
        jacfwd(function)(torch.ones(3))
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    same(jacfwd(function, randomness="same")(torch.ones(3)), diagonal(expected))


@JACOBIANS
def test_complex_tensors_are_refused(jac: Any) -> None:
    z = torch.ones(2, dtype=torch.complex64)
    with pytest.raises(RuntimeError, match=f"{jac.__name__}: Expected all inputs to be real but"):
        jac(lambda z: z * z)(z)
    with pytest.raises(RuntimeError, match=f"{jac.__name__}: Expected all outputs to be real but"):
        jac(lambda x: x + 1j)(torch.ones(2))


@JACOBIANS
def test_what_is_no_tensor_is_refused(jac: Any) -> None:
    with pytest.raises(RuntimeError, match="to return only tensors, got unsupported type <class"):
        jac(lambda x: 3)(torch.ones(2))
    with pytest.raises((RuntimeError, ValueError), match=r"ensors?, got <class 'float'>"):
        jac(lambda x: torch.ones(2))(3.0)
    with pytest.raises(
        RuntimeError, match=r"should be a tuple: \(output, aux\) if has_aux is True"
    ):
        jac(lambda x: x, has_aux=True)(torch.ones(2))


def test_chunks_without_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="jacrev: `chunk_size` should be greater than 0"):
        jacrev(curve, chunk_size=0)


# hessian.


def test_the_hessian_of_a_scalar() -> None:
    x = numbers(1.0, 2.0, 3.0)
    same(hessian(torch.prod)(x), numbers([0.0, 3.0, 2.0], [3.0, 0.0, 1.0], [2.0, 1.0, 0.0]))
    x = numbers(0.0, 2.0, 3.0)
    same(hessian(torch.prod)(x), numbers([0.0, 3.0, 2.0], [3.0, 0.0, 0.0], [2.0, 0.0, 0.0]))


def test_the_hessian_of_a_vector_function_and_of_several_inputs() -> None:
    x, y = numbers(1.0, 2.0), numbers(3.0, 4.0)
    found = hessian(lambda x: x**3)(x)
    assert found.shape == (2, 2, 2)
    assert found.sum((1, 2)).tolist() == [6.0, 12.0]
    (xx, xy), (yx, yy) = hessian(lambda x, y: (x**2 * y).sum(), argnums=(0, 1))(x, y)
    same(xx, diagonal(2 * y))
    same(xy, diagonal(2 * x))
    same(yx, diagonal(2 * x))
    same(yy, torch.zeros(2, 2, dtype=torch.float64))


@pytest.mark.parametrize("outer", [jacrev, jacfwd])
@pytest.mark.parametrize("inner", [jacrev, jacfwd])
def test_second_derivatives_agree_in_every_order_of_modes(outer: Any, inner: Any) -> None:
    torch.manual_seed(1)
    w = torch.randn(4, 3, dtype=torch.float64)
    x = torch.randn(3, dtype=torch.float64)

    def network(x: Any) -> Any:
        return (w @ x).tanh().exp().sum()

    h = (w @ x).tanh()
    curvature = h.exp() * (1 - h**2) * (1 - h**2 - 2 * h)
    expected = w.mT @ (curvature[:, None] * w)
    same(outer(inner(network))(x), expected)
    with torch.no_grad():
        same(outer(inner(network))(x), expected)
    batch = torch.stack([x, x])
    same(vmap(outer(inner(network)))(batch), torch.stack([expected, expected]))
