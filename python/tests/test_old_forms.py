"""Calls with factors by position, before the tensors that they go with; functions as objects."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import types
import warnings
from typing import Any

import pytest

import pullback as torch

# (They warn; what they say is tested below.)
pytestmark = pytest.mark.filterwarnings("ignore:This overload of:UserWarning")

A = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
B = torch.tensor([[0.5, -1.0], [2.0, 0.0]])
V = torch.tensor([1.0, -2.0])


@pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
def test_the_value_stands_before_the_factors(name: str) -> None:
    function: Any = getattr(torch, name)
    expected = function(A, B, A, value=2)
    assert torch.equal(function(A, 2, B, A), expected)
    assert torch.equal(getattr(A, name)(2, B, A), expected)
    assert torch.equal(function(A, 2, tensor1=B, tensor2=A), expected)
    assert torch.equal(function(A, 2, B, A, out=torch.empty(2, 2)), expected)
    x = A.clone()
    assert getattr(x, name + "_")(2, B, A) is x
    assert torch.equal(x, expected)


@pytest.mark.parametrize(
    ("name", "x", "a", "b"),
    [
        ("addmm", A, A, B),
        ("addmv", V, A, V),
        ("addr", A, V, V),
        ("addbmm", A, A[None], B[None]),
        ("baddbmm", A[None], A[None], B[None]),
    ],
)
def test_beta_and_alpha_stand_before_their_tensors(name: str, x: Any, a: Any, b: Any) -> None:
    function: Any = getattr(torch, name)
    both, beta = function(x, a, b, beta=2, alpha=3), function(x, a, b, beta=2)
    assert torch.equal(function(2, x, 3, a, b), both)
    assert torch.equal(function(2, x, a, b), beta)
    assert torch.equal(getattr(x, name)(2, 3, a, b), both)
    assert torch.equal(getattr(x, name)(2, a, b), beta)
    written = x.clone()
    getattr(written, name + "_")(2, 3, a, b)
    assert torch.equal(written, both)


def test_gradients_go_through_the_old_forms() -> None:
    x, y = A.clone().requires_grad_(), B.clone().requires_grad_()
    torch.addmm(2, x, 3, y, A).sum().backward()
    assert torch.equal(x.grad, torch.full((2, 2), 2.0))
    assert torch.equal(y.grad, 3 * A.sum(1).expand(2, 2))


def test_wrong_calls_are_told_of_the_form_of_today() -> None:
    with pytest.raises(
        TypeError, match=r"addcmul\(\): argument 'tensor1' .* must be Tensor, not int"
    ):
        torch.addcmul(A, 2, B)
    with pytest.raises(TypeError, match="addmm"):
        torch.addmm(A, B, B, 2, 3)


def test_functions_of_ops_are_built_in_functions_to_who_asks() -> None:
    assert inspect.isroutine(torch.add)
    assert inspect.isbuiltin(torch.fft.fft)
    assert isinstance(torch.add, types.BuiltinFunctionType)
    assert isinstance(torch.Tensor.add, types.MethodDescriptorType)
    assert inspect.isroutine(torch.Tensor.add)
    method: Any = torch.Tensor.add
    assert method.__objclass__ is torch._C.TensorBase
    with pytest.raises(ValueError, match="no signature found"):
        inspect.signature(torch.add)
    for function in (torch.add, torch.Tensor.add):
        assert pickle.loads(pickle.dumps(function)) is function
        assert copy.deepcopy(function) is function


@pytest.mark.parametrize(
    ("call", "name", "instead"),
    [
        (lambda: torch.addcmul(A, 2, B, A), "addcmul", r"\n\taddcmul\(Tensor input, Tensor ten"),
        (lambda: torch.addmm(2, A, 3, A, B), "addmm", r"\n\taddmm\(Tensor input, Tensor mat1"),
        (lambda: A.clone().addmm_(2, A, B), "addmm_", r"\n\taddmm_\(Tensor mat1, Tensor mat2"),
        (lambda: torch.add(A, 2, B), "add", r"\n\tadd\(Tensor input, Tensor other"),
    ],
)
def test_old_forms_warn_and_name_the_new_ones(call: Any, name: str, instead: str) -> None:
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match=rf"This overload of {name} is deprecated") as caught:
            call()
    finally:
        torch.set_warn_always(before)
    text = str(caught[0].message)
    assert re.search(r"following signatures instead:.*" + instead, text, re.DOTALL), text
    assert len(caught) == 1


def test_old_forms_warn_once() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            torch.addcdiv(A, 2, B, V)
            torch.addcdiv(A, B, V, value=2)
    assert len(caught) <= 1


def test_a_number_in_the_place_of_a_tensor_is_no_old_form() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.sub(2, A).tolist() == [[1.0, 0.0], [-1.0, -2.0]]
        assert torch.add(A, 2).tolist() == [[3.0, 4.0], [5.0, 6.0]]
