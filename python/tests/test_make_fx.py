"""`make_fx`: what a function runs, as a graph that computes the same."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
from pullback import functorch, nn
from pullback.fx.experimental import proxy_tensor
from pullback.fx.experimental.proxy_tensor import make_fx

aten: Any = torch.ops.aten


def targets(module: Any) -> list[Any]:
    return [node.target for node in module.graph.nodes if node.op == "call_function"]


def test_a_function_of_two_tensors() -> None:
    def f(x: torch.Tensor, y: torch.Tensor) -> Any:
        z = torch.sin(x) + y
        return {"twice": z * 2, "parts": [z.sum(), 3]}

    x, y = torch.randn(3), torch.randn(3)
    module = make_fx(f)(x, y)
    assert [node.target for node in module.graph.nodes][:2] == ["x_1", "y_1"]
    assert targets(module) == [
        aten.sin.default,
        aten.add.Tensor,
        aten.mul.Tensor,
        aten.sum.default,
    ]
    a, b = torch.randn(3), torch.randn(3)
    found, expected = module(a, b), f(a, b)
    assert torch.equal(found["twice"], expected["twice"])
    assert torch.equal(found["parts"][0], expected["parts"][0])
    assert found["parts"][1] == 3
    assert "torch.ops.aten.sin.default(x_1)" in module.code
    (sine,) = (node for node in module.graph.nodes if node.name == "sin")
    assert sine.meta["tensor_meta"].shape == (3,)


def test_the_backward_is_part_of_the_graph() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.func.grad(lambda v: (v.sin().exp() * v).sum())(x)

    module = make_fx(f)(torch.randn(4))
    assert aten.cos.default in targets(module)
    x = torch.randn(4)
    torch.testing.assert_close(module(x), f(x))
    assert not list(module.buffers())
    assert not [node for node in module.graph.nodes if node.op == "get_attr"]


def test_a_backward_by_the_engine() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        leaf = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad((leaf.tanh() ** 3).sum(), leaf)
        return slope

    x = torch.randn(4)
    module = make_fx(f)(torch.randn(4))
    torch.testing.assert_close(module(x), f(x))


def test_batches_are_seen_as_what_is_computed() -> None:
    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.vmap(torch.dot)(x, y)

    x, y = torch.randn(3, 4), torch.randn(3, 4)
    module = make_fx(f)(torch.randn(3, 4), torch.randn(3, 4))
    torch.testing.assert_close(module(x, y), f(x, y))


def test_tensors_from_outside_are_constants() -> None:
    weight, layer = torch.arange(3.0), nn.Linear(3, 2)
    module = make_fx(lambda x: layer(x * weight) + weight.sum())(torch.ones(2, 3))
    constants = {node.target for node in module.graph.nodes if node.op == "get_attr"}
    assert constants == {"_tensor_constant0", "_param_constant0", "_param_constant1"}
    x = torch.randn(2, 3)
    torch.testing.assert_close(module(x), layer(x * weight) + 3)
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.zero_()
    assert module(x).unique().tolist() == [3.0]


def test_writes_stay_in_their_order() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        row = y[0]
        y.mul_(2)
        row.add_(1)
        torch.add(y[1], 5, out=y[1])
        return y

    module = make_fx(f)(torch.ones(2, 2))
    x = torch.randn(2, 2)
    torch.testing.assert_close(module(x), f(x))
    assert aten.add_.Tensor in targets(module)


def test_inputs_that_are_written_to() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x * 2

    x = torch.zeros(2)
    module = make_fx(f)(torch.zeros(2))
    assert module(x).tolist() == [2.0, 2.0]
    assert x.tolist() == [1.0, 1.0]


def test_what_nobody_uses_is_left_out_but_draws_are_kept() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        x.exp()
        torch.rand(2)
        return x.cos()

    names = [target._opname for target in targets(make_fx(f)(torch.zeros(2)))]
    assert names == ["rand", "cos"]


def test_trees_of_inputs() -> None:
    def f(pair: Any, scale: int, rest: dict[str, torch.Tensor]) -> torch.Tensor:
        return (pair[0] + pair[1]) * scale + rest["b"]

    def given() -> Any:
        return [torch.randn(2), torch.randn(2)], 3, {"b": torch.randn(2)}

    module = make_fx(f)(*given())
    args = given()
    torch.testing.assert_close(module(*args), f(*args))
    with pytest.raises(RuntimeError, match="traced with arguments of structure"):
        module(args[0][0], args[1], args[2])


def test_several_results_are_taken_out_of_a_call() -> None:
    def f(x: torch.Tensor) -> Any:
        values, indices = x.sort()
        return values * 2, indices

    x = torch.randn(5)
    module = make_fx(f)(torch.randn(5))
    for found, expected in zip(module(x), f(x), strict=True):
        assert torch.equal(found, expected)


def test_values_of_traced_tensors_are_refused_those_of_constants_are_not() -> None:
    with pytest.raises(RuntimeError, match="trying to get value out of a tracing tensor"):
        make_fx(lambda x: x if x.sum() > 0 else -x)(torch.ones(2))
    number = torch.tensor(2.0)
    assert make_fx(lambda x: x * number.item())(torch.ones(2))(torch.ones(1)).tolist() == [2.0]


def test_ops_are_decomposed_on_request() -> None:
    table = {aten.tanh.default: lambda x: 1 - 2 / ((2 * x).exp() + 1)}
    module = make_fx(torch.tanh, decomposition_table=table)(torch.zeros(3))
    assert aten.tanh.default not in targets(module)
    assert aten.exp.default in targets(module)
    x = torch.randn(3)
    torch.testing.assert_close(module(x), x.tanh())


def test_tracing_is_switched_off_within_a_context() -> None:
    seen = []

    def f(x: torch.Tensor) -> torch.Tensor:
        seen.append(proxy_tensor.get_proxy_mode())
        with proxy_tensor.disable_proxy_modes_tracing():
            seen.append(proxy_tensor.get_proxy_mode())
            shift = torch.ones(1).exp()
        return x + shift

    module = make_fx(f)(torch.zeros(2))
    assert isinstance(seen[0], proxy_tensor.ProxyTorchDispatchMode)
    assert seen[1] is None
    assert targets(module) == [aten.add.Tensor]
    assert proxy_tensor.get_proxy_mode() is None


def test_the_graph_differentiates() -> None:
    module = make_fx(lambda x: (x**2).sum())(torch.ones(2))
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    module(x).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 4.0]


def test_options_that_need_more_are_refused() -> None:
    for mode in ("fake", "symbolic"):
        with pytest.raises(
            NotImplementedError, match="no symbolic shapes; use tracing_mode='real'"
        ):
            make_fx(torch.sin, tracing_mode=mode)
    with pytest.raises(AssertionError, match="got 'x'"):
        make_fx(torch.sin, tracing_mode="x")
    with pytest.raises(NotImplementedError, match="pre_dispatch=True"):
        make_fx(torch.sin, pre_dispatch=True)
    assert functorch.make_fx is make_fx


def test_ops_of_a_program_are_nodes() -> None:
    @torch.library.custom_op("make_fx_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    module = make_fx(lambda x: twice(x) + 1)(torch.ones(2))
    assert module(torch.full((3,), 4.0)).tolist() == [9.0, 9.0, 9.0]


def test_steps_of_optimisers_are_kept() -> None:
    def f(p: torch.Tensor, g: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        torch._foreach_mul_([m], 0.5)
        torch._foreach_add_([m], [g])
        p.sub_(m)
        return p

    def given() -> list[torch.Tensor]:
        return [torch.ones(2), torch.full((2,), 3.0), torch.full((2,), 4.0)]

    module = make_fx(f)(*given())
    assert torch.equal(module(*given()), f(*given()))
