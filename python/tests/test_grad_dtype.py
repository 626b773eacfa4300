"""`Tensor.grad_dtype`: the dtype that the gradient of a leaf has."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import pullback as torch


class GradInDouble(torch.autograd.Function):
    """The identity, whose gradient is of another dtype than its input."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad.double()


def leaf() -> Any:
    return torch.ones(3, requires_grad=True)


def test_it_is_the_dtype_of_the_tensor_at_first() -> None:
    for dtype in (torch.float32, torch.float64, torch.int32, torch.complex64):
        assert torch.ones(3, dtype=dtype).grad_dtype is dtype
    x = leaf()
    assert (x * 2).grad_dtype is torch.float32
    x.data = torch.ones(3, dtype=torch.float16)
    assert x.grad_dtype is torch.float16
    assert isinstance(torch.Tensor.grad_dtype, type(torch.Tensor.requires_grad))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float32])
def test_gradients_are_converted_where_they_arrive(dtype: torch.dtype) -> None:
    functions: list[Any] = [lambda x: x * 2, GradInDouble.apply]
    for function in functions:
        x = leaf()
        x.grad_dtype = dtype
        assert x.grad_dtype is dtype
        seen: list[Any] = []
        x.register_hook(lambda grad, seen=seen: seen.append(grad.dtype))
        y = function(x).sum()
        y.backward(retain_graph=True)
        assert x.grad.dtype is dtype
        assert seen == [dtype]
        y.backward(retain_graph=True)
        assert x.grad.dtype is dtype
        assert torch.autograd.grad(y, x)[0].dtype is dtype


def test_with_none_they_stay_as_they_are() -> None:
    x = leaf()
    x.grad_dtype = None
    assert x.grad_dtype is None
    GradInDouble.apply(x).sum().backward()
    assert x.grad.dtype is torch.float64
    x.sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (torch.float64, [2, 2, 2])
    x.grad = None
    (GradInDouble.apply(x).sum() + x.sum()).backward()
    assert x.grad.dtype is torch.float64
    x.grad = torch.ones(3, dtype=torch.float16)
    plain = leaf()
    GradInDouble.apply(plain).sum().backward()
    assert plain.grad.dtype is torch.float32


def test_graphs_that_were_made_before_follow() -> None:
    x = leaf()
    y = (x * 2).sum()
    x.grad_dtype = torch.float64
    y.backward()
    assert (x.grad.dtype, x.grad.tolist()) == (torch.float64, [2, 2, 2])
    x.backward(torch.ones(3))
    assert (x.grad.dtype, x.grad.tolist()) == (torch.float64, [3, 3, 3])


def test_higher_derivatives_go_through_the_conversion() -> None:
    x = leaf()
    x.grad_dtype = torch.float64
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    assert first.dtype is torch.float64
    (second,) = torch.autograd.grad(first.sum(), x)
    assert (second.dtype, second.tolist()) == (torch.float64, [6, 6, 6])


def test_other_gradients_cannot_be_assigned() -> None:
    x = leaf()
    with pytest.raises(RuntimeError, match="assign a gradient with dtype 'float64' to a tensor wi"):
        x.grad = torch.ones(3, dtype=torch.float64)
    x.grad_dtype = torch.float64
    x.grad = torch.ones(3, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="with grad_dtype 'float64'"):
        x.grad = torch.ones(3)
    assert x.grad.dtype is torch.float64
    with pytest.raises(RuntimeError, match="already a gradient with dtype 'float64'"):
        x.grad_dtype = torch.float32
    assert x.grad_dtype is torch.float64
    x.grad_dtype = None
    x.grad = torch.ones(3)


def test_what_cannot_be_set_is_refused() -> None:
    x = leaf()
    for dtype in (torch.float32, torch.float64, None):
        with pytest.raises(RuntimeError, match="can only be set on leaf tensors"):
            (x * 2).grad_dtype = dtype
    for wrong in (3, "float32"):
        with pytest.raises(RuntimeError, match=r"must be a torch.dtype or None, but got"):
            x.grad_dtype = wrong
    with pytest.raises(RuntimeError, match="not allowed"):
        del x.grad_dtype
    assert x.grad_dtype is torch.float32


def test_it_belongs_to_this_tensor_alone() -> None:
    x = leaf()
    x.grad_dtype = torch.float64
    others = (copy.deepcopy(x), x.detach(), torch.nn.Parameter(x), x.clone())
    assert all(other.grad_dtype is torch.float32 for other in others)
    x.requires_grad_(False).requires_grad_(True)
    assert x.grad_dtype is torch.float64
    x.data = torch.ones(3, dtype=torch.float16)
    assert (x.dtype, x.grad_dtype) == (torch.float16, torch.float64)
    (x * 2).sum().backward()
    assert x.grad.dtype is torch.float64
