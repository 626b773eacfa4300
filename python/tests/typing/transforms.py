"""Derivatives and transforms, as type checkers see them."""

from __future__ import annotations

from typing import Any

from typing_extensions import assert_type

import pullback as torch
from pullback import Tensor, nn
from pullback.autograd import Function
from pullback.autograd.function import FunctionCtx, once_differentiable


class Exp(Function):
    """A function with a derivative of its own."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor) -> Tensor:
        """The exponential."""
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad: Tensor) -> Tensor:
        """The gradient."""
        (y,) = ctx.saved_tensors
        return grad * y


x = torch.randn(3, requires_grad=True)
y = Exp.apply(x)
(g,) = torch.autograd.grad(x.sum(), x)
assert_type(g, Tensor)
assert_type(torch.autograd.grad([x.sum()], [x, x], allow_unused=False), tuple[Tensor, ...])
x.sum().backward()
torch.autograd.backward([x.sum()], inputs=[x])
assert_type(torch.autograd.gradcheck(torch.sin, (x.double(),)), bool)
handle = x.register_hook(lambda grad: grad * 2)
handle.remove()


def f(a: Tensor, b: Tensor) -> Tensor:
    """A function of two tensors."""
    return (a * b).sum()


value, pullback_of = torch.func.vjp(f, x, x)
assert_type(value, Tensor)
assert_type(torch.func.functional_call(nn.Linear(1, 1), {"weight": x}, (x,)), Any)
out, tangent = torch.func.jvp(f, (x, x), (x, x))
assert_type(out, Tensor)
assert_type(tangent, Tensor)
assert_type(torch.func.stack_module_state([nn.Linear(1, 1)])[0], dict[str, Tensor])
batched = torch.vmap(f, in_dims=(0, None))
gradient = torch.func.grad(f, argnums=(0, 1))
jacobian = torch.func.jacrev(f)
assert_type(torch.autograd.functional.jacobian(torch.sin, x), Any)

with torch.autograd.profiler.profile() as profile:
    x.sum()
with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
    x.sum()
with torch.autograd.set_detect_anomaly(True):
    x.sum()
with torch.random.fork_rng():
    torch.manual_seed(1)
