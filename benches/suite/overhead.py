"""Group A, overhead: calls on a few numbers, whose time is everything but arithmetic.

Most cases are statements, as a user would write them (`torch` is the library under test). Start at
`cases`; the tables below it say what is timed, the functions at the end what the longer ones need.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from small_case import Library, Tensor

from suite.case import Action, Case, Manner, Statement
from suite.inputs import Inputs

Names = dict[str, Any]

CHAIN = 100
FAN = 50
TIME_STEPS = 50
DEEP = 1_000_000

# Of one or two small tensors; timed without a gradient, and recording one (`rg`).
OPS = {
    "add": "a + b",
    "add_scalar": "a + 1.0",
    "mul": "a * b",
    "neg": "-a",
    "exp": "a.exp()",
    "relu": "F.relu(a)",
    "matmul": "a @ b",
    "sum": "a.sum()",
    "sum_dim": "a.sum(0)",
    "view": "v.view(2, 4)",
    "reshape": "v.reshape(2, 4)",
    "transpose": "a.t()",
    "index_int": "a[0]",
    "index_slice": "v[1:3]",
    "index_none": "v[None]",
    "index_ellipsis": "a[..., 1]",
    "unsqueeze": "v.unsqueeze(0)",
    "expand": "v.expand(2, 8)",
    "clone": "a.clone()",
    "detach": "a.detach()",
    "cat": "torch.cat((a, b))",
    "softmax": "a.softmax(-1)",
}

# Of the same tensors, without a gradient only.
OTHER_OPS = {
    "item": "scalar.item()",
    "add_inplace": "a.add_(zero)",
    "add_out": "torch.add(a, b, out=out)",
    "index_tensor": "a[index]",
    "setitem": "a[0] = 1.0",
    "zeros": "torch.zeros(4)",
    "empty": "torch.empty(4)",
    "tensor_list": "torch.tensor([1.0, 2.0, 3.0])",
    "arange": "torch.arange(8)",
    "randn": "torch.randn(4)",
    "shape": "a.shape",
    "size_int": "a.size(0)",
    "dtype_eq": "a.dtype == torch.float32",
    "numpy": "a.numpy()",
    "from_numpy": "torch.from_numpy(array)",
    "to_f64": "a.to(torch.float64)",
    "no_grad_ctx": "\nwith torch.no_grad(): pass",
}


def cases() -> Iterator[Case]:
    """Every case of the group."""
    yield statement("py.pass", "pass", no_names, "op")
    for prefix, gradient in (("", False), ("rg.", True)):
        for name, text in OPS.items():
            yield statement(prefix + name, text, partial(small_tensors, gradient=gradient), "op")
    for name, text in OTHER_OPS.items():
        yield statement(name, text, small_tensors, "op")
    yield from graphs()
    yield from training()
    yield from python_code()
    yield from recurrent()
    yield Case("A.deep1e6", deep_graph, "node", DEEP, manner=Manner.ONCE)


def graphs() -> Iterator[Case]:
    """Recording, and going back through, graphs of one node, a hundred in a row, and a fan."""
    with_gradient = partial(small_tensors, gradient=True)
    yield statement("linear", "F.linear(x, w, b)", partial(linear, gradient=False), "op")
    yield statement("rg.linear", "F.linear(x, w, b)", partial(linear, gradient=True), "op")
    text = "(a * b + a).sum().backward(); a.grad = None; b.grad = None"
    yield statement("fwdbwd.add_mul_sum", text, with_gradient)
    text = "torch.autograd.grad((a * b).sum(), (a, b))"
    yield statement("autograd.grad.small", text, with_gradient)
    plain, recorded = partial(chain, gradient=False), partial(chain, gradient=True)
    backward = "torch.autograd.grad(y, x, ones, retain_graph=True)"
    both = "torch.autograd.grad(chain(), x, ones)"
    yield statement("chain100.fwd", "chain()", plain, "node", CHAIN)
    yield statement("chain100.fwd_rg", "chain()", recorded, "node", CHAIN)
    yield statement("chain100.bwd", backward, recorded, "node", CHAIN)
    yield statement("chain100.fwdbwd", both, recorded, "node", CHAIN)
    yield statement("fan50.bwd", backward, fan, "node", FAN)


def training() -> Iterator[Case]:
    """The steps of training a small network."""
    yield statement("mlp16.fwd", "model(x)", network)
    yield statement("mlp16.fwdbwd", "((model(x) - y) ** 2).mean().backward()", network)
    yield statement("mlp16.sgd_step", "step()", network, "step")
    with_adam = partial(network, optimizer="Adam")
    yield statement("mlp16.adam_step", "step()", with_adam, "step")
    yield statement("optim.adam_only", "optimizer.step()", with_adam)


def python_code() -> Iterator[Case]:
    """Modules, functions and hooks written in Python, and gradients of gradients."""
    yield statement("module_call", "module(x)", identity)
    yield statement("custom_function.fwd", "Square.apply(x)", custom_function)
    text = "torch.autograd.grad(Square.apply(x), x, ones)"
    yield statement("custom_function.fwdbwd", text, custom_function)
    text = "torch.autograd.grad(y, x, ones, retain_graph=True)"
    yield statement("hook.bwd", text, partial(doubled, hook=True))
    yield statement("nohook.bwd", text, partial(doubled, hook=False))
    yield statement("module_forward_hook", "module(x)", partial(identity, hook=True))
    yield statement("double_backward", "second_gradient()", double_backward)


def recurrent() -> Iterator[Case]:
    """An LSTM over fifty time steps, forward and backward: written out, by cells, as a layer."""
    kinds = {"manual": written_out_lstm, "LSTMCell": lstm_of_cells, "nn.LSTM": lstm_layer}
    for name, run in kinds.items():
        yield statement(f"lstm50.{name}", "run()", run, "cell", TIME_STEPS)


def statement(
    name: str, text: str, names: Callable[[Inputs], Names], unit: str = "call", units: int = 1
) -> Case:
    """A case that times a statement, with the names it uses."""

    def prepare(inputs: Inputs) -> Statement:
        library = {"torch": inputs.library, "F": inputs.functional}
        return Statement(text, library | names(inputs))

    return Case(f"A.{name}", prepare, unit, units)


def no_names(inputs: Inputs) -> Names:
    """For statements that use nothing."""
    return {}


def small_tensors(inputs: Inputs, gradient: bool = False) -> Names:
    """Tensors of up to sixteen numbers."""
    return {
        "a": inputs.normal(4, 4, gradient=gradient),
        "b": inputs.normal(4, 4, seed=1, gradient=gradient),
        "v": inputs.normal(8, gradient=gradient),
        "zero": inputs.normal(4, 4, scale=0.0),
        "out": inputs.normal(4, 4),
        "scalar": inputs.tensor(np.full((), 3.0, np.float32)),
        "index": inputs.integers(4, 3),
        "array": np.zeros(4, np.float32),
    }


def linear(inputs: Inputs, gradient: bool) -> Names:
    """What a small layer works on."""
    x, w = inputs.normal(1, 16), inputs.normal(16, 16, seed=1, gradient=gradient)
    return {"x": x, "w": w, "b": inputs.normal(16, gradient=gradient)}


def chain(inputs: Inputs, gradient: bool) -> Names:
    """A hundred additions in a row: the function that does them, and a result."""
    x, addend = inputs.normal(4, gradient=gradient), inputs.normal(4, seed=1)

    def chain() -> Tensor:
        y = x
        for _ in range(CHAIN):
            y = y + addend
        return y

    return {"x": x, "chain": chain, "y": chain(), "ones": inputs.library.ones(4)}


def fan(inputs: Inputs) -> Names:
    """A power of `x` by products: two edges a node, and a gradient of `x` from each of them."""
    x = y = inputs.normal(4, gradient=True)
    for _ in range(FAN):
        y = y * x
    return {"x": x, "y": y, "ones": inputs.library.ones(4)}


def network(inputs: Inputs, optimizer: str = "SGD") -> Names:
    """A small network that has made one step of training."""
    library, nn = inputs.library, inputs.library.nn
    model = inputs.initialized(nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4)))
    stepping = getattr(library.optim, optimizer)(model.parameters(), lr=1e-3)
    x, y = inputs.normal(1, 16), inputs.normal(1, 4, seed=1)

    def step() -> Tensor:
        stepping.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        stepping.step()
        return loss

    step()
    return {"model": model, "optimizer": stepping, "x": x, "y": y, "step": step}


def identity(inputs: Inputs, hook: bool = False) -> Names:
    """A module that does nothing, optionally with a hook that does nothing."""
    module = inputs.library.nn.Identity()
    if hook:
        module.register_forward_hook(lambda module, given, output: None)
    return {"module": module, "x": inputs.normal(4)}


def custom_function(inputs: Inputs) -> Names:
    """A square with its gradient, in Python."""
    library = inputs.library
    Function: Any = library.autograd.Function

    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return 2 * x * gradient

    return {"Square": Square, "x": inputs.normal(4, gradient=True), "ones": library.ones(4)}


def doubled(inputs: Inputs, hook: bool) -> Names:
    """A result of one op, optionally with a hook on it that does nothing."""
    x = inputs.normal(4, gradient=True)
    y = x * 2.0
    if hook:
        y.register_hook(lambda gradient: gradient)
    return {"x": x, "y": y, "ones": inputs.library.ones(4)}


def double_backward(inputs: Inputs) -> Names:
    """The gradient of a gradient's square."""
    grad = inputs.library.autograd.grad
    x = inputs.normal(8, gradient=True)

    def second_gradient() -> Tensor:
        (first,) = grad((x.tanh() * x).sum(), x, create_graph=True)
        return grad((first * first).sum(), x)[0]

    return {"second_gradient": second_gradient}


# The LSTMs: features, sequences side by side.
WIDTH, BATCH = 32, 4


def lstm_layer(inputs: Inputs) -> Names:
    """The layer, which does all time steps in one call."""
    grad = inputs.library.autograd.grad
    xs = inputs.normal(TIME_STEPS, BATCH, WIDTH)
    layer = inputs.initialized(inputs.library.nn.LSTM(WIDTH, WIDTH))
    parameters = list(layer.parameters())

    def run() -> Any:
        _, (hidden, _) = layer(xs)
        return grad(hidden.sum(), parameters)

    return {"run": run}


def lstm_of_cells(inputs: Inputs) -> Names:
    """The cell, called once a time step."""
    library = inputs.library
    xs = inputs.normal(TIME_STEPS, BATCH, WIDTH)
    cell = inputs.initialized(library.nn.LSTMCell(WIDTH, WIDTH))
    parameters = list(cell.parameters())

    def run() -> Any:
        hidden, memory = library.zeros(BATCH, WIDTH), library.zeros(BATCH, WIDTH)
        for t in range(TIME_STEPS):
            hidden, memory = cell(xs[t], (hidden, memory))
        return library.autograd.grad(hidden.sum(), parameters)

    return {"run": run}


def written_out_lstm(inputs: Inputs) -> Names:
    """A cell of single ops."""
    library, linear = inputs.library, inputs.functional.linear
    xs = inputs.normal(TIME_STEPS, BATCH, WIDTH)
    of_input = inputs.normal(4 * WIDTH, WIDTH, scale=0.1, gradient=True)
    of_hidden = inputs.normal(4 * WIDTH, WIDTH, seed=1, scale=0.1, gradient=True)
    bias = inputs.normal(4 * WIDTH, scale=0.1, gradient=True)

    def run() -> Any:
        sigmoid, tanh = library.sigmoid, library.tanh
        hidden, memory = library.zeros(BATCH, WIDTH), library.zeros(BATCH, WIDTH)
        for t in range(TIME_STEPS):
            gates = linear(xs[t], of_input, bias) + linear(hidden, of_hidden)
            enter, forget, new, leave = gates.chunk(4, 1)
            memory = sigmoid(forget) * memory + sigmoid(enter) * tanh(new)
            hidden = sigmoid(leave) * tanh(memory)
        return library.autograd.grad(hidden.sum(), [of_input, of_hidden, bias])

    return {"run": run}


def deep_chain(library: Library, x: Tensor) -> Tensor:
    """A million additions in a row."""
    y, one = x, library.ones(1)
    for _ in range(DEEP):
        y = y + one
    return y


def deep_graph(inputs: Inputs) -> Action:
    """Makes, runs and frees a graph too deep for recursion, and frees one that was not run."""

    def run() -> dict[str, float]:
        clock = time.perf_counter
        x = inputs.normal(1, gradient=True)
        start = clock()
        y = deep_chain(inputs.library, x)
        built = clock()
        y.backward()
        ran = clock()
        gradient = float(x.grad.clone())
        del y, x
        gc.collect()
        freed = clock()
        y = deep_chain(inputs.library, inputs.normal(1, gradient=True))
        built_again = clock()
        del y
        return {
            "build_s": built - start,
            "backward_s": ran - built,
            "free_after_s": freed - ran,
            "free_unrun_s": clock() - built_again,
            "grad": gradient,
        }

    return run
