"""Nodes that are no op's: errors that wait, undefined gradients, the classes of built-in nodes."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
from pullback import _C
from pullback.autograd import Function, grad
from pullback.autograd.graph import Node

functions: Any = _C._functions


def leaf() -> Any:
    return torch.tensor([1.0, 2.0], requires_grad=True)


@pytest.mark.parametrize("message", ["as it is meant to", b"as it is meant to"])
def test_a_delayed_error_comes_with_the_gradient(message: str | bytes) -> None:
    x, y = leaf(), leaf()
    safe = functions.DelayedError(message, 1)(y)
    assert safe.data_ptr() == y.data_ptr()
    out = (x * safe).sum()
    with pytest.raises(RuntimeError, match="as it is meant to"):
        grad(out, y, retain_graph=True)
    with pytest.raises(RuntimeError, match="as it is meant to"):
        out.backward(retain_graph=True)
    # Whoever does not ask for it gets none.
    assert grad(out, x)[0].tolist() == [1, 2]


def test_a_delayed_error_takes_several_tensors() -> None:
    x, y = leaf(), torch.zeros(2)
    first, second = functions.DelayedError("no", 2)(x, y)
    assert first.requires_grad
    with pytest.raises(RuntimeError, match="no"):
        (first + second).sum().backward()
    assert not functions.DelayedError("no", 1)(y).requires_grad


@pytest.mark.parametrize("materializes", [True, False])
def test_undefined_gradients_arrive_as_zeros_or_none(materializes: bool) -> None:
    seen: list[Any] = []

    class Sees(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(materializes)
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            seen.append(grad)
            return grad

    x = leaf()
    result = functions.UndefinedGrad()(Sees.apply(x))
    assert result.grad_fn.name() == "torch::autograd::UndefinedGradBackward"
    result.sum().backward()
    assert len(seen) == 1
    if materializes:
        assert seen[0].tolist() == [0, 0]
        assert x.grad.tolist() == [0, 0]
    else:
        assert seen == [None]
        assert x.grad is None


def test_built_in_nodes_are_of_the_classes_shown() -> None:
    node = (leaf() * 2).grad_fn.next_functions[0][0]
    assert isinstance(node, functions.AccumulateGrad)
    assert issubclass(functions.AccumulateGrad, Node)
    assert issubclass(functions.DelayedError, Node)
    assert not issubclass(int, Node)
    assert not isinstance(functions.AccumulateGrad, Node)
    with pytest.raises(TypeError, match="cannot create 'Node' instances"):
        functions.AccumulateGrad()
    base = torch.zeros(3) * leaf().sum()
    base[:1] = 2.0
    assert isinstance(base.grad_fn, functions.CopySlices)


def test_a_weak_reference_knows_whether_its_tensor_lives() -> None:
    x = leaf()
    weak = _C._WeakTensorRef(x)
    assert not weak.expired()
    y = (x * 2).sum()
    del x
    assert not weak.expired()  # The graph holds the leaf, whose object is gone.
    del y
    assert weak.expired()
    with pytest.raises(TypeError, match="expect Tensor, but got int"):
        _C._WeakTensorRef(1)
